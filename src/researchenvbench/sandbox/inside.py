"""Looking at files of a box without being led astray.

What lies in a box was made by programs that are not trusted: a report may be a link to a
file of the host, a FIFO that never answers, or a hundred megabytes. Every component of a
path is opened by itself and never by way of a link, only regular files are read, and only
up to a limit.
"""

from __future__ import annotations

import fnmatch
import os
import shutil
import stat
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING

from ..errors import SandboxError
from . import Collected
from .manifest import kind_of

if TYPE_CHECKING:
    from collections.abc import Iterator

_FOLDER = os.O_PATH | os.O_NOFOLLOW | os.O_DIRECTORY | os.O_CLOEXEC
_READ_BYTES = 1 << 20
#: A pattern with ** over a folder of that size is a mistake, or an attack.
_MOST_VISITED = 500_000
#: Deeper folders are not looked into; each level holds one file open.
_DEEPEST = 100
#: What the files that leave a box in one go may have together.
COLLECT_LIMIT_BYTES = 8 << 30


def read(root: Path, path: Path, limit_bytes: int) -> bytes:
    """The content of the regular file `path` as seen from `root`.

    Raises:
        SandboxError: absent, no regular file, or over the limit.
    """
    try:
        with _opened(root, path) as handle:
            content = bytearray()
            size = os.fstat(handle).st_size
            if size > limit_bytes:
                raise SandboxError(f"{path}: has {size} bytes; at most {limit_bytes} are read")
            while chunk := os.read(handle, min(_READ_BYTES, limit_bytes + 1 - len(content))):
                content += chunk
                if len(content) > limit_bytes:
                    raise SandboxError(f"{path}: has more than {limit_bytes} bytes")
            return bytes(content)
    except OSError as error:
        raise SandboxError(f"{path}: cannot be read: {_reason(error)}") from error


def write(root: Path, path: Path, content: bytes, mode: int) -> None:
    """Write a file as seen from `root`, with the folders that lead to it.

    Raises:
        SandboxError: it cannot be written, or a link or a special file is in the way.
    """
    try:
        folder = _walk(root, path.parent, make=True)
        try:
            with suppress(FileNotFoundError):
                os.unlink(path.name, dir_fd=folder)
            flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
            with os.fdopen(os.open(path.name, flags, mode, dir_fd=folder), "wb") as stream:
                stream.write(content)
                os.fchmod(stream.fileno(), mode)
        finally:
            os.close(folder)
    except OSError as error:
        raise SandboxError(f"{path}: cannot be written: {_reason(error)}") from error


