"""How `reb run --dry-run` puts what a run would do, and what that would cost."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from ..results.wording import duration, plural, size

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from ..run.estimate import Bytes, Cost, Estimate
    from ..run.part import Part

_SCHEMA = 1
_HEADINGS = ("attempt", "by ledger", "by limits", "disk", "fetched", "to do")
#: What is not known of so many tasks is named; of more, the first.
_NAMED = 6


def plan_lines(folder: Path, part: Part, found: Estimate, free_bytes: int | None) -> Iterator[str]:
    """A line an attempt, and below what all of it comes to.

    Args:
        folder: Of the run.
        part: Which tasks of the suite were asked for.
        found: What it will cost.
        free_bytes: Room where environments are kept; None: that is not on this host.
    """
    rows = [_HEADINGS, *(_row(cost) for cost in found.costs)]
    widths = [max(len(row[place]) for row in rows) for place in range(len(_HEADINGS) - 1)]
    for row in rows:
        cells = [cell.ljust(width) for cell, width in zip(row, widths, strict=False)]
        yield "  ".join([*cells, row[-1]])
    yield f"{_counted(found, part)}. Run folder: {folder}"
    if found.to_do:
        yield from _costs(found, free_bytes)


def _row(cost: Cost) -> tuple[str, ...]:
    name = cost.attempt.folder.name
    if cost.attempt.done:
        return name, "-", "-", "-", "-", "done"
    return (
        name,
        "?" if cost.ledger_s is None else duration(cost.ledger_s),
        duration(cost.limit_s),
        _size(cost.disk),
        _size(cost.fetched),
        cost.attempt.why,
    )


def _counted(found: Estimate, part: Part) -> str:
    builds = sum(cost.attempt.builds for cost in found.to_do)
    parts = [plural(len(found.costs), "attempt"), f"{builds or 'none'} to build"]
    if len(part.tasks) < part.suite_tasks:
        tasks = plural(part.suite_tasks, "task")
        words = f": {part.words}" if part.words else ""
        parts.append(f"at {len(part.tasks)} of {tasks}{words}")
    return ", ".join(parts)


def _costs(found: Estimate, free_bytes: int | None) -> Iterator[str]:
    known, all_of_them = len(found.in_ledger), len(found.to_do)
    parts = []
    if known:
        of = "" if known == all_of_them else f" for {known} of {all_of_them}"
        parts.append(f"{duration(found.ledger_s)} by the ledger{of}, as gold took")
    parts.append(f"{duration(found.limit_s)} by the limits")
    parts.append("one at a time" if found.jobs == 1 else f"{found.jobs} at a time")
    yield f"time: {'; '.join(parts)}"
    busy = [cost.attempt.task.name for cost in found.in_ledger if cost.busy]
    if busy:
        yield (
            f"the ledger's seconds of {_named(busy)} are of a host that was busy with other "
            "things, and more than it takes"
        )
    kept = f"{_size(found.environments)} of environments"
    if found.keep == "none":
        kept += f", of which {_size(found.at_a_time)} at a time"
    free = "" if free_bytes is None else f"; {size(free_bytes)} are free"
    yield f"disk: {kept}; {_size(found.assets)} of assets{free}"
    yield f"fetched: {_size(found.packages)} of packages; {_size(found.fetched_assets)} of assets"
    yield from _not_known(found)
    if free_bytes is not None and found.peak_bytes > free_bytes:
        yield (
            "there is not room for all of it: --keep none removes each environment once it is "
            "judged, and builds wait at --min-free"
        )


def _not_known(found: Estimate) -> Iterator[str]:
    silent = [cost.attempt.task.name for cost in found.to_do if cost.ledger_s is None]
    if silent:
        yield (
            f"nothing is known of the time of {_named(silent)}: no proof that holds says what "
            "gold took on such a host"
        )
    for what, sizes in (
        ("environments", found.environments),
        ("packages", found.packages),
        ("assets on the disk", found.assets),
        ("assets to fetch", found.fetched_assets),
    ):
        if sizes.unknown:
            yield f"not known, and in no sum: {what}: {_named(sizes.unknown)}"


def _named(names: tuple[str, ...] | list[str]) -> str:
    unique = list(dict.fromkeys(names))
    more = f" and {len(unique) - _NAMED} more" if len(unique) > _NAMED else ""
    return ", ".join(unique[:_NAMED]) + more


def _size(sizes: Bytes) -> str:
    """`1.1 GB`, `1.1 GB + ?` where a part is not known, `?` where nothing is."""
    if not sizes.unknown:
        return size(sizes.known)
    return f"{size(sizes.known)} + ?" if sizes.known else "?"


def plan_as_json(folder: Path, part: Part, found: Estimate, free_bytes: int | None) -> str:
    """The same for programs; seconds and bytes, null where nothing is known."""
    known = len(found.in_ledger) == len(found.to_do)
    return json.dumps(
        {
            "schema": _SCHEMA,
            "run": str(folder),
            "part": part.model_dump(mode="json"),
            "jobs": found.jobs,
            "keep": found.keep,
            "free_bytes": free_bytes,
            "attempts": [_as_data(cost) for cost in found.costs],
            "total": {
                "seconds_by_ledger": round(found.ledger_s, 1),
                "seconds_by_ledger_of_all": known,
                "seconds_by_limits": round(found.limit_s, 1),
                "peak_bytes": found.peak_bytes,
                "environments": _bytes(found.environments),
                "assets": _bytes(found.assets),
                "fetched_packages": _bytes(found.packages),
                "fetched_assets": _bytes(found.fetched_assets),
            },
        },
        indent=1,
    )


def _as_data(cost: Cost) -> dict[str, Any]:
    return {
        "attempt": cost.attempt.folder.name,
        "task": cost.attempt.task.name,
        "done": cost.attempt.done,
        "to_do": cost.attempt.why,
        "seconds_by_ledger": None if cost.ledger_s is None else round(cost.ledger_s, 1),
        "seconds_by_limits": round(cost.limit_s, 1),
        "ledger_of_a_busy_host": cost.busy,
        "environment": _bytes(cost.environment),
        "assets": _bytes(cost.assets),
        "fetched_packages": _bytes(cost.packages),
        "fetched_assets": _bytes(cost.fetched_assets),
    }


def _bytes(sizes: Bytes) -> dict[str, Any]:
    return {"known_bytes": sizes.known, "unknown": list(sizes.unknown)}
