"""Invented instructions in the form of the hub's file `Olympus.json`.

    python instructions.py OUT --seed 0

OUT becomes a list of conversations: half of them about a picture, of those that the repository
has below `mipha/serve/examples`, half with the tokens that send a task to another model.
"""

from __future__ import annotations

import argparse
import json
import random
from pathlib import Path

PICTURES = ("extreme_ironing.jpg", "waterview.jpg")
COLOURS = ("red", "green", "blue", "white", "orange")
THINGS = ("car", "cat", "bridge", "man", "lake")
ROWS = 8


def rows(draw: random.Random) -> list[dict[str, object]]:
    """The rows of the file."""
    found: list[dict[str, object]] = []
    for number in range(ROWS):
        colour, thing = draw.choice(COLOURS), draw.choice(THINGS)
        if number % 2:
            asked = f"Generate an image of a {colour} {thing}."
            told = f"<image_gen>a {colour} {thing}</image_gen>"
            extra = {}
        else:
            asked = f"<image>\nIs there a {colour} {thing} in the picture?"
            told = f"There is a {thing}. I cannot tell whether it is {colour}."
            extra = {"image": PICTURES[number // 2 % 2]}
        spoken = ({"from": "human", "value": asked}, {"from": "gpt", "value": told})
        found.append({"id": str(number), **extra, "conversations": list(spoken)})
    return found


def main() -> None:
    """Write the file."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("out", type=Path)
    parser.add_argument("--seed", type=int, default=0)
    arguments = parser.parse_args()

    draw = random.Random(arguments.seed)  # noqa: S311  # no secret is made of it
    text = json.dumps(rows(draw), indent=1) + "\n"
    arguments.out.write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main()
