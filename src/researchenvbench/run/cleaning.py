"""Finds what crashed runs have left, and removes it; whatever may live is left alone.

What is ours says so by labels or by its name, and which process it belongs to. An attempt
lives while the lock of its folder is held. Where it cannot be told from here whether
something lives, as of another host that uses the same engine, it stays, and that is said.
"""

from __future__ import annotations

import os
import tempfile
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from filelock import FileLock, Timeout

from ..attempt import Environment
from ..errors import RebError, RecordError
from ..owner import before_restart, of_own_folder, owner_state
from ..places import default_cache
from ..sandbox.containers.in_use import image_is_free
from ..sandbox.containers.inventory import (
    ENVIRONMENTS,
    containers,
    environment_images,
    short_id,
)
from ..sandbox.engines.bundle import bundles_of
from ..sandbox.engines.engine import InUseError
from ..sandbox.engines.storage import storage_of
from ..sandbox.images.scratch import remove_with_mounts
from ..sandbox.removing import remove_tree

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from ..sandbox.containers.inventory import Container, EnvironmentImage
    from ..sandbox.engines.engine import Engine


@dataclass(frozen=True)
class Item:
    """One thing that was found, and what became of it."""

    what: str  #: such as "podman container (stage)"
    name: str
    done: Literal["removed", "kept", "failed"]  #: in a dry run "removed" is what would be
    why: str
    size_bytes: int = 0


def clean(engines: Sequence[Engine], *, dry_run: bool = False) -> list[Item]:
    """Remove what belongs to no live run, and say what was found.

    What an engine has that does not answer stays, and that is said.
    """
    items: list[Item] = []
    for engine in engines:
        try:
            for found in containers(engine):
                items.append(clean_container(engine, found, dry_run=dry_run))
            # After containers, since an image in use cannot be removed.
            for image in environment_images(engine):
                items.append(clean_image(engine, image, dry_run=dry_run))
        except RebError as error:
            items.append(Item(engine.name, "(what it has)", "kept", str(error.args[0])))
    scratches = [engine.dialect.scratch() for engine in engines]
    places = (Path(tempfile.gettempdir()), *filter(None, scratches), bundles_of(default_cache()))
    for place in dict.fromkeys(places):
        items += clean_folders(place, dry_run=dry_run)
    return items


def remove_image(
    engine: Engine, image: EnvironmentImage, why: str, *, dry_run: bool = False
) -> Item:
    """Remove an environment that no live attempt works on; layers that others share stay."""
    with attempt_is_free(image.attempt) as free, image_is_free(image.id) as unused:
        if not free:
            return _image_item(image, "kept", "a run is working on its attempt")
        if not unused:
            return _image_item(image, "kept", "it is being verified")
        if not dry_run:
            try:
                # Not by force: one that a container still uses stays.
                engine.call("rmi", *(image.names or (image.id,)))
            except InUseError as error:
                return _image_item(image, "kept", str(error.args[0]))
            except RebError as error:
                return _image_item(image, "failed", str(error.args[0]))
            _forget(image)
    return _image_item(image, "removed", why)


def why_unneeded(image: EnvironmentImage) -> str:
    """Why an environment belongs to no attempt any more, in words; empty where it does."""
    if image.attempt is None or not image.attempt.is_dir():
        return "the folder of its attempt is gone"
    frozen = _frozen(image.attempt)
    if frozen is None or frozen.digest != image.id:
        return "its attempt has another environment, or none: its build was interrupted"
    return ""


def keeps_a_name(image: EnvironmentImage) -> str:
    """Why an environment is kept for its name, in words; empty where it is not."""
    if image.moved:
        return f"it was imported; `{image.engine} rmi {image.name}` removes it"
    others = [name for name in image.names if not name.startswith(f"{ENVIRONMENTS}:")]
    return f"somebody has named it {others[0]}" if others else ""


