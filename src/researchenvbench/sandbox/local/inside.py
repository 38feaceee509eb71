"""Looking at files of a box that lies on this host; `standalone.files` does the looking."""

from __future__ import annotations

import os
from pathlib import Path

from ...standalone import files
from .. import Collected
from ..collecting import check_total, not_copied, place_of_copy, refused


def read(root: Path, path: Path, limit_bytes: int) -> bytes:
    """The content of the regular file `path` as seen from `root`.

    Raises:
        SandboxError: absent, no regular file, or over the limit.
    """
    try:
        return files.read(str(root), str(path), limit_bytes)
    except files.Refused as refusal:
        raise refused(str(refusal), refusal.errno) from refusal


def write(root: Path, path: Path, content: bytes, mode: int) -> None:
    """Write a file as seen from `root`, with the folders that lead to it.

    Raises:
        SandboxError: it cannot be written, or a link or a special file is in the way.
    """
    try:
        files.write(str(root), str(path), content, mode)
    except files.Refused as refusal:
        raise refused(str(refusal), refusal.errno) from refusal


def collect(root: Path, pattern: str, into: Path, *, limit: int, opened_ns: int) -> list[Collected]:
    """Copy the regular files that match an absolute glob, as seen from `root`.

    The files changed since `opened_ns` come first.

    Raises:
        SandboxError: the pattern is not absolute, or the files cannot be copied.
    """
    collected: list[Collected] = []
    total_bytes = 0
    try:
        found = files.find(str(root), pattern, opened_ns)
        for number, (fresh, name) in enumerate(found[:limit]):
            path = Path(name)
            copy = place_of_copy(into, number, path)
            try:
                with files.opened(str(root), name) as handle, copy.open("wb") as stream:
                    size_bytes = os.fstat(handle).st_size
                    total_bytes += size_bytes
                    check_total(pattern, total_bytes)
                    for piece in files.pieces(handle, size_bytes):
                        stream.write(piece)
            except FileNotFoundError:
                continue  # gone since it was listed
            except OSError as error:
                raise not_copied(path, error) from error
            collected.append(Collected(path, copy, copy.stat().st_size, fresh))
    except files.Refused as refusal:
        raise refused(str(refusal), refusal.errno) from refusal
    return collected
