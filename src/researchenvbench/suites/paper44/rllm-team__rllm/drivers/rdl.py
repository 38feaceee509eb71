"""Runs the repository's RDL example where it may write, and keeps what the model's weights were.

    python rdl.py EXAMPLE RAW OUT [OPTIONS OF THE EXAMPLE]

The example processes its raw tables into a folder beside them, so RAW, which may be read-only, is
linked into a folder in OUT. It keeps nothing of the model: its weights
before the first batch and at the end become OUT/first.pt and OUT/last.pt. The model is seen from
outside, by torch's own hook.
"""

import runpy
import sys
from pathlib import Path

import torch

example, raw, out = (Path(argument) for argument in sys.argv[1:4])
models: list[torch.nn.Module] = []


def keep(model: torch.nn.Module, name: str) -> None:
    """Save the weights of the model, wherever they lie."""
    torch.save({key: value.cpu() for key, value in model.state_dict().items()}, out / name)


def look(module: torch.nn.Module, _: tuple) -> None:
    """Keep the weights of the whole model as they are before it first computes."""
    if not models and type(module).__name__ == "RDL":
        models.append(module)
        keep(module, "first.pt")


torch.nn.modules.module.register_module_forward_pre_hook(look)

data = out / "data"
(data / "rel-f1").mkdir(parents=True)
(data / "rel-f1" / "raw").symlink_to(raw)

# As `python EXAMPLE` would have it.
sys.argv = [str(example), "--cache_dir", str(data), *sys.argv[4:]]
sys.path[0] = str(example.parent)
runpy.run_path(str(example), run_name="__main__")

keep(models[0], "last.pt")
print(f"The model is on {next(models[0].parameters()).device.type}")
