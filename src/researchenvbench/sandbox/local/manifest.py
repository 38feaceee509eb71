"""What a frozen environment consists of, file by file, and what has changed since.

A manifest names every file below a folder with its type, size, times, mode and the digest
of its content. Content is digested once per inode, so hard links, as installers make them
between their cache and an environment, cost nothing. Taking it again reads only what looks
different, and the comparison of two says what was added, removed and modified. Links are
never followed; what is no regular file is listed by its kind; names may be any bytes.
"""

from __future__ import annotations

import gzip
import hashlib
import json
import os
import stat
import tempfile
import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

from ...errors import SandboxError
from ...standalone.files import kind_of

_SCHEMA = 1
_READ_BYTES = 1 << 20
#: Small files are handed to a thread in groups of about this much.
_GROUP_BYTES = 8 << 20
_GROUP_FILES = 256


class Entry(NamedTuple):
    """One file, folder, link or special file."""

    kind: str
    mode: int
    size: int
    mtime_ns: int
    ctime_ns: int
    inode: int
    content: str  #: digest of a file, target of a link, else empty


@dataclass(frozen=True)
class Changes:
    """How one state differs from another, as paths relative to the box."""

    added: tuple[str, ...] = ()
    removed: tuple[str, ...] = ()
    modified: tuple[str, ...] = ()

    def __bool__(self) -> bool:
        return bool(self.added or self.removed or self.modified)

    def all(self) -> tuple[str, ...]:
        """Every path that differs."""
        return tuple(sorted({*self.added, *self.removed, *self.modified}))


@dataclass(frozen=True)
class Manifest:
    """The state of a folder."""

    entries: dict[str, Entry]
    digested_bytes: int = 0  #: what had to be read for it
    seconds: float = 0.0

    @property
    def files(self) -> int:
        """Number of regular files, each name counted."""
        return sum(entry.kind == "file" for entry in self.entries.values())

    @property
    def size_bytes(self) -> int:
        """Size of the regular files, each inode once."""
        sizes = {e.inode: e.size for e in self.entries.values() if e.kind == "file"}
        return sum(sizes.values())

    @property
    def digest(self) -> str:
        """One digest over path, kind, permissions, size and content of everything."""
        total = hashlib.sha256()
        for path, entry in sorted(self.entries.items()):
            size = entry.size if entry.kind == "file" else 0
            line = f"{path}\0{entry.kind}\0{entry.mode:o}\0{size}\0{entry.content}\0\n"
            total.update(line.encode("utf-8", "surrogateescape"))
        return total.hexdigest()

    def save(self, path: Path) -> None:
        """Write it, atomically.

        Raises:
            OSError: it cannot be written.
        """
        rows = [[name, *entry] for name, entry in self.entries.items()]
        # ensure_ascii keeps names that are not UTF-8, as escaped surrogates.
        text = json.dumps({"schema": _SCHEMA, "entries": rows}, separators=(",", ":"))
        handle, temporary = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.")
        try:
            with os.fdopen(handle, "wb") as stream:
                stream.write(gzip.compress(text.encode("ascii"), compresslevel=1))
                stream.flush()
                os.fsync(stream.fileno())
            Path(temporary).replace(path)
        except BaseException:
            Path(temporary).unlink(missing_ok=True)
            raise

    @classmethod
    def load(cls, path: Path) -> Manifest:
        """Read it.

        Raises:
            SandboxError: absent or damaged.
        """
        try:
            stored = json.loads(gzip.decompress(path.read_bytes()))
            return cls({row[0]: Entry(*row[1:]) for row in stored["entries"]})
        except FileNotFoundError as error:
            raise SandboxError(f"{path}: there is no frozen environment") from error
        except (OSError, EOFError, ValueError, KeyError, TypeError, IndexError) as error:
            raise SandboxError(
                f"{path}: the list of the frozen files cannot be read: {error}",
                advice="the attempt has to be built again",
            ) from error


