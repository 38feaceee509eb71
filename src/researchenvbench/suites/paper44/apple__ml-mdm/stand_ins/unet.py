"""Makes a checkpoint's stand-in: random weights of the repository's network, at one resolution.

Called as `python unet.py OUT --seed N`. It holds what generating asks of it, as `save` of the
network writes it: the weights by their names, and the number of the batch after which they were
kept.
"""

from __future__ import annotations

import argparse
import math
from pathlib import Path

import numpy
import torch

WIDTH, TIME, TEXT = 32, 128, 64
STEPS = 1 << 20


class Weights(dict[str, torch.Tensor]):
    """Tensors by name, drawn in the order in which they are asked for."""

    def __init__(self, seed: int) -> None:
        super().__init__()
        self._random = numpy.random.default_rng(seed)

    def draw(self, name: str, *shape: int, spread: float) -> None:
        """Numbers with this standard deviation."""
        whole = self._random.integers(-STEPS, STEPS + 1, shape)
        values = (whole * (math.sqrt(3) * spread / STEPS)).astype(numpy.float32)
        self[name] = torch.from_numpy(values)

    def linear(self, name: str, out: int, into: int, *, bias: bool = True) -> None:
        """A matrix that keeps the size of what passes it."""
        self.draw(f"{name}.weight", out, into, spread=1 / math.sqrt(into))
        if bias:
            self.draw(f"{name}.bias", out, spread=0.02)

    def convolution(self, name: str, out: int, into: int, size: int) -> None:
        """A square convolution."""
        self.draw(f"{name}.weight", out, into, size, size, spread=1 / (size * math.sqrt(into)))
        self.draw(f"{name}.bias", out, spread=0.02)

    def norm(self, name: str, width: int) -> None:
        """A normalization, which begins as one."""
        self[f"{name}.weight"] = torch.ones(width)
        self[f"{name}.bias"] = torch.zeros(width)

    def residual(self, name: str, into: int) -> None:
        """A residual block, which is told the time."""
        self.norm(f"{name}.norm1", into)
        self.convolution(f"{name}.conv1", WIDTH, into, 3)
        self.linear(f"{name}.time_layer", 2 * WIDTH, TIME)
        self.norm(f"{name}.norm2", WIDTH)
        self.convolution(f"{name}.conv2", WIDTH, WIDTH, 3)
        if into != WIDTH:
            self.convolution(f"{name}.conv3", WIDTH, into, 1)

    def attention(self, name: str) -> None:
        """Attention to the picture and to the text."""
        self.norm(f"{name}.norm", WIDTH)
        self.convolution(f"{name}.qkv", 3 * WIDTH, WIDTH, 1)
        self.norm(f"{name}.norm_cond", TEXT)
        self.linear(f"{name}.kv_cond", 2 * WIDTH, TEXT)
        self.convolution(f"{name}.proj_out", WIDTH, WIDTH, 1)
        self.norm(f"{name}.ffn.0", WIDTH)
        self.convolution(f"{name}.ffn.1", 4 * WIDTH, WIDTH, 1)
        self.convolution(f"{name}.ffn.3", WIDTH, 4 * WIDTH, 1)


def draw(seed: int) -> dict[str, torch.Tensor]:
    """All weights of the network."""
    weights = Weights(seed)
    weights.linear("temb_layer1", TIME, WIDTH)
    weights.linear("temb_layer2", TIME, TIME)
    weights.linear("cond_emb", TIME, TEXT, bias=False)
    weights.linear("cond_layers.scale.0", TIME, WIDTH)
    weights.linear("cond_layers.scale.1", TIME, TIME)
    weights.linear("lm_proj", TEXT, TEXT)
    weights.convolution("conv_in", WIDTH, 3, 3)
    weights.residual("down_blocks.0.resnets.0", WIDTH)
    weights.residual("mid_blocks.0.resnets.0", WIDTH)
    weights.attention("mid_blocks.0.attn.0")
    weights.residual("mid_blocks.1.resnets.0", WIDTH)
    # Each of these is also given what the way down had at its place.
    weights.residual("up_blocks.0.resnets.0", 2 * WIDTH)
    weights.residual("up_blocks.0.resnets.1", 2 * WIDTH)
    weights.norm("norm_out", WIDTH)
    weights.convolution("conv_out", 3, WIDTH, 3)
    return dict(weights)


def main() -> None:
    """Write the file."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("out", type=Path, help="the file to make")
    parser.add_argument("--seed", type=int, default=0)
    arguments = parser.parse_args()
    torch.save({"state_dict": draw(arguments.seed), "batch_num": 1}, arguments.out)


if __name__ == "__main__":
    main()
