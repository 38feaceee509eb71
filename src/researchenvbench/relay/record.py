"""What is kept of the calls: a line each, and the bodies of requests and answers.

    calls.jsonl              one `Call` a line, written as each ends
    NNNN.request.json.gz     what was asked
    NNNN.answer.gz           what came back, as far as it came
    token                    what the agent shows to the relay; for the owner's eyes

Bodies are compressed in a thread of their own, so that no stream waits for it. Neither the key
nor the token is in any of the others.
"""

from __future__ import annotations

import gzip
import queue
import threading
from typing import TYPE_CHECKING

from pydantic import ValidationError

from ..errors import RecordError
from ..model_use import Call, Tokens

if TYPE_CHECKING:
    from pathlib import Path

    from .redaction import Redactor

CALLS = "calls.jsonl"
_LOST = "-lost-"
#: Fast, and half as good as the best on this text.
_LEVEL = 3
#: Refused calls are told up to this number; a program that asks forever fills no disk.
_REFUSED_LINES = 200


def read_calls(path: Path) -> list[Call]:
    """The calls of a record; a last line that was not written whole is left out.

    Raises:
        RecordError: it cannot be read, or another line is no call.
    """
    try:
        text = path.read_bytes()
    except FileNotFoundError:
        return []
    except OSError as error:
        raise RecordError(f"{path}: cannot be read: {error.strerror}") from error
    calls = []
    for number, line in enumerate(text.split(b"\n")[:-1], start=1):
        try:
            calls.append(Call.model_validate_json(line))
        except ValidationError as error:
            raise RecordError(
                f"{path}: line {number} is no call: {error.errors()[0]['msg']}",
                advice="it was damaged or written by another version; move the folder away",
            ) from error
    return calls


def move_lost(folder: Path) -> Path | None:
    """Put the calls of a build that was lost aside; where they are now, if there were any.

    Its token goes: the build that follows gets another one.
    """
    if not folder.is_dir():
        return None
    folder.joinpath("token").unlink(missing_ok=True)
    number = 1
    while (aside := folder.with_name(f"{folder.name}{_LOST}{number}")).exists():
        number += 1
    folder.rename(aside)
    return aside


def lost_calls(folder: Path) -> list[Call]:
    """The calls of builds that were lost, beside the record in `folder`."""
    places = sorted(folder.parent.glob(f"{folder.name}{_LOST}*/{CALLS}"))
    return [call for place in places for call in read_calls(place)]


def sum_of(calls: list[Call]) -> tuple[Tokens, float | None]:
    """Tokens and dollars of calls; the latter null where one has tokens and no price."""
    tokens, usd = [0] * 5, 0.0
    known = True
    for call in calls:
        if call.tokens is None:
            continue
        told = call.tokens
        for place, count in enumerate(
            (told.input, told.cached, told.cache_write, told.output, told.reasoning)
        ):
            tokens[place] += count
        known = known and call.cost_usd is not None
        usd += call.cost_usd or 0.0
    names = ("input", "cached", "cache_write", "output", "reasoning")
    return Tokens(**dict(zip(names, tokens, strict=True))), usd if known else None


