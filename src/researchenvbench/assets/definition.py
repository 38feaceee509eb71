"""What was asked for, as a key of the cache: the same key, the same content."""

from __future__ import annotations

import hashlib
import json
from pathlib import Path
from typing import TYPE_CHECKING

from ..asset import Asset, FileAsset, HubAsset, SourceAsset, UrlAsset
from ..errors import TaskError
from ..taskfile import load_task

if TYPE_CHECKING:
    from ..task import Task


def key_of_original(task: Task, name: str) -> str | None:
    """The key of an asset's original; None where it has none or nothing fixes its content."""
    asset = task.assets[name]
    if isinstance(asset, FileAsset):
        return _key(["file", asset.sha256, asset.file_name(name)])
    if isinstance(asset, SourceAsset):
        source = task.source.model_dump(mode="json", exclude={"also_at", "unavailable"})
        return _key(["source", source, asset.path, asset.file_name(name)])
    if isinstance(asset, UrlAsset) and asset.sha256:
        return _key(["url", asset.sha256, asset.unpack, asset.file_name(name)])
    if isinstance(asset, HubAsset) and asset.revision:
        return _key(["hub", asset.type, asset.repo, asset.revision, sorted(asset.files)])
    return None


def key_of_recipe(task: Task, name: str) -> str | None:
    """The key of what an asset's recipe makes; None where it has none.

    Raises:
        OSError: its script cannot be read.
    """
    asset: Asset = task.assets[name]
    recipe = asset.recipe
    if recipe is None:
        return None
    script = hashlib.sha256((task.folder / recipe.script).read_bytes()).hexdigest()
    needs = [recipe.python, list(recipe.requirements), recipe.seed]
    return _key(["recipe", script, *needs, asset.file_name(name)])


def still_asks(folder: str, name: str, key: str) -> bool:
    """Whether the task in a folder asks by its asset `name` for what has this key."""
    try:
        task = load_task(Path(folder))
        return name in task.assets and key in (
            key_of_original(task, name),
            key_of_recipe(task, name),
        )
    except (TaskError, OSError):
        return False  # it is gone, or no task any more


def _key(parts: list[object]) -> str:
    return hashlib.sha256(json.dumps(parts, sort_keys=True).encode()).hexdigest()
