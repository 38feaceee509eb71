"""Makes pretrained weights of the smallest vision transformer of the repository, at random.

    python backbone.py OUT.pth --seed 0

The architecture is `deit-tiny` of pretrain/mmpretrain, with the picture and patch sizes of the
configuration that is trained, and without a class token. Drawn are whole numbers: torch's normal
ones differ between processors.
"""

import argparse
import math
from pathlib import Path

import numpy as np
import torch

STEPS = 1 << 12
WIDTH, HIDDEN, LAYERS = 192, 768, 12
PATCH, PATCHES = 16, (1024 // 16) * (768 // 16)


def main() -> None:
    """Write the file."""
    parser = argparse.ArgumentParser()
    parser.add_argument("out", type=Path)
    parser.add_argument("--seed", type=int, default=0)
    arguments = parser.parse_args()
    random = np.random.default_rng(arguments.seed)
    weights: dict[str, torch.Tensor] = {}

    def draw(*shape: int, spread: float) -> torch.Tensor:
        whole = random.integers(-STEPS, STEPS + 1, shape)
        return torch.from_numpy((whole * (math.sqrt(3) * spread / STEPS)).astype(np.float32))

    def linear(name: str, out: int, into: int) -> None:
        weights[f"{name}.weight"] = draw(out, into, spread=1 / math.sqrt(into))
        weights[f"{name}.bias"] = torch.zeros(out)

    def norm(name: str) -> None:
        weights[f"{name}.weight"] = torch.ones(WIDTH)
        weights[f"{name}.bias"] = torch.zeros(WIDTH)

    weights["pos_embed"] = draw(1, PATCHES, WIDTH, spread=0.02)
    linear("patch_embed.projection", WIDTH, 3 * PATCH * PATCH)
    flat = weights["patch_embed.projection.weight"]
    weights["patch_embed.projection.weight"] = flat.reshape(WIDTH, 3, PATCH, PATCH)
    for layer in range(LAYERS):
        at = f"layers.{layer}"
        norm(f"{at}.ln1")
        linear(f"{at}.attn.qkv", 3 * WIDTH, WIDTH)
        linear(f"{at}.attn.proj", WIDTH, WIDTH)
        norm(f"{at}.ln2")
        linear(f"{at}.ffn.layers.0.0", HIDDEN, WIDTH)
        linear(f"{at}.ffn.layers.1", WIDTH, HIDDEN)
    norm("ln1")
    # A stream, so that the name of the file does not become part of its content.
    with arguments.out.open("wb") as stream:
        torch.save({"state_dict": weights}, stream)


if __name__ == "__main__":
    main()
