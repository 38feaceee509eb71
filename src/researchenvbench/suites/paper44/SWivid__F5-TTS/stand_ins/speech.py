"""Makes the index of a small set of speech, as the repository's own scripts prepare one.

Called as `python speech.py OUT --seed N`. `OUT/speech_custom` gets `raw.arrow`, a stream of
rows with the path of a sound, its text in tokens and its seconds, and `duration.json`. Every
row is the example that the repository brings with its text; the path is relative to the
root of the repository, where its training program goes. Nothing in it is drawn.
"""

from __future__ import annotations

import argparse
import json
from pathlib import Path

import pyarrow

ROWS = 8
SOUND = "src/f5_tts/infer/examples/basic/basic_ref_en.wav"
TEXT = "Some call me nature, others call me mother nature."
#: 127987 samples at 24 kHz.
SECONDS = 127987 / 24000


def main() -> None:
    """Write the index."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("out", type=Path, help="the folder to make")
    parser.add_argument("--seed", type=int, default=0, help="without effect")
    arguments = parser.parse_args()
    folder = arguments.out / "speech_custom"
    folder.mkdir(parents=True)
    columns = {
        "audio_path": pyarrow.array([SOUND] * ROWS, pyarrow.string()),
        "text": pyarrow.array([list(TEXT)] * ROWS, pyarrow.list_(pyarrow.string())),
        "duration": pyarrow.array([SECONDS] * ROWS, pyarrow.float64()),
    }
    table = pyarrow.table(columns)
    with (
        pyarrow.OSFile(str(folder / "raw.arrow"), "wb") as file,
        pyarrow.ipc.new_stream(file, table.schema) as stream,
    ):
        stream.write_table(table)
    (folder / "duration.json").write_text(json.dumps({"duration": [SECONDS] * ROWS}))


if __name__ == "__main__":
    main()
