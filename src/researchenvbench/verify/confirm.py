"""Does this host really lack what a log complains of?

A log is written by what is judged, so its words alone never move a failure to the host. For
each thing that a host can lack there is one question that is put to the host itself; a want
for which there is no question is not believed.
"""

from __future__ import annotations

import shutil
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from .. import process
from ..attempt import Want
from ..places import disk_is_full

if TYPE_CHECKING:
    from collections.abc import Callable

    from ..diagnose import Diagnosis
    from ..sandbox import StageBox
    from .subject import Subject

#: NCCL and data loaders need some GiB; Docker's default is 64 MiB.
_SMALL_SHARED_MEMORY_BYTES = 1024**3
_LOAD = "import ctypes, sys; ctypes.CDLL(sys.argv[1])"


def confirmed(cause: Diagnosis, subject: Subject, box: StageBox) -> bool:
    """Whether the host says so too.

    In a container the agent could have installed what its system lacks.
    """
    if cause.want in (Want.LIBRARY, Want.PROGRAM) and not box.shares_system:
        return False
    question = _QUESTIONS.get(cause.want) if cause.want else None
    return question is not None and question(cause.key, subject, box)


def _library(name: str, subject: Subject, _box: StageBox) -> bool:
    finished, _ = process.capture(
        [sys.executable, "-I", "-S", "-c", _LOAD, name],
        cwd=subject.folder,
        env={"PATH": subject.host.path},
        time_limit_s=30,
    )
    return not finished.ok


def _program(name: str, subject: Subject, _box: StageBox) -> bool:
    return shutil.which(name, path=subject.host.path) is None


def _disk(_: str, subject: Subject, box: StageBox) -> bool:
    written = box.disk or subject.folder
    return disk_is_full(written)


def _shared_memory(_: str, _subject: Subject, _box: StageBox) -> bool:
    place = Path("/dev/shm")  # noqa: S108  # looked at, and nothing put there
    return not place.is_dir() or shutil.disk_usage(place).total < _SMALL_SHARED_MEMORY_BYTES


_QUESTIONS: dict[Want, Callable[[str, Subject, StageBox], bool]] = {
    Want.LIBRARY: _library,
    Want.PROGRAM: _program,
    Want.DISK: _disk,
    Want.SHARED_MEMORY: _shared_memory,
}
