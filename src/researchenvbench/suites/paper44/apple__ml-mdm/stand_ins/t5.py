"""Makes a text encoder's stand-in: a T5 with random weights, one layer on each side.

Called as `python t5.py OUT --seed N`. Its tokens are as many as those of the original, since the
repository has a vocabulary of its own for them.
"""

from __future__ import annotations

import argparse
import json
import math
from pathlib import Path

import numpy
from safetensors.numpy import save_file

WIDTH, HEADS, HEAD, INNER, TOKENS, BUCKETS = 64, 4, 16, 128, 32128, 32
STEPS = 1 << 20
CONFIG = {
    "architectures": ["T5ForConditionalGeneration"],
    "d_ff": INNER,
    "d_kv": HEAD,
    "d_model": WIDTH,
    "decoder_start_token_id": 0,
    "eos_token_id": 1,
    "feed_forward_proj": "gated-gelu",
    "model_type": "t5",
    "num_decoder_layers": 1,
    "num_heads": HEADS,
    "num_layers": 1,
    "pad_token_id": 0,
    "relative_attention_num_buckets": BUCKETS,
    "tie_word_embeddings": False,
    "vocab_size": TOKENS,
}


class Weights(dict[str, numpy.ndarray]):
    """Arrays by name, drawn in the order in which they are asked for."""

    def __init__(self, seed: int) -> None:
        super().__init__()
        self._random = numpy.random.default_rng(seed)

    def draw(self, name: str, *shape: int, spread: float) -> None:
        """Numbers with this standard deviation."""
        whole = self._random.integers(-STEPS, STEPS + 1, shape)
        self[f"{name}.weight"] = (whole * (math.sqrt(3) * spread / STEPS)).astype(numpy.float32)

    def norm(self, name: str) -> None:
        """A normalization, which begins as one."""
        self[f"{name}.weight"] = numpy.ones(WIDTH, dtype=numpy.float32)

    def attention(self, name: str, *, places: bool) -> None:
        """Attention, which knows how far tokens are apart where it is the first."""
        for part in "qkv":
            self.draw(f"{name}.{part}", HEADS * HEAD, WIDTH, spread=1 / math.sqrt(WIDTH * HEAD))
        self.draw(f"{name}.o", WIDTH, HEADS * HEAD, spread=1 / math.sqrt(HEADS * HEAD))
        if places:
            self.draw(f"{name}.relative_attention_bias", BUCKETS, HEADS, spread=0.1)

    def stack(self, name: str, attentions: list[str]) -> None:
        """A layer of the encoder or of the decoder, and what ends it."""
        for number, attention in enumerate(attentions):
            at = f"{name}.block.0.layer.{number}"
            self.norm(f"{at}.layer_norm")
            self.attention(f"{at}.{attention}", places=number == 0)
        at = f"{name}.block.0.layer.{len(attentions)}"
        self.norm(f"{at}.layer_norm")
        shapes = {"wi_0": (INNER, WIDTH), "wi_1": (INNER, WIDTH), "wo": (WIDTH, INNER)}
        for part, (out, into) in shapes.items():
            self.draw(f"{at}.DenseReluDense.{part}", out, into, spread=1 / math.sqrt(into))
        self.norm(f"{name}.final_layer_norm")


def draw(seed: int) -> dict[str, numpy.ndarray]:
    """All weights of the model."""
    weights = Weights(seed)
    weights.draw("shared", TOKENS, WIDTH, spread=1)
    weights.stack("encoder", ["SelfAttention"])
    weights.stack("decoder", ["SelfAttention", "EncDecAttention"])
    weights.draw("lm_head", TOKENS, WIDTH, spread=1)
    return dict(weights)


def main() -> None:
    """Write the folder."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("out", type=Path, help="the folder to make")
    parser.add_argument("--seed", type=int, default=0)
    arguments = parser.parse_args()
    arguments.out.mkdir(parents=True)
    text = json.dumps(CONFIG, indent=2, sort_keys=True) + "\n"
    (arguments.out / "config.json").write_text(text, encoding="utf-8")
    save_file(draw(arguments.seed), arguments.out / "model.safetensors", {"format": "pt"})


if __name__ == "__main__":
    main()
