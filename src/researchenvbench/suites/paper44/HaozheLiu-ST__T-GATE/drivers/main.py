"""Runs the repository's main.py, and shows how often its transformer computed attention.

    python main.py MAIN [ITS OPTIONS]

What T-GATE is there for leaves no trace in a picture: that attention is computed in the first
steps, and kept afterwards. Each of the transformer's attentions asks for its queries, by its layer
`to_q`, when it computes, and does not when it reuses; so these layers are counted, by torch's own
hook, and the steps by the transformer's calls.
"""

import collections
import runpy
import sys
from pathlib import Path

import torch

script = Path(sys.argv[1])
calls: collections.Counter[int] = collections.Counter()
torch.nn.modules.module.register_module_forward_hook(
    lambda module, _, __: calls.update([id(module)])
)

# As `python MAIN` would have it: the package lies beside it, and nothing installs it.
sys.argv = sys.argv[1:]
sys.path[0] = str(script.parent)
model = runpy.run_path(str(script), run_name="__main__")["pipe"].transformer

layers = [(name, layer) for name, layer in model.named_modules() if name.endswith(".to_q")]
for kind, part in (("self", "attn1.to_q"), ("cross", "attn2.to_q")):
    of_kind = [layer for name, layer in layers if name.endswith(part)]
    computed = sum(calls[id(layer)] for layer in of_kind)
    print(f"{kind}-attention: {computed} of {len(of_kind) * calls[id(model)]} computed")
print(f"steps: {calls[id(model)]} on {model.device.type}")