@contextmanager
def attempt_is_free(attempt: Path | None) -> Iterator[bool]:
    """Whether no run works on an attempt; while this is open none can begin to."""
    if attempt is None or not attempt.is_dir():
        yield True
        return
    lock = FileLock(attempt.parent / f".{attempt.name}.lock")
    try:
        lock.acquire(timeout=0)
    except Timeout:
        yield False
        return
    except OSError:
        yield False  # it may be another user's: then it is not ours to say
        return
    try:
        yield True
    finally:
        lock.release()


def clean_image(engine: Engine, image: EnvironmentImage, *, dry_run: bool) -> Item:
    """Remove an environment if it belongs to no attempt."""
    if stays := keeps_a_name(image):
        return _image_item(image, "kept", stays)
    if storage_of(engine) is None:
        why = "the engine is of another host, so its attempt may be there"
        return _image_item(image, "kept", why)
    if why := why_unneeded(image):
        return remove_image(engine, image, why, dry_run=dry_run)
    return _image_item(image, "kept", f"it is the environment of {image.attempt}")


def clean_container(engine: Engine, found: Container, *, dry_run: bool) -> Item:
    """Remove a container of ours if nothing that lives can need it."""

    name = short_id(found.id) + (f" ({found.attempt.name})" if found.attempt else "")

    def item(done: Literal["removed", "kept", "failed"], why: str) -> Item:
        return Item(f"{engine.name} container ({found.kind})", name, done, why)

    state = owner_state(found.owner)
    if state == "alive":
        return item("kept", "the process that started it lives")
    # Containers end when a host does, so one that has ended is of before its restart.
    ended_before = (
        before_restart(found.owner) and not found.running and storage_of(engine) is not None
    )
    with attempt_is_free(found.attempt if found.kind == "build" else None) as free:
        if not free:
            return item("kept", f"a run is working on {found.attempt}")
        if state == "unknown" and not ended_before:
            return item(
                "kept", "it cannot be seen from here whether the process that started it lives"
            )
        why = f"the process that started it has ended; it was of {found.attempt or 'a trial'}"
        if found.kind == "build" and found.running:
            why += ", and would have been gone on with by the same reb run"
        if not dry_run:
            try:
                engine.remove(found.id)
            except RebError as error:
                return item("failed", str(error.args[0]))
        return item("removed", why)


def _image_item(
    image: EnvironmentImage, done: Literal["removed", "kept", "failed"], why: str
) -> Item:
    return Item(f"{image.engine} environment", image.called, done, why, image.own_bytes)


def clean_folders(below: Path, *, dry_run: bool) -> Iterator[Item]:
    """Remove folders of processes of ours that have ended, and what they left mounted."""
    for folder in sorted(below.glob("reb-*")):
        named = of_own_folder(folder.name)
        if named is None:
            continue
        try:
            if folder.is_symlink() or folder.stat().st_uid != os.getuid():
                continue
            if owner_state(named.owner) != "dead" and not before_restart(named.owner):
                continue
            if not dry_run:
                # A build of an image mounts what a system needs; nothing else of ours mounts.
                (remove_with_mounts if named.purpose == "image" else remove_tree)(folder)
        except (OSError, RebError) as error:
            said = error.args[0] if isinstance(error, RebError) else error.strerror or error
            yield _folder_item(folder, named.purpose, "failed", str(said))
        else:
            why = "the process that made it has ended"
            yield _folder_item(folder, named.purpose, "removed", why)


def _folder_item(folder: Path, purpose: str, done: Literal["removed", "failed"], why: str) -> Item:
    return Item(f"temporary folder ({purpose})", str(folder), done, why)


def _frozen(attempt: Path) -> Environment | None:
    try:
        return Environment.load(attempt / "frozen.json")
    except (RecordError, OSError):
        return None


def _forget(image: EnvironmentImage) -> None:
    """An attempt must not name an environment that is not there any more."""
    if image.attempt is None:
        return
    frozen = _frozen(image.attempt)
    if frozen is not None and frozen.digest == image.id:
        (image.attempt / "frozen.json").unlink(missing_ok=True)
