"""Makes a language model's stand-in: a BERT with random weights, two layers, and letters as tokens.

Called as `python bert.py OUT --seed N`. The files are those that the original's folder has for
torch: `config.json`, `vocab.txt`, `tokenizer_config.json` and `model.safetensors`.
"""

from __future__ import annotations

import argparse
import json
import math
import string
from pathlib import Path

import numpy
from safetensors.numpy import save_file

WIDTH, HEADS, LAYERS, INNER, POSITIONS = 64, 4, 2, 128, 512
STEPS = 1 << 20
LETTERS = string.ascii_lowercase + string.digits
VOCABULARY = [
    *("[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"),
    *LETTERS,
    *(f"##{letter}" for letter in LETTERS),
]
CONFIG = {
    "architectures": ["BertModel"],
    "hidden_act": "gelu",
    "hidden_size": WIDTH,
    "intermediate_size": INNER,
    "layer_norm_eps": 1e-12,
    "max_position_embeddings": POSITIONS,
    "model_type": "bert",
    "num_attention_heads": HEADS,
    "num_hidden_layers": LAYERS,
    "pad_token_id": 0,
    "type_vocab_size": 2,
    "vocab_size": len(VOCABULARY),
}


class Weights(dict[str, numpy.ndarray]):
    """Arrays by name, drawn in the order in which they are asked for."""

    def __init__(self, seed: int) -> None:
        super().__init__()
        self._random = numpy.random.default_rng(seed)

    def draw(self, name: str, *shape: int, spread: float) -> None:
        """Numbers with this standard deviation."""
        whole = self._random.integers(-STEPS, STEPS + 1, shape)
        self[name] = (whole * (math.sqrt(3) * spread / STEPS)).astype(numpy.float32)

    def linear(self, name: str, out: int, into: int) -> None:
        """A matrix that keeps the size of what passes it, with its bias."""
        self.draw(f"{name}.weight", out, into, spread=1 / math.sqrt(into))
        self.draw(f"{name}.bias", out, spread=0.02)

    def norm(self, name: str) -> None:
        """A normalization, which begins as one."""
        self[f"{name}.weight"] = numpy.ones(WIDTH, dtype=numpy.float32)
        self[f"{name}.bias"] = numpy.zeros(WIDTH, dtype=numpy.float32)


def draw(seed: int) -> dict[str, numpy.ndarray]:
    """All weights of the model."""
    weights = Weights(seed)
    weights.draw("embeddings.word_embeddings.weight", len(VOCABULARY), WIDTH, spread=1)
    weights.draw("embeddings.position_embeddings.weight", POSITIONS, WIDTH, spread=0.2)
    weights.draw("embeddings.token_type_embeddings.weight", 2, WIDTH, spread=0.2)
    weights.norm("embeddings.LayerNorm")
    for layer in range(LAYERS):
        at = f"encoder.layer.{layer}"
        for part in ("query", "key", "value"):
            weights.linear(f"{at}.attention.self.{part}", WIDTH, WIDTH)
        weights.linear(f"{at}.attention.output.dense", WIDTH, WIDTH)
        weights.norm(f"{at}.attention.output.LayerNorm")
        weights.linear(f"{at}.intermediate.dense", INNER, WIDTH)
        weights.linear(f"{at}.output.dense", WIDTH, INNER)
        weights.norm(f"{at}.output.LayerNorm")
    weights.linear("pooler.dense", WIDTH, WIDTH)
    return dict(weights)


def main() -> None:
    """Write the folder."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("out", type=Path, help="the folder to make")
    parser.add_argument("--seed", type=int, default=0)
    arguments = parser.parse_args()
    arguments.out.mkdir(parents=True)
    tokenizer = {"do_lower_case": True, "tokenizer_class": "BertTokenizer"}
    for name, content in (("config.json", CONFIG), ("tokenizer_config.json", tokenizer)):
        text = json.dumps(content, indent=2, sort_keys=True) + "\n"
        (arguments.out / name).write_text(text, encoding="utf-8")
    (arguments.out / "vocab.txt").write_text("\n".join(VOCABULARY) + "\n", encoding="utf-8")
    save_file(draw(arguments.seed), arguments.out / "model.safetensors", {"format": "pt"})


if __name__ == "__main__":
    main()
