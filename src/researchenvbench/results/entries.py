"""One attempt as a table shows it: its record and where that lies, or why there is none.

Finding the attempts of a run on disk is the command line's business; rates, table and page
all work on a list of these.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import PurePath
from typing import TYPE_CHECKING

from .. import __version__
from ..attempt import AttemptStatus

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence
    from pathlib import Path

    from ..attempt import LevelResult, Record


@dataclass(frozen=True)
class Entry:
    """An attempt that has a record, or `problem`: why it has none."""

    task: str
    attempt: int = 1
    record: Record | None = None
    folder: Path | None = None  #: against which a record's log paths are relative
    problem: str = ""

    @property
    def judged(self) -> bool:
        """It has verdicts: there is a record, and the attempt is not void."""
        return self.record is not None and self.record.status is not AttemptStatus.VOID

    @property
    def disqualified(self) -> bool:
        """Its results are recorded and do not count."""
        return self.record is not None and self.record.status is AttemptStatus.DISQUALIFIED

    @property
    def older(self) -> bool:
        """It has results that an older or another version made than the one that shows them."""
        record = self.record
        return record is not None and (record.stale or record.reb_version != __version__)

    def log(self, result: LevelResult) -> Path | None:
        """Where the log of one of its levels is; only ever below the attempt's folder."""
        if self.folder is None or not result.log or ".." in PurePath(result.log).parts:
            return None
        path = self.folder / result.log
        return path if path.is_relative_to(self.folder) else None


def entry_of(record: Record, folder: Path | None = None) -> Entry:
    """The entry of a record whose logs lie in `folder`."""
    return Entry(record.task, record.attempt, record, folder)


def labels(entries: Sequence[Entry]) -> dict[int, str]:
    """What each entry, by its place, is called: the task, with a number where it repeats."""
    repeated = _repeated(entry.task for entry in entries)
    return {
        place: f"{entry.task} #{entry.attempt}" if entry.task in repeated else entry.task
        for place, entry in enumerate(entries)
    }


def _repeated(names: Iterable[str]) -> set[str]:
    seen: set[str] = set()
    again: set[str] = set()
    for name in names:
        (again if name in seen else seen).add(name)
    return again
