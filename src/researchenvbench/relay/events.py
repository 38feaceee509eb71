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
    """Takes pieces of a stream, cut anywhere, and gives the events that are whole."""

    def __init__(self) -> None:
        self._pieces: list[bytes] = []  # of the line that has not ended yet
        self._held = 0
        self._return_before = False  # the last line ended in a carriage return
        self._name = ""
        self._data: list[bytes] = []
        self._data_bytes = 0
        self._first = True

    def feed(self, piece: bytes) -> Iterator[Event]:
        """The events that end within `piece`."""
        if self._return_before and piece:
            # A line break of two characters, with the pieces cut between them.
            piece = piece.removeprefix(b"\n")
            self._return_before = False
        if b"\r" in piece:
            self._return_before = piece.endswith(b"\r")
            piece = piece.replace(b"\r\n", b"\n").replace(b"\r", b"\n")
        head, break_, rest = piece.partition(b"\n")
        self._hold(head)
        if not break_:
            return
        whole = b"".join(self._pieces)
        self._pieces, self._held = [], 0
        if self._first:
            whole = whole.removeprefix(b"\xef\xbb\xbf")
            self._first = False
        lines = rest.split(b"\n")
        self._hold(lines.pop())
        for line in (whole, *lines):
            event = self._line(line)
            if event is not None:
                yield event

    def _hold(self, part: bytes) -> None:
        self._held += len(part)
        if part and self._held <= _LIMIT_BYTES:
            self._pieces.append(part)

    def _line(self, line: bytes) -> Event | None:
        if not line:
            event = Event(self._name, b"\n".join(self._data)) if self._data else None
            self._name, self._data, self._data_bytes = "", [], 0
            return event
        field, _, value = line.partition(b":")  # a comment is a field without a name
        value = value.removeprefix(b" ")
        if field == b"data":
            self._data_bytes += len(value)
            if self._data_bytes <= _LIMIT_BYTES:
                self._data.append(value)
        elif field == b"event":
            self._name = value.decode(errors="replace")
        return None
