"""Where things are kept between runs, and whether there is room."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

_FULL_DISK_BYTES = 64 * 1024**2


def default_cache() -> Path:
    """Where sources, tools and downloads are kept between runs (`REB_CACHE`, else XDG's)."""
    if chosen := os.environ.get("REB_CACHE"):
        return Path(chosen).absolute()
    base = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    return Path(base).absolute() / "researchenvbench"


def source_mirror() -> Path | None:
    """The user's folder with mirrors of sources (`REB_SOURCE_MIRROR`); None where none is named."""
    chosen = os.environ.get("REB_SOURCE_MIRROR")
    return Path(chosen).absolute() if chosen else None


def disk_is_full(folder: Path) -> bool:
    """Whether so little room is left on the folder's disk that installs and products fail."""
    return shutil.disk_usage(folder).free < _FULL_DISK_BYTES
