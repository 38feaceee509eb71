"""Trains and tests the network as end-to-end/README.md says: edit the options, start the script.

    python train.py REPOSITORY FOLDER [--gpus N]

Edited are what is a path or a size: the pairs of images, where the run goes, the GPUs, the channels
of the network, how much is trained and how fast. The pairs are screens of the repository's examples
with what was received of each, laid out below FOLDER/data as the script asks, which wants one name
for both.
"""

import argparse
import json
import os
import subprocess
import sys
from pathlib import Path

SCREENS = {
    "train": {
        "2023-08-29 18-08-19": "05-09-2023_21_07_37",
        "2023-08-29 18-08-27": "05-09-2023_21_10_14",
    },
    "test": {"2023-08-29 18-08-31": "05-09-2023_21_13_22"},
}


def lay_out(examples: Path, phase: str, data: Path) -> dict[str, str]:
    """Links to the pairs of a phase; answers the two options that lead to them."""
    for number, (screen, received) in enumerate(SCREENS[phase].items()):
        original = examples / f"Screenshot from {screen}.png"
        capture = examples / f"{original.stem}-gr-tempest_screenshot_{received}.png"
        for side, image in (("H", original), ("L", capture)):
            folder = data / phase / side
            folder.mkdir(parents=True, exist_ok=True)
            (folder / f"screen{number}.png").symlink_to(image)
    return {f"dataroot_{side}": str(data / phase / side) for side in "HL"}


def gpus(count: int) -> list[str]:
    """The first GPUs of those that the mask leaves, for the script sets the mask anew."""
    mask = os.environ.get("CUDA_VISIBLE_DEVICES")
    shown = mask.split(",") if mask else [str(number) for number in range(count)]
    return shown[:count]


def main() -> None:
    """Write the options and start the script with them."""
    parser = argparse.ArgumentParser()
    parser.add_argument("repository", type=Path)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--gpus", type=int, default=0)
    arguments = parser.parse_args()
    code = arguments.repository / "end-to-end"

    lines = (code / "options/train_drunet.json").read_text(encoding="utf-8").splitlines()
    # Its comments are taken out as the repository does it.
    options = json.loads("\n".join(line.split("//")[0] for line in lines))
    options["gpu_ids"] = gpus(arguments.gpus)
    # "if model from scratch type: null"
    options["path"] = {"root": str(arguments.folder / "run"), "pretrained_netG": None}
    for phase, data in options["datasets"].items():
        data |= lay_out(arguments.repository / "examples", phase, arguments.folder / "data")
        data["dataset_type"] = "drunet"
    options["netG"]["nc"] = [8, 16, 32, 64]
    options["datasets"]["train"] |= {
        "use_all_patches": False,
        "num_patches_per_image": 16,
        "H_size": 128,
        "dataloader_batch_size": 4,
        "dataloader_num_workers": 0,
    }
    options["train"] |= {
        "epochs": 2,
        "manual_seed": 0,
        "G_optimizer_lr": 3e-4,
        "checkpoint_save": 1,
        "checkpoint_test": 2,
        "checkpoint_test_save": 2,
        "G_optimizer_reuse": True,
    }
    chosen = arguments.folder / "options.json"
    chosen.write_text(json.dumps(options, indent=2), encoding="utf-8")
    subprocess.run([sys.executable, code / "main_train_drunet.py", "--opt", chosen], check=True)


if __name__ == "__main__":
    main()
