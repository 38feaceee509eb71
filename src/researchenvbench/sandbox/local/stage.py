"""Opening a stage's box: a layer over the frozen folders, or else in place.

Everything that a stage writes goes to a folder of its own, `stage`, which is the same path
in all stages and fresh in each, and to a layer below `scratch`. Both are thrown away.
"""

from __future__ import annotations

import fcntl
import tempfile
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from ...attempt import Freshness
from ...errors import HostError, SandboxError
from ..assets import make_frame, make_links, mounts
from ..removing import remove_tree
from .box import LocalStageBox
from .namespace import Namespaces, Refusal, open_namespaces

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

    from .. import Layout
    from .manifest import Changes

#: How stages are kept apart: as well as the host allows, by a layer or not at all, in place.
Fresh = Literal["auto", "overlay", "in-place"]

_STAGE_FOLDERS = ("work", "out", "tools", "home", "tmp", "cache", "assets")


@contextmanager
def open_stage_box(
    base: Path,
    layout: Layout,
    folders: Sequence[Path],
    changed: Callable[[], tuple[str, ...]],
    *,
    network: bool,
    fresh: Fresh,
    assets: Mapping[str, Path],
) -> Iterator[LocalStageBox]:
    """A box whose layer, or whose own folders, lie below `base`."""
    stage = base / "stage"
    with _scratch_folder(base / "scratch") as scratch:
        opened: Namespaces | Refusal = Refusal("it was asked for")
        if fresh != "in-place":
            stage.mkdir(exist_ok=True)
            own = scratch / "stage"
            make_stage_folders(own)
            layer = scratch / "layer"
            layer.mkdir()
            frame = scratch / "assets"
            make_frame(frame, assets)
            opened = open_namespaces(
                folders,
                layer,
                network=network,
                binds=[(own, stage)],
                read_only=mounts(frame, layout.assets, assets),
            )
        if isinstance(opened, Namespaces):
            freshness = Freshness(kind="overlay", network=opened.network, why=opened.why)
            box = LocalStageBox(layout, opened, freshness, scratch)
            try:
                yield box
            finally:
                box.close()
                opened.close()
            return
        if fresh == "overlay":
            raise HostError(f"a stage cannot be kept apart from others here: {opened.why}")
        with _alone(base):
            make_stage_folders(stage)
            make_links(layout.assets, assets)
            freshness = Freshness(
                kind="in-place", network="host", why=opened.why, changed=changed()
            )
            box = LocalStageBox(layout, None, freshness, scratch)
            try:
                yield box
            finally:
                box.close()


@contextmanager
def _scratch_folder(parent: Path) -> Iterator[Path]:
    """A folder that is removed in the end, or by the next one where the harness was killed."""
    parent.mkdir(exist_ok=True)
    with (parent / ".lock").open("w") as guard:
        fcntl.flock(guard, fcntl.LOCK_EX)
        for older in parent.iterdir():
            if older.is_dir() and not _in_use(older):
                remove_tree(older)
        scratch = Path(tempfile.mkdtemp(dir=parent, prefix=""))
        lock = (scratch / "lock").open("w")
        fcntl.flock(lock, fcntl.LOCK_EX)
    try:
        yield scratch
    finally:
        remove_tree(scratch)
        lock.close()


def _in_use(scratch: Path) -> bool:
    with suppress(FileNotFoundError), (scratch / "lock").open("r+") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            return True
    return False


@contextmanager
def _alone(base: Path) -> Iterator[None]:
    """In place, two stages at once would spoil each other."""
    with (base / "in-place.lock").open("w") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError as error:
            raise SandboxError(
                f"{base}: another stage runs in place in this environment",
                advice="wait for its end; this host does not allow layers, by which both could run",
            ) from error
        yield


def make_stage_folders(stage: Path) -> None:
    """Make a stage's own folders, empty, whatever there was before.

    Raises:
        OSError: they cannot be made.
    """
    remove_tree(stage)
    for name in _STAGE_FOLDERS:
        (stage / name).mkdir(parents=True)


def judged(changes: Changes) -> tuple[str, ...]:
    """Differences that can matter: not folders' times, nor byte code that an import left."""
    return tuple(
        path
        for path in changes.all()
        if not (path in changes.added and "__pycache__" in Path(path).parts)
    )
