"""Fetches or makes what stages read, asset by asset: which origin is taken, and from where.

What a hub, a server or a recipe does is an answer, `Missing`, and never an exception: a stage
without its assets is inconclusive, and no other stage is touched.
"""

from __future__ import annotations

import errno
from dataclasses import dataclass
from typing import TYPE_CHECKING

from ..asset import Asset, FileAsset, HubAsset, MadeAsset, SourceAsset, UrlAsset
from ..errors import AssetError, RebError
from ..source import digest_file
from . import hub, layouts, url
from .definition import key_of_original, key_of_recipe, still_asks
from .host_files import from_source, from_task
from .objects import Object, remove_tree
from .ready import Choice, Missing, Origin, Ready
from .recipe import Workshop
from .store import Store

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable
    from contextlib import AbstractContextManager
    from pathlib import Path

    from ..sandbox import HostEnvironment
    from ..source import Snapshot
    from ..task import StageName, Task


@dataclass(frozen=True)
class Here:
    """What of an asset is in the cache, whole: bytes of each, None where it is not there."""

    original: int | None
    stand_in: int | None  #: or of what has no original and was made


def prepare(
    task: Task,
    stages: Iterable[StageName],
    choice: Choice,
    *,
    snapshot: Snapshot | None,
    host: HostEnvironment,
    say: Callable[[str], None],
) -> dict[str, Ready | Missing]:
    """Fetch or make all that these stages of a task read.

    Args:
        task: The task.
        stages: Those of its stages that are to be run.
        choice: `auto` takes an original where it is in the cache, else the stand-in, and
            fetches what has none; `real` and `stand-in` take the one, where an asset has both.
        snapshot: The pristine source, for assets that lie in it.
        host: What this host hands to installs.
        say: Told what is fetched or made, and how far that is.

    Returns:
        By name, every asset that one of the stages names.
    """
    found: dict[str, Ready | Missing] = {}
    wanted = names_of(task, stages)
    if not wanted:
        return found
    store = Store()
    try:
        with store.staging() as folder:
            one = _One(task, choice, snapshot, store, Workshop(folder, store, host), say)
            for name in wanted:
                found[name] = one.prepare(name)
    except (OSError, RebError) as error:  # of the cache itself: it cannot be written
        why, advice = _words(error)
        found = {name: found.get(name) or Missing(name, why, advice) for name in wanted}
    return found


def names_of(task: Task, stages: Iterable[StageName]) -> list[str]:
    """The assets that these stages name, each once."""
    named = (name for stage in stages if stage in task.stages for name in task.stages[stage].assets)
    return list(dict.fromkeys(named))


def check_ready(ready: Ready) -> str | None:
    """Why an asset cannot be used any more: it has changed since; None where it can."""
    found = Store().object(ready.digest)
    if found is None:
        return "it is no more in the cache"
    why = found.problem()
    if not why and ready.placed != "path":
        why = layouts.problem(ready.path, found, ready.asset)
    return f"its copy in the cache has changed: {why}" if why else None


def here(task: Task, name: str) -> Here:
    """What of an asset is in the cache."""
    store = Store()

    def size(key: str | None) -> int | None:
        found = store.find(key) if key else None
        return found.manifest.size_bytes if found else None

    return Here(size(key_of_original(task, name)), size(key_of_recipe(task, name)))


def remove(*, unused: bool) -> int:
    """Remove the cache, or what no task asks for any more; returns the bytes freed.

    Raises:
        OSError: something cannot be removed.
    """
    return Store().remove_unused(still_asks) if unused else Store().remove()


def check_again(
    task: Task, name: str, *, host: HostEnvironment, say: Callable[[str], None]
) -> str | None:
    """What is wrong with an asset that is there: read all of it, and make it anew.

    Returns None where the content is that of the cache, and a recipe makes the same again.
    """
    store = Store()
    for key in (key_of_original(task, name), key_of_recipe(task, name)):
        kept = store.find(key) if key else None
        if kept and (why := kept.problem(read=True)):
            return f"its copy in the cache has changed: {why}"
    recipe, key = task.assets[name].recipe, key_of_recipe(task, name)
    if recipe is None or key is None:
        return None
    kept = store.find(key)
    if kept is None:
        return None
    try:
        with store.staging() as folder:
            script = task.folder / recipe.script
            file_name = task.assets[name].file_name(name)
            log = store.folder("logs") / f"{key}.log"

            def tell(line: str) -> None:
                say(f"{task.name}: {name}: again: {line}")

            made = Workshop(folder, store, host).make(recipe, script, file_name, log, tell)
            difference = _difference(kept, made)
            if difference is None:
                tell("made the same")
            return difference
    except (OSError, RebError) as error:
        return _words(error)[0]


def _difference(kept: Object, made: Path) -> str | None:
    """The first file of what was made again that differs."""
    paths = {file.path: file.sha256 for file in kept.manifest.files}
    again = {
        str(path.relative_to(made)) if made.is_dir() else path.name: path
        for path in (made.rglob("*") if made.is_dir() else [made])
        if path.is_file()
    }
    for path in sorted(paths.keys() | again.keys()):
        if path not in again or path not in paths:
            return f"its recipe is not reproducible: {path} is made one time and not the other"
        if digest_file(again[path]) != paths[path]:
            return f"its recipe is not reproducible: {path} is another file each time"
    return None


