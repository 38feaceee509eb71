"""Makes a small folder of pictures in the layout of ImageNet: train and val, a folder a class.

Called as `python imagenet.py OUT --seed N`. Each class is a shape in a colour of its own, on noise.
"""

from __future__ import annotations

import argparse
from pathlib import Path

import numpy
from PIL import Image, ImageDraw

SIDE = 96
CLASSES = {"n01440764": (200, 40, 40), "n02102040": (40, 160, 60), "n03000684": (50, 70, 210)}
COUNTS = {"train": 8, "val": 4}


def picture(random: numpy.random.Generator, colour: tuple[int, int, int]) -> Image.Image:
    """A disc of this colour somewhere on grey noise."""
    noise = random.integers(90, 160, (SIDE, SIDE, 3)).astype(numpy.uint8)
    image = Image.fromarray(noise)
    left, top = (int(place) for place in random.integers(0, 30, 2))
    width = int(random.integers(40, 60))
    ImageDraw.Draw(image).ellipse((left, top, left + width, top + width), fill=colour)
    return image


def main() -> None:
    """Write the folder."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("out", type=Path, help="the folder to make")
    parser.add_argument("--seed", type=int, default=0)
    arguments = parser.parse_args()
    random = numpy.random.default_rng(arguments.seed)
    for part, count in COUNTS.items():
        for name, colour in CLASSES.items():
            folder = arguments.out / part / name
            folder.mkdir(parents=True)
            for number in range(count):
                picture(random, colour).save(folder / f"{name}_{number}.png")


if __name__ == "__main__":
    main()
