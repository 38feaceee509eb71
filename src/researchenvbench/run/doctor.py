"""What the host offers to runs, one line each.

Nothing is changed but for what is noted of the engines: how their containers start here.
"""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from ..gpu.inventory import inventory
from ..gpu.nvml import nvml
from ..places import default_cache
from ..sandbox.host_environment import host_environment, redacted_variables
from ..sandbox.local.namespace import namespace_support
from ..verify.preflight import told
from ..verify.readers.installed import INSTALL, lacking
from ..verify.witness.counter import compiled
from .doctor_engines import engine_lines
from .doctor_line import Line
from .registries import registry_lines

if TYPE_CHECKING:
    from collections.abc import Iterator

    from ..gpu.nvml import Card

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


def examine_gpus() -> Iterator[Line]:
    """Whether stages can be judged on this host's GPUs: the preflight, step by step."""
    found = inventory()
    variables = host_environment().variables
    if not found.gpus:
        yield Line("GPUs", "none", "missing", found.why_none)
        return
    with nvml() as driver:
        cards = {card.uuid: card for card in driver.cards()}
        links = {(a.index, b.index): driver.linked(a.uuid, b.uuid)
                 for a in found.gpus for b in found.gpus if a != b}  # fmt: skip
    for gpu in found.gpus:
        host = told([gpu], variables)
        what = f"GPU {gpu.index}"
        words = f"{gpu.name} ({gpu.architecture}), {gpu.uuid}"
        if host.problem:
            yield Line(what, words, "missing", host.problem)
            continue
        yield Line(what, f"{words}: computes; {_as_found(cards[gpu.uuid])}")
        if not (host.sees_processes and host.sees_busy):
            why = "NVML does not say how busy a process is"
            if not host.sees_processes:
                why = "NVML does not show who computes there: C3 and C4 stay inconclusive"
            yield Line(f"{what} is watched", "not in full", "note", why)
    newest = ".".join(map(str, found.cuda or ("?",)))
    yield Line("driver", f"{found.driver}, for CUDA up to {newest}")
    built = compiled()
    if built.library:
        yield Line("launches are counted", str(built.library))
    else:
        yield Line("launches are counted", "no", "note", built.why_none)
    if len(found.gpus) > 1:
        host = told(found.gpus, variables)
        for (one, other), link in links.items():
            way = host.facts["copies"].get(f"{one} to {other}", "nothing was copied")
            yield Line(f"GPU {one} to {other}", f"{way}; linked by {link}")
        if host.between:
            yield Line("several GPUs", "not together", "missing", host.between)
        else:
            yield Line("several GPUs", "copies, shared memory and sockets work")


def _as_found(card: Card) -> str:
    persistent = {True: "on", False: "off", None: "unknown"}[card.persistent]
    sliced = ", cut into MIG slices, which stages are not given" if card.sliced else ""
    return f"{card.free_bytes / 1e9:.0f} GB free, persistence {persistent}{sliced}"


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
