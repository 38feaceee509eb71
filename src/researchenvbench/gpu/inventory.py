"""Which GPUs this host shows, and which of them this process may use."""

from __future__ import annotations

import os
from dataclasses import dataclass, replace
from functools import cache
from typing import TYPE_CHECKING

from .nvml import NvmlError, nvml

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from .nvml import Card


@dataclass(frozen=True)
class Gpu:
    """One NVIDIA GPU as the driver shows it, or a MIG slice of one."""

    index: int  #: in PCI bus order; of a slice, that of its card
    uuid: str
    name: str
    architecture: str  #: such as sm_90
    memory_bytes: int
    slice_number: int | None = None  #: among the slices of its card; None: it is a whole one
    beside_slices: bool = False  #: where CUDA counts slices too, its numbers are others than NVML's

    @property
    def number(self) -> str:
        """How people call it, and CDI: `0`, or of a slice `0:1`."""
        return f"{self.index}" if self.slice_number is None else f"{self.index}:{self.slice_number}"

    @property
    def shown_as(self) -> str:
        """By what `CUDA_VISIBLE_DEVICES` names it: a number, since launchers parse integers."""
        by_uuid = self.beside_slices or self.slice_number is not None
        return self.uuid if by_uuid else str(self.index)


@dataclass(frozen=True)
class GpuInventory:
    """The GPUs of this host that this process may use, and the driver."""

    gpus: tuple[Gpu, ...] = ()
    driver: str | None = None
    cuda: tuple[int, int] | None = None  #: the newest that the driver supports
    why_none: str = ""  #: in words, where there is none
    of_host: tuple[str, ...] = ()  #: UUIDs of all that the driver shows, hidden ones too
    silent: tuple[str, ...] = ()  #: in words, cards that the driver counts and that do not answer

    def together(self) -> GpuInventory:
        """Those that one program can see at once: CUDA shows it whole cards, or one slice."""
        whole = tuple(gpu for gpu in self.gpus if gpu.slice_number is None)
        return replace(self, gpus=whole or self.gpus[:1])

    def for_stage(self, count: int) -> tuple[Gpu, ...]:
        """Those from which a stage may get so many: several are whole cards."""
        return self.gpus if count == 1 else self.together().gpus


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
        if variable == "CUDA_VISIBLE_DEVICES":
            names = _understood(names, found.gpus)
        chosen = tuple(gpu for gpu in found.gpus if _is_named(gpu, names))
        why = "" if chosen else f"{variable}={visible} hides them"
        found = replace(found, gpus=chosen, why_none=why)
    return found


def _understood(names: Sequence[str], gpus: Sequence[Gpu]) -> list[str]:
    """Those that CUDA takes of its variable: none after the first that names no GPU."""
    taken = []
    for name in names:
        if not any(_is_named(gpu, [name]) for gpu in gpus):
            break
        taken.append(name)
    return taken


def _is_named(gpu: Gpu, names: Sequence[str]) -> bool:
    """Whether a list of GPUs has this one: by number, or by UUID or the beginning of one.

    A number names a card with all its slices.
    """
    for name in names:
        if name in (str(gpu.index), gpu.number):
            return True
        if name.startswith(("GPU-", "MIG-")) and gpu.uuid.startswith(name):
            return True
    return False


@cache
def _all_gpus() -> GpuInventory:
    try:
        with nvml() as driver:
            version, cuda = driver.driver(), driver.cuda()
            cards, silent = driver.survey()
    except NvmlError as error:
        return GpuInventory(why_none=str(error))
    sliced = any(card.sliced for card in cards)
    gpus = tuple(gpu for card in cards for gpu in _of_card(card, sliced))
    empty = [f"GPU {card.index} is to be cut into MIG slices and has none" for card in cards
             if card.sliced and not card.slices]  # fmt: skip
    why = "" if gpus else "; ".join([*silent, *empty]) or "the driver shows none"
    uuids = tuple(gpu.uuid for gpu in gpus)
    return GpuInventory(gpus, version, cuda, why, uuids, tuple(silent))


def _of_card(card: Card, beside_slices: bool) -> Iterator[Gpu]:
    """A card, or its slices in its place: a card that is cut computes nothing as a whole."""
    whole = Gpu(
        index=card.index,
        uuid=card.uuid,
        name=card.name,
        architecture=card.architecture,
        memory_bytes=card.memory_bytes,
        beside_slices=beside_slices,
    )
    if not card.sliced:
        yield whole
    for one in card.slices:
        yield replace(
            whole,
            uuid=one.uuid,
            name=one.name,
            memory_bytes=one.memory_bytes,
            slice_number=one.number,
        )
