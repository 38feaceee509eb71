"""Makes pictures with boxes in the layout of COCO, as the data set coco_2017_val_100 has it.

Called as `python coco.py OUT --seed N`. It writes `OUT/coco/val2017` and
`OUT/coco/annotations/instances_val2017_100.json`: rectangles and discs on noise, each with its box.
The categories are all that COCO has, since detectron2 compares them with its own.
"""

from __future__ import annotations

import argparse
import json
from pathlib import Path

import numpy
from PIL import Image, ImageDraw

COUNT, WIDTH, HEIGHT = 8, 320, 240
# COCO's numbers go to 90; these are not used.
UNUSED = {12, 26, 29, 30, 45, 66, 68, 69, 71, 83}
NAMES = """
person,bicycle,car,motorcycle,airplane,bus,train,truck,boat,traffic light,fire hydrant,stop sign,
parking meter,bench,bird,cat,dog,horse,sheep,cow,elephant,bear,zebra,giraffe,backpack,umbrella,
handbag,tie,suitcase,frisbee,skis,snowboard,sports ball,kite,baseball bat,baseball glove,skateboard,
surfboard,tennis racket,bottle,wine glass,cup,fork,knife,spoon,bowl,banana,apple,sandwich,orange,
broccoli,carrot,hot dog,pizza,donut,cake,chair,couch,potted plant,bed,dining table,toilet,tv,laptop,
mouse,remote,keyboard,cell phone,microwave,oven,toaster,sink,refrigerator,book,clock,vase,scissors,
teddy bear,hair drier,toothbrush
"""
CATEGORIES = [
    {"id": number, "name": name.strip()}
    for number, name in zip(
        (number for number in range(1, 91) if number not in UNUSED),
        NAMES.replace("\n", "").split(","),
        strict=True,
    )
]
# A car and a sports ball.
RECTANGLE, DISC = 3, 37


def main() -> None:
    """Write the folder."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("out", type=Path, help="the folder to make")
    parser.add_argument("--seed", type=int, default=0)
    arguments = parser.parse_args()
    random = numpy.random.default_rng(arguments.seed)
    pictures = arguments.out / "coco" / "val2017"
    pictures.mkdir(parents=True)
    images, annotations = [], []
    for number in range(1, COUNT + 1):
        name = f"{number:012}.jpg"
        noise = random.integers(80, 170, (HEIGHT, WIDTH, 3)).astype(numpy.uint8)
        image = Image.fromarray(noise)
        draw = ImageDraw.Draw(image)
        for _ in range(int(random.integers(2, 5))):
            width, height = (int(size) for size in random.integers(40, 110, 2))
            left = int(random.integers(0, WIDTH - width))
            top = int(random.integers(0, HEIGHT - height))
            box = (left, top, left + width - 1, top + height - 1)
            colour = tuple(int(value) for value in random.integers(0, 256, 3))
            category = RECTANGLE if random.integers(2) else DISC
            (draw.rectangle if category == RECTANGLE else draw.ellipse)(box, fill=colour)
            annotations.append(
                {
                    "id": len(annotations) + 1,
                    "image_id": number,
                    "category_id": category,
                    "bbox": [left, top, width, height],
                    "area": width * height,
                    "iscrowd": 0,
                }
            )
        image.save(pictures / name, quality=90)
        images.append({"id": number, "file_name": name, "width": WIDTH, "height": HEIGHT})
    content = {"images": images, "annotations": annotations, "categories": CATEGORIES}
    text = json.dumps({"info": {}, "licenses": [], **content}, indent=1) + "\n"
    listed = arguments.out / "coco" / "annotations" / "instances_val2017_100.json"
    listed.parent.mkdir()
    listed.write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main()
