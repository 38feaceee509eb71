"""Classifies two images with the model of the repository's example.py, on the device asked for.

It calls Vim with the arguments of example.py but for `heads`, which the class of this commit
hands on to a block that does not take it. Weights and images are random; the seed is fixed.
"""

import argparse
from pathlib import Path

import numpy
import torch
from vision_mamba.model import Vim

parser = argparse.ArgumentParser(description=__doc__)
parser.add_argument("--device", required=True, help="cpu or cuda")
parser.add_argument("--output", required=True, type=Path, help="folder for logits.npz")
args = parser.parse_args()

torch.manual_seed(0)
model = Vim(
    dim=256,
    dt_rank=32,
    dim_inner=256,
    d_state=256,
    num_classes=1000,
    image_size=224,
    patch_size=16,
    channels=3,
    dropout=0.1,
    depth=12,
)
model = model.to(args.device).eval()

# How much each layer changes what passes it: a layer hands on its input beside its own work.
changes = []
for layer in model.layers:
    layer.register_forward_hook(
        lambda _, taken, given: changes.append((given - taken[0]).abs().max().item())
    )

first, second = torch.randn(2, 1, 3, 224, 224).to(args.device)

with torch.no_grad():
    one, other = model(first), model(second)

logits = torch.cat([one, other]).cpu()
args.output.mkdir(parents=True, exist_ok=True)
numpy.savez(args.output / "logits.npz", logits=logits.numpy(), spread=logits.std(dim=1).numpy())

print(f"logits: {tuple(logits.shape)} on {one.device.type}")
print(f"by a layer: {min(changes):.6f}")
print(f"between classes: {logits.std(dim=1).min():.6f}")
print(f"between images: {(one - other).abs().max():.6f}")