def take(root: Path, known: Manifest | None = None, *, contents: bool = True) -> Manifest:
    """The state of `root` as it is now.

    Args:
        root: The folder.
        known: An earlier state; what looks the same as there is not read again.
        contents: Without, sizes and times alone tell files apart.
    """
    began = time.monotonic()
    before = known.entries if known else {}
    entries: dict[str, Entry] = {}
    unread: dict[str, Entry] = {}  # files whose content is not known
    digests: dict[int, str] = {}
    prefix = len(str(root)) + 1
    waiting = [str(root)]
    while waiting:
        try:
            with os.scandir(waiting.pop()) as listing:
                found = list(listing)
        except OSError:
            continue  # its own entry shows that nobody may read it, or it is too deep for a path
        for item in found:
            try:
                looks = _look(item)
            except OSError:
                continue  # likewise, or it has just gone
            kind, name = looks[0], item.path[prefix:]
            entry = before.get(name)
            if entry is None or entry[:6] != looks:
                # Not as a Path, which would tidy the target up.
                target = os.readlink(item.path) if kind == "link" else ""  # noqa: PTH115
                entry = Entry(*looks, target)
                if kind == "file" and contents:
                    unread[name] = entry
            elif kind == "file":
                digests[entry.inode] = entry.content
            entries[name] = entry
            if kind == "folder":
                waiting.append(item.path)
    # One name of each inode is enough.
    first = {e.inode: (n, e.size) for n, e in unread.items() if e.inode not in digests}
    digests.update(
        _digest_all({inode: (f"{root}/{n}", size) for inode, (n, size) in first.items()})
    )
    entries.update({n: e._replace(content=digests[e.inode]) for n, e in unread.items()})
    return Manifest(entries, sum(size for _, size in first.values()), time.monotonic() - began)


def compare(before: Manifest, after: Manifest) -> Changes:
    """What `after` has that `before` had not, and the other way round."""

    def judged(entry: Entry) -> tuple[str, int, int, str, int]:
        is_file = entry.kind == "file"
        # Where contents were not read, the time of the last change stands for them.
        time_ns = entry.mtime_ns if is_file and not entry.content else 0
        return entry.kind, entry.mode, entry.size if is_file else 0, entry.content, time_ns

    old, new = before.entries, after.entries
    return Changes(
        added=tuple(sorted(new.keys() - old.keys())),
        removed=tuple(sorted(old.keys() - new.keys())),
        modified=tuple(
            sorted(n for n in old.keys() & new.keys() if judged(old[n]) != judged(new[n]))
        ),
    )


def _look(item: os.DirEntry[str]) -> tuple[str, int, int, int, int, int]:
    """All of an entry but its content; with the inode's own time, since a content can be
    changed and its time set back.
    """
    status = item.stat(follow_symlinks=False)
    return (
        kind_of(status.st_mode),
        stat.S_IMODE(status.st_mode),
        status.st_size,
        status.st_mtime_ns,
        status.st_ctime_ns,
        status.st_ino,
    )


def _digest_all(files: dict[int, tuple[str, int]]) -> dict[int, str]:
    """Digest files, given as path and size, several at a time: hashing lets others run."""
    groups: list[list[int]] = [[]]
    group_bytes = 0
    for inode, (_, size) in files.items():
        if group_bytes > _GROUP_BYTES or len(groups[-1]) >= _GROUP_FILES:
            groups.append([])
            group_bytes = 0
        groups[-1].append(inode)
        group_bytes += size
    with ThreadPoolExecutor(min(8, os.cpu_count() or 1)) as pool:
        done = pool.map(
            lambda group: [(inode, _digest(files[inode][0])) for inode in group], groups
        )
        return {inode: digest for group in done for inode, digest in group}


def _digest(path: str) -> str:
    try:
        handle = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    except OSError as error:
        return f"unreadable: {error.strerror}"
    total = hashlib.sha256()
    try:
        while chunk := os.read(handle, _READ_BYTES):
            total.update(chunk)
    finally:
        os.close(handle)
    return total.hexdigest()
