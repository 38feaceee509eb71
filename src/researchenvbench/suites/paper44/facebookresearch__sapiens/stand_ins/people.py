"""Makes four pictures with masks and surface normals: OUT/images, OUT/masks, OUT/normals.

    python people.py OUT --seed 0

The form is that of the repository's own toy data: NAME.png, NAME.png and NAME.npy. Each
picture shows a shaded ellipsoid, whose normals are known, before noise.
"""

import argparse
from pathlib import Path

import cv2
import numpy as np

HEIGHT, WIDTH, COUNT = 512, 384, 4


def draw(random: np.random.Generator) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """A picture (BGR), its mask and its normals."""
    y, x = np.mgrid[0:HEIGHT, 0:WIDTH].astype(np.float64)
    radius = random.uniform(0.25, 0.4, 2) * (HEIGHT, WIDTH)
    center = random.uniform(0.45, 0.55, 2) * (HEIGHT, WIDTH)
    across, down = (x - center[1]) / radius[1], (y - center[0]) / radius[0]
    inside = across**2 + down**2 < 1
    towards = np.sqrt(np.clip(1 - across**2 - down**2, 0, 1))
    normals = np.stack([across, -down, towards], axis=2)
    normals /= np.maximum(np.linalg.norm(normals, axis=2, keepdims=True), 1e-9)
    light = np.array([0.3, 0.5, 0.8])
    shade = np.clip(normals @ (light / np.linalg.norm(light)), 0.1, 1)
    picture = random.integers(0, 255, (HEIGHT, WIDTH, 3)).astype(np.float64)
    colour = random.uniform(80, 255, 3)
    picture[inside] = shade[inside][:, None] * colour
    normals[~inside] = 0
    mask = np.where(inside, 255, 0).astype(np.uint8)
    return picture.astype(np.uint8), mask, normals


def main() -> None:
    """Write the folder."""
    parser = argparse.ArgumentParser()
    parser.add_argument("out", type=Path)
    parser.add_argument("--seed", type=int, default=0)
    arguments = parser.parse_args()
    random = np.random.default_rng(arguments.seed)
    for kind in ("images", "masks", "normals"):
        (arguments.out / kind).mkdir(parents=True, exist_ok=True)
    for number in range(COUNT):
        picture, mask, normals = draw(random)
        cv2.imwrite(str(arguments.out / "images" / f"{number:02}.png"), picture)
        cv2.imwrite(str(arguments.out / "masks" / f"{number:02}.png"), mask)
        np.save(arguments.out / "normals" / f"{number:02}.npy", normals.astype(np.float32))


if __name__ == "__main__":
    main()
