"""Which GPUs this host shows, and which of them this process may use."""

from __future__ import annotations

import os
from dataclasses import dataclass, replace
from functools import cache
from typing import TYPE_CHECKING

from .nvml import NvmlError, nvml

if TYPE_CHECKING:
    from collections.abc import Mapping


@dataclass(frozen=True)
class Gpu:
    """One NVIDIA GPU as the driver shows it."""

    index: int  #: in PCI bus order
    uuid: str
    name: str
    architecture: str  #: such as sm_90
    memory_bytes: int


@dataclass(frozen=True)
class GpuInventory:
    """The GPUs of this host that this process may use, and the driver."""

    gpus: tuple[Gpu, ...] = ()
    driver: str | None = None
    cuda: tuple[int, int] | None = None  #: the newest that the driver supports
    why_none: str = ""  #: in words, where there is none
    of_host: tuple[str, ...] = ()  #: UUIDs of all that the driver shows, hidden ones too


def gpu_words(gpu: Gpu) -> str:
    """What a GPU is, so that one of another host can be compared with it."""
    return f"{gpu.name} ({gpu.architecture})"


def inventory(environ: Mapping[str, str] | None = None) -> GpuInventory:
    """The GPUs of this host, less those that `CUDA_VISIBLE_DEVICES` hides from us.

    `REB_GPUS` hides more of them: indices or UUIDs, or `none`.
    """
    found = _all_gpus()
    variables = os.environ if environ is None else environ
    for variable in ("CUDA_VISIBLE_DEVICES", "REB_GPUS"):
        visible = variables.get(variable)
        if visible is None or not found.gpus:
            continue
        names = [name.strip() for name in visible.split(",") if name.strip()]
        chosen = tuple(gpu for gpu in found.gpus if str(gpu.index) in names or gpu.uuid in names)
        why = "" if chosen else f"{variable}={visible} hides them"
        found = replace(found, gpus=chosen, why_none=why)
    return found


@cache
def _all_gpus() -> GpuInventory:
    try:
        with nvml() as driver:
            version, cuda = driver.driver(), driver.cuda()
            gpus = tuple(
                Gpu(
                    index=card.index,
                    uuid=card.uuid,
                    name=card.name,
                    architecture=card.architecture,
                    memory_bytes=card.memory_bytes,
                )
                for card in driver.cards()
            )
    except NvmlError as error:
        return GpuInventory(why_none=str(error))
    why = "" if gpus else "the driver shows none"
    return GpuInventory(gpus, version, cuda, why, tuple(gpu.uuid for gpu in gpus))
