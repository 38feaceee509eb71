"""Makes the heads of an RT-DETR that takes a page for one table: OUT/config.json and
OUT/model.safetensors.

    python layout.py OUT

The package loads weights without asking for all, so that what is before the heads stays as it
draws it. Nothing is drawn here.
"""

import argparse
from pathlib import Path

import numpy as np
from safetensors.numpy import save_file

# Tables, figures, paragraphs, headings, headers, footers: the logits of each.
LOGITS = (6, -6, -6, -6, -6, -6)
# What is added to a box's centre and to its size, before the sigmoid: as large as the page.
BOX = (0, 0, 12, 12)
LAST = 5


def weights() -> dict[str, np.ndarray]:
    """The tensors by their names in the class RTDETRv2."""
    return {
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
