"""Makes messages about events in the form of the data set Event2012.

Called as `python messages.py OUT --seed N`. As there, `OUT/Event2012/Event2012.npy` is a table of
objects with eleven columns; only the messages are drawn. Each event has words, people and places of
its own, and all share some; a message takes more of its event's.
"""

from __future__ import annotations

import argparse
import random
from datetime import datetime, timedelta
from pathlib import Path

import numpy

EVENTS, MESSAGES = 5, 60
START = datetime(2012, 10, 10, 6)


def word(draw: random.Random) -> str:
    """A word that can be spoken."""
    syllables = (draw.choice("bdfgklmnprstvz") + draw.choice("aeiou") for _ in range(3))
    return "".join(syllables)


def message(draw: random.Random, number: int, words: list[list[str]], common: list[str]) -> list:
    """A row: its columns are those of the repository's `DatasetLoader.required_columns`."""
    event = number % EVENTS
    own = draw.sample(words[event], 6)
    said = [*own, *draw.sample(common, 2)]
    draw.shuffle(said)
    return [
        300_000_000 + number,
        " ".join(said),
        10 + event,
        said,
        said,
        [own[0].upper()],
        1000 + draw.randrange(40),
        START + timedelta(hours=8 * event, minutes=draw.randrange(300)),
        [],
        [own[1]],
        [1000 + draw.randrange(40)],
    ]


def main() -> None:
    """Write the folder."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("out", type=Path, help="the folder to make")
    parser.add_argument("--seed", type=int, default=0)
    arguments = parser.parse_args()
    draw = random.Random(arguments.seed)  # noqa: S311
    words = [[word(draw) for _ in range(10)] for _ in range(EVENTS)]
    common = [word(draw) for _ in range(20)]
    table = numpy.empty((MESSAGES, 11), dtype=object)
    for number in range(MESSAGES):
        table[number] = message(draw, number, words, common)
    folder = arguments.out / "Event2012"
    folder.mkdir(parents=True)
    numpy.save(folder / "Event2012.npy", table)


if __name__ == "__main__":
    main()
