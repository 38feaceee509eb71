"""How an asset lies where a library looks for it: in the hub's own cache, or in TORCH_HOME.

The files are those of the object, under further names (hard links), so a change of one is a
change of the object and is seen there. The layout of the hub's cache is that of the page
"Understand caching" of the huggingface_hub library: `models--OWNER--NAME/refs/main` holds a
revision, `snapshots/REVISION/` the files. Its `blobs` are left out: snapshots need not be links.
"""

from __future__ import annotations

import hashlib
import json
import os
from pathlib import Path
from typing import TYPE_CHECKING

from ..asset import Asset, HubAsset
from .objects import Object, remove_tree

if TYPE_CHECKING:
    from collections.abc import Iterator

    from .store import Store


def place(store: Store, found: Object, asset: Asset) -> Path:
    """Where a stage is to find the object: of a `path` the object's own, else a layout of it.

    A hub's is to be HF_HUB_CACHE, a torch's TORCH_HOME.

    Raises:
        OSError: the disk is full, or cannot be written.
    """
    if asset.placed == "path":
        return found.path
    name = hashlib.sha256(json.dumps([found.digest, *_prefix(found, asset)]).encode()).hexdigest()
    target = store.folder("placed") / name
    with store.lock(name):
        if not problem(target, found, asset):
            return target
        with store.staging() as made:
            root = made / "layout"
            for source, inside in _links(found, asset):
                (root / inside).parent.mkdir(parents=True, exist_ok=True)
                os.link(source, root / inside)
            for inside, text in _notes(found, asset):
                (root / inside).parent.mkdir(parents=True, exist_ok=True)
                (root / inside).write_text(text)
                (root / inside).chmod(0o444)
            for folder, names, _ in os.walk(root, topdown=False):
                for sub in names:
                    Path(folder, sub).chmod(0o555)
            remove_tree(target)
            root.rename(target)
    return target


def problem(target: Path, found: Object, asset: Asset) -> str:
    """How the layout at `target` differs from the object's files; empty where it does not."""
    expected = set()
    for source, inside in _links(found, asset):
        expected.add(inside)
        try:
            if not os.path.samestat((target / inside).lstat(), source.lstat()):
                return f"{inside} has been replaced"
        except OSError as error:
            return f"{inside} cannot be read: {error.strerror}"
    for inside, text in _notes(found, asset):
        expected.add(inside)
        try:
            if (target / inside).read_text() != text:
                return f"{inside} has been changed"
        except (OSError, UnicodeDecodeError):
            return f"{inside} cannot be read"
    for folder, _, files in os.walk(target):
        for name in files:
            inside = str(Path(folder, name).relative_to(target))
            if inside not in expected:
                return f"{inside} has been added"
    return ""


def _links(found: Object, asset: Asset) -> Iterator[tuple[Path, str]]:
    """(file of the object, where it is in the layout)."""
    prefix = "/".join(_prefix(found, asset))
    for file in found.manifest.files:
        yield found.file(file.path), f"{prefix}/{file.path}" if prefix else file.path


def _prefix(found: Object, asset: Asset) -> tuple[str, ...]:
    if isinstance(asset, HubAsset) and asset.placed == "hub":
        return (_repo_folder(asset), "snapshots", _revision(found, asset))
    # A folder has an order of its own, such as that of torch.hub.load.
    return ("hub", "checkpoints") if found.manifest.kind == "file" else ()


def _notes(found: Object, asset: Asset) -> Iterator[tuple[str, str]]:
    """(where it is in the layout, what the small file there says)."""
    if isinstance(asset, HubAsset) and asset.placed == "hub":
        # Of older versions of transformers, which else try to bring the cache up to date.
        yield "version.txt", "1"
        yield f"{_repo_folder(asset)}/refs/main", _revision(found, asset)


def _repo_folder(asset: HubAsset) -> str:
    return f"{asset.type}s--{asset.repo.replace('/', '--')}"


def _revision(found: Object, asset: HubAsset) -> str:
    """The revision; of a stand-in for one that nobody has looked up, one of its own."""
    return asset.revision or found.digest[:40]
