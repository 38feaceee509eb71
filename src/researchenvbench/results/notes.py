"""What did not pass, in as few lines as carry it: for the table and for the page.

Many attempts are inconclusive for one reason, and that is said once. A failure is one
attempt's own, so each has its line, with the cause, the advice and the log.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from ..attempt import AttemptStatus, FindingKind, Level, Owner, Verdict
from .entries import labels

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence
    from pathlib import Path

    from ..attempt import Finding, LevelResult, Record
    from .entries import Entry

_NAMED = 3
#: Kinds of which a work tree of another source has as many as it has files.
_OF_FILES = frozenset({FindingKind.TRACKED_FILE_CHANGED, FindingKind.GENERATED_FILE_CHANGED})


@dataclass(frozen=True)
class Inconclusive:
    """Levels that are inconclusive for one reason."""

    levels: tuple[Level, ...]
    owner: Owner
    reason: str
    advice: str
    where: str  #: such as `on all 4 tasks`


@dataclass(frozen=True)
class Failure:
    """Levels of one attempt that failed for one reason."""

    attempt: str
    levels: tuple[Level, ...]
    owner: Owner | None
    reason: str
    advice: str
    logs: tuple[Path, ...]


@dataclass(frozen=True)
class Trouble:
    """An attempt that does not count as it stands, and why."""

    attempt: str
    status: str  #: disqualified, void, no report, no record
    reason: str
    findings: tuple[Finding, ...] = ()
    log: Path | None = None  #: where more is said of it


def inconclusive(entries: Sequence[Entry]) -> list[Inconclusive]:
    """What could not be decided, grouped by owner and reason, levels in order."""
    names = labels(entries)
    applicable: dict[Level, set[str]] = {level: set() for level in Level}
    found: dict[tuple[Owner, str, str], dict[Level, set[str]]] = {}
    for place, level, result in _results(entries):
        if result.verdict is Verdict.NOT_APPLICABLE:
            continue
        applicable[level].add(names[place])
        if result.verdict is Verdict.INCONCLUSIVE:
            key = (result.owner or Owner.UNKNOWN, result.reason, result.advice)
            found.setdefault(key, {}).setdefault(level, set()).add(names[place])
    total = sum(entry.judged for entry in entries)
    order = list(names.values())
    notes = []
    for (owner, reason, advice), by_level in found.items():
        by_place: dict[str, list[Level]] = {}
        for level, places in sorted(by_level.items()):
            everywhere = len(places) > 1 and places == applicable[level]
            by_place.setdefault("" if everywhere else _named(places, order), []).append(level)
        for where, levels in by_place.items():
            smallest = min(len(by_level[level]) for level in levels)
            all_of_them = (
                f"on all {total} attempts" if smallest == total else "wherever the level applies"
            )
            note = Inconclusive(tuple(levels), owner, reason, advice, where or all_of_them)
            notes.append(note)
    return sorted(notes, key=lambda note: note.levels)


def failures(entries: Sequence[Entry]) -> list[Failure]:
    """What failed, in the order of the attempts."""
    names = labels(entries)
    grouped: dict[tuple[int, str, str], list[LevelResult]] = {}
    for place, _, result in _results(entries):
        if result.verdict is Verdict.FAILED:
            grouped.setdefault((place, result.reason, result.advice), []).append(result)
    return [
        Failure(
            attempt=names[place],
            levels=tuple(result.level for result in results),
            owner=results[0].owner,
            reason=reason,
            advice=advice,
            logs=_unique(entries[place].log(result) for result in results),
        )
        for (place, reason, advice), results in grouped.items()
    ]


def troubles(entries: Sequence[Entry]) -> list[Trouble]:
    """Attempts that are disqualified, void, or without report or record."""
    names = labels(entries)
    found = []
    for place, entry in enumerate(entries):
        record, name = entry.record, names[place]
        if record is None:
            found.append(Trouble(name, "no record", entry.problem or "it was not finished"))
        elif record.status is AttemptStatus.DISQUALIFIED:
            guilty = tuple(finding for finding in all_findings(record) if finding.disqualifies)
            found.append(
                Trouble(name, "disqualified", "results are recorded and do not count", guilty)
            )
        elif record.status is AttemptStatus.VOID:
            why = record.build.reason if record.build else ""
            found.append(Trouble(name, "void", why or "the build ended by a fault of the host"))
        elif record.status is AttemptStatus.NO_REPORT:
            found.append(_no_report(name, entry, record))
    return found


def _no_report(name: str, entry: Entry, record: Record) -> Trouble:
    """Where the build itself failed, that is why there is none."""
    build = record.build
    failed = build is not None and (build.outcome != "finished" or build.exit_code != 0)
    why = build.reason if build is not None and failed else ""
    why = why or (build.report_error if build is not None else None) or "none was written"
    log = entry.folder / "logs" / "build.log" if entry.folder is not None else None
    return Trouble(name, "no report", why, log=log if log is not None and log.is_file() else None)


def all_findings(record: Record) -> list[Finding]:
    """Findings about the environment and the work tree, then those of single levels."""
    return [*record.findings, *(f for r in record.results.values() for f in r.findings)]


def shortened(findings: Iterable[Finding]) -> Iterator[tuple[Finding, int]]:
    """Findings in their order, of many files only the first, and with the last how many more."""
    found = list(findings)
    kinds = [finding.kind for finding in found]
    seen: dict[str, int] = {}
    for finding in found:
        number = seen[finding.kind] = seen.get(finding.kind, 0) + 1
        if finding.kind not in _OF_FILES or number < _NAMED:
            yield finding, 0
        elif number == _NAMED:
            yield finding, kinds.count(finding.kind) - number


def system_packages(entries: Iterable[Entry]) -> list[str]:
    """All system packages that some attempt misses on this host."""
    return sorted(
        {
            package
            for entry in entries
            if entry.record is not None
            for result in entry.record.results.values()
            for package in result.system_packages
        }
    )


def _results(entries: Sequence[Entry]) -> list[tuple[int, Level, LevelResult]]:
    return [
        (place, level, entry.record.results[level])
        for place, entry in enumerate(entries)
        if entry.judged and entry.record is not None
        for level in Level
        if level in entry.record.results
    ]


def _named(places: set[str], order: list[str]) -> str:
    named = [name for name in order if name in places]
    more = f" and {len(named) - _NAMED} more" if len(named) > _NAMED else ""
    return f"on {', '.join(named[:_NAMED])}{more}"


def _unique(paths: Iterable[Path | None]) -> tuple[Path, ...]:
    return tuple(dict.fromkeys(path for path in paths if path is not None))
