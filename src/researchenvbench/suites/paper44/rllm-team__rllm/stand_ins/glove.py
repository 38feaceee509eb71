"""Random vectors of words, in the form of the hub's averaged GloVe vectors of 300 numbers.

    python glove.py OUT --seed 0

OUT becomes a folder as sentence-transformers reads it: a table of vectors with its words, split
at blanks, and the mean over them. The original has 400 thousand words, this one those of which
the invented races are made; what it does not know it leaves out, as the original does.
"""

from __future__ import annotations

import argparse
import io
import json
from pathlib import Path

import numpy as np
import torch

WIDTH, STEPS = 300, 2**15
SYLLABLES = [consonant + vowel for consonant in "bdkm" for vowel in "aio"]
WORDS = (
    "racing ring grand prix norwick talmora esker bay vintar low harbour zellin land "
    "northern southern western"
).split() + [first + second for first in SYLLABLES for second in SYLLABLES]


def main() -> None:
    """Write the folder."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("out", type=Path)
    parser.add_argument("--seed", type=int, default=0)
    arguments = parser.parse_args()

    draw = np.random.default_rng(arguments.seed)
    whole = draw.integers(-STEPS, STEPS + 1, (len(WORDS), WIDTH))
    vectors = torch.from_numpy((whole / STEPS).astype(np.float32))
    # Saved to a path, the archive would hold the name of the file.
    stream = io.BytesIO()
    torch.save({"emb_layer.weight": vectors}, stream)

    words, mean = arguments.out / "0_WordEmbeddings", arguments.out / "1_Pooling"
    words.mkdir(parents=True)
    mean.mkdir()
    (words / "pytorch_model.bin").write_bytes(stream.getvalue())
    files: dict[Path, object] = {
        arguments.out / "modules.json": [
            {
                "idx": number,
                "name": str(number),
                "path": folder.name,
                "type": f"sentence_transformers.models.{folder.name[2:]}",
            }
            for number, folder in enumerate((words, mean))
        ],
        words / "wordembedding_config.json": {
            "tokenizer_class": "sentence_transformers.models.tokenizer.WhitespaceTokenizer."
            "WhitespaceTokenizer",
            "update_embeddings": False,
            "max_seq_length": 1000000,
        },
        words / "whitespacetokenizer_config.json": {
            "vocab": WORDS,
            "stop_words": ["the", "of"],
            "do_lower_case": True,
        },
        mean / "config.json": {
            "word_embedding_dimension": WIDTH,
            "pooling_mode_cls_token": False,
            "pooling_mode_mean_tokens": True,
            "pooling_mode_max_tokens": False,
            "pooling_mode_mean_sqrt_len_tokens": False,
        },
    }
    for path, content in files.items():
        path.write_text(json.dumps(content, indent=2) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
