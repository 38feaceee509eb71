"""Makes a folder of photographs' stand-ins: coloured shapes on a gradient, as JPEG files.

Called as `python images.py OUT --seed N`. Layout and names are those of the quick start's
example data, `OUT/images/NUMBER.jpg`; only the content is drawn.
"""

from __future__ import annotations

import argparse
from pathlib import Path

import numpy
from PIL import Image, ImageDraw

COUNT = 32
SIDES = ((160, 120), (120, 160), (144, 144))


def picture(random: numpy.random.Generator) -> Image.Image:
    """One image: a gradient between two colours, with a few filled shapes on it."""
    width, height = SIDES[random.integers(len(SIDES))]
    start, end = random.integers(0, 256, (2, 3))
    along = numpy.linspace(0, 1, width)[None, :, None] * numpy.ones((height, 1, 1))
    pixels = (start + along * (end - start)).astype(numpy.uint8)
    image = Image.fromarray(pixels)
    draw = ImageDraw.Draw(image)
    for _ in range(random.integers(3, 8)):
        left, top = (int(random.integers(0, size - 20)) for size in (width, height))
        box = (left, top, left + int(random.integers(10, 60)), top + int(random.integers(10, 60)))
        colour = tuple(int(value) for value in random.integers(0, 256, 3))
        (draw.ellipse if random.integers(2) else draw.rectangle)(box, fill=colour)
    return image


def main() -> None:
    """Write the folder."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("out", type=Path, help="the folder to make")
    parser.add_argument("--seed", type=int, default=0)
    arguments = parser.parse_args()
    random = numpy.random.default_rng(arguments.seed)
    folder = arguments.out / "images"
    folder.mkdir(parents=True)
    for number in range(COUNT):
        picture(random).save(folder / f"{number:012}.jpg", quality=90)


if __name__ == "__main__":
    main()
