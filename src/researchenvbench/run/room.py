"""The guard that stops a run before the disk is full."""

from __future__ import annotations

import shutil
from collections.abc import Mapping  # noqa: TC003  # a field of a dataclass
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from ..sandbox.engines.finding import find_engine
from ..sandbox.engines.storage import storage_of

if TYPE_CHECKING:
    from collections.abc import Collection
    from pathlib import Path

    from .estimate import Estimate


@dataclass(frozen=True)
class RoomGuard:
    """Whether there is room for one more build."""

    place: Path | None  #: where environments are kept; None: not on this host
    floor_bytes: int
    #: What the environment of each attempt that is to be built takes, where that is known.
    sizes: Mapping[str, int] = field(default_factory=dict)

    @classmethod
    def of(cls, sandbox: str, run: Path, floor_bytes: int) -> RoomGuard:
        """For environments of that sandbox in a run, which need not be there yet.

        Raises:
            HostError: the engine cannot be used.
        """
        place = run if sandbox == "local" else storage_of(find_engine(sandbox))
        return cls(place, floor_bytes)

    def expecting(self, found: Estimate) -> RoomGuard:
        """The guard, with what the environments of a run are known to take."""
        sizes = {cost.attempt.folder.name: cost.environment.known for cost in found.to_do}
        return replace(self, sizes=sizes)

    def free_bytes(self) -> int | None:
        """Room where environments are kept; None where that is not on this host."""
        if self.place is None:
            return None
        there = next(path for path in (self.place, *self.place.parents) if path.exists())
        return shutil.disk_usage(there).free

    def problem(self, attempt: str = "", beside: Collection[str] = ()) -> str:
        """Why no further build should begin, with advice; empty where one may.

        Args:
            attempt: The name of the folder of the one that would begin.
            beside: Those under way. They count whole, whatever they have taken already.
        """
        free_bytes = self.free_bytes()
        if free_bytes is None or self.floor_bytes == 0:
            return ""
        needed_bytes = sum(self.sizes.get(name, 0) for name in (attempt, *beside))
        if free_bytes >= max(self.floor_bytes, needed_bytes):
            return ""
        floor = f"{self.floor_bytes / 2**30:.1f} GiB"
        if needed_bytes > self.floor_bytes:
            floor = f"the {needed_bytes / 2**30:.1f} GiB that the ledger says it needs"
        return (
            f"not begun: {self.place} has {free_bytes / 2**30:.1f} GiB free, less than {floor}. "
            "What is done is kept: make room (reb env prune, or --keep none from the start), "
            "then the same command goes on; --min-free SIZE sets another floor"
        )
