"""Finds the texts of a page, and what of the page is to be painted over.

    python read_page.py REPOSITORY PAGE FOLDER [--gpu]

The repository is a desktop application; what it does with a page before a language model is asked
is called here as its pipeline calls it: text blocks are found, sorted in reading order, and the
ink in each of them is found. FOLDER gets blocks.json, and mask.png with the ink in white.
"""

import argparse
import json
import sys
from pathlib import Path

parser = argparse.ArgumentParser()
parser.add_argument("repository", type=Path)
parser.add_argument("page", type=Path)
parser.add_argument("folder", type=Path)
parser.add_argument("--gpu", action="store_true")


class Settings:
    """What the detector asks of the page of settings."""

    def __init__(self, *, gpu: bool) -> None:
        self._gpu = gpu

    def get_tool_selection(self, tool: str) -> str:
        """The tool that is chosen where several are offered."""
        return {"detector": "RT-DETR-v2"}[tool]

    def is_gpu_enabled(self) -> bool:
        """Whether a GPU is to be used."""
        return self._gpu


def main() -> None:
    """Find, write, and say what computed."""
    arguments = parser.parse_args()
    # As where the application is started: `python comic.py` in its root.
    sys.path.insert(0, str(arguments.repository))

    import imkit
    import numpy as np
    from modules.detection.factory import DetectionEngineFactory
    from modules.detection.processor import TextBlockDetector
    from modules.detection.utils.content import get_inpaint_bboxes
    from modules.utils.textblock import sort_blk_list

    settings = Settings(gpu=arguments.gpu)
    image = imkit.read_image(str(arguments.page))
    blocks = sort_blk_list(TextBlockDetector(settings).detect(image))

    mask = np.zeros_like(image)
    found = []
    for block in blocks:
        ink = [[int(value) for value in box] for box in get_inpaint_bboxes(block.xyxy, image)]
        for left, top, right, bottom in ink:
            mask[top:bottom, left:right] = 255
        text = [int(value) for value in block.xyxy]
        found.append({"text": text, "kind": block.text_class, "ink": ink})

    arguments.folder.mkdir(parents=True, exist_ok=True)
    imkit.write_image(str(arguments.folder / "mask.png"), mask)
    product = json.dumps({"count": len(found), "blocks": found}, indent=1)
    (arguments.folder / "blocks.json").write_text(product, encoding="utf-8")
    # The first provider is the one that is asked first, and the last the CPU.
    engine = DetectionEngineFactory.create_engine(settings, "RT-DETR-v2")
    print(f"computed by {engine.session.get_providers()[0]}")
    print(f"{len(found)} blocks, {sum(len(block['ink']) for block in found)} pieces of ink")


if __name__ == "__main__":
    main()
