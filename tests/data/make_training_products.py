"""Makes the checkpoints and the event file beside it: what real training leaves behind.

Run once, with torch 2.13.0 (CPU build) and tensorboard 2.21.0 on Python 3.11:

    python tests/data/make_training_products.py

The products are committed since torch is no dependency of the tests.
"""

import shutil
import tempfile
from pathlib import Path

import torch
from torch.utils.tensorboard import SummaryWriter

HERE = Path(__file__).parent


class Net(torch.nn.Module):
    """Small enough to be committed; with a buffer, a shared view and a half-precision part."""

    def __init__(self):
        super().__init__()
        self.first = torch.nn.Linear(3, 4)
        self.norm = torch.nn.BatchNorm1d(4)
        self.last = torch.nn.Linear(4, 1)

    def forward(self, x):
        return self.last(torch.relu(self.norm(self.first(x))))


def main():
    torch.manual_seed(0)
    net = Net()
    optimizer = torch.optim.Adam(net.parameters(), lr=0.05)
    inputs = torch.randn(32, 3)
    targets = inputs.sum(1, keepdim=True)
    with tempfile.TemporaryDirectory() as folder:
        writer = SummaryWriter(folder)
        for step in range(5):
            loss = torch.nn.functional.mse_loss(net(inputs), targets)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            writer.add_scalar("loss/train", loss.item(), step)
            # As a tensor, which is how TensorFlow 2 writes scalars.
            writer.add_scalar("loss/tensor", loss.item(), step, new_style=True)
        writer.add_histogram("weights", net.last.weight, 0, bins="sqrt")
        writer.add_scalar("accuracy", float("nan"), 0)
        writer.close()
        (events,) = Path(folder).glob("events.out.tfevents.*")
        shutil.copy(events, HERE / "events.out.tfevents.training")
    base = torch.arange(12, dtype=torch.float32)
    checkpoint = {
        "epoch": 5,
        "model": net.state_dict(),
        "optimizer": optimizer.state_dict(),
        "half": torch.tensor([0.5, -1.5], dtype=torch.bfloat16),
        "view": base[3:9].view(2, 3),
        "transposed": base.view(3, 4).T,
        "broken": torch.tensor([1.0, float("nan")]),
        "bits": torch.tensor([1, 2, 65535], dtype=torch.uint16),
    }
    torch.save(checkpoint, HERE / "checkpoint.pt")
    torch.save(checkpoint, HERE / "checkpoint-legacy.pt", _use_new_zipfile_serialization=False)
    torch.save(net, HERE / "module.pt")
    torch.jit.script(net).save(HERE / "scripted.pt")


if __name__ == "__main__":
    main()
