"""What `reb run` shows while it works, on the error output: live, as plain lines, or nothing.

In a terminal every running attempt has two lines that change in place, and a finished one
leaves a line with its verdicts. Elsewhere there is a line when an attempt starts and ends,
and one when what it is doing changes, every few seconds at most. Attempts say what they are
doing in their `events.jsonl`; only the ends of that file and of logs are read.
"""

from __future__ import annotations

import json
import os
import sys
import threading
import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Protocol, Self

import click

from ..errors import RecordError
from ..results.wording import clean, duration, short_verdict, style

if TYPE_CHECKING:
    from types import TracebackType

    from rich.console import Console, ConsoleOptions, RenderResult

    from ..attempt import Record
    from ..run.plan import PlannedAttempt

#: At most so often is a change of one attempt a line.
PLAIN_INTERVAL_S = 5.0
_POLL_S = 0.5
_LIVE_PER_S = 4
_TAIL_BYTES = 8192


class RunWatcher(Protocol):
    """A pool's watcher, as a context: what it put on the screen is put right at the end."""

    problems: dict[str, str]  #: attempt's name to why it has no record

    def started(self, attempt: PlannedAttempt) -> None:
        """Work on the attempt begins."""
        ...

    def ended(self, attempt: PlannedAttempt, problem: str) -> None:
        """It ended."""
        ...

    def __enter__(self) -> Self: ...

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None: ...


def make_watcher(*, quiet: bool, json: bool) -> RunWatcher:
    """The watcher for this error output.

    With `json` nothing is written where it could mix with the answer, which is wherever
    the error output is no terminal.
    """
    live = sys.stderr.isatty() and os.environ.get("TERM", "dumb") not in ("", "dumb")
    if quiet or (json and not live):
        return QuietWatcher()
    return LiveWatcher() if live else PlainWatcher()


# --- what an attempt is doing ----------------------------------------------------------


@dataclass
class Activity:
    """Follows one attempt by the ends of its files; cheap enough to ask several times a second."""

    name: str
    folder: Path
    started: float = field(default_factory=time.monotonic)
    doing: str = "starting"
    line: str = ""  #: the newest line of its log
    _events: tuple[int, int] = (-1, -1)
    _named_log: Path | None = None
    _log: tuple[str, int, int] = ("", -1, -1)

    @property
    def elapsed_s(self) -> float:
        """Since it was started."""
        return time.monotonic() - self.started

    def look(self) -> None:
        """Read what is new; files that are not there yet, or no more, change nothing."""
        events = self.folder / "events.jsonl"
        state = _state(events)
        if state is not None and state != self._events:
            self._events = state
            self._read_event(_tail(events))
        log = self._named_log or self._newest_log()
        state = _state(log) if log else None
        if log is None or state is None or (str(log), *state) == self._log:
            return
        self._log = (str(log), *state)
        lines = _tail(log).replace("\r", "\n").splitlines()
        self.line = next((shown for text in reversed(lines) if (shown := clean(text))), "")

    def _read_event(self, text: str) -> None:
        for line in reversed(text.splitlines()):
            try:
                event = json.loads(line)
                doing, log = event["doing"], event.get("log")
            except (ValueError, KeyError, TypeError, AttributeError):
                continue  # half written, or cut at the start of what was read
            if doing != self.doing:
                self.line = ""
            self.doing = clean(doing)
            self._named_log = Path(log) if isinstance(log, str) else None
            return

    def _newest_log(self) -> Path | None:
        """The log that was written to last, where the event names none."""
        try:
            with os.scandir(self.folder / "logs") as entries:
                logs = [(entry.stat().st_mtime_ns, entry.path) for entry in entries]
        except OSError:
            return None
        return Path(max(logs)[1]) if logs else None


def _state(path: Path) -> tuple[int, int] | None:
    try:
        status = path.stat()
    except OSError:
        return None
    return status.st_size, status.st_mtime_ns


def _tail(path: Path) -> str:
    try:
        with path.open("rb") as stream:
            end = stream.seek(0, os.SEEK_END)
            stream.seek(max(0, end - _TAIL_BYTES))
            return stream.read(_TAIL_BYTES).decode(errors="replace")
    except OSError:
        return ""


def _record(attempt: PlannedAttempt) -> tuple[Record | None, str]:
    """The record that an attempt left, or why it cannot be read."""
    try:
        record = attempt.folder.load_record()
    except RecordError as error:
        return None, str(error.args[0])
    return record, "" if record else "it left no record"


# --- the watchers ----------------------------------------------------------------------


class QuietWatcher:
    """Shows nothing and keeps the problems."""

    def __init__(self) -> None:
        self.problems: dict[str, str] = {}

    def started(self, attempt: PlannedAttempt) -> None:
        """Nothing to show."""

    def ended(self, attempt: PlannedAttempt, problem: str) -> None:
        """Keep the problem."""
        if problem:
            self.problems[attempt.folder.name] = problem

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        return None


