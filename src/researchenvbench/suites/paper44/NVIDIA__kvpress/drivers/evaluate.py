"""Runs the repository's evaluation script, and shows what its pipeline tells at DEBUG.

    python evaluate.py EVALUATION_SCRIPT [ITS OPTIONS]

The script's `--log_level` reaches its own messages only. How long the cache of keys and values
was before and after the compression is said by the pipeline of the package. On which devices it
lay is said by nobody: each attention of the model is watched from outside, by torch's own hook,
and at the end a line a device says of how many layers the cache was there.
"""

import collections
import logging
import runpy
import sys
from pathlib import Path

import torch

script = Path(sys.argv[1])
pipeline = logging.getLogger("kvpress.pipeline")
pipeline.addHandler(logging.StreamHandler(sys.stdout))
pipeline.setLevel(logging.DEBUG)

layers_by_device: dict[str, set[int]] = collections.defaultdict(set)


def look(module: torch.nn.Module, _: tuple, arguments: dict, __: object) -> None:
    """Note where the cache of an attention lies that has just been computed."""
    cache = arguments.get("past_key_values")
    number = getattr(module, "layer_idx", None)
    if cache is not None and number is not None:
        layers_by_device[str(cache.layers[number].keys.device)].add(number)


torch.nn.modules.module.register_module_forward_hook(look, with_kwargs=True)

# As `python EVALUATION_SCRIPT` would have it.
sys.argv = sys.argv[1:]
sys.path[0] = str(script.parent)
runpy.run_path(str(script), run_name="__main__")

for device, layers in sorted(layers_by_device.items()):
    print(f"Cache of {len(layers)} layers on {device}")
