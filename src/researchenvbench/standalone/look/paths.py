"""Paths of a file system that may begin at another folder than this one's."""

from __future__ import annotations

import os
import stat

TYPE_CHECKING = False
if TYPE_CHECKING:
    from io import BufferedReader

_LINKS = 40  #: as many as Linux follows in one path
#: Where a path leads that no system call takes: below a file there is nothing.
_NOWHERE = "/dev/null/nowhere"


def opened(path: str) -> BufferedReader:
    """A regular file, open for reading; links are followed, and nothing is waited for.

    Whoever left the file may have left a FIFO, which nobody writes to, or a device, which has
    no end.

    Raises:
        OSError: there is no such file, or it is no regular one.
    """
    if not _can_be(path):
        raise FileNotFoundError(2, "no path that a file can have", path)
    # To open a device may already do something.
    if stat.S_ISREG(os.stat(path).st_mode):
        descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_NOCTTY | os.O_CLOEXEC)
        if stat.S_ISREG(os.fstat(descriptor).st_mode):
            return os.fdopen(descriptor, "rb")
        os.close(descriptor)
    raise OSError(22, "no regular file", path)


def _can_be(path: str) -> bool:
    """Whether a file can have that path: texts of agents hold what none can."""
    try:
        return b"\0" not in os.fsencode(path)
    except UnicodeEncodeError:
        return False


class Root:
    """The folder that is `/` to what is looked at. Links are followed below it."""

    def __init__(self, folder: str = "/") -> None:
        self.folder = folder.rstrip("/")

    def at(self, path: str) -> str:
        """Where the absolute `path` of the looked-at system lies here; links are followed."""
        return self.folder + self.real(path)

    def beside(self, path: str) -> str:
        """The same with a last part that is not followed."""
        if not _can_be(path):
            return self.folder + _NOWHERE
        folder, name = os.path.split(path)
        return os.path.join(self.at(folder), name)

    def real(self, path: str) -> str:
        """The absolute `path` without links; of one that no file can have, one that leads nowhere.

        Raises:
            OSError: links lead in a circle.
        """
        if not _can_be(path):
            return _NOWHERE
        if not self.folder:
            return os.path.realpath(path)
        return self.way(path)[-1]

    def way(self, path: str) -> list[str]:
        """Every folder that the absolute `path` and its links lead through, and the end.

        Raises:
            OSError: links lead in a circle.
        """
        if not _can_be(path):
            return [_NOWHERE]
        waiting, done, links = path.split("/")[::-1], "", 0
        passed = []
        while waiting:
            part = waiting.pop()
            if part in ("", "."):
                continue
            if part == "..":
                done = done.rpartition("/")[0]
                continue
            here = f"{self.folder}{done}/{part}"
            passed.append(f"{done}/{part}")
            if not os.path.islink(here):
                done = f"{done}/{part}"
                continue
            links += 1
            if links > _LINKS:
                raise OSError(0, "too many links", path)
            target = os.readlink(here)
            if target.startswith("/"):
                done = ""
            waiting.extend(target.split("/")[::-1])
        return [*passed, done or "/"]

    def is_folder(self, path: str) -> bool:
        """Whether a folder is there."""
        return os.path.isdir(self.at(path))

    def names(self, path: str) -> list[str]:
        """What a folder holds, sorted; nothing where none is."""
        try:
            return sorted(os.listdir(self.at(path)))
        except OSError:
            return []

    def read(self, path: str, limit_bytes: int) -> bytes | None:
        """The start of a regular file; None where there is none."""
        try:
            with opened(self.at(path)) as stream:
                return stream.read(limit_bytes)
        except OSError:
            return None

    def changed_ns(self, path: str) -> int:
        """When the file, or the link that leads to it, was last changed in any way."""
        try:
            return max(os.lstat(self.beside(path)).st_ctime_ns, os.stat(self.at(path)).st_ctime_ns)
        except OSError:
            return 1 << 62  # not known: as if it had been just now
