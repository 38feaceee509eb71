"""Random weights of the model with its smallest encoder, `vits`, as the hub's folder has them.

    python weights.py OUT --seed 0

OUT becomes a folder with `config.json`, from which the class builds itself, and the state dict.
The encoder is chosen by name, so its sizes are the real ones: 24.8 million numbers. They are
pieces of one pool, which torch keeps once, so that the file has 6 MB instead of 99.
"""

from __future__ import annotations

import argparse
import io
import json
import math
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import torch

if TYPE_CHECKING:
    from collections.abc import Iterator

WIDTH, BLOCKS, PATCH, SIDE = 384, 12, 14, 518 // 14
FEATURES, CHANNELS = 64, (48, 96, 192, 384)
#: Near 1 / sqrt(WIDTH): what goes through a layer neither dies out nor explodes.
SPREAD = 0.05
#: The network ends with two ReLUs: without it half of the depths or more would be 0.
LAST_BIAS = 1.0
STEPS = 2**15


def encoder() -> Iterator[tuple[str, tuple[int, ...]]]:
    """Names and shapes of the parameters of the vision transformer."""
    yield "cls_token", (1, 1, WIDTH)
    yield "pos_embed", (1, SIDE * SIDE + 1, WIDTH)
    yield "mask_token", (1, WIDTH)
    yield "patch_embed.proj.weight", (WIDTH, 3, PATCH, PATCH)
    yield "patch_embed.proj.bias", (WIDTH,)
    layers = {
        "norm1": (WIDTH,),
        "attn.qkv": (3 * WIDTH, WIDTH),
        "attn.proj": (WIDTH, WIDTH),
        "norm2": (WIDTH,),
        "mlp.fc1": (4 * WIDTH, WIDTH),
        "mlp.fc2": (WIDTH, 4 * WIDTH),
    }
    for number in range(BLOCKS):
        for name, shape in layers.items():
            yield f"blocks.{number}.{name}.weight", shape
            yield f"blocks.{number}.{name}.bias", shape[:1]
        for name in ("ls1", "ls2"):
            yield f"blocks.{number}.{name}.gamma", (WIDTH,)
    yield "norm.weight", (WIDTH,)
    yield "norm.bias", (WIDTH,)


def head() -> Iterator[tuple[str, tuple[int, ...]]]:
    """Names and shapes of the parameters of what makes a depth of the encoder's features."""
    layers: dict[str, tuple[int, ...]] = {
        f"projects.{number}": (channels, WIDTH, 1, 1) for number, channels in enumerate(CHANNELS)
    }
    for number, side in ((0, 4), (1, 2), (3, 3)):
        layers[f"resize_layers.{number}"] = (CHANNELS[number], CHANNELS[number], side, side)
    for number in range(1, 5):
        fusion = f"scratch.refinenet{number}."
        layers[f"{fusion}out_conv"] = (FEATURES, FEATURES, 1, 1)
        for unit in (1, 2):
            for conv in (1, 2):
                layers[f"{fusion}resConfUnit{unit}.conv{conv}"] = (FEATURES, FEATURES, 3, 3)
    layers["scratch.output_conv1"] = (FEATURES // 2, FEATURES, 3, 3)
    layers["scratch.output_conv2.0"] = (32, FEATURES // 2, 3, 3)
    layers["scratch.output_conv2.2"] = (1, 32, 1, 1)
    for name, shape in layers.items():
        yield f"{name}.weight", shape
        yield f"{name}.bias", shape[:1]
    for number, channels in enumerate(CHANNELS, 1):
        yield f"scratch.layer{number}_rn.weight", (FEATURES, channels, 3, 3)


def main() -> None:
    """Write the folder."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("out", type=Path)
    parser.add_argument("--seed", type=int, default=0)
    arguments = parser.parse_args()

    wanted = {f"pretrained.{name}": shape for name, shape in encoder()}
    wanted |= {f"depth_head.{name}": shape for name, shape in head()}
    # Whole numbers, which every processor draws alike; as many as the largest parameter takes.
    draw = np.random.default_rng(arguments.seed)
    largest = max(math.prod(shape) for shape in wanted.values())
    whole = draw.integers(-STEPS, STEPS + 1, largest + 2**16)
    pool = torch.from_numpy((whole * (math.sqrt(3) * SPREAD / STEPS)).astype(np.float32))
    one, zero = torch.ones(1), torch.zeros(1)
    state = {}
    for name, shape in wanted.items():
        if name.endswith("gamma") or ("norm" in name and name.endswith("weight")):
            state[name] = one.expand(shape)
        elif name.endswith("bias"):
            state[name] = zero.expand(shape)
        else:
            size = math.prod(shape)
            start = int(draw.integers(len(pool) - size + 1))
            state[name] = pool[start : start + size].view(shape)
    state["depth_head.scratch.output_conv2.2.bias"] = torch.full((1,), LAST_BIAS)

    config = {
        "encoder": "vits",
        "features": FEATURES,
        "out_channels": list(CHANNELS),
        "use_bn": False,
        "use_clstoken": False,
    }
    # Saved to a path, the archive would hold the name of the file.
    stream = io.BytesIO()
    torch.save(state, stream)
    arguments.out.mkdir(parents=True)
    (arguments.out / "pytorch_model.bin").write_bytes(stream.getvalue())
    (arguments.out / "config.json").write_text(json.dumps(config) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
