"""Runs the model of the repository's model_example.py, four times, on the device asked for.

It makes the calls of model_example.py: random text, picture, sound and video, all four through
MultiModalMamba; then with another picture, another sound and another video in turn. The projections
of sound and video are drawn anew at each call, within the call, on torch's default device: so the
device is made the default, and the seed is set before each call.
"""

import argparse
from pathlib import Path

import numpy
import torch
from mm_mamba import MultiModalMamba

parser = argparse.ArgumentParser(description=__doc__)
parser.add_argument("--device", required=True, help="cpu or cuda")
parser.add_argument("--output", required=True, type=Path, help="folder for logits.npz")
args = parser.parse_args()

torch.set_default_device(args.device)
torch.manual_seed(0)
text = torch.randint(0, 10000, (1, 196))
picture, other_picture = torch.randn(2, 1, 3, 224, 224)
sound = torch.randn(1, 224)
video = torch.randn(1, 3, 16, 224, 224)
model = MultiModalMamba(
    vocab_size=10000,
    dim=512,
    depth=6,
    dropout=0.1,
    heads=8,
    d_state=512,
    image_size=224,
    patch_size=16,
    encoder_dim=512,
    encoder_depth=6,
    encoder_heads=8,
    fusion_method="mlp",
    return_embeddings=False,
    post_fuse_norm=True,
)
model.eval()
other_sound = torch.randn(1, 224)
brighter_video = video + 1

# What each state-space layer adds to what passes it.
additions = []
for layer in model.layers:
    layer.register_forward_hook(lambda _, __, given: additions.append(given.abs().max().item()))

answers = []
for shown in (
    (picture, sound, video),
    (other_picture, sound, video),
    (picture, other_sound, video),
    (picture, sound, brighter_video),
):
    torch.manual_seed(1)
    with torch.no_grad():
        answers.append(model(text, *shown))
first, *others = answers

logits = first[0].cpu()
args.output.mkdir(parents=True, exist_ok=True)
numpy.savez(args.output / "logits.npz", logits=logits.numpy(), spread=logits.std(dim=1).numpy())

print(f"logits: {tuple(first.shape)} on {first.device.type}")
print(f"by a layer: {min(additions):.6f}")
print(f"between words: {logits.std(dim=1).min():.6f}")
print(f"between places: {logits.std(dim=0).mean():.6f}")
for what, other in zip(("pictures", "sounds", "videos"), others, strict=True):
    print(f"between {what}: {(first - other).abs().max():.6f}")
