"""What `reb doctor --gpu` says: whether stages can be judged on this host's GPUs."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from ..gpu.inventory import inventory
from ..gpu.nvml import NvmlError, nvml
from ..sandbox.host_environment import host_environment
from ..verify.preflight import told
from ..verify.witness.counter import compiled
from .doctor_line import Line

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from ..gpu.inventory import Gpu, GpuInventory
    from ..gpu.nvml import Card
    from ..verify.preflight import Preflight

_RESET = "nvidia-smi and the kernel's log (Xid) say more; mostly the card must be reset"


def examine_gpus() -> Iterator[Line]:
    """Whether stages can be judged on this host's GPUs: the preflight, step by step."""
    found = inventory()
    yield from _not_used(found)
    if not found.gpus:
        yield Line("GPUs", "none", "missing", _why_none(found))
        return
    try:
        with nvml() as driver:
            cards = {card.index: card for card in driver.cards()}
            whole = found.together().gpus
            links = {(a.number, b.number): driver.linked(a.uuid, b.uuid)
                     for a in whole for b in whole if a != b}  # fmt: skip
    except NvmlError as error:
        yield Line("GPUs", "not asked", "missing", f"the driver has ceased to answer: {error}")
        return
    variables = host_environment().variables
    for gpu in found.gpus:
        yield from _one(gpu, cards.get(gpu.index), told([gpu], variables))
    newest = ".".join(map(str, found.cuda or ("?",)))
    yield Line("driver", f"{found.driver}, for CUDA up to {newest}")
    built = compiled()
    if built.library:
        yield Line("launches are counted", str(built.library))
    else:
        yield Line("launches are counted", "no", "note", built.why_none)
    if len(whole) > 1:
        host = told(whole, variables)
        for (one, other), link in links.items():
            way = host.facts["copies"].get(f"{one} to {other}", "nothing was copied")
            yield Line(f"GPU {one} to {other}", f"{way}; linked by {link}")
        if host.between:
            yield Line("several GPUs", "not together", "missing", host.between)
        else:
            yield Line("several GPUs", "copies, shared memory and sockets work")
    elif len(found.gpus) > 1:
        why = "CUDA shows a program one MIG slice, so C4 stays inconclusive"
        yield Line("several GPUs", "not together", "note", why)


def _one(gpu: Gpu, card: Card | None, host: Preflight) -> Iterator[Line]:
    what, words = f"GPU {gpu.number}", f"{gpu.name} ({gpu.architecture}), {gpu.uuid}"
    for amiss in card.amiss if card else ():
        yield Line(f"{what} is not sound", amiss, "note", _RESET)
    if host.problem:
        yield Line(what, words, "missing", host.problem)
        return
    state = _as_found(card) if card and gpu.slice_number is None else "a MIG slice"
    yield Line(what, f"{words}: computes; {state}")
    if host.sees_processes and host.sees_busy:
        return
    why = "NVML does not say how busy a process is, so that it counts only what is counted within"
    if not host.sees_processes:
        why = (
            "NVML does not show who computes there: C3 and C4 stay inconclusive; in a container "
            "reb needs the host's process namespace (--pid=host)"
        )
    yield Line(f"{what} is watched", "not in full", "note", why)


def _not_used(found: GpuInventory, environ: Mapping[str, str] = os.environ) -> Iterator[Line]:
    """What is here and is not used, or not to be used."""
    for words in found.silent:
        yield Line("a GPU in error", words, "missing", _RESET)
    hidden = len(found.of_host) - len(found.gpus)
    for variable in ("CUDA_VISIBLE_DEVICES", "REB_GPUS"):
        value = environ.get(variable)
        if value is not None and hidden and found.gpus:
            left = ", ".join(gpu.number for gpu in found.gpus)
            order = environ.get("CUDA_DEVICE_ORDER", "PCI_BUS_ID")
            why = "" if order == "PCI_BUS_ID" else f"; {order} is not heeded: numbers are the bus's"
            words = f"{variable}={value} leaves {left} of {len(found.of_host)}{why}"
            yield Line("GPUs are hidden", words, "note", "unset it for all of them")


def _why_none(found: GpuInventory) -> str:
    """Why there is none, and what to do."""
    why = found.why_none
    if why.startswith("NVML: "):
        return (
            f"{why}: install NVIDIA's driver; in a container its libraries must be shown "
            "(podman: --device nvidia.com/gpu=all, docker: --gpus all)"
        )
    return why


def _as_found(card: Card) -> str:
    persistent = {True: "on", False: "off", None: "unknown"}[card.persistent]
    return f"{card.free_bytes / 1e9:.0f} GB free, persistence {persistent}"
