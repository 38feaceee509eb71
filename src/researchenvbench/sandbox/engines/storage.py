"""Where an engine keeps images and containers, and whether there is room."""

from __future__ import annotations

import functools
import shutil
from pathlib import Path
from typing import TYPE_CHECKING

from ...errors import HostError

if TYPE_CHECKING:
    from .engine import Engine


@functools.cache
def storage_of(engine: Engine) -> Path | None:
    """Where the engine keeps images and containers; None where that is not on this host.

    Raises:
        SandboxError: the engine does not say.
        HostError: it does not answer.
    """
    place = Path(engine.ask("info", "--format", engine.dialect.storage))
    return place if place.is_dir() else None


def require_room(need_bytes: int, *folders: Path | None, what: str, advice: str) -> None:
    """See that there is room in each folder, also where two are of one file system.

    Args:
        need_bytes: For each.
        folders: Those that are None, or not on this host, are left out.
        what: What needs it, for the sentence.
        advice: How to make room.

    Raises:
        HostError: there is too little.
    """
    needed: dict[int, int] = {}
    for folder in folders:
        if folder is None or not folder.is_dir():
            continue
        device = folder.stat().st_dev
        needed[device] = needed.get(device, 0) + need_bytes
        free = shutil.disk_usage(folder).free
        if free < needed[device]:
            raise HostError(
                f"{folder} has {free / 1e9:.1f} GB free; "
                f"{what} needs {needed[device] / 1e9:.1f} GB",
                advice=advice,
            )
