"""The cache of assets: by content, read-only, each object whole or not there.

    objects/DIGEST/   manifest.json, and content/ with the file or the files
    wanted/KEY.json   what was asked for (`definition`), and the object that it led to
    placed/KEY/       the same files once more, as a library's cache has them (`layouts`)
    partial/KEY/      downloads that were cut off, to be taken up again
    staging/          what is being made; locks/, logs/, and uv's own cache

An object's digest is that of the list of its files: path, size and SHA-256 of each. Objects
and layouts take their names by a rename, so that a process that is killed leaves none half.
"""

from __future__ import annotations

import os
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING

from filelock import FileLock, Timeout
from pydantic import ConfigDict, Field

from ..errors import RecordError
from ..owner import of_own_folder, own_folder, owner_state
from ..places import default_cache
from ..stored import Stored
from .objects import Manifest, Object, listed, make_read_only, remove_tree
from .ready import Origin  # noqa: TC001  # pydantic needs it at run time

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

#: What `reb assets remove` removes; the locks stay, since others may wait for them.
_CONTENT = ("wanted", "placed", "objects", "partial", "staging", "logs", "uv")


class Wanted(Stored):
    """What somebody asked for, and which object it led to."""

    schema_version: int = Field(1, alias="schema")
    digest: str
    origin: Origin
    asked_by: tuple[tuple[str, str], ...] = Field((), description="Folder of the task, asset.")

    model_config = ConfigDict(extra="ignore", frozen=True, populate_by_name=True)


class Store:
    """The cache in a folder."""

    def __init__(self, root: Path | None = None) -> None:
        """The cache of this user, or the one in `root`; it need not exist yet."""
        self.root = root or default_cache() / "assets"

    # --- looking ---

    def object(self, digest: str) -> Object | None:
        """The object of that digest; its files are not looked at."""
        folder = self.root / "objects" / digest
        try:
            manifest = Manifest.load(folder / "manifest.json")
        except RecordError:
            return None
        return Object(folder, manifest) if manifest.digest == digest else None

    def wanted(self, key: str) -> Wanted | None:
        """What the request `key` led to, whether or not that is still there."""
        try:
            return Wanted.load(self._wanted(key))
        except RecordError:
            return None

    def find(self, key: str) -> Object | None:
        """The object that the request `key` led to, where it is there and whole."""
        wanted = self.wanted(key)
        found = self.object(wanted.digest) if wanted else None
        return found if found is not None and not found.problem() else None

    # --- making ---

    @contextmanager
    def lock(self, key: str, waiting: Callable[[], None] | None = None) -> Iterator[None]:
        """Nobody else on this host works on `key` meanwhile; `waiting` is called if one does."""
        self.folder("locks")
        lock = FileLock(self.root / "locks" / f"{key}.lock")
        try:
            lock.acquire(timeout=0)
        except Timeout:
            if waiting:
                waiting()
            lock.acquire()
        try:
            yield
        finally:
            lock.release()

    @contextmanager
    def staging(self) -> Iterator[Path]:
        """A folder to make things in, on the cache's own disk; gone afterwards."""
        place = self.folder("staging")
        for left in place.iterdir():  # by who was killed
            named = of_own_folder(left.name)
            if named is not None and owner_state(named.owner) == "dead":
                with suppress(OSError):  # what it ran may be ending still; the next one does it
                    remove_tree(left)
        with own_folder("asset", place, remove_tree) as folder:
            yield folder

    def folder(self, *names: str) -> Path:
        """A folder of the cache, made where it is not there."""
        folder = self.root.joinpath(*names)
        folder.mkdir(parents=True, exist_ok=True)
        return folder

    def keep(self, content: Path, name: str) -> Object:
        """Take a file or a folder into the cache, from elsewhere in its own folder.

        Args:
            content: The file or the folder; it is moved once it has been read.
            name: What a file is called; a folder has no name.

        Raises:
            AssetError: it holds no file, or something else than files and folders.
            OSError: the disk is full, or cannot be written.
        """
        manifest = listed(content, name)
        place = self.folder("objects") / manifest.digest
        with self.staging() as made, self.lock(manifest.digest):
            there = self.object(manifest.digest)
            if there is not None and not there.problem():
                remove_tree(content) if content.is_dir() else content.unlink()
                return there
            if manifest.kind == "folder":
                content.chmod(0o755)  # whoever made it may not have let it be moved
            inner = made / "object" / "content"
            (inner if manifest.kind == "file" else inner.parent).mkdir(parents=True)
            content.rename(inner / name if manifest.kind == "file" else inner)
            make_read_only(inner)
            manifest.save(made / "object" / "manifest.json")
            remove_tree(place)
            (made / "object").rename(place)
        return Object(place, manifest)

    def note(self, key: str, found: Object, origin: Origin, asked_by: tuple[str, str]) -> None:
        """Note that the request `key` of a task's asset leads to the object."""
        self.folder("wanted")
        before = self.wanted(key)
        askers = {asked_by, *(before.asked_by if before else ())}
        now = Wanted(digest=found.digest, origin=origin, asked_by=tuple(sorted(askers)))
        if now != before:
            now.save(self._wanted(key))

    # --- removing ---

    def remove(self) -> int:
        """Remove everything; returns how many bytes that freed."""
        return sum(_removed(self.root / name) for name in _CONTENT)

    def remove_unused(self, still_asks: Callable[[str, str, str], bool]) -> int:
        """Remove what no task asks for any more, and what was cut off; returns the bytes freed.

        Args:
            still_asks: Whether the task in a folder asks, by the asset of that name, for what
                has the given key.
        """
        used = set()
        for file in sorted((self.root / "wanted").glob("*.json")):
            wanted = self.wanted(file.stem)
            if wanted and any(still_asks(*asker, file.stem) for asker in wanted.asked_by):
                used.add(wanted.digest)
            else:
                file.unlink()
        freed = sum(_removed(self.root / name) for name in ("placed", "partial", "logs", "uv"))
        for left in (self.root / "staging").glob("*"):
            named = of_own_folder(left.name)
            if named is None or owner_state(named.owner) != "alive":
                freed += _removed(left)
        for folder in sorted((self.root / "objects").glob("*")):
            if folder.name not in used:
                freed += _removed(folder)
        return freed

    def _wanted(self, key: str) -> Path:
        return self.root / "wanted" / f"{key}.json"


def _removed(place: Path) -> int:
    size = 0
    for folder, _, files in os.walk(place):
        for name in files:
            with suppress(OSError):
                status = Path(folder, name).lstat()
                # What has another name still takes its room.
                size += status.st_size if status.st_nlink == 1 else 0
    remove_tree(place)
    return size
