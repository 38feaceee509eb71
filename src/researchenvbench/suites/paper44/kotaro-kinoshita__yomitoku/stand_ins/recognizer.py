"""Makes the ends of a PARSeq that reads at random: OUT/config.json and OUT/model.safetensors.

    python recognizer.py OUT --seed 0

The package loads weights without asking for all, so that what lies between the places that are
asked for and the last layer stays as it draws it. Drawn are whole numbers: floating-point ones
differ between processors.
"""

import argparse
from pathlib import Path

import numpy as np
from safetensors.numpy import save_file

# The characters that can be told apart, the end of a text first; and the width before them.
CLASSES, WIDTH = 7310, 512
PLACES = 101
STEPS = 1 << 12
# The end of a text is read now and then: more often than another class, and not at once.
END = 4


def weights(seed: int) -> dict[str, np.ndarray]:
    """The tensors by their names in the class PARSeq."""
    random = np.random.default_rng(seed)
    matrix = random.integers(-STEPS, STEPS + 1, (CLASSES, WIDTH)) / (STEPS * 8)
    places = random.integers(-STEPS, STEPS + 1, (1, PLACES, WIDTH)) / (STEPS / 2)
    bias = np.zeros(CLASSES, np.float16)
    bias[0] = END
    return {
        "pos_queries": places.astype(np.float16),
        "head.weight": matrix.astype(np.float16),
        "head.bias": bias,
    }


def main() -> None:
    """Write both files."""
    parser = argparse.ArgumentParser()
    parser.add_argument("out", type=Path)
    parser.add_argument("--seed", type=int, default=0)
    arguments = parser.parse_args()
    arguments.out.mkdir(parents=True)
    save_file(weights(arguments.seed), arguments.out / "model.safetensors")
    (arguments.out / "config.json").write_text("{}\n", encoding="utf-8")


if __name__ == "__main__":
    main()
