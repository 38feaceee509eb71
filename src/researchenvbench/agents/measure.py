"""A report from values that were measured: what agents of this project claim, and no more.

The interpreter of the environment is run once and asked for its version, its framework and
the devices that the framework sees. What could not be measured stays null.
"""

from __future__ import annotations

import json
import time
from typing import TYPE_CHECKING, Literal

from ..attempt import Report
from ..sandbox import Command

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from ..sandbox import Box

#: Printed before the answer, since frameworks print on import whatever they like.
_MARK = "measured:"

#: Runs in the environment, Python 3.6 and newer. A framework that is absent, or whose import
#: fails, leaves its values null.
_QUESTION = """
import json, sys
found = {"python_version": "%d.%d.%d" % sys.version_info[:3]}
try:
    import torch
    found["torch_version"] = torch.__version__
    found["cuda_available"] = bool(torch.cuda.is_available())
    found["gpu_count"] = int(torch.cuda.device_count())
except Exception:
    try:
        import jax
        gpus = [d for d in jax.devices() if d.platform in ("gpu", "cuda")]
        found["cuda_available"] = bool(gpus)
        found["gpu_count"] = len(gpus)
    except Exception:
        pass
print("measured:" + json.dumps(found))
"""


def measure(
    box: Box,
    python: Path,
    environment: Mapping[str, str],
    log: Path,
    *,
    tool: Literal["conda", "uv", "pip", "poetry", "venv", "none"],
    notes: str = "",
    deadline: float,
) -> Report:
    """Ask the interpreter at `python`; a report without it where it does not answer."""
    start = log.stat().st_size if log.exists() else 0
    finished = box.run(
        Command(
            argv=[str(python), "-c", _QUESTION],
            cwd=box.layout.tmp,
            env=environment,
            time_limit_s=max(1.0, min(300.0, deadline - time.monotonic())),
        ),
        log,
        append=True,
    )
    with log.open("rb") as stream:
        stream.seek(start)
        printed = stream.read().decode(errors="replace")
    answers = [line for line in printed.splitlines() if line.startswith(_MARK)]
    try:
        found = json.loads(answers[-1].removeprefix(_MARK)) if finished.ok and answers else None
    except ValueError:
        found = None
    if not isinstance(found, dict):
        return Report(env_tool=tool, notes=notes or None)
    return Report(
        python_path=str(python),
        env_tool=tool,
        env_name=python.parent.parent.name,
        notes=notes or None,
        **found,
    )
