"""How far a download is, and whether there is room for the rest of it."""

from __future__ import annotations

import shutil
import time
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from ..errors import AssetError

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

_SAY_EVERY_S = 2.0


@dataclass
class Progress:
    """Says how far a download is, every few seconds."""

    say: Callable[[str], None]
    what: str
    total_bytes: int | None = None
    done_bytes: int = 0
    _counted: int = 0  #: of this process, for the rate
    _began: float = field(default_factory=time.monotonic)
    _said: float = field(default_factory=time.monotonic)

    def at(self, done_bytes: int) -> None:
        """So much is there already."""
        self.done_bytes = done_bytes

    def add(self, size_bytes: int) -> None:
        """So much more has come."""
        self.done_bytes += size_bytes
        self._counted += size_bytes
        now = time.monotonic()
        if now - self._said >= _SAY_EVERY_S:
            self._said = now
            self.say(f"{self.what}: {self.words()}")

    def words(self) -> str:
        """Bytes, of how many, and the rate."""
        rate = self._counted / max(time.monotonic() - self._began, 1e-3)
        of = f" of {self.total_bytes / 1e6:.1f}" if self.total_bytes else ""
        return f"{self.done_bytes / 1e6:.1f}{of} MB, {rate / 1e6:.1f} MB/s"


def check_room(folder: Path, needed_bytes: int) -> None:
    """See to it that there is room for so much more.

    Raises:
        AssetError: there is not.
    """
    free = shutil.disk_usage(folder).free
    if needed_bytes > free:
        raise AssetError(
            f"{needed_bytes / 1e6:.1f} MB are to come, and {folder} has {free / 1e6:.1f} MB free",
            advice="make room (reb assets remove --unused), or set REB_CACHE to a larger disk",
        )