class _Following(QuietWatcher):
    """What the two that show something share: the running attempts."""

    def __init__(self) -> None:
        super().__init__()
        self._running: dict[str, Activity] = {}
        self._lock = threading.Lock()

    def started(self, attempt: PlannedAttempt) -> None:
        """Follow the attempt."""
        name = attempt.folder.name
        with self._lock:
            self._running[name] = Activity(name, attempt.folder.path)

    def ended(self, attempt: PlannedAttempt, problem: str) -> None:
        """Show how it ended."""
        super().ended(attempt, problem)
        with self._lock:
            activity = self._running.pop(attempt.folder.name, None)
        seconds = activity.elapsed_s if activity else 0.0
        record, why = _record(attempt)
        self._show_end(attempt.folder.name, None if problem else record, problem or why, seconds)

    def _show_end(self, name: str, record: Record | None, problem: str, seconds: float) -> None:
        raise NotImplementedError

    def _activities(self) -> list[Activity]:
        with self._lock:
            return list(self._running.values())


class PlainWatcher(_Following):
    """Lines, for a log file or a terminal that cannot do more."""

    def __init__(self, interval_s: float = PLAIN_INTERVAL_S) -> None:
        super().__init__()
        self._interval_s = interval_s
        self._told: dict[str, tuple[float, str]] = {}
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._watch, name="progress", daemon=True)
        self._writing = threading.Lock()
        self._deaf = False

    def started(self, attempt: PlannedAttempt) -> None:
        """Say so, and what there is to do."""
        name = attempt.folder.name
        self._told[name] = (time.monotonic() - self._interval_s, "starting")
        super().started(attempt)
        self._say(f"{name}: {attempt.why or 'starting'}")

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._stop.set()
        self._thread.join()

    def _watch(self) -> None:
        while not self._stop.wait(min(_POLL_S, self._interval_s)):
            for activity in self._activities():
                told_at, told = self._told[activity.name]
                if time.monotonic() - told_at < self._interval_s:
                    continue
                activity.look()
                if activity.doing != told:
                    self._told[activity.name] = (time.monotonic(), activity.doing)
                    elapsed = duration(activity.elapsed_s)
                    self._say(f"{activity.name}: {_shortened(activity.doing)} ({elapsed})")

    def _show_end(self, name: str, record: Record | None, problem: str, seconds: float) -> None:
        words = _verdict_words(record) if record else [(f"no record: {problem}", "")]
        ended = f"{name}: {'  '.join(text for text, _ in words)}"
        self._say(f"{clean(ended, 1000)} ({duration(seconds)})")

    def _say(self, line: str) -> None:
        with self._writing:
            if self._deaf:
                return
            try:
                click.echo(line, err=True)
            except BrokenPipeError:
                self._deaf = True  # whoever read it has gone; the run goes on


class LiveWatcher(_Following):
    """Lines that change in place."""

    def __init__(self, console: Console | None = None) -> None:
        from rich.console import Console
        from rich.live import Live

        super().__init__()
        self._console = console or Console(stderr=True)
        self._live = Live(
            get_renderable=lambda: self,
            console=self._console,
            refresh_per_second=_LIVE_PER_S,
            transient=True,
            redirect_stdout=False,  # what is printed there is the answer
            vertical_overflow="ellipsis",
        )

    def __enter__(self) -> Self:
        self._live.start(refresh=True)
        return self

    def __exit__(self, *_: object) -> None:
        self._live.stop()

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        """Two lines an attempt: what it is doing, and the newest line of its log."""
        from rich.text import Text

        for activity in self._activities():
            activity.look()
            elapsed = duration(float(int(activity.elapsed_s)))
            # On a narrow terminal the end of the line is what can be missed.
            line = Text(f"{elapsed:>8}  ", "dim", no_wrap=True, overflow="ellipsis")
            line.append(activity.name, "bold not dim").append(f"  {activity.doing}", "not dim")
            yield line
            yield Text(f"{'':8}  {activity.line}", "dim", no_wrap=True, overflow="ellipsis")

    def _show_end(self, name: str, record: Record | None, problem: str, seconds: float) -> None:
        from rich.text import Text

        line = Text(f"{duration(seconds):>8}  ", "dim")
        line.append(name, "bold not dim")
        if record is None:
            line.append(f"  no record: {clean(problem)}", "bold red not dim")
        else:
            for text, colour in _verdict_words(record):
                line.append("  ").append(text, f"{colour} not dim" if colour != "dim" else colour)
        self._console.print(line, highlight=False)


def _verdict_words(record: Record) -> list[tuple[str, str]]:
    """Verdicts by level, with their colours; the whole attempt's status first, if not good."""
    from ..attempt import AttemptStatus

    if record.status is AttemptStatus.VOID:
        why = record.build.reason if record.build else ""
        return [(f"void: {clean(why)}", "bold red")]
    words = [
        (f"{level} {short_verdict(result)}", style(result))
        for level, result in sorted(record.results.items())
    ]
    if record.status is not AttemptStatus.OK:
        words.insert(0, (record.status.replace("_", " "), "bold red"))
    return words


def _shortened(doing: str, limit: int = 200) -> str:
    """What is being done, for a line that no terminal folds; what is cut shows it."""
    return doing if len(doing) <= limit else f"{doing[: limit - 1]}…"
