"""A random language model of the class of Qwen3-0.6B, and a tokenizer of its kind.

    python model.py OUT --seed 0

OUT becomes a folder as the hub has it: configuration, weights, tokenizer. Keys are shared by two
heads each, and queries and keys are normalised, as in the original; unlike there the last layer
does not share its weights with the first, and is large: with shared ones a random model repeats
its last token whatever came before it, and with small ones it finds every token equally likely.
"""

from __future__ import annotations

import argparse
import json
import math
from pathlib import Path

import numpy as np
from safetensors.numpy import save_file
from tokenizers import Tokenizer, decoders, models, pre_tokenizers, trainers

WIDTH, INNER, LAYERS, HEADS, SHARED, HEAD, TOKENS = 128, 256, 4, 4, 2, 64, 512
CONTEXT = 4096
STEPS = 2**15
SPECIAL = ("<|endoftext|>", "<|im_start|>", "<|im_end|>")
#: Of the logits, before they are divided by the temperature.
SPREAD = 6.0
TEXT = (
    "Introduce yourself. List all prime numbers within 100. Who wrote this text, and when? "
    "A sentence that both prompts begin with is read once, and kept for the other one."
)


def tokenizer() -> Tokenizer:
    """Byte-level BPE."""
    made = Tokenizer(models.BPE())
    made.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    made.decoder = decoders.ByteLevel()
    trainer = trainers.BpeTrainer(
        vocab_size=TOKENS,
        special_tokens=list(SPECIAL),
        initial_alphabet=sorted(pre_tokenizers.ByteLevel.alphabet()),
        show_progress=False,
    )
    made.train_from_iterator([TEXT], trainer)
    return made


def weights(seed: int) -> dict[str, np.ndarray]:
    """The parameters of a Qwen3 by their names."""
    random = np.random.default_rng(seed)
    state: dict[str, np.ndarray] = {}

    def layer(name: str, rows: int, columns: int, spread: float = 1.0) -> None:
        # Whole numbers, which every processor draws alike, to a variance of spread² / columns.
        whole = random.integers(-STEPS, STEPS + 1, (rows, columns))
        scale = spread * math.sqrt(3 / columns) / STEPS
        state[f"{name}.weight"] = (whole * scale).astype(np.float32)

    def norm(name: str, width: int = WIDTH) -> None:
        state[f"{name}.weight"] = np.ones(width, np.float32)

    layer("model.embed_tokens", TOKENS, WIDTH)
    for number in range(LAYERS):
        block = f"model.layers.{number}."
        norm(f"{block}input_layernorm")
        layer(f"{block}self_attn.q_proj", HEADS * HEAD, WIDTH)
        for part in ("k_proj", "v_proj"):
            layer(f"{block}self_attn.{part}", SHARED * HEAD, WIDTH)
        for part in ("q_norm", "k_norm"):
            norm(f"{block}self_attn.{part}", HEAD)
        layer(f"{block}self_attn.o_proj", WIDTH, HEADS * HEAD)
        norm(f"{block}post_attention_layernorm")
        for part in ("gate_proj", "up_proj"):
            layer(f"{block}mlp.{part}", INNER, WIDTH)
        layer(f"{block}mlp.down_proj", WIDTH, INNER)
    norm("model.norm")
    layer("lm_head", TOKENS, WIDTH, SPREAD)
    return state


def main() -> None:
    """Write the folder."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("out", type=Path)
    parser.add_argument("--seed", type=int, default=0)
    arguments = parser.parse_args()

    words = tokenizer()
    begin, _, end = (words.token_to_id(text) for text in SPECIAL)
    ends = {"bos_token_id": begin, "eos_token_id": end}
    files = {
        "config": {
            "architectures": ["Qwen3ForCausalLM"],
            "model_type": "qwen3",
            "attention_bias": False,
            "vocab_size": TOKENS,
            "hidden_size": WIDTH,
            "intermediate_size": INNER,
            "num_hidden_layers": LAYERS,
            "num_attention_heads": HEADS,
            "num_key_value_heads": SHARED,
            "head_dim": HEAD,
            "max_position_embeddings": CONTEXT,
            "hidden_act": "silu",
            "rms_norm_eps": 1e-06,
            "rope_theta": 1000000,
            "rope_scaling": None,
            "tie_word_embeddings": False,
            "torch_dtype": "bfloat16",
            **ends,
        },
        "generation_config": ends,
        "tokenizer_config": {
            "tokenizer_class": "PreTrainedTokenizerFast",
            "model_max_length": CONTEXT,
            "clean_up_tokenization_spaces": False,
            "eos_token": SPECIAL[2],
            "pad_token": SPECIAL[0],
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
