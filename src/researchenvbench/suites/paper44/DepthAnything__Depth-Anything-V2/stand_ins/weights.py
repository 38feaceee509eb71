"""Random weights of the metric model with its smallest encoder, `vits`, as its state dict.

    python weights.py OUT --seed 0

OUT becomes a folder with the one file that the hub repository of the trained weights has. The
encoder is chosen by name, so its sizes are the real ones: 24.8 million numbers. They are views
of one pool, which torch keeps once, so that the file has 6 MB instead of 99.
"""

from __future__ import annotations

import argparse
import io
import math
from pathlib import Path

import numpy as np
import torch

NAME = "depth_anything_v2_metric_hypersim_vits.pth"
WIDTH, DEPTH, PATCH, SIDE = 384, 12, 14, 518 // 14
FEATURES, CHANNELS = 64, (48, 96, 192, 384)
#: Near 1 / sqrt(WIDTH): what goes through a layer neither dies out nor explodes.
SPREAD = 0.05
STEPS = 2**15


def shapes() -> dict[str, tuple[int, ...]]:
    """Names and shapes of all parameters, in the order of the model's own modules."""
    found: dict[str, tuple[int, ...]] = {}

    def layer(name: str, *weight: int, bias: int | None = None) -> None:
        found[f"{name}.weight"] = weight
        if bias != 0:
            found[f"{name}.bias"] = (weight[0] if bias is None else bias,)

    encoder = "pretrained."
    found[f"{encoder}cls_token"] = (1, 1, WIDTH)
    found[f"{encoder}pos_embed"] = (1, SIDE * SIDE + 1, WIDTH)
    found[f"{encoder}mask_token"] = (1, WIDTH)
    layer(f"{encoder}patch_embed.proj", WIDTH, 3, PATCH, PATCH)
    for number in range(DEPTH):
        block = f"{encoder}blocks.{number}."
        layer(f"{block}norm1", WIDTH)
        layer(f"{block}attn.qkv", 3 * WIDTH, WIDTH)
        layer(f"{block}attn.proj", WIDTH, WIDTH)
        found[f"{block}ls1.gamma"] = (WIDTH,)
        layer(f"{block}norm2", WIDTH)
        layer(f"{block}mlp.fc1", 4 * WIDTH, WIDTH)
        layer(f"{block}mlp.fc2", WIDTH, 4 * WIDTH)
        found[f"{block}ls2.gamma"] = (WIDTH,)
    layer(f"{encoder}norm", WIDTH)

    head = "depth_head."
    for number, channels in enumerate(CHANNELS):
        layer(f"{head}projects.{number}", channels, WIDTH, 1, 1)
    layer(f"{head}resize_layers.0", CHANNELS[0], CHANNELS[0], 4, 4)
    layer(f"{head}resize_layers.1", CHANNELS[1], CHANNELS[1], 2, 2)
    layer(f"{head}resize_layers.3", CHANNELS[3], CHANNELS[3], 3, 3)
    for number, channels in enumerate(CHANNELS, 1):
        layer(f"{head}scratch.layer{number}_rn", FEATURES, channels, 3, 3, bias=0)
    for number in range(1, 5):
        fusion = f"{head}scratch.refinenet{number}."
        layer(f"{fusion}out_conv", FEATURES, FEATURES, 1, 1)
        for unit in (1, 2):
            for conv in (1, 2):
                layer(f"{fusion}resConfUnit{unit}.conv{conv}", FEATURES, FEATURES, 3, 3)
    layer(f"{head}scratch.output_conv1", FEATURES // 2, FEATURES, 3, 3)
    layer(f"{head}scratch.output_conv2.0", 32, FEATURES // 2, 3, 3)
    layer(f"{head}scratch.output_conv2.2", 1, 32, 1, 1)
    return found


def main() -> None:
    """Write the folder."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("out", type=Path)
    parser.add_argument("--seed", type=int, default=0)
    arguments = parser.parse_args()

    wanted = shapes()
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

    # Saved to a path, the archive would hold the name of the file.
    stream = io.BytesIO()
    torch.save(state, stream)
    arguments.out.mkdir(parents=True)
    (arguments.out / NAME).write_bytes(stream.getvalue())


if __name__ == "__main__":
    main()
