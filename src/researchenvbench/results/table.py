"""The results of a run, and of several side by side, as a table in a terminal.

Good in 80 columns, without colour, and for somebody who sees it for the first time. What is
built here is handed to a rich console; nothing is printed here.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

from rich import box
from rich.console import Group
from rich.measure import Measurement
from rich.table import Table
from rich.text import Text

from ..attempt import Level
from . import notes
from .entries import labels
from .figures import Figure, figures, tasks_of
from .layout import Hanging, path_line, whole
from .rates import summarise
from .wording import (
    LETTERS,
    LONGEST_LABEL,
    MARKS,
    NOT_MEASURED,
    QUESTIONS,
    clean,
    duration,
    install_line,
    letters,
    marks,
    plural,
    short_verdict,
    size,
    style,
)

if TYPE_CHECKING:
    from collections.abc import Sequence

    from rich.console import Console, ConsoleOptions, RenderableType, RenderResult

    from .entries import Entry
    from .rates import Scope, Summary

_UNKNOWN_WIDTH = 10_000
_TASK_WIDTH = 14


def run_view(
    entries: Sequence[Entry], *, suite: str = "", agent: str = "", scope: Scope | None = None
) -> RenderableType:
    """The whole of one run: table, what did not pass and why, rates, and a legend.

    `scope` says which tasks of the suite were asked for. Print it with `crop=False`, so that
    paths stay whole.
    """
    if not entries:
        return Text("no attempt was begun in this run")
    parts: list[RenderableType] = [_Fitting(entries), *_notes(entries)]
    for summary in summarise(entries, suite=suite, agent=agent, scope=scope):
        parts += [Text(""), *_summary(summary)]
    return Group(*parts, Text(""), *_legend(entries))


class Run(NamedTuple):
    """One run of several that are compared."""

    name: str
    entries: Sequence[Entry]
    suite: str = ""  #: of attempts without a record
    agent: str = ""
    scope: Scope | None = None


def comparison_view(runs: Sequence[Run]) -> RenderableType:
    """Several runs side by side: verdicts by task, then the figures."""
    headers = [clean(run.name, 60) for run in runs]
    verdicts = _plain_table("task", *headers)
    cells: dict[str, list[str]] = {}
    rows: dict[str, list[list[str]]] = {}
    for column, run in enumerate(runs):
        for place, name in labels(run.entries).items():
            cells.setdefault(name, ["-"] * len(runs))[column] = _letters_cell(run.entries[place])
        for summary in summarise(run.entries, suite=run.suite, agent=run.agent, scope=run.scope):
            for figure in (Figure("rates are over", tasks_of(summary)), *figures(summary)):
                beside = f" ({figure.beside})" if figure.beside else ""
                row = rows.setdefault(figure.name, [[] for _ in runs])
                row[column].append(f"{figure.value}{beside}")
    for name, words in sorted(cells.items()):
        verdicts.add_row(Text(clean(name, 60)), *map(Text, words))
    table = _plain_table("", *headers)
    for name, values in rows.items():
        table.add_row(Text(name), *(Text("\n".join(value) or "-") for value in values))
    legend = Text(f"letters: C0 to C5 in order; {_letters_legend()}", "dim")
    return Group(verdicts, Text(""), table, Text(""), legend)


def _letters_legend() -> str:
    words = [f"{letter} {verdict.replace('_', ' ')}" for verdict, letter in LETTERS.items()]
    return ", ".join([*words, f"{NOT_MEASURED} not measured"])


def _letters_cell(entry: Entry) -> str:
    if entry.record is None:
        return "no record"
    if not entry.judged:
        return "void"
    mark = " disqualified" if entry.disqualified else ""
    return letters(entry.record.results) + mark


# --- the table -------------------------------------------------------------------------


@dataclass(frozen=True)
class _Fitting:
    """The table in the fullest form that the terminal is wide enough for."""

    entries: Sequence[Entry]

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        """Choose among the forms."""
        longest = max(len(name) for name in labels(self.entries).values())
        spare = max(0, longest - _TASK_WIDTH)  # what a name can go on with in a second line
        for named, full in ((True, True), (False, True), (False, False)):
            table = _table(self.entries, named=named, full=full)
            wanted = Measurement.get(console, options.update(max_width=_UNKNOWN_WIDTH), table)
            if wanted.maximum - spare <= options.max_width:
                yield table
                return
        yield _narrow_table(self.entries)


def _plain_table(*headers: str) -> Table:
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False, show_edge=False, padding=(0, 1, 0, 0))
    for place, header in enumerate(headers):
        table.add_column(Text(header), overflow="fold", ratio=None if place else 0)
    return table


def _table(entries: Sequence[Entry], *, named: bool, full: bool) -> Table:
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False, show_edge=False, padding=(0, 1, 0, 0))
    table.add_column("task", overflow="fold")
    for level in Level:
        table.add_column(f"{level}\n{level.label}" if named else str(level), no_wrap=True)
    table.add_column("build", justify="right", no_wrap=True)
    table.add_column("prefix", justify="right", no_wrap=True)
    statuses = {trouble.attempt: trouble.status for trouble in notes.troubles(entries)}
    for place, name in labels(entries).items():
        entry = entries[place]
        task = Text(clean(name, 80))
        if status := statuses.get(name):
            task.append(f"\n{status}", "bold red")
        if entry.older:
            task.append("\nolder results", "dim")
        table.add_row(task, *_cells(entry, full=full))
    return table


def _narrow_table(entries: Sequence[Entry]) -> Table:
    """For a terminal that has room for a letter a level."""
    table = _plain_table("task", "C0-C5")
    for place, name in labels(entries).items():
        table.add_row(Text(clean(name, 80)), Text(_letters_cell(entries[place])))
    return table


def _cells(entry: Entry, *, full: bool) -> list[Text]:
    record = entry.record
    cells = []
    for level in Level:
        result = record.results.get(level) if record and entry.judged else None
        word = short_verdict(result)
        if not full and result is not None and word.startswith("?"):
            word = f"?{marks(result)}"
        cells.append(Text(word, "dim" if entry.disqualified else style(result)))
    seconds = record.build.seconds if record and record.build else None
    cells.append(Text(duration(seconds)))
    cells.append(Text(size(record.sizes.prefix_bytes if record else None)))
    return cells


# --- what did not pass -----------------------------------------------------------------


def _notes(entries: Sequence[Entry]) -> list[RenderableType]:
    lines: list[RenderableType] = []
    for trouble in notes.troubles(entries):
        lines.append(_line(f"{trouble.attempt}: {trouble.status}: {trouble.reason}", "bold red"))
        for finding, more in notes.shortened(trouble.findings):
            where = f" in {finding.where}" if finding.where else ""
            why = f" ({finding.why})" if finding.why else ""
            lines.append(_line(f"{finding.what}{where}{why}", indent=2))
            if more:
                lines.append(_line(f"and {plural(more, 'more file')}; --json shows all", indent=2))
        if trouble.log is not None:
            lines.append(path_line("log: ", trouble.log, indent=2))
    for failure in notes.failures(entries):
        levels = ", ".join(failure.levels)
        lines.append(_line(f"{failure.attempt}: {levels} failed: {failure.reason}", "red"))
        if failure.advice:
            lines.append(_line(f"what to do: {failure.advice}", indent=2))
        lines += [path_line("log: ", log, indent=2) for log in failure.logs]
    for note in notes.inconclusive(entries):
        levels = ", ".join(note.levels)
        reason = f"{note.owner}: {note.reason}" if note.reason else str(note.owner)
        lines.append(_line(f"{levels}: inconclusive ({reason}) {note.where}", "yellow"))
        if note.advice:
            lines.append(_line(f"what to do: {note.advice}", indent=2))
    if command := install_line(notes.system_packages(entries)):
        lines.append(whole(f"system libraries that this host misses: {command}"))
    return [Text(""), *lines] if lines else []


def _line(text: str, colour: str = "", indent: int = 0) -> Hanging:
    return Hanging(Text(clean(text, 600), colour), indent)


# --- rates and legend ------------------------------------------------------------------


def _summary(summary: Summary) -> list[RenderableType]:
    of = f"{tasks_of(summary)}, {plural(summary.attempts, 'attempt')}"
    names = " by ".join(clean(name, 40) for name in (summary.suite, summary.agent) if name)
    lines: list[RenderableType] = [
        Text(f"{names}: {of}; passed/applicable" if names else f"{of}; passed/applicable", "bold")
    ]
    rows = figures(summary)
    widest = max(len(figure.name) for figure in rows)
    for figure in rows:
        line = Text(figure.value)
        if figure.beside:
            line.append(f"  {figure.beside}", "dim")
        lines.append(Hanging(line, widest + 2, hang=0, head=figure.name))
    return lines


def _legend(entries: Sequence[Entry]) -> list[RenderableType]:
    lines = [
        Text(f"{level} {level.label:<{LONGEST_LABEL}}  {question}", "dim")
        for level, question in QUESTIONS.items()
    ]
    results = [
        result
        for entry in entries
        if entry.record is not None
        for result in entry.record.results.values()
    ]
    if any(short_verdict(result).startswith("?") for result in results):
        lines.append(Text("?  inconclusive: this host or this task could not decide it", "dim"))
    used = {mark for result in results for mark in marks(result)}
    lines += [Text(f"{mark}  {meaning}", "dim") for mark, meaning in MARKS.items() if mark in used]
    return list(lines)
