"""Runs the repository's example, and compares its attention with the one that explains it.

    python llama.py OUT EXAMPLE [ITS OPTIONS]

The example answers a prompt of three words. Its model then reads a longer text three times: with
the attention that was asked for, with `moba_naive`, by which the repository shows what it means,
and with flash-attn over the whole text, which must give something else: else no block was left out.
"""

import collections
import runpy
import sys
from pathlib import Path

import numpy
import torch

# No two blocks alike: among equals, two ways to choose need not choose the same.
TEXT = " ".join(
    f"Block {number} is known by the mean of its {number * 7919 % 1000} keys."
    for number in range(20)
)


def read(model: torch.nn.Module, text: torch.Tensor, attention: str) -> torch.Tensor:
    """The logits of a text, with an attention of that name."""
    model.config._attn_implementation = attention
    with torch.no_grad():
        return model(text).logits[0].float()


def apart(found: torch.Tensor, expected: torch.Tensor) -> float:
    """How far `found` is from `expected`, by the norm of the latter."""
    return ((found - expected).norm() / expected.norm()).item()


out, script = Path(sys.argv[1]), Path(sys.argv[2])
# As `python EXAMPLE` would have it.
sys.argv = sys.argv[2:]
sys.path[0] = str(script.parent)
example = runpy.run_path(str(script), run_name="__main__")

model, asked, given = example["model"], example["input_ids"], example["tokens"]
print(f"the example: {asked.shape[1]} tokens asked, {given.shape[1] - asked.shape[1]} answered")

layers = collections.Counter(str(one.self_attn.q_proj.weight.device) for one in model.model.layers)
for device, count in sorted(layers.items()):
    print(f"{count} layers on {device}")

text = torch.tensor([example["tknz"].encode(TEXT)], device=model.device)
attention = example["args"].attn
found = read(model, text, attention)
naive, full = (read(model, text, other) for other in ("moba_naive", "flash_attention_2"))
print(
    f"{attention}, {text.shape[1]} tokens: {apart(found, naive):.6f} from moba_naive, "
    f"{apart(found, full):.6f} from attention to all"
)
out.mkdir(parents=True, exist_ok=True)
numpy.savez(out / "logits.npz", logits=found.cpu().numpy())
