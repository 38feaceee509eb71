"""Lines of files that nobody vouches for: decoded whatever they hold, shown short."""

from __future__ import annotations

_SHOWN = 160
#: What of a line is looked at: data in one line is no text, and patterns take their time.
_LOOKED_AT = 10_000


def decode(content: bytes) -> str:
    """The text of a file, with a sign in place of what is no UTF-8."""
    return content.decode("utf-8-sig", "replace")


def lines_of(text: str) -> list[tuple[int, str]]:
    """The lines, counted from 1."""
    return [(number, line[:_LOOKED_AT]) for number, line in enumerate(text.splitlines(), start=1)]


def excerpt(line: str) -> str:
    """A line without its indentation, cut to what a person reads of it."""
    short = " ".join(line.split())
    return short if len(short) <= _SHOWN else f"{short[: _SHOWN - 1]}…"
