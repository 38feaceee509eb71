"""Four images to classify: coloured bars on noise, as PNG files.

    python images.py OUT --seed 0

OUT becomes a folder with the images. They are larger than what the model takes, so that the
repository's own transform has something to scale and to cut.
"""

from __future__ import annotations

import argparse
from pathlib import Path

import numpy
from PIL import Image

COUNT, HEIGHT, WIDTH, BARS = 4, 300, 400, 6


def picture(random: numpy.random.Generator) -> numpy.ndarray:
    """One image, as height x width x 3 bytes."""
    pixels = random.integers(96, 160, (HEIGHT, WIDTH, 3), dtype=numpy.uint8)
    for _ in range(BARS):
        top, left = int(random.integers(HEIGHT - 60)), int(random.integers(WIDTH - 60))
        high, wide = (int(side) for side in random.integers(30, 200, 2))
        colour = random.integers(0, 256, 3, dtype=numpy.uint8)
        pixels[top : top + high, left : left + wide] = colour
    return pixels


def main() -> None:
    """Write the folder."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("out", type=Path)
    parser.add_argument("--seed", type=int, default=0)
    arguments = parser.parse_args()
    random = numpy.random.default_rng(arguments.seed)
    arguments.out.mkdir(parents=True)
    for number in range(COUNT):
        Image.fromarray(picture(random)).save(arguments.out / f"{number}.png")


if __name__ == "__main__":
    main()
