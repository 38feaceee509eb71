"""A random language model of the class of Llama 3.1, and a tokenizer of its kind.

    python model.py OUT --seed 0

OUT becomes a folder as the hub has it: configuration, weights, tokenizer. Heads share keys as in
the original, and have 32 numbers, which flash-attn takes as they are. Eight layers and a small
vocabulary, so that a device map which balances two GPUs gives layers to both.
"""

from __future__ import annotations

import argparse
import json
import math
from pathlib import Path

import numpy as np
from safetensors.numpy import save_file
from tokenizers import Tokenizer, decoders, models, pre_tokenizers, trainers

WIDTH, INNER, LAYERS, HEADS, SHARED, TOKENS = 128, 256, 8, 4, 2, 512
CONTEXT = 2048
STEPS = 2**15
SPECIAL = {"unk": "<unk>", "bos": "<s>", "eos": "</s>"}
#: What the tokenizer is trained on. All bytes are in it from the start, so any text can be read.
TEXT = (
    "How are you? Each block of a text is known by the mean of its keys, and each word asks those "
    "blocks that answer it best. The last block is always asked."
)


def tokenizer() -> Tokenizer:
    """Byte-level BPE."""
    made = Tokenizer(models.BPE())
    made.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    made.decoder = decoders.ByteLevel()
    trainer = trainers.BpeTrainer(
        vocab_size=TOKENS,
        special_tokens=list(SPECIAL.values()),
        initial_alphabet=sorted(pre_tokenizers.ByteLevel.alphabet()),
        show_progress=False,
    )
    made.train_from_iterator([TEXT], trainer)
    return made


def weights(seed: int) -> dict[str, np.ndarray]:
    """The parameters of a Llama by their names."""
    random = np.random.default_rng(seed)
    state: dict[str, np.ndarray] = {}

    def layer(name: str, rows: int, columns: int) -> None:
        # Whole numbers, which every processor draws alike, to a variance of 1 / columns.
        whole = random.integers(-STEPS, STEPS + 1, (rows, columns))
        state[f"{name}.weight"] = (whole * (math.sqrt(3 / columns) / STEPS)).astype(np.float32)

    def norm(name: str) -> None:
        state[f"{name}.weight"] = np.ones(WIDTH, np.float32)

    layer("model.embed_tokens", TOKENS, WIDTH)
    for number in range(LAYERS):
        block = f"model.layers.{number}."
        norm(f"{block}input_layernorm")
        layer(f"{block}self_attn.q_proj", WIDTH, WIDTH)
        for part in ("k_proj", "v_proj"):
            layer(f"{block}self_attn.{part}", WIDTH // HEADS * SHARED, WIDTH)
        layer(f"{block}self_attn.o_proj", WIDTH, WIDTH)
        norm(f"{block}post_attention_layernorm")
        for part in ("gate_proj", "up_proj"):
            layer(f"{block}mlp.{part}", INNER, WIDTH)
        layer(f"{block}mlp.down_proj", WIDTH, INNER)
    norm("model.norm")
    layer("lm_head", TOKENS, WIDTH)
    return state


def main() -> None:
    """Write the folder."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("out", type=Path)
    parser.add_argument("--seed", type=int, default=0)
    arguments = parser.parse_args()

    words = tokenizer()
    number = {key: words.token_to_id(text) for key, text in SPECIAL.items()}
    ends = {"bos_token_id": number["bos"], "eos_token_id": number["eos"]}
    files = {
        "config": {
            "architectures": ["LlamaForCausalLM"],
            "model_type": "llama",
            "vocab_size": TOKENS,
            "hidden_size": WIDTH,
            "intermediate_size": INNER,
            "num_hidden_layers": LAYERS,
            "num_attention_heads": HEADS,
            "num_key_value_heads": SHARED,
            "max_position_embeddings": CONTEXT,
            "hidden_act": "silu",
            "rms_norm_eps": 1e-05,
            "rope_theta": 10000.0,
            "tie_word_embeddings": False,
            "torch_dtype": "float16",
            **ends,
        },
        "generation_config": ends,
        "tokenizer_config": {
            "tokenizer_class": "PreTrainedTokenizerFast",
            "model_max_length": CONTEXT,
            "clean_up_tokenization_spaces": False,
            **{f"{key}_token": text for key, text in SPECIAL.items()},
        },
    }

    arguments.out.mkdir(parents=True)
    for name, content in files.items():
        text = json.dumps(content, indent=2) + "\n"
        (arguments.out / f"{name}.json").write_text(text, encoding="utf-8")
    words.save(str(arguments.out / "tokenizer.json"))
    save_file(weights(arguments.seed), arguments.out / "model.safetensors", {"format": "pt"})


if __name__ == "__main__":
    main()
