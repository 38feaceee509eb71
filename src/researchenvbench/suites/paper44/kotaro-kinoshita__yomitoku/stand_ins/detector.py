"""Makes weights by which DBNet marks what is dark: OUT/config.json and OUT/model.safetensors.

    python detector.py OUT

Only what the marks hang on is written: a blur of the picture's darkness goes through one channel
of each layer on the shortest way to the output, and all that would disturb it is zero. The
package loads weights without asking for all, so that the other ones stay as it draws them.
Nothing is drawn here.
"""

import argparse
from pathlib import Path

import numpy as np
from safetensors.numpy import save_file

# White is some 2.4 in a picture that was brought to the mean and spread of ImageNet.
WHITE = 2.4
# The share of a blur's darkness at which a mark begins, and how sharply it does.
HALF, SHARPNESS = 0.4, 20.0


def weights() -> dict[str, np.ndarray]:
    """The tensors by their names in the class DBNet."""
    made: dict[str, np.ndarray] = {}

    def zeros(name: str, *shape: int) -> np.ndarray:
        made[name] = np.zeros(shape, np.float32)
        return made[name]

    body = "backbone.body"
    zeros(f"{body}.conv1.weight", 64, 3, 7, 7)[0] = -1 / (3 * 7 * 7)
    zeros(f"{body}.bn1.bias", 64)[0] = WHITE
    for block in range(3):
        # Without its last scale a block hands on what it was given.
        zeros(f"{body}.layer1.{block}.bn3.weight", 256)
        zeros(f"{body}.layer1.{block}.bn3.bias", 256)
    zeros(f"{body}.layer1.0.downsample.0.weight", 256, 64, 1, 1)[0, 0] = 1

    decoder = "decoder"
    for layer, channels in enumerate((256, 512, 1024, 2048), start=1):
        projection = zeros(f"{decoder}.input_proj.layer{layer}.weight", 256, channels, 1, 1)
        if layer == 1:
            projection[0, 0] = 1
    zeros(f"{decoder}.out_proj.layer1.weight", 64, 256, 3, 3)[0, 0, 1, 1] = 1
    # Each of the four scales counts half, and the finest of them comes last.
    attention = f"{decoder}.concat_attention.enhanced_attention.attention_wise.0.weight"
    zeros(attention, 4, 64, 1, 1)
    zeros(f"{decoder}.binarize.0.weight", 64, 256, 3, 3)[0, 192, 1, 1] = 2
    zeros(f"{decoder}.binarize.3.weight", 64, 64, 2, 2)[0, 0] = 1
    zeros(f"{decoder}.binarize.3.bias", 64)
    zeros(f"{decoder}.binarize.6.weight", 64, 1, 2, 2)[0] = SHARPNESS
    zeros(f"{decoder}.binarize.6.bias", 1)[0] = -SHARPNESS * HALF
    return made


def main() -> None:
    """Write both files."""
    parser = argparse.ArgumentParser()
    parser.add_argument("out", type=Path)
    parser.add_argument("--seed", type=int, default=0)
    arguments = parser.parse_args()
    arguments.out.mkdir(parents=True)
    save_file(weights(), arguments.out / "model.safetensors")
    (arguments.out / "config.json").write_text("{}\n", encoding="utf-8")


if __name__ == "__main__":
    main()
