"""Makes texts cut into sentences, with a vector for each: OUT/split=train and OUT/split=validation.

    python sentences.py OUT --seed 0

The form is that of scripts/prepare_wikipedia.py of the repository: parquet files by `split`, a row
a text, with the sentences and their vectors of 1024 numbers, as large as SONAR's are. A vector is
its text's own direction and a small step a sentence, so that the next can be told from the others.
"""

import argparse
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as parquet

ROWS = {"train": 32, "validation": 8}
SENTENCES, WIDTH = 6, 1024
STEPS, SPREAD = 1 << 12, 0.01


def table(random: np.random.Generator, split: str, count: int) -> pa.Table:
    """The rows of a split."""
    sentences, vectors = [], []
    for row in range(count):
        start = random.integers(-STEPS, STEPS + 1, (1, WIDTH))
        step = random.integers(-STEPS, STEPS + 1, (1, WIDTH))
        path = start + np.arange(SENTENCES)[:, np.newaxis] * step // 8
        vectors.append((path * (SPREAD / STEPS)).astype(np.float32).tolist())
        sentences.append([f"Sentence {at} of text {row} of {split}." for at in range(SENTENCES)])
    vector = pa.list_(pa.float32(), WIDTH)
    return pa.table(
        {
            "text_sentences": pa.array(sentences, pa.list_(pa.string())),
            "text_sentences_sonar_emb": pa.array(vectors, pa.list_(vector)),
        }
    )


def main() -> None:
    """Write the folder."""
    parser = argparse.ArgumentParser()
    parser.add_argument("out", type=Path)
    parser.add_argument("--seed", type=int, default=0)
    arguments = parser.parse_args()
    random = np.random.default_rng(arguments.seed)
    for split, count in ROWS.items():
        folder = arguments.out / f"split={split}"
        folder.mkdir(parents=True)
        # The loader shares groups of rows among processes: four to a group.
        parquet.write_table(
            table(random, split, count), folder / "part-0.parquet", row_group_size=4
        )


if __name__ == "__main__":
    main()
