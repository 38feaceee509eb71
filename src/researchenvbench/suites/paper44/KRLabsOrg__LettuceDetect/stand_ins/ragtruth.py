"""Answers with marked hallucinations, in the form of `ragtruth_data.json`.

    python ragtruth.py OUT --seed 0

OUT becomes the file that the repository's own preprocessing of RAGTruth writes: a list of
samples with a prompt, an answer and the spans of it that the prompt does not support. The
sentences are made up. An unsupported one speaks of years and numbers, the others do not, so
that even a small model can learn the difference in a few steps.
"""

from __future__ import annotations

import argparse
import json
import random
from pathlib import Path

TRAIN, TEST = 40, 4
PLACES = ("river", "bridge", "market", "school", "museum", "harbour", "library", "station")
TRAITS = ("old", "quiet", "busy", "narrow", "wide", "famous", "bright", "small")
TASKS = ("Summary", "QA", "Data2txt")


def sample(draw: random.Random, number: int, split: str) -> dict[str, object]:
    """One prompt with its answer: three supported sentences and two that are not."""
    places = draw.sample(PLACES, 3)
    facts = [f"The {place} of the town is {draw.choice(TRAITS)}." for place in places]
    prompt = (
        "Briefly answer the following question, based on the following passages.\n"
        f"What is known about the town?\npassage 1: {' '.join(facts)}\noutput:"
    )
    false = [
        f"It was built in {draw.randrange(1200, 2000)} for {draw.randrange(1000, 9999)} people."
        for _ in range(2)
    ]
    sentences = [(text, False) for text in facts] + [(text, True) for text in false]
    draw.shuffle(sentences)
    answer, labels = "", []
    for text, is_false in sentences:
        answer += " " if answer else ""
        if is_false:
            span = {"start": len(answer), "end": len(answer) + len(text)}
            labels.append({**span, "label": "Evident Baseless Info"})
        answer += text
    return {
        "prompt": prompt,
        "answer": answer,
        "labels": labels,
        "split": split,
        "task_type": TASKS[number % len(TASKS)],
        "dataset": "ragtruth",
        "language": "en",
    }


def main() -> None:
    """Write the file."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("out", type=Path)
    parser.add_argument("--seed", type=int, default=0)
    arguments = parser.parse_args()

    draw = random.Random(arguments.seed)  # noqa: S311  # no secret is made of it
    splits = ["train"] * TRAIN + ["test"] * TEST
    samples = [sample(draw, number, split) for number, split in enumerate(splits)]
    arguments.out.write_text(json.dumps(samples, indent=4) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
