"""What the cache holds: files, their list, and whether they are still as the list says."""

from __future__ import annotations

import hashlib
import json
import os
import shutil
import stat
from contextlib import suppress
from pathlib import Path
from typing import Literal

from pydantic import ConfigDict, Field

from ..errors import AssetError
from ..source import digest_file
from ..stored import Stored


class ObjectFile(Stored):
    """One file of an object."""

    path: str = Field(description="Within the folder; of a single file its name.")
    size_bytes: int
    sha256: str
    mtime_ns: int


class Manifest(Stored):
    """What an object holds."""

    schema_version: int = Field(1, alias="schema")
    kind: Literal["file", "folder"]
    files: tuple[ObjectFile, ...]

    model_config = ConfigDict(extra="ignore", frozen=True, populate_by_name=True)

    @property
    def digest(self) -> str:
        """SHA-256 of the list of its files, without their times."""
        listed = [[file.path, file.size_bytes, file.sha256] for file in self.files]
        return hashlib.sha256(json.dumps([self.kind, listed]).encode()).hexdigest()

    @property
    def size_bytes(self) -> int:
        """Of all files together."""
        return sum(file.size_bytes for file in self.files)


class Object:
    """A whole object of the cache."""

    def __init__(self, folder: Path, manifest: Manifest) -> None:
        """The object whose folder and manifest these are."""
        self.folder = folder
        self.manifest = manifest
        self.digest = folder.name

    @property
    def path(self) -> Path:
        """Its file, or the folder of its files."""
        content = self.folder / "content"
        return content / self.manifest.files[0].path if self.manifest.kind == "file" else content

    def file(self, path: str) -> Path:
        """Where the file `path` of it lies."""
        return self.folder / "content" / path

    def problem(self, *, read: bool = False) -> str:
        """How it differs from its list; empty where it does not.

        Sizes and times are compared, and the content where a time differs, or of all (`read`).
        """
        for file in self.manifest.files:
            place = self.file(file.path)
            try:
                status = place.lstat()
                if not stat.S_ISREG(status.st_mode):
                    return f"{file.path} is no file any more"
                if status.st_size != file.size_bytes:
                    return f"{file.path} has {status.st_size} bytes instead of {file.size_bytes}"
                look = read or status.st_mtime_ns != file.mtime_ns
                if look and digest_file(place) != file.sha256:
                    return f"{file.path} has another content"
            except OSError as error:
                return f"{file.path} cannot be read: {error.strerror}"
        return ""


def listed(content: Path, name: str) -> Manifest:
    """The list of the files below the folder `content`, or of the one file `content`.

    A link to a file beside it becomes a copy of that file.

    Raises:
        AssetError: there is no file, or something else than files and folders.
    """
    if not content.is_dir():
        return Manifest(kind="file", files=(_look(content, name),))
    files = []
    for folder, names, found in os.walk(content):
        names.sort()
        for entry in sorted([*found, *(n for n in names if Path(folder, n).is_symlink())]):
            path = Path(folder, entry)
            inside = str(path.relative_to(content))
            if path.is_symlink():
                _replace_link(path, content, inside)
            files.append(_look(path, inside))
    if not files:
        raise AssetError("it is a folder without a file in it")
    return Manifest(kind="folder", files=tuple(sorted(files, key=lambda file: file.path)))


def _look(path: Path, inside: str) -> ObjectFile:
    status = path.lstat()
    if not stat.S_ISREG(status.st_mode):
        raise AssetError(f"{inside}: is neither a file nor a folder")
    try:
        inside.encode()
    except UnicodeEncodeError as error:
        raise AssetError(f"{inside!a}: its name is no UTF-8 text") from error
    return ObjectFile(
        path=inside,
        size_bytes=status.st_size,
        sha256=digest_file(path),
        mtime_ns=status.st_mtime_ns,
    )


def remove_tree(place: Path) -> None:
    """Remove a folder of the cache, whose own folders are read-only; an absent one is removed."""
    with suppress(FileNotFoundError):
        for folder, _, _ in os.walk(place):
            Path(folder).chmod(0o755)
        shutil.rmtree(place)


def _replace_link(link: Path, content: Path, inside: str) -> None:
    try:
        target = link.resolve(strict=True)
    except (OSError, RuntimeError) as error:
        raise AssetError(f"{inside}: is a link to what is not there") from error
    if not target.is_relative_to(content.resolve()) or not target.is_file():
        raise AssetError(f"{inside}: is a link to something else than a file beside it")
    link.unlink()
    shutil.copyfile(target, link)


def make_read_only(content: Path) -> None:
    """Take the right to write from a folder and all that is in it."""
    for folder, _, files in os.walk(content, topdown=False):
        for name in files:
            Path(folder, name).chmod(0o444)
        Path(folder).chmod(0o555)
