"""The log of one program: written at once, limited in size, and readable at any moment.

A program may print two hundred megabytes. The log keeps its head and its rolling tail, with
one line between them that says how much is missing. The tail is compacted in the file
itself, so that a reader always finds the newest output at its end, and nothing that was
written is lost when the harness is killed. Bytes are kept as they are: what is no UTF-8 and
carriage returns too.
"""

from __future__ import annotations

import os
import time
from typing import TYPE_CHECKING, Self

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

_COPY_BYTES = 1 << 20
#: Of fixed length, so that it can be written anew in place as the number grows.
_GAP = "\n[… {:>16} bytes of output left out here …]\n"
_GAP_BYTES = len(_GAP.format(0).encode())
#: A line without an end is shown by its last part.
_LINE_BYTES = 4096


class LogFile:
    """Receives a program's output and keeps it in a file, of which head and tail remain."""

    def __init__(self, path: Path, *, limit_bytes: int, append: bool = False) -> None:
        """Open `path`; with `append`, the limit holds for what is added.

        Raises:
            OSError: the file cannot be made.
        """
        flags = os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | (0 if append else os.O_TRUNC)
        self._handle = os.open(path, flags, 0o644)
        self._begin = os.lseek(self._handle, 0, os.SEEK_END)
        self._end = self._begin
        self._limit_bytes = max(limit_bytes, 4 * _GAP_BYTES)
        self._head_bytes = self._limit_bytes // 2
        self._tail_bytes = self._limit_bytes // 4
        self.received_bytes = 0
        self.dropped_bytes = 0
        self.trouble: str | None = None  #: why the log is not complete, such as a full disk

    def write(self, chunk: bytes) -> None:
        """Take what the program printed. A disk that is full is noted, not raised."""
        self.received_bytes += len(chunk)
        try:
            self._append(chunk)
            if self._end - self._begin > self._limit_bytes:
                self._compact()
        except OSError as error:
            self.dropped_bytes += len(chunk)
            self.trouble = error.strerror or str(error)

    def close(self) -> None:
        """Close the file."""
        os.close(self._handle)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _append(self, chunk: bytes) -> None:
        view = memoryview(chunk)
        while view:
            written = os.pwrite(self._handle, view, self._end)
            self._end += written
            view = view[written:]

    def _compact(self) -> None:
        """Move the tail to where the gap begins, and cut off what it leaves."""
        gap = self._begin + self._head_bytes
        tail = self._end - self._tail_bytes
        first = self.dropped_bytes == 0
        self.dropped_bytes += tail - (gap if first else gap + _GAP_BYTES)
        os.pwrite(self._handle, _GAP.format(self.dropped_bytes).encode(), gap)
        target = gap + _GAP_BYTES
        for offset in range(0, self._tail_bytes, _COPY_BYTES):
            size = min(_COPY_BYTES, self._tail_bytes - offset)
            os.pwrite(self._handle, os.pread(self._handle, size, tail + offset), target + offset)
        self._end = target + self._tail_bytes
        os.ftruncate(self._handle, self._end)


class LineWatcher:
    """Tells somebody the newest line of an output, a few times a second."""

    def __init__(self, tell: Callable[[str], None], *, interval_s: float = 0.2) -> None:
        self._tell = tell
        self._interval_s = interval_s
        self._partial = b""
        self._newest: bytes | None = None
        self._told_at = float("-inf")

    def feed(self, chunk: bytes) -> None:
        """Take output; a carriage return ends a line too, as progress bars use it."""
        lines = (self._partial + chunk).replace(b"\r", b"\n").split(b"\n")
        self._partial = lines.pop()[-_LINE_BYTES:]
        self._newest = next((line for line in reversed(lines) if line.strip()), self._newest)
        if self._newest is not None and time.monotonic() - self._told_at >= self._interval_s:
            self._tell_newest()

    def finish(self) -> None:
        """Tell the last line, whether it has an end or not."""
        if self._partial.strip():
            self._newest = self._partial
        self._tell_newest()

    def _tell_newest(self) -> None:
        if self._newest is None:
            return
        line, self._newest = self._newest[-_LINE_BYTES:], None
        self._told_at = time.monotonic()
        self._tell(line.decode("utf-8", "replace").strip())
