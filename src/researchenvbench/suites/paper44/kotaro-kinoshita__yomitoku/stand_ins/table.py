"""Makes the heads of an RT-DETR that sees rows and columns: OUT/config.json and
OUT/model.safetensors.

    python table.py OUT

The package loads weights without asking for all, so that what is before the heads stays as it
draws it. Nothing is drawn here.
"""

import argparse
from pathlib import Path

import numpy as np
from safetensors.numpy import save_file

# Rows, columns, spans: the logits of each.
LOGITS = (2, 2, -6)
# What is added to a box's centre and to its size, before the sigmoid: a third of the table.
BOX = (0, 0, 2, 2)
LAST, WIDTH = 5, 256


def weights() -> dict[str, np.ndarray]:
    """The tensors by their names in the class RTDETRv2."""
    # Without a say of the picture all are alike, so that rows are found and columns too.
    return {
        f"decoder.dec_score_head.{LAST}.weight": np.zeros((len(LOGITS), WIDTH), np.float32),
        f"decoder.dec_score_head.{LAST}.bias": np.array(LOGITS, np.float32),
        f"decoder.dec_bbox_head.{LAST}.layers.2.bias": np.array(BOX, np.float32),
    }


def main() -> None:
    """Write both files."""
    parser = argparse.ArgumentParser()
    parser.add_argument("out", type=Path)
    parser.add_argument("--seed", type=int, default=0)
    arguments = parser.parse_args()
    arguments.out.mkdir(parents=True)
    save_file(weights(), arguments.out / "model.safetensors")
    (arguments.out / "config.json").write_text("{}\n", encoding="utf-8")


if __name__ == "__main__":
    main()