class _One:
    """Prepares the assets of a task one by one."""

    def __init__(
        self,
        task: Task,
        choice: Choice,
        snapshot: Snapshot | None,
        store: Store,
        workshop: Workshop,
        say: Callable[[str], None],
    ) -> None:
        self._task = task
        self._choice = choice
        self._snapshot = snapshot
        self._store = store
        self._workshop = workshop
        self._say = say

    def prepare(self, name: str) -> Ready | Missing:
        """One asset."""
        asset = self._task.assets[name]
        try:
            origin, found = self._get(name, asset)
            path = layouts.place(self._store, found, asset)
        except (OSError, RebError) as error:
            return Missing(name, *_words(error))
        return Ready(name, origin, path, found.digest, asset.placed, asset)

    def _get(self, name: str, asset: Asset) -> tuple[Origin, Object]:
        if isinstance(asset, MadeAsset):
            return "made", self._made(name, asset, "made")
        if asset.recipe is None or self._choice == "real":
            return "real", self._original(name, asset)
        original = key_of_original(self._task, name)
        if self._choice == "auto" and original and (kept := self._store.find(original)):
            self._store.note(original, kept, "real", (str(self._task.folder), name))
            return "real", kept
        return "stand-in", self._made(name, asset, "stand-in")

    def _original(self, name: str, asset: Asset) -> Object:
        key = key_of_original(self._task, name)
        if key is None:
            raise _not_pinned(asset)
        with self._locked(key):
            kept = self._store.find(key)
            # What lies on this host is asked itself each time: the source can be a folder.
            if kept is None or isinstance(asset, SourceAsset):
                with self._store.staging() as folder:
                    content = self._fetched(name, asset, key, folder)
                    kept = self._store.keep(content, asset.file_name(name))
            partial = self._store.root / "partial" / key
            self._store.note(key, kept, "real", (str(self._task.folder), name))
            remove_tree(partial)
        return kept

    def _fetched(self, name: str, asset: Asset, key: str, folder: Path) -> Path:
        """The original as a file or folder of the cache's own disk."""
        target = folder / "content"
        if isinstance(asset, FileAsset):
            return from_task(asset, self._task, target)
        if isinstance(asset, SourceAsset):
            return from_source(asset, self._snapshot, target)
        what = f"{self._task.name}: {name}"
        partial = self._store.folder("partial", key)
        if isinstance(asset, HubAsset):
            return hub.fetch(asset, partial, self._say, what)
        assert isinstance(asset, UrlAsset)  # noqa: S101  # what is made has no original
        file = url.fetch(asset, partial, self._say, what)
        if not asset.unpack:
            return file
        url.unpack(file, asset, target)
        return target

    def _made(self, name: str, asset: Asset, origin: Origin) -> Object:
        recipe, key = asset.recipe, key_of_recipe(self._task, name)
        assert recipe is not None and key is not None  # noqa: S101, PT018  # by the caller
        with self._locked(key):
            kept = self._store.find(key)
            if kept is not None and recipe.digest in (None, kept.digest):
                self._store.note(key, kept, origin, (str(self._task.folder), name))
                return kept
            log = self._store.folder("logs") / f"{key}.log"
            script = self._task.folder / recipe.script

            def say(line: str) -> None:
                self._say(f"{self._task.name}: {name}: {line}")

            made = self._workshop.make(recipe, script, asset.file_name(name), log, say)
            if wrong := _wrong_kind(asset, made):
                raise AssetError(f"its recipe {script.name} made {wrong}")
            kept = self._store.keep(made, made.name)
            if recipe.digest is not None and kept.digest != recipe.digest:
                raise AssetError(
                    f"its recipe made the digest {kept.digest}, the task says {recipe.digest}",
                    advice="what it needs or this processor differs from where the digest was "
                    "noted; where the recipe was changed on purpose, note the new digest in "
                    "the task. reb assets fetch --check says whether it makes the same twice",
                )
            self._store.note(key, kept, origin, (str(self._task.folder), name))
        return kept

    def _locked(self, key: str) -> AbstractContextManager[None]:
        return self._store.lock(key, lambda: self._say("waits for another process that gets it"))


def _wrong_kind(asset: Asset, made: Path) -> str:
    """What a stand-in is instead of what its original is; empty where it is of the same kind."""
    if isinstance(asset, MadeAsset) or (is_folder := _is_folder(asset)) == made.is_dir():
        return ""
    return (
        "a file, and its original is a folder" if is_folder else "a folder, and its original a file"
    )


def _is_folder(asset: Asset) -> bool:
    return isinstance(asset, HubAsset) or (isinstance(asset, UrlAsset) and bool(asset.unpack))


def _not_pinned(asset: Asset) -> AssetError:
    why = f"its original is not pinned: {asset.why_not_pinned}"
    if isinstance(asset, HubAsset):
        how = f"git ls-remote {hub.page(asset)} HEAD says the revision of today"
    else:
        assert isinstance(asset, UrlAsset)  # noqa: S101  # no other can lack it
        how = f"curl -L {asset.url} | sha256sum says the digest of today"
    return AssetError(why, advice=f"{how}; note it in the task, or take --assets stand-in")


def _words(error: OSError | RebError) -> tuple[str, str]:
    """What happened, and what to do."""
    if isinstance(error, RebError):
        return str(error.args[0]), error.advice
    where = f"{error.filename}: " if error.filename else ""
    if error.errno in (errno.ENOSPC, errno.EDQUOT):
        return (
            f"{where}the disk is full",
            "make room (reb assets remove --unused), or set REB_CACHE to a larger disk",
        )
    return f"{where}{error.strerror or error}", "see that the cache (REB_CACHE) can be written"
