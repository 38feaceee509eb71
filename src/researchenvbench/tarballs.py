"""Unpacking archives that nobody here has made.

Python's own filter for that came with 3.11.4, and Debian 12 keeps 3.11.2. There the same is
asked for by us, and a little more: nothing is written by way of a link of the archive.
"""

from __future__ import annotations

import os
import posixpath
import tarfile
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pathlib import Path

_ROUGH_MODE = 0o755  #: no set-user-id, and nothing that others may write


class MisleadingError(tarfile.TarError):
    """What an archive names is not to be unpacked."""


def extract_data(archive: tarfile.TarFile, into: Path) -> None:
    """Unpack files, folders and links; owners are not taken over, nor special files.

    Raises:
        MisleadingError: a path or a link leads out of the folder, or a file is a special one.
        tarfile.TarError: it is damaged, or no such archive.
        OSError: it cannot be written.
    """
    if hasattr(tarfile, "data_filter"):
        try:
            archive.extractall(into, filter="data")
        except tarfile.FilterError as error:
            raise MisleadingError(str(error)) from error
        return
    links: set[str] = set()
    for member in archive:
        _check(member, links)
        member.uid, member.gid, member.uname, member.gname = os.getuid(), os.getgid(), "", ""
        member.mode = _ROUGH_MODE if member.isdir() else member.mode & _ROUGH_MODE | 0o600
        archive.extract(member, into)


def _check(member: tarfile.TarInfo, links: set[str]) -> None:
    """See that a member stays where it is unpacked; `links` are those that came before."""
    name = member.name = posixpath.normpath(member.name.lstrip("/"))
    above = [posixpath.join(*name.split("/")[:n]) for n in range(1, name.count("/") + 1)]
    if not (member.isreg() or member.isdir() or member.issym() or member.islnk()):
        raise MisleadingError(f"{name!r} is a special file")
    if _leaves(name):
        raise MisleadingError(f"{name!r} would be outside the destination")
    if blocked := links.intersection(above):
        raise MisleadingError(f"{name!r} lies behind the link {sorted(blocked)[0]!r}")
    if member.issym():
        links.add(name)
        target = posixpath.join(posixpath.dirname(name), member.linkname)
    elif member.islnk():
        target = member.linkname
    else:
        links.discard(name)
        return
    if member.linkname.startswith("/") or _leaves(posixpath.normpath(target)):
        raise MisleadingError(f"{name!r} links to {member.linkname!r}, outside the destination")


def _leaves(path: str) -> bool:
    return path == ".." or path.startswith("../")
