"""Searches text for a regular expression: a log line by line, or one piece of text.

A log may have tens of megabytes, invalid UTF-8, progress bars that return the carriage
instead of ending the line, and lines of any length. It is read in pieces; a carriage return
ends a line; colour codes are taken out; of a long line only the start is searched. A pattern
that takes for ever is ended by the time limit of the process in which this runs
(`contained`).
"""

from __future__ import annotations

import re
from collections import deque
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from .numbers import Limits, Numbers
from .wording import shorten

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from pathlib import Path

#: Characters of a line that are searched. Some harmless patterns, such as `.*loss`, take
#: time that grows with the square of a line's length.
LINE_LIMIT = 16_384
_PIECE_BYTES = 1 << 20
_TAIL_LINES = 5
#: Control sequences of terminals (ECMA-48): colours, cursor movements.
_CONTROL = re.compile(rb"\x1b(?:\[[0-?]*[ -/]*[@-~]|\][^\x07\x1b]*(?:\x07|\x1b\\))")
#: The line that `logfile` writes where it left something out.
_GAP = re.compile(r"\[… +(\d+) bytes of output left out here …\]")


@dataclass
class Search:
    """What a pattern matched in a log."""

    lines: int = 0
    matches: int = 0
    first_match: str = ""
    last_match: str = ""
    long_lines: int = 0  #: lines that were longer than what is searched
    left_out_bytes: int = 0  #: of the output, by the log's size limit
    faults: list[str] = field(default_factory=list)
    numbers: dict[str, str] = field(default_factory=dict)  #: of each group, in words
    tail: list[str] = field(default_factory=list)  #: the last lines that are not blank


def search_lines(path: Path, pattern: str, groups: Mapping[str, Limits]) -> Search:
    """Search a log; `groups` are the named groups that must be numbers within limits."""
    compiled = re.compile(pattern)
    result = Search()
    series = {name: Numbers() for name in groups}
    tail: deque[str] = deque(maxlen=_TAIL_LINES)
    for line, whole in lines_of(path):
        result.lines += 1
        result.long_lines += not whole
        if line and not line.isspace():
            tail.append(line)
        if line.startswith("[…") and (gap := _GAP.fullmatch(line)):
            result.left_out_bytes += int(gap[1])
            continue
        match = compiled.search(line)
        if match is None:
            continue
        result.matches += 1
        result.last_match = line
        result.first_match = result.first_match or line
        for name, numbers in series.items():
            if match[name] is not None:
                numbers.add_text(match[name])
    if result.matches:
        for name, limits in groups.items():
            result.faults += [f"group {name!r}: {fault}" for fault in series[name].faults(limits)]
            result.numbers[name] = series[name].summary()
    result.first_match = shorten(result.first_match, 160)
    result.last_match = shorten(result.last_match, 160)
    result.tail = [shorten(line, 160) for line in tail]
    return result


def lines_of(path: Path) -> Iterator[tuple[str, bool]]:
    """Each line, without its end, and whether it is there as a whole."""
    with path.open("rb") as stream:
        line = bytearray()
        whole = True
        pending = False  # a carriage return was the last byte of the piece before
        while piece := stream.read(_PIECE_BYTES):
            if pending and piece.startswith(b"\n"):
                piece = piece[1:]
            pending = piece.endswith(b"\r")
            parts = piece.replace(b"\r\n", b"\n").replace(b"\r", b"\n").split(b"\n")
            for part in parts[:-1]:
                whole = _extend(line, part) and whole
                yield _text(line), whole
                line.clear()
                whole = True
            whole = _extend(line, parts[-1]) and whole
        if line:
            yield _text(line), whole


def _extend(line: bytearray, part: bytes) -> bool:
    """Add to a line what fits; False if something did not."""
    # A character takes at most four bytes, and a colour code is no part of the limit.
    room = 4 * LINE_LIMIT - len(line)
    line += part[:room]
    return len(part) <= room


def _text(line: bytearray) -> str:
    raw = _CONTROL.sub(b"", line) if b"\x1b" in line else bytes(line)
    return raw.decode("utf-8", "replace")[:LINE_LIMIT]


def search_text(text: str, pattern: str) -> bool:
    """Whether the pattern is found in a text as a whole, its line ends included."""
    return re.search(pattern, text) is not None
