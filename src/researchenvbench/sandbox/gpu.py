"""Which GPUs this host shows, read through NVML and never changed.

Only queries are made here: no call of NVML that sets, resets or clears anything. Leases
belong to their own module once stages compete for GPUs.
"""

from __future__ import annotations

import os
from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING

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
    why_none: str = ""  #: in words, where there is none


def gpu_words(gpu: Gpu) -> str:
    """What a GPU is, so that one of another host can be compared with it."""
    return f"{gpu.name} ({gpu.architecture})"


def inventory(environ: Mapping[str, str] | None = None) -> GpuInventory:
    """The GPUs of this host, less those that `CUDA_VISIBLE_DEVICES` hides from us."""
    found = _all_gpus()
    visible = (os.environ if environ is None else environ).get("CUDA_VISIBLE_DEVICES")
    if visible is None or not found.gpus:
        return found
    names = [name.strip() for name in visible.split(",") if name.strip()]
    chosen = tuple(gpu for gpu in found.gpus if str(gpu.index) in names or gpu.uuid in names)
    why = "" if chosen else f"CUDA_VISIBLE_DEVICES={visible} hides them"
    return GpuInventory(chosen, found.driver, why)


@cache
def _all_gpus() -> GpuInventory:
    import pynvml

    try:
        pynvml.nvmlInit()
    except pynvml.NVMLError as error:
        return GpuInventory(why_none=f"NVML: {error}")
    try:
        driver = pynvml.nvmlSystemGetDriverVersion()
        gpus = []
        for index in range(pynvml.nvmlDeviceGetCount()):
            handle = pynvml.nvmlDeviceGetHandleByIndex(index)
            major, minor = pynvml.nvmlDeviceGetCudaComputeCapability(handle)
            gpus.append(
                Gpu(
                    index=index,
                    uuid=pynvml.nvmlDeviceGetUUID(handle),
                    name=pynvml.nvmlDeviceGetName(handle),
                    architecture=f"sm_{major}{minor}",
                    memory_bytes=int(pynvml.nvmlDeviceGetMemoryInfo(handle).total),
                )
            )
    except pynvml.NVMLError as error:
        return GpuInventory(why_none=f"NVML: {error}")
    else:
        return GpuInventory(tuple(gpus), driver, "" if gpus else "the driver shows none")
    finally:
        pynvml.nvmlShutdown()
