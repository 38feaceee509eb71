"""The guard that stops a run before the disk is full."""

from __future__ import annotations

import shutil
from dataclasses import dataclass
from typing import TYPE_CHECKING

from ..sandbox.engines.finding import find_engine
from ..sandbox.engines.storage import storage_of

if TYPE_CHECKING:
    from pathlib import Path


@dataclass(frozen=True)
class RoomGuard:
    """Whether there is room for one more build."""

    place: Path | None  #: where environments are kept; None: not on this host
    floor_bytes: int

    @classmethod
    def of(cls, sandbox: str, run: Path, floor_bytes: int) -> RoomGuard:
        """For environments of that sandbox in a run.

        Raises:
            HostError: the engine cannot be used.
        """
        place = run if sandbox == "local" else storage_of(find_engine(sandbox))
        return cls(place, floor_bytes)

    def problem(self) -> str:
        """Why no further build should begin, with advice; empty where one may."""
        if self.place is None or self.floor_bytes == 0:
            return ""
        free_bytes = shutil.disk_usage(self.place).free
        if free_bytes >= self.floor_bytes:
            return ""
        return (
            f"not begun: {self.place} has {free_bytes / 2**30:.1f} GiB free, less than "
            f"{self.floor_bytes / 2**30:.1f} GiB. What is done is kept: make room (reb env prune, "
            "or --keep none from the start), then the same command goes on; --min-free SIZE "
            "sets another floor"
        )
