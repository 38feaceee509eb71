"""Sounds of the length of a sentence, and lists of them with invented sentences.

    python speech.py OUT --seed 0

OUT becomes a folder with four WAV files, one of them at 8000 samples a second, and two lists in
the form of the repository's `data/train_example.jsonl`, whose paths are relative to the folder.
"""

from __future__ import annotations

import argparse
import array
import json
import math
import random
import sys
import wave
from pathlib import Path

RATES = 16000, 16000, 16000, 8000
SENTENCES = (
    "he tried to think how it could be",
    "the sky over the harbour is grey",
    "we leave for the mountains at noon",
    "nobody knows what the letter says",
)


def sound(draw: random.Random, rate: int) -> bytes:
    """A second and a half of tones that change ten times a second, in 16 bits."""
    samples = array.array("h")
    for _ in range(15):
        tones = [draw.randrange(100, 3000) for _ in range(3)]
        for at in range(rate // 10):
            turns = (math.sin(2 * math.pi * tone * at / rate) for tone in tones)
            samples.append(round(6000 * sum(turns) / 3) + draw.randrange(-200, 200))
    if sys.byteorder == "big":
        samples.byteswap()
    return samples.tobytes()


def main() -> None:
    """Write the folder."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("out", type=Path)
    parser.add_argument("--seed", type=int, default=0)
    arguments = parser.parse_args()

    draw = random.Random(arguments.seed)  # noqa: S311  # no secret is made of it
    arguments.out.mkdir(parents=True)
    rows = []
    for number, (rate, sentence) in enumerate(zip(RATES, SENTENCES, strict=True)):
        name = f"speech_{number}.wav"
        with wave.open(str(arguments.out / name), "wb") as file:
            file.setnchannels(1)
            file.setsampwidth(2)
            file.setframerate(rate)
            file.writeframes(sound(draw, rate))
        rows.append(
            {
                "key": f"speech_{number}",
                "text_language": "<|en|>",
                "emo_target": "<|NEUTRAL|>",
                "event_target": "<|Speech|>",
                "with_or_wo_itn": "<|woitn|>",
                "target": sentence,
                "source": name,
                "target_len": len(sentence.split()),
                "source_len": 150,
            }
        )
    for name, chosen in (("train", rows), ("val", rows[:2])):
        text = "".join(json.dumps(row) + "\n" for row in chosen)
        (arguments.out / f"{name}.jsonl").write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main()
