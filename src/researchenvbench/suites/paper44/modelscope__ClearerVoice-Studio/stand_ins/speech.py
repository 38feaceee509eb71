"""Makes recordings with noise and without, and the lists that a training reads.

    python speech.py OUT --seed 0

A list has a recording a line: the path with noise, the path without, the duration in seconds.
Paths are relative to OUT. A recording is a voice's kind of sound: a few harmonics of a pitch that
moves, in syllables. It is computed with whole numbers from a table of a sine, since the functions
of floating-point libraries differ between processors.
"""

import argparse
import wave
from pathlib import Path

import numpy as np

RATE = 16_000
SECONDS = 2
# `short` is for a training on the CPU.
COUNTS = {"train": 8, "short": 1, "cv": 1}

# A period of a sine in 256 steps, by the rational approximation of Bhaskara: whole numbers alone.
_HALF = [(16 * x * (128 - x) * 10_000) // (5 * 128 * 128 - 4 * x * (128 - x)) for x in range(128)]
SINE = np.array(_HALF + [-value for value in _HALF], np.int64)


def voice(random: np.random.Generator) -> np.ndarray:
    """Samples of a voice's kind of sound, each below 8000."""
    count = RATE * SECONDS
    at = np.arange(count)
    pitch = int(random.integers(90, 220))
    turns = np.cumsum(pitch + SINE[(at * 3 // 125) % 256] * pitch // 100_000)
    sound = np.zeros(count, np.int64)
    for harmonic in range(1, 9):
        loudness = int(random.integers(2, 10))
        sound += loudness * SINE[(harmonic * turns * 256 // RATE) % 256] // harmonic
    syllables = np.abs(SINE[(at * int(random.integers(3, 6)) * 256 // RATE) % 256])
    return sound // 20 * syllables // 10_000


def save(path: Path, samples: np.ndarray) -> None:
    """Write sound with one channel of 16 bits."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with wave.open(str(path), "wb") as file:
        file.setnchannels(1)
        file.setsampwidth(2)
        file.setframerate(RATE)
        file.writeframes(np.clip(samples, -32_000, 32_000).astype("<i2").tobytes())


def main() -> None:
    """Write the folder."""
    parser = argparse.ArgumentParser()
    parser.add_argument("out", type=Path)
    parser.add_argument("--seed", type=int, default=0)
    arguments = parser.parse_args()
    random = np.random.default_rng(arguments.seed)
    for part, count in COUNTS.items():
        lines = []
        for number in range(count):
            clean = voice(random)
            noise = random.integers(-1500, 1501, clean.shape)
            names = (f"{part}/noisy/{number}.wav", f"{part}/clean/{number}.wav")
            save(arguments.out / names[0], clean + noise)
            save(arguments.out / names[1], clean)
            lines.append(f"{names[0]} {names[1]} {SECONDS}\n")
        (arguments.out / f"{part}.scp").write_text("".join(lines), encoding="utf-8")


if __name__ == "__main__":
    main()
