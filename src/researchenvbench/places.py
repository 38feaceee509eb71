"""Where things are kept between runs."""

from __future__ import annotations

import os
from pathlib import Path


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
