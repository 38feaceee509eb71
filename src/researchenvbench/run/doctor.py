"""What the host offers to runs, one line each.

Nothing is changed but for what is noted of the engines: how their containers start here.
"""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from ..gpu.inventory import inventory
from ..places import default_cache
from ..sandbox.host_environment import host_environment, redacted_variables
from ..sandbox.local.namespace import namespace_support
from ..verify.readers.installed import INSTALL, lacking
from .doctor_engines import engine_lines
from .doctor_line import Line
from .registries import registry_lines

if TYPE_CHECKING:
    from collections.abc import Iterator

_ENOUGH_GB = 20


def examine() -> Iterator[Line]:
    """Everything, in the order in which a run needs it, each as soon as it is known."""
    host = host_environment()
    yield _program("git", "git", host.path)
    yield _program("C++ compiler", "g++", host.path)
    kind, network, why = namespace_support()
    yield Line("fresh stages", f"{kind}, network {network}", "note" if why else "good", why)
    found = inventory()
    if found.gpus:
        names = ", ".join(f"{gpu.name} ({gpu.architecture})" for gpu in found.gpus)
        yield Line("GPUs", f"{names}; driver {found.driver}")
    else:
        why = f"C2, C3 and C4 will be inconclusive ({found.why_none})"
        yield Line("GPUs", "none", "note", why)
    yield _disk()
    yield _readers()
    yield from engine_lines(host)
    yield from registry_lines(host.installs)
    installs = redacted_variables(host.installs)
    for name, value in sorted(installs.items()):
        if name.startswith(("PIP_", "UV_")):
            yield Line("installs use", f"{name}={value}", "note")
    for name, value in sorted(redacted_variables(host.variables).items()):
        yield Line("every process gets", f"{name}={value}", "note")


def _program(what: str, name: str, path: str) -> Line:
    where = shutil.which(name, path=path)
    if where:
        return Line(what, where)
    return Line(what, "not found", "missing", f"apt-get install {name}")


def _readers() -> Line:
    absent = lacking()
    if not absent:
        return Line("readers of evidence", "all there")
    names = ", ".join(sorted({name for missing in absent.values() for name in missing}))
    return Line(
        "readers of evidence",
        f"{names} not installed; files of these formats make a level inconclusive: "
        f"{', '.join(absent)}",
        "note",
        f"in reb's checkout: {INSTALL}",
    )


def _disk() -> Line:
    cache = default_cache()
    there = next(folder for folder in (cache, *cache.parents) if folder.exists())
    free_gb = shutil.disk_usage(there).free / 1e9
    here_gb = shutil.disk_usage(Path.cwd()).free / 1e9
    state: Literal["good", "note"] = "good" if min(free_gb, here_gb) > _ENOUGH_GB else "note"
    return Line("disk", f"{here_gb:.0f} GB free here, {free_gb:.0f} GB in {cache}", state)
