"""Draws a page of a comic: four panels, each with a bubble and letters in it.

    python page.py OUT.png --seed 0

A letter is a bar with strokes at random, in one of many dark shades: what is looked for is ink.
"""

import argparse
from pathlib import Path

import numpy as np
from PIL import Image, ImageDraw

WIDTH, HEIGHT = 960, 1280
DOT = 6
LINES, LETTERS = 3, 4


def main() -> None:
    """Write the picture."""
    parser = argparse.ArgumentParser()
    parser.add_argument("out", type=Path)
    parser.add_argument("--seed", type=int, default=0)
    arguments = parser.parse_args()
    random = np.random.default_rng(arguments.seed)
    page = Image.new("RGB", (WIDTH, HEIGHT), "white")
    draw = ImageDraw.Draw(page)
    for row in range(2):
        for column in range(2):
            left, top = column * WIDTH // 2 + 30, row * HEIGHT // 2 + 30
            right, bottom = left + WIDTH // 2 - 60, top + HEIGHT // 2 - 60
            shade = int(random.integers(200, 245))
            draw.rectangle((left, top, right, bottom), (shade, shade, shade), (90, 90, 90), 2)
            draw.ellipse((left + 40, top + 60, right - 40, top + 360), "white", (90, 90, 90), 2)
            for line in range(LINES):
                for letter in range(LETTERS):
                    x, y = left + 104 + letter * 4 * DOT, top + 158 + line * 6 * DOT
                    ink = (int(random.integers(0, 60)),) * 3
                    draw.rectangle((x, y, x + DOT - 1, y + 5 * DOT - 1), ink)
                    for stroke in np.flatnonzero(random.integers(0, 2, 5)):
                        at = y + int(stroke) * DOT
                        draw.rectangle((x, at, x + 3 * DOT - 1, at + DOT - 1), ink)
    page.save(arguments.out)


if __name__ == "__main__":
    main()
