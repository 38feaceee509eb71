"""Makes two small sets of formulas, as the datasets library keeps them on disk.

Called as `python formulas.py OUT --seed N`. `OUT/train` and `OUT/eval` have the columns of
the original: `image`, the bytes of a PNG file, and `text`, LaTeX in tokens parted by blanks.
An image shows its text as it is written: what a reader of formulas is to learn, in small.
"""

from __future__ import annotations

import argparse
import hashlib
import io
import json
from pathlib import Path

import numpy
import pyarrow
from PIL import Image, ImageDraw, ImageFont

ROWS = {"train": 16, "eval": 4}
VARIABLES = ("x", "y", "z", "\\alpha", "\\beta", "\\pi")
OPERATORS = ("+", "-", "=", "<", "\\cdot")
#: As `Dataset.save_to_disk` writes it.
FEATURES = {
    "image": {"dtype": "binary", "_type": "Value"},
    "text": {"dtype": "string", "_type": "Value"},
}


def formula(random: numpy.random.Generator) -> str:
    """A sum, product or relation of two to four terms, one of them a fraction."""
    terms = []
    for _ in range(random.integers(2, 5)):
        variable = VARIABLES[random.integers(len(VARIABLES))]
        power = str(random.integers(2, 10))
        terms.append(f"{variable} ^ {{ {power} }}" if random.integers(2) else variable)
    place = random.integers(len(terms))
    terms[place] = f"\\frac {{ {terms[place]} }} {{ {random.integers(2, 10)} }}"
    text = terms[0]
    for term in terms[1:]:
        text += f" {OPERATORS[random.integers(len(OPERATORS))]} {term}"
    return text


def png(text: str) -> bytes:
    """The text in black on white, with a margin."""
    font = ImageFont.load_default(size=16)
    left, top, right, bottom = font.getbbox(text)
    image = Image.new("RGB", (int(right - left) + 16, int(bottom - top) + 16), "white")
    ImageDraw.Draw(image).text((8 - left, 8 - top), text, fill="black", font=font)
    stream = io.BytesIO()
    image.save(stream, "PNG")
    return stream.getvalue()


def save(folder: Path, texts: list[str]) -> None:
    """One Arrow stream with its two notes, in the layout of `Dataset.save_to_disk`."""
    folder.mkdir(parents=True)
    schema = pyarrow.schema(
        [("image", pyarrow.binary()), ("text", pyarrow.string())],
        metadata={"huggingface": json.dumps({"info": {"features": FEATURES}})},
    )
    table = pyarrow.table({"image": [png(text) for text in texts], "text": texts}, schema=schema)
    name = "data-00000-of-00001.arrow"
    with (
        pyarrow.OSFile(str(folder / name), "wb") as file,
        pyarrow.ipc.new_stream(file, schema) as stream,
    ):
        stream.write_table(table)
    state = {
        "_data_files": [{"filename": name}],
        "_fingerprint": hashlib.sha256("\n".join(texts).encode()).hexdigest()[:16],
        "_format_columns": None,
        "_format_kwargs": {},
        "_format_type": None,
        "_output_all_columns": False,
        "_split": None,
    }
    info = {"citation": "", "description": "", "features": FEATURES, "homepage": "", "license": ""}
    (folder / "state.json").write_text(json.dumps(state, indent=2, sort_keys=True))
    (folder / "dataset_info.json").write_text(json.dumps(info, indent=2, sort_keys=True))


def main() -> None:
    """Write both sets."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("out", type=Path, help="the folder to make")
    parser.add_argument("--seed", type=int, default=0)
    arguments = parser.parse_args()
    random = numpy.random.default_rng(arguments.seed)
    for name, rows in ROWS.items():
        save(arguments.out / name, [formula(random) for _ in range(rows)])


if __name__ == "__main__":
    main()
