"""A random encoder of the class of ettin-encoder-17m (ModernBERT), and a tokenizer of its kind.

    python encoder.py OUT --seed 0

OUT becomes a folder as the hub has it: configuration, weights, tokenizer. The kinds of layer
are the original's (every third attends to all, the others to a window); the sizes are small.
"""

from __future__ import annotations

import argparse
import json
import math
from pathlib import Path

import numpy as np
from safetensors.numpy import save_file
from tokenizers import Tokenizer, decoders, models, pre_tokenizers, processors, trainers

WIDTH, INNER, LAYERS, HEADS, TOKENS = 64, 96, 4, 2, 512
CONTEXT = 8192
STEPS = 2**15
SPECIAL = {"unk": "[UNK]", "cls": "[CLS]", "sep": "[SEP]", "pad": "[PAD]", "mask": "[MASK]"}
#: What the tokenizer is trained on. All bytes are in it from the start, so any text can be read.
TEXT = (
    "Briefly answer the following question. Bear in mind that your response should be strictly "
    "based on the following passages. In case the passages do not contain the necessary "
    "information to answer the question, please reply with: Unable to answer based on given "
    "passages. output: Summarize the following news within 120 words. Write an objective "
    "overview about the following local business based only on the provided structured data. "
    "The river rises in the mountains and flows through the town, which has a bridge, a market "
    "and a school. The museum was opened to the public and is visited by many people each year."
)


def tokenizer() -> Tokenizer:
    """Byte-level BPE that puts a text, or a pair of texts, between [CLS] and [SEP]."""
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
    ends = [(SPECIAL[key], made.token_to_id(SPECIAL[key])) for key in ("cls", "sep")]
    made.post_processor = processors.TemplateProcessing(
        single="[CLS] $A [SEP]", pair="[CLS] $A [SEP] $B [SEP]", special_tokens=ends
    )
    return made


def weights(seed: int) -> dict[str, np.ndarray]:
    """The parameters of a ModernBERT with the head for masked words, by their names."""
    random = np.random.default_rng(seed)
    state: dict[str, np.ndarray] = {}

    def layer(name: str, rows: int, columns: int) -> None:
        # Whole numbers, which every processor draws alike, to a variance of 1 / columns.
        whole = random.integers(-STEPS, STEPS + 1, (rows, columns))
        state[f"{name}.weight"] = (whole * (math.sqrt(3 / columns) / STEPS)).astype(np.float32)

    def norm(name: str) -> None:
        state[f"{name}.weight"] = np.ones(WIDTH, np.float32)

    layer("model.embeddings.tok_embeddings", TOKENS, WIDTH)
    norm("model.embeddings.norm")
    for number in range(LAYERS):
        block = f"model.layers.{number}."
        if number:  # the first layer has none: the embeddings are normed already
            norm(f"{block}attn_norm")
        layer(f"{block}attn.Wqkv", 3 * WIDTH, WIDTH)
        layer(f"{block}attn.Wo", WIDTH, WIDTH)
        norm(f"{block}mlp_norm")
        layer(f"{block}mlp.Wi", 2 * INNER, WIDTH)
        layer(f"{block}mlp.Wo", WIDTH, INNER)
    norm("model.final_norm")
    layer("head.dense", WIDTH, WIDTH)
    norm("head.norm")
    state["decoder.bias"] = np.zeros(TOKENS, np.float32)
    return state


def main() -> None:
    """Write the folder."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("out", type=Path)
    parser.add_argument("--seed", type=int, default=0)
    arguments = parser.parse_args()

    words = tokenizer()
    number = {key: words.token_to_id(text) for key, text in SPECIAL.items()}
    config = {
        "architectures": ["ModernBertForMaskedLM"],
        "model_type": "modernbert",
        "vocab_size": TOKENS,
        "hidden_size": WIDTH,
        "intermediate_size": INNER,
        "num_hidden_layers": LAYERS,
        "num_attention_heads": HEADS,
        "max_position_embeddings": CONTEXT,
        "global_attn_every_n_layers": 3,
        "local_attention": 128,
        "global_rope_theta": 160000.0,
        "local_rope_theta": 160000.0,
        "hidden_activation": "gelu",
        "classifier_pooling": "mean",
        "classifier_dropout": 0.0,
        "attention_bias": False,
        "mlp_bias": False,
        "norm_bias": False,
        "decoder_bias": True,
        "tie_word_embeddings": True,
        "bos_token_id": number["cls"],
        "cls_token_id": number["cls"],
        "eos_token_id": number["sep"],
        "sep_token_id": number["sep"],
        "pad_token_id": number["pad"],
        "torch_dtype": "float32",
    }
    tokenizer_config = {
        "tokenizer_class": "PreTrainedTokenizerFast",
        "model_max_length": CONTEXT,
        "model_input_names": ["input_ids", "attention_mask"],
        "clean_up_tokenization_spaces": True,
        **{f"{key}_token": text for key, text in SPECIAL.items()},
    }

    arguments.out.mkdir(parents=True)
    for name, content in (("config", config), ("tokenizer_config", tokenizer_config)):
        text = json.dumps(content, indent=2) + "\n"
        (arguments.out / f"{name}.json").write_text(text, encoding="utf-8")
    words.save(str(arguments.out / "tokenizer.json"))
    save_file(weights(arguments.seed), arguments.out / "model.safetensors", {"format": "pt"})


if __name__ == "__main__":
    main()
