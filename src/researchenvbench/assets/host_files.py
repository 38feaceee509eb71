"""Originals that this host has: files of the task's folder, and what lies in the source."""

from __future__ import annotations

import errno
import shutil
from typing import TYPE_CHECKING

from ..errors import AssetError
from ..source import digest_file

if TYPE_CHECKING:
    from pathlib import Path

    from ..asset import FileAsset, SourceAsset
    from ..source import Snapshot
    from ..task import Task

_LFS_POINTER = b"version https://git-lfs.github.com/spec/"


def from_task(asset: FileAsset, task: Task, target: Path) -> Path:
    """Copy a file of the task's folder to `target`.

    Raises:
        AssetError: it cannot be read, or is not the one that the task names.
        OSError: the disk is full.
    """
    source = task.folder / asset.path
    restore = "restore the task's folder from the suite"
    try:
        shutil.copyfile(source, target)
    except OSError as error:
        if error.errno == errno.ENOSPC:
            raise
        why = f"{source}: cannot be read: {error.strerror}"
        raise AssetError(why, advice=restore) from error
    if digest_file(target) != asset.sha256:
        raise AssetError(f"the content of {source} has changed", advice=restore)
    return target


def from_source(asset: SourceAsset, snapshot: Snapshot | None, target: Path) -> Path:
    """Copy a file or a folder of the pristine source to `target`.

    Raises:
        AssetError: the source has not been fetched, or does not hold it.
        OSError: the disk is full.
    """
    if snapshot is None:
        raise AssetError(
            "it lies in the source, which has not been fetched",
            advice="mend what keeps the source from being fetched",
        )
    tracked = {
        path: entry
        for path, entry in snapshot.tracked.items()
        if path == asset.path or path.startswith(f"{asset.path}/")
    }
    if not tracked:
        raise AssetError(
            f"the source has no {asset.path} at its commit",
            advice="correct `path` of the asset in the task",
        )
    for path, entry in sorted(tracked.items()):
        content = (snapshot.tree / path).resolve()
        if not content.is_relative_to(snapshot.tree.resolve()) or not content.is_file():
            raise AssetError(f"{path}: is a link to something else than a file of the source")
        copy = target / path[len(asset.path) :].lstrip("/")
        copy.parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(content, copy)
        with copy.open("rb") as stream:
            is_pointer = stream.read(len(_LFS_POINTER)) == _LFS_POINTER
        if is_pointer:
            raise AssetError(
                f"{path}: the source holds only a pointer to its content (git lfs)",
                advice="name the file itself, as an asset of the kind url or hub",
            )
        if entry.kind != "link" and digest_file(copy) != entry.sha256:
            raise AssetError(
                f"{path}: the cached copy of the source has changed",
                advice="remove the sources in the cache; they are fetched anew",
            )
    return target
