"""What the host offers to runs, one line each; nothing is changed."""

from __future__ import annotations

import shutil
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from ..sandbox.gpu import inventory
from ..sandbox.host_environment import host_environment, redacted_variables
from ..sandbox.namespace import namespace_support
from ..source import default_cache

_ENOUGH_GB = 20


@dataclass(frozen=True)
class Line:
    """One thing that was looked at."""

    what: str
    found: str
    state: Literal["good", "note", "missing"] = "good"
    advice: str = ""


def examine() -> list[Line]:
    """Everything, in the order in which a run needs it."""
    host = host_environment()
    lines = [_program("git", "git", host.path), _program("C++ compiler", "g++", host.path)]
    kind, network, why = namespace_support()
    lines.append(
        Line("fresh stages", f"{kind}, network {network}", "good" if not why else "note", why)
    )
    found = inventory()
    if found.gpus:
        names = ", ".join(f"{gpu.name} ({gpu.architecture})" for gpu in found.gpus)
        lines.append(Line("GPUs", f"{names}; driver {found.driver}"))
    else:
        lines.append(
            Line("GPUs", "none", "note", f"C2, C3 and C4 will be inconclusive ({found.why_none})")
        )
    lines.append(_disk())
    installs = redacted_variables(host.installs)
    lines += [
        Line("installs use", f"{name}={value}", "note")
        for name, value in sorted(installs.items())
        if name.startswith(("PIP_", "UV_"))
    ]
    lines += [
        Line("every process gets", f"{name}={value}", "note")
        for name, value in sorted(redacted_variables(host.variables).items())
    ]
    return lines


def _program(what: str, name: str, path: str) -> Line:
    where = shutil.which(name, path=path)
    if where:
        return Line(what, where)
    return Line(what, "not found", "missing", f"apt-get install {name}")


def _disk() -> Line:
    cache = default_cache()
    there = next(folder for folder in (cache, *cache.parents) if folder.exists())
    free_gb = shutil.disk_usage(there).free / 1e9
    here_gb = shutil.disk_usage(Path.cwd()).free / 1e9
    state: Literal["good", "note"] = "good" if min(free_gb, here_gb) > _ENOUGH_GB else "note"
    return Line("disk", f"{here_gb:.0f} GB free here, {free_gb:.0f} GB in {cache}", state)
