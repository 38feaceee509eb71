"""The counter that a stage's processes load, and what it has counted.

`counter.c` is compiled once against the headers of CUPTI and kept in the cache. The layout of
its files is `struct counts` there.
"""

from __future__ import annotations

import struct
from dataclasses import dataclass
from uuid import UUID

_MAGIC = b"REBCNT1\0"
_DEVICES, _WORDS = 64, 240
_HEAD = struct.Struct(f"<8sII{_WORDS}s")
_DEVICE = struct.Struct("<16sQQQQ")
#: How long a file of counts is, in bytes.
SIZE_BYTES = _HEAD.size + _DEVICES * _DEVICE.size
_COUNTING = 1


@dataclass(frozen=True)
class DeviceCounts:
    """Launches of a process on one GPU."""

    gpu: str  #: UUID as NVML writes it
    kernels: int
    nccl_kernels: int
    graphs: int


@dataclass(frozen=True)
class Counts:
    """One process's file. It was written by the judged process, which may write anything."""

    pid: int  #: as the process knew itself
    counting: bool
    words: str  #: which CUPTI it used, or why it did not count
    devices: tuple[DeviceCounts, ...]


def read_counts(content: bytes) -> Counts | None:
    """The counts in the content of a file; None where it is no such file."""
    if len(content) != SIZE_BYTES or not content.startswith(_MAGIC):
        return None
    _, pid, state, words = _HEAD.unpack_from(content)
    devices = []
    for number in range(_DEVICES):
        at = _HEAD.size + number * _DEVICE.size
        uuid, known, kernels, nccl, graphs = _DEVICE.unpack_from(content, at)
        if known or kernels or graphs:
            devices.append(DeviceCounts(f"GPU-{UUID(bytes=uuid)}", kernels, nccl, graphs))
    text = words.split(b"\0")[0].decode(errors="replace")
    return Counts(pid, state == _COUNTING, text, tuple(devices))
