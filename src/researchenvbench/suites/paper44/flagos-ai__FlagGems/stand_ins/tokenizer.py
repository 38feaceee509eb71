"""A small tokenizer of the kind of google-bert/bert-base-uncased: lower case, WordPiece.

    python tokenizer.py OUT --seed 0

OUT becomes a folder as the hub has it, without weights, which the test that reads it does not ask
for. Letters and the words of the test's prompts are its vocabulary; all numbers are below those of
the original, for which the test's model has room.
"""

from __future__ import annotations

import argparse
import json
import string
from pathlib import Path

from tokenizers import Tokenizer, decoders, models, normalizers, pre_tokenizers, processors

SPECIAL = ("[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]")
WORDS = ("how", "are", "you", "today", "what", "is", "your", "name", "who", "where", "from", "?")


def vocabulary() -> list[str]:
    """The pieces, in the order of their numbers."""
    letters = string.ascii_lowercase + string.digits
    pieces = [*SPECIAL, *WORDS, *letters, *(f"##{letter}" for letter in letters)]
    return list(dict.fromkeys(pieces))


def tokenizer(pieces: list[str]) -> Tokenizer:
    """The tokenizer, which puts a text between [CLS] and [SEP]."""
    numbers = {piece: number for number, piece in enumerate(pieces)}
    made = Tokenizer(models.WordPiece(numbers, unk_token="[UNK]"))  # noqa: S106  # no password
    made.add_special_tokens(list(SPECIAL))
    made.normalizer = normalizers.BertNormalizer(lowercase=True)
    made.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    made.decoder = decoders.WordPiece()
    ends = [(piece, numbers[piece]) for piece in ("[CLS]", "[SEP]")]
    made.post_processor = processors.TemplateProcessing(
        single="[CLS] $A [SEP]", pair="[CLS] $A [SEP] $B:1 [SEP]:1", special_tokens=ends
    )
    return made


def main() -> None:
    """Write the folder."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("out", type=Path)
    parser.add_argument("--seed", type=int, default=0, help="nothing is drawn")
    arguments = parser.parse_args()

    pieces = vocabulary()
    files = {
        "config": {"architectures": ["BertForMaskedLM"], "model_type": "bert"},
        "tokenizer_config": {"do_lower_case": True, "model_max_length": 512},
    }
    arguments.out.mkdir(parents=True)
    for name, content in files.items():
        text = json.dumps(content, indent=2) + "\n"
        (arguments.out / f"{name}.json").write_text(text, encoding="utf-8")
    (arguments.out / "vocab.txt").write_text("\n".join(pieces) + "\n", encoding="utf-8")
    tokenizer(pieces).save(str(arguments.out / "tokenizer.json"))


if __name__ == "__main__":
    main()