def collect(root: Path, pattern: str, into: Path, *, limit: int, opened_ns: int) -> list[Collected]:
    """Copy the regular files that match an absolute glob, as seen from `root`.

    The files changed since `opened_ns` come first. Hidden files match only a pattern that
    begins with a dot, as in a shell; ** stands for any number of folders.

    Raises:
        SandboxError: the pattern is not absolute, or the files cannot be copied.
    """
    if not pattern.startswith("/"):
        raise SandboxError(f"{pattern}: not an absolute pattern")
    found: list[tuple[bool, Path]] = []
    visited = 0
    base = os.open(root, os.O_PATH | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        for path, status in _matches(base, Path("/"), _parts(pattern)):
            visited += 1
            if visited > _MOST_VISITED:
                raise SandboxError(f"{pattern}: matches more than {_MOST_VISITED} files")
            if stat.S_ISREG(status.st_mode):
                fresh = max(status.st_ctime_ns, status.st_mtime_ns) >= opened_ns
                found.append((fresh, path))
    finally:
        os.close(base)
    found = sorted(set(found), key=lambda item: (not item[0], item[1]))
    collected: list[Collected] = []
    total_bytes = 0
    for number, (fresh, path) in enumerate(found[:limit]):
        # A folder for each, so that names may be as long as they like and stay as they are.
        copy = into / f"{number:03d}" / path.name
        copy.parent.mkdir(parents=True, exist_ok=True)
        try:
            with _opened(root, path) as handle, copy.open("wb") as stream:
                total_bytes += os.fstat(handle).st_size
                if total_bytes > COLLECT_LIMIT_BYTES:
                    raise SandboxError(
                        f"{pattern}: the files have more than {COLLECT_LIMIT_BYTES >> 30} GiB",
                        advice="make the pattern match fewer files",
                    )
                with os.fdopen(os.dup(handle), "rb") as source:
                    shutil.copyfileobj(source, stream, _READ_BYTES)
        except FileNotFoundError:
            continue  # gone since it was listed
        except OSError as error:
            raise SandboxError(f"{path}: cannot be copied: {_reason(error)}") from error
        collected.append(Collected(path, copy, copy.stat().st_size, fresh))
    return collected


@contextmanager
def _opened(root: Path, path: Path) -> Iterator[int]:
    """A regular file, open for reading; what it is is known before it is opened."""
    folder = _walk(root, path.parent)
    try:
        seen = os.open(path.name, os.O_PATH | os.O_NOFOLLOW | os.O_CLOEXEC, dir_fd=folder)
    finally:
        os.close(folder)
    try:
        mode = os.fstat(seen).st_mode
        if not stat.S_ISREG(mode):
            kind = "symbolic link" if stat.S_ISLNK(mode) else kind_of(mode)
            raise SandboxError(f"{path}: is a {kind}, not a regular file")
        handle = os.open(f"/proc/self/fd/{seen}", os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    finally:
        os.close(seen)
    try:
        yield handle
    finally:
        os.close(handle)


def _walk(root: Path, folder: Path, *, make: bool = False) -> int:
    """Open a folder component by component, none of them by way of a link."""
    handle = os.open(root, os.O_PATH | os.O_DIRECTORY | os.O_CLOEXEC)
    for part in _parts(str(folder)):
        if make:
            with suppress(FileExistsError):
                os.mkdir(part, dir_fd=handle)
        try:
            below = os.open(part, _FOLDER, dir_fd=handle)
        finally:
            os.close(handle)
        handle = below
    return handle


def _parts(path: str) -> list[str]:
    parts = [part for part in path.split("/") if part not in ("", ".")]
    if ".." in parts:
        raise SandboxError(f"{path}: must not hold ..")
    return parts


def _matches(handle: int, above: Path, parts: list[str]) -> Iterator[tuple[Path, os.stat_result]]:
    """What matches below an open folder."""
    first, rest = parts[0], parts[1:]
    if len(above.parts) > _DEEPEST:
        return
    if first == "**":
        yield from _matches(handle, above, rest or ["*"])
        for name in _names(handle):
            if not name.startswith("."):
                yield from _below(handle, above / name, name, parts)
        return
    if any(character in first for character in "*?["):
        names = [
            name
            for name in _names(handle)
            if fnmatch.fnmatchcase(name, first) and (first[0] == "." or name[0] != ".")
        ]
    else:
        names = [first]
    for name in names:
        if rest:
            yield from _below(handle, above / name, name, rest)
        else:
            with suppress(OSError):
                yield above / name, os.stat(name, dir_fd=handle, follow_symlinks=False)


def _below(
    handle: int, path: Path, name: str, parts: list[str]
) -> Iterator[tuple[Path, os.stat_result]]:
    try:
        below = os.open(name, _FOLDER, dir_fd=handle)
    except OSError:
        return  # no folder, or a link, or not ours to enter
    try:
        yield from _matches(below, path, parts)
    finally:
        os.close(below)


def _names(handle: int) -> list[str]:
    try:
        listing = os.open(".", os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC, dir_fd=handle)
    except OSError:
        return []
    try:
        return sorted(os.listdir(listing))  # noqa: PTH208 - an open folder has no path
    finally:
        os.close(listing)


def _reason(error: OSError) -> str:
    if isinstance(error, FileNotFoundError):
        return "it does not exist"
    if isinstance(error, NotADirectoryError):
        return "a folder of its path is none, or a link"
    return error.strerror or str(error)
