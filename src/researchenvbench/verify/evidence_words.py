"""Says an evidence entry as a sentence, for tables, logs and records."""

from __future__ import annotations

from typing import TYPE_CHECKING, assert_never

from ..evidence import (
    ChangeEvidence,
    ExitEvidence,
    FileEvidence,
    HttpEvidence,
    OutputEvidence,
)
from .readers.wording import counted

if TYPE_CHECKING:
    from collections.abc import Mapping

    from ..evidence import Bounds, Evidence


def describe(entry: Evidence) -> str:
    """The entry as a sentence."""
    match entry:
        case ExitEvidence():
            return f"exit status {entry.code}"
        case OutputEvidence():
            return _output(entry)
        case HttpEvidence():
            body = f" with a body that matches {_quoted(entry.pattern)}" if entry.pattern else ""
            return f"{entry.method} {entry.url} answers {entry.status}{body}"
        case FileEvidence():
            return _file(entry)
        case ChangeEvidence():
            return (
                f"{', '.join(entry.arrays)} of this run's {entry.format} file {entry.pattern} "
                f"differ from those of {entry.since}"
            )
        case _:
            assert_never(entry)


def _output(entry: OutputEvidence) -> str:
    where = f"the service {entry.service}" if entry.service else "the command"
    lines = counted(entry.at_least, "line")
    text = f"{where} prints at least {lines} matching {_quoted(entry.pattern)}"
    return f"{text}, with {_numbers(entry.groups)}" if entry.groups else text


def _quoted(pattern: str) -> str:
    """The pattern as its file has it; only what would break the line is escaped."""
    shown = "".join(
        char if char.isprintable() else char.encode("unicode_escape").decode() for char in pattern
    )
    return f"'{shown}'"


def _file(entry: FileEvidence) -> str:
    kind = "" if entry.format == "any" else f"{entry.format} "
    text = f"this run makes at least {counted(entry.at_least, f'{kind}file')} {entry.pattern}"
    demands = []
    if entry.min_bytes > 1:
        demands.append(f"at least {entry.min_bytes} bytes")
    if entry.rows is not None:
        demands.append(f"at least {counted(entry.rows, 'row')}")
    if entry.columns:
        demands.append(f"the columns {', '.join(entry.columns)}")
    if entry.keys:
        demands.append(f"the keys {', '.join(entry.keys)}")
    if entry.numeric:
        demands.append(_numbers(entry.numeric))
    if entry.min_width is not None:
        demands.append(f"a width of at least {entry.min_width} pixels")
    if entry.min_height is not None:
        demands.append(f"a height of at least {entry.min_height} pixels")
    if entry.min_seconds is not None:
        demands.append(f"at least {entry.min_seconds:g} s")
    return f"{text}, with {', '.join(demands)}" if demands else text


def _numbers(bounds: Mapping[str, Bounds]) -> str:
    return ", ".join(f"{name} {_bounds(bound)}" for name, bound in bounds.items())


def _bounds(bounds: Bounds) -> str:
    words = ["finite" if bounds.finite else "a number"]
    if bounds.min is not None:
        words.append(f"at least {bounds.min:g}")
    if bounds.max is not None:
        words.append(f"at most {bounds.max:g}")
    if bounds.falling:
        words.append("falling")
    return " and ".join(words)
