"""A random image classifier of the class of apple/aim-600M, with small dimensions.

    python model.py OUT --seed 0

OUT becomes a folder as the hub has it: `config.json` with the arguments of the model, and
`model.safetensors` with all its parameters and buffers. Images and patches have the original's
size; eight blocks, since the head reads the last six.
"""

from __future__ import annotations

import argparse
import json
import math
from pathlib import Path

import numpy as np
from safetensors.numpy import save_file

WIDTH, INNER, BLOCKS, HEADS, CLASSES = 96, 384, 8, 4, 1000
IMAGE, PATCH = 224, 14
STEPS = 2**15


def weights(seed: int) -> dict[str, np.ndarray]:
    """The parameters and buffers by their names."""
    random = np.random.default_rng(seed)
    state: dict[str, np.ndarray] = {}

    def drawn(name: str, *shape: int, gain: float = 1.0) -> None:
        # Whole numbers, which every processor draws alike, to a variance of gain² / inputs.
        whole = random.integers(-STEPS, STEPS + 1, shape)
        scale = gain * math.sqrt(3 / math.prod(shape[1:])) / STEPS
        state[name] = (whole * scale).astype(np.float32)

    def norm(name: str) -> None:
        state[f"{name}.weight"] = np.ones(WIDTH, np.float32)
        state[f"{name}.bias"] = np.zeros(WIDTH, np.float32)

    drawn("preprocessor.patchifier.proj.weight", WIDTH, 3, PATCH, PATCH)
    state["preprocessor.patchifier.proj.bias"] = np.zeros(WIDTH, np.float32)
    norm("preprocessor.patchifier.norm")
    for number in range(BLOCKS):
        block = f"trunk.blocks.{number}."
        drawn(f"{block}attn.qkv.weight", 3 * WIDTH, WIDTH)
        drawn(f"{block}attn.proj.weight", WIDTH, WIDTH)
        norm(f"{block}norm_1")
        drawn(f"{block}mlp.fc1.weight", INNER, WIDTH)
        drawn(f"{block}mlp.fc2.weight", WIDTH, INNER)
        norm(f"{block}norm_2")
    norm("trunk.post_trunk_norm")
    drawn("head.cls_token", 1, 1, WIDTH)
    drawn("head.k.weight", WIDTH, WIDTH)
    drawn("head.v.weight", WIDTH, WIDTH)
    # So that the answers for two images are as far apart as those for two classes.
    drawn("head.linear.weight", CLASSES, WIDTH, gain=10.0)
    state["head.bn.running_mean"] = np.zeros(WIDTH, np.float32)
    state["head.bn.running_var"] = np.ones(WIDTH, np.float32)
    state["head.bn.num_batches_tracked"] = np.array(1, np.int64)
    return state


def main() -> None:
    """Write the folder."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("out", type=Path)
    parser.add_argument("--seed", type=int, default=0)
    arguments = parser.parse_args()

    config = {
        "img_size": IMAGE,
        "patch_size": PATCH,
        "embed_dim": WIDTH,
        "num_blocks": BLOCKS,
        "num_heads": HEADS,
        "num_channels": 3,
        "probe_layers": 6,
        "num_classes": CLASSES,
    }
    arguments.out.mkdir(parents=True)
    text = json.dumps(config, indent=2) + "\n"
    (arguments.out / "config.json").write_text(text, encoding="utf-8")
    save_file(weights(arguments.seed), arguments.out / "model.safetensors", {"format": "pt"})


if __name__ == "__main__":
    main()
