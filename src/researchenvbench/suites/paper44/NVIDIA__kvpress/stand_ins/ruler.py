"""Three texts with two questions each, in the form of the hub's data set `simonjegou/ruler`.

    python ruler.py OUT --seed 0

OUT becomes a folder that holds `simonjegou/ruler/4096/test.jsonl`: from within it, the id by
which the evaluation asks for its data set is the path of a folder. The columns are the
original's. Each text has some 3800 words; numbers are hidden in it, and asked for.
"""

from __future__ import annotations

import argparse
import json
import random
from pathlib import Path

TEXTS, SENTENCES = 3, 240
NOISE = "The grass is green.", "The sky is blue.", "The sun is yellow.", "Here we go."
PLACES = ("bridge", "market", "school", "museum", "harbour", "library")
BEGIN = (
    "Some special magic numbers are hidden within the following text. Make sure to memorize it. "
    "I will quiz you about the numbers afterwards.\n"
)


def rows(draw: random.Random) -> list[dict[str, object]]:
    """The rows of the data set."""
    found: list[dict[str, object]] = []
    for number in range(TEXTS):
        hidden = {
            place: str(draw.randrange(1_000_000, 9_999_999)) for place in draw.sample(PLACES, 2)
        }
        lines = [
            f"{' '.join(draw.sample(NOISE, 3))} There and back again." for _ in range(SENTENCES)
        ]
        for place, value in hidden.items():
            at = draw.randrange(len(lines))
            lines.insert(at, f"One of the special magic numbers for {place} is: {value}.")
        for place, value in hidden.items():
            found.append(
                {
                    "context": BEGIN + "\n".join(lines) + "\n",
                    "question": f"What is the special magic number for {place} mentioned in the "
                    "provided text?",
                    "answer_prefix": "The special magic number mentioned in the provided text is",
                    "answer": [value],
                    "task": f"niah_single_{number + 1}",
                    "max_new_tokens": 16,
                }
            )
    return found


def main() -> None:
    """Write the folder."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("out", type=Path)
    parser.add_argument("--seed", type=int, default=0)
    arguments = parser.parse_args()

    folder = arguments.out / "simonjegou" / "ruler" / "4096"
    folder.mkdir(parents=True)
    draw = random.Random(arguments.seed)  # noqa: S311  # no secret is made of it
    lines = [json.dumps(row) + "\n" for row in rows(draw)]
    (folder / "test.jsonl").write_text("".join(lines), encoding="utf-8")


if __name__ == "__main__":
    main()