class Record:
    """The folder of one build's calls; many threads may read what is in memory."""

    def __init__(self, folder: Path, redactor: Redactor) -> None:
        """Open it, and count on from the calls that are there.

        Raises:
            RecordError: the folder cannot be made, or what lies there cannot be read.
        """
        self._folder = folder
        self._path = folder / CALLS
        self._redactor = redactor
        self._lock = threading.Lock()
        try:
            folder.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise RecordError(f"{folder}: cannot be made: {error.strerror}") from error
        self._calls = read_calls(self._path)
        self._drop_torn_line()
        self._number = max([call.number for call in self._calls] + self._numbers_of_files())
        self._refused = 0
        self._keeper: _Keeper | None = None
        self.trouble = ""  #: why the record is not whole, such as a full disk

    def _drop_torn_line(self) -> None:
        if self._path.exists():
            text = self._path.read_bytes()
            if text and not text.endswith(b"\n"):
                with self._path.open("r+b") as stream:
                    stream.truncate(text.rfind(b"\n") + 1)

    def _numbers_of_files(self) -> list[int]:
        names = (path.name.partition(".")[0] for path in self._folder.glob("*.gz"))
        return [0] + [int(name) for name in names if name.isdecimal()]

    @property
    def calls(self) -> list[Call]:
        """Those that have ended, in that order."""
        with self._lock:
            return list(self._calls)

    def next_number(self) -> int:
        """The number of a call that begins."""
        with self._lock:
            self._number += 1
            return self._number

    def add(self, call: Call) -> None:
        """A call has ended."""
        told = call.model_dump_json().encode()
        line = self._redactor.clean(told)
        if line != told:
            call = Call.model_validate_json(line)
        with self._lock:
            if call.end == "refused":
                self._refused += 1
                if self._refused > _REFUSED_LINES:
                    return
            self._calls.append(call)
            try:
                with self._path.open("ab") as stream:
                    stream.write(line + b"\n")
            except OSError as error:
                self.note(f"{self._path}: {error.strerror}")

    def note(self, trouble: str) -> None:
        """Something of the record could not be written."""
        clean = self._redactor.clean(trouble.encode()).decode(errors="replace")
        self.trouble = self.trouble or f"the record of calls is not whole: {clean}"

    def keep(self, name: str) -> Kept:
        """A file that takes a body in pieces."""
        if self._keeper is None:
            self._keeper = _Keeper()
        return Kept(self, self._keeper, self._folder / f"{name}.gz", self._redactor)

    def close(self) -> None:
        """Wait until all bodies are written."""
        if self._keeper is not None:
            self._keeper.close()
            self._keeper = None


class Kept:
    """One file; it is written by the keeper's thread, in the order of the calls here."""

    def __init__(self, record: Record, keeper: _Keeper, path: Path, redactor: Redactor) -> None:
        self._record = record
        self._keeper = keeper
        self._path = path
        self._redacted = redactor.stream()
        self._stream: gzip.GzipFile | None = None
        self._failed = False

    def write(self, piece: bytes) -> None:
        """Take a piece; returns at once."""
        self._keeper.put(self, piece)

    def close(self) -> None:
        """There is no more."""
        self._keeper.put(self, None)

    @property
    def behind_bytes(self) -> int:
        """What the keeper has not written yet, of all files."""
        return self._keeper.behind_bytes

    def work(self, piece: bytes | None) -> None:
        """Write; called by the keeper's thread alone."""
        if self._failed:
            return
        try:
            if self._stream is None:
                self._stream = gzip.open(self._path, "wb", compresslevel=_LEVEL)  # noqa: SIM115
            if piece is None:
                self._stream.write(self._redacted.end())
                self._stream.close()
            else:
                self._stream.write(self._redacted.feed(piece))
        except Exception as error:  # noqa: BLE001  # streams wait for this thread: it goes on
            self._failed = True
            said = error.strerror if isinstance(error, OSError) else repr(error)
            self._record.note(f"{self._path}: {said}")


class _Keeper:
    """A thread that writes what it is given."""

    def __init__(self) -> None:
        self._queue: queue.SimpleQueue[tuple[Kept, bytes | None] | None] = queue.SimpleQueue()
        self._lock = threading.Lock()
        self.behind_bytes = 0
        self._thread = threading.Thread(target=self._work, name="relay-record", daemon=True)
        self._thread.start()

    def put(self, kept: Kept, piece: bytes | None) -> None:
        with self._lock:
            self.behind_bytes += len(piece or b"")
        self._queue.put((kept, piece))

    def close(self) -> None:
        self._queue.put(None)
        self._thread.join()

    def _work(self) -> None:
        while (item := self._queue.get()) is not None:
            kept, piece = item
            try:
                kept.work(piece)
            finally:
                with self._lock:
                    self.behind_bytes -= len(piece or b"")
