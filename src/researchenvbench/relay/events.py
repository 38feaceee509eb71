"""Server-sent events, read as they come in pieces (WHATWG HTML, "Server-sent events")."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator

#: Of one event. What is longer is no event of a model, and is passed over.
_LIMIT_BYTES = 64 << 20


@dataclass(frozen=True)
class Event:
    """One event; `name` is empty where the stream gives none."""

    name: str
    data: bytes


class EventReader:
    """Takes pieces of a stream, cut anywhere, and gives the events that are whole.

    Events that begin with one of `passed_over` are not given: most of a stream are such, and
    what is not looked at costs nothing.
    """

    def __init__(self, passed_over: tuple[bytes, ...] = ()) -> None:
        self._passed_over = passed_over
        self._pieces: list[bytes] = []  # of the event that has not ended yet
        self._held_bytes = 0
        self._return_before = False  # the last piece ended in a carriage return
        self._at_start = True

    def feed(self, piece: bytes) -> Iterator[Event]:
        """The events that end within `piece`."""
        if self._return_before and piece:
            # A line break of two characters, with the pieces cut between them.
            piece = piece.removeprefix(b"\n")
            self._return_before = False
        if b"\r" in piece:
            self._return_before = piece.endswith(b"\r")
            piece = piece.replace(b"\r\n", b"\n").replace(b"\r", b"\n")
        if b"\n" not in piece:
            self._hold(piece)
            return
        whole = b"".join((*self._pieces, piece))
        self._pieces, self._held_bytes = [], 0
        if self._at_start:
            whole = whole.removeprefix(b"\xef\xbb\xbf")
            self._at_start = False
        *blocks, rest = whole.split(b"\n\n")
        self._hold(rest)
        for block in blocks:
            if block.startswith(self._passed_over):
                continue
            event = _event(block)
            if event is not None:
                yield event

    def _hold(self, part: bytes) -> None:
        self._held_bytes += len(part)
        if part and self._held_bytes <= _LIMIT_BYTES:
            self._pieces.append(part)


def _event(block: bytes) -> Event | None:
    """The event of the lines between two empty ones; null where they have no data."""
    name, data = "", []
    for line in block.split(b"\n"):
        field, _, value = line.partition(b":")  # a comment is a field without a name
        value = value.removeprefix(b" ")
        if field == b"data":
            data.append(value)
        elif field == b"event":
            name = value.decode(errors="replace")
    return Event(name, b"\n".join(data)) if data else None
