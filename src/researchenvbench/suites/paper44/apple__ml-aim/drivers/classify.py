"""Classifies images with AIM, by the steps of the README's "Usage", on the device asked for.

The model comes from a folder of the hub by `AIMForImageClassification.from_pretrained`, images go
through the repository's `val_transforms`. `from_pretrained` leaves what it does not find random,
so the weights are compared with those of the file. All images are classified at once and one by
one, and the features of each block are taken as `extract_features` gives them.
"""

import argparse
import itertools
from pathlib import Path

import numpy
import torch
from aim.v1.torch.data import val_transforms
from aim.v1.torch.models import AIMForImageClassification
from PIL import Image
from safetensors.torch import load_file

parser = argparse.ArgumentParser(description=__doc__)
parser.add_argument("--model", required=True, type=Path, help="folder of the hub")
parser.add_argument("--images", required=True, type=Path, help="folder of PNG files")
parser.add_argument("--device", required=True, help="cpu or cuda")
parser.add_argument("--output", required=True, type=Path, help="folder for logits.npz")
args = parser.parse_args()

model = AIMForImageClassification.from_pretrained(args.model).to(args.device).eval()
kept, used = load_file(args.model / "model.safetensors"), model.state_dict()
same = [name for name, tensor in used.items() if name in kept and tensor.cpu().equal(kept[name])]
print(f"weights: {len(same)} of {len(used)} as in the file")

transform = val_transforms()
files = sorted(args.images.glob("*.png"))
images = torch.stack([transform(Image.open(file).convert("RGB")) for file in files])
images = images.to(args.device)

with torch.no_grad():
    logits = model(images)
    singly = torch.cat([model(image.unsqueeze(0)) for image in images])
    features = model.extract_features(images, max_block_id=None)

pairs = itertools.pairwise(features)
steps = [(after - before).abs().max().item() for before, after in pairs]
apart = torch.pdist(logits.float(), p=float("inf"))
print(f"logits: {tuple(logits.shape)} on {logits.device.type}")
print(f"between classes: {logits.std(dim=1).min().item():.6f}")
print(f"between images: {apart.min().item():.6f}")
print(f"one by one, relative error: {((logits - singly).norm() / logits.norm()).item():.6f}")
shape = tuple(features[0].shape)
print(f"features: {len(features)} blocks of {shape}, least step {min(steps):.6f}")

args.output.mkdir(parents=True, exist_ok=True)
numpy.savez(args.output / "logits.npz", logits=logits.float().cpu().numpy())
