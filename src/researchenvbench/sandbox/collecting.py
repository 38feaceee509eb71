"""Where files that leave a box are put, and how much of them may."""

from __future__ import annotations

import errno
from typing import TYPE_CHECKING

from ..errors import HostError, RefusedError, SandboxError

if TYPE_CHECKING:
    from pathlib import Path

#: What the files that leave a box in one go may have together.
COLLECT_LIMIT_BYTES = 8 << 30
_NO_ROOM = (errno.ENOSPC, errno.EDQUOT)


def place_of_copy(into: Path, number: int, path: Path) -> Path:
    """Where a collected file goes: names may be as long as they like and stay as they are."""
    copy = into / f"{number:03d}" / path.name
    copy.parent.mkdir(parents=True, exist_ok=True)
    return copy


def refused(words: str, number: int) -> SandboxError | HostError:
    """What is raised where a file of a box was refused; a full disk is the host's.

    That is told by the error's `number`, 0 where there is none: the words hold names of files,
    which are the agent's to choose.
    """
    if number in _NO_ROOM:
        return HostError(words, advice="free room on the disk, then run the same command again")
    return RefusedError(words)


def not_copied(path: Path, error: OSError) -> SandboxError | HostError:
    """What is raised where a file cannot be copied."""
    words = f"{path}: cannot be copied: {error.strerror}"
    return refused(words, error.errno) if error.errno in _NO_ROOM else SandboxError(words)


def check_total(pattern: str, total_bytes: int) -> None:
    """Refuse what would fill this host's disk.

    Raises:
        RefusedError: the files have more than may leave a box in one go.
    """
    if total_bytes > COLLECT_LIMIT_BYTES:
        raise RefusedError(
            f"{pattern}: the files have more than {COLLECT_LIMIT_BYTES >> 30} GiB",
            advice="make the pattern match fewer files",
        )
