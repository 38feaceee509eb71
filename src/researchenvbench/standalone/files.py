"""Files in a place that is not trusted: read, written and found without being led astray.

What lies in a box was made by programs that are not trusted: a report may be a link to a
file of the host, a FIFO that never answers, or a hundred megabytes. Every component of a
path is opened by itself and never by way of a link, only regular files are read, and only
up to a limit. All paths are absolute, as seen from `root`.
"""

from __future__ import annotations

import fnmatch
import os
import stat
from contextlib import contextmanager, suppress

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

_FOLDER = os.O_PATH | os.O_NOFOLLOW | os.O_DIRECTORY | os.O_CLOEXEC
READ_BYTES = 1 << 20
#: A pattern with ** over a folder of that size is a mistake, or an attack.
_MOST_VISITED = 500_000
#: Deeper folders are not looked into; each level holds one file open.
_DEEPEST = 100

_KINDS = {
    stat.S_IFREG: "file",
    stat.S_IFDIR: "folder",
    stat.S_IFLNK: "link",
    stat.S_IFIFO: "FIFO",
    stat.S_IFSOCK: "socket",
    stat.S_IFCHR: "character device",
    stat.S_IFBLK: "block device",
}


class Refused(Exception):  # noqa: N818 - it is an answer: what stands in the way, in words
    """A file is not what may be read or written here."""

    def __init__(self, words: str, errno: int = 0) -> None:
        """With the number of the error where the system has refused, else 0."""
        super().__init__(words)
        self.errno = errno


def kind_of(mode: int) -> str:
    """What a file is, by its `st_mode`, as a word."""
    return _KINDS.get(stat.S_IFMT(mode), "unknown kind of file")


def read(root: str, path: str, limit_bytes: int) -> bytes:
    """The content of the regular file `path`.

    Raises:
        Refused: absent, no regular file, or over the limit.
    """
    try:
        with opened(root, path) as handle:
            content = bytearray()
            size = os.fstat(handle).st_size
            if size > limit_bytes:
                raise Refused(f"{path}: has {size} bytes; at most {limit_bytes} are read")
            while chunk := os.read(handle, min(READ_BYTES, limit_bytes + 1 - len(content))):
                content += chunk
                if len(content) > limit_bytes:
                    raise Refused(f"{path}: has more than {limit_bytes} bytes")
            return bytes(content)
    except OSError as error:
        raise Refused(f"{path}: cannot be read: {_reason(error)}", error.errno or 0) from error


def write(root: str, path: str, content: bytes, mode: int) -> None:
    """Write a file, with the folders that lead to it.

    Raises:
        Refused: it cannot be written, or a link or a special file is in the way.
    """
    above, _, name = path.rpartition("/")
    try:
        folder = _walk(root, above, make=True)
        try:
            with suppress(FileNotFoundError):
                os.unlink(name, dir_fd=folder)
            flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
            with os.fdopen(os.open(name, flags, mode, dir_fd=folder), "wb") as stream:
                stream.write(content)
                os.fchmod(stream.fileno(), mode)
        finally:
            os.close(folder)
    except OSError as error:
        raise Refused(f"{path}: cannot be written: {_reason(error)}", error.errno or 0) from error


def find(root: str, pattern: str, opened_ns: int) -> list[tuple[bool, str]]:
    """The regular files that match an absolute glob, and whether changed since `opened_ns`.

    Those that were changed come first. Hidden files match only a pattern that begins with a
    dot, as in a shell; ** stands for any number of folders.

    Raises:
        Refused: the pattern is not absolute, or matches too much.
    """
    if not pattern.startswith("/"):
        raise Refused(f"{pattern}: not an absolute pattern")
    found: set[tuple[bool, str]] = set()
    visited = 0
    base = os.open(root, os.O_PATH | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        for path, status in _matches(base, "", _parts(pattern)):
            visited += 1
            if visited > _MOST_VISITED:
                raise Refused(f"{pattern}: matches more than {_MOST_VISITED} files")
            if stat.S_ISREG(status.st_mode):
                # Any program sets the other times as it likes, also to one that is to come.
                found.add((status.st_ctime_ns >= opened_ns, path))
    finally:
        os.close(base)
    return sorted(found, key=lambda item: (not item[0], item[1]))


@contextmanager
def opened(root: str, path: str) -> Iterator[int]:
    """A regular file, open for reading; what it is is known before it is opened.

    Raises:
        Refused: it is no regular file.
        OSError: it cannot be opened.
    """
    above, _, name = path.rpartition("/")
    folder = _walk(root, above)
    try:
        seen = os.open(name, os.O_PATH | os.O_NOFOLLOW | os.O_CLOEXEC, dir_fd=folder)
    finally:
        os.close(folder)
    try:
        mode = os.fstat(seen).st_mode
        if not stat.S_ISREG(mode):
            kind = "symbolic link" if stat.S_ISLNK(mode) else kind_of(mode)
            raise Refused(f"{path}: is a {kind}, not a regular file")
        handle = os.open(f"/proc/self/fd/{seen}", os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    finally:
        os.close(seen)
    try:
        yield handle
    finally:
        os.close(handle)


def pieces(handle: int, size_bytes: int) -> Iterator[bytes]:
    """What a file had when it was measured; one that grows has no end."""
    while size_bytes > 0 and (piece := os.read(handle, min(size_bytes, READ_BYTES))):
        size_bytes -= len(piece)
        yield piece


def _walk(root: str, folder: str, *, make: bool = False) -> int:
    """Open a folder component by component, none of them by way of a link."""
    handle = os.open(root, os.O_PATH | os.O_DIRECTORY | os.O_CLOEXEC)
    for part in _parts(folder):
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
        raise Refused(f"{path}: must not hold ..")
    return parts


def _matches(handle: int, above: str, parts: list[str]) -> Iterator[tuple[str, os.stat_result]]:
    """What matches below an open folder."""
    first, rest = parts[0], parts[1:]
    if above.count("/") >= _DEEPEST:
        return
    if first == "**":
        yield from _matches(handle, above, rest or ["*"])
        for name in _names(handle):
            if not name.startswith("."):
                yield from _below(handle, f"{above}/{name}", name, parts)
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
            yield from _below(handle, f"{above}/{name}", name, rest)
        else:
            with suppress(OSError):
                status = os.stat(name, dir_fd=handle, follow_symlinks=False)
                yield f"{above}/{name}", status


def _below(
    handle: int, path: str, name: str, parts: list[str]
) -> Iterator[tuple[str, os.stat_result]]:
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
        return sorted(os.listdir(listing))
    finally:
        os.close(listing)


def _reason(error: OSError) -> str:
    if isinstance(error, FileNotFoundError):
        return "it does not exist"
    if isinstance(error, NotADirectoryError):
        return "a folder of its path is none, or a link"
    return error.strerror or str(error)
