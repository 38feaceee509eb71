"""The results of a run as one plain HTML file that needs nothing else.

Everything in a record that programs wrote is hostile input here: the template escapes all
of it, the page forbids scripts and anything from elsewhere, and links go only to files
below the run's folder.
"""

from __future__ import annotations

import os
from dataclasses import dataclass
from importlib.resources import files
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import quote

from ..attempt import Level, Record, now
from ..stored import write_atomically
from . import notes
from .entries import Entry, entry_of, labels
from .figures import figures, tasks_of
from .import_counts import ImportCounts
from .rates import summarise
from .wording import (
    MARKS,
    QUESTIONS,
    asset_words,
    clean,
    duration,
    gpu_words,
    install_line,
    marks,
    model_words,
    network_words,
    plural,
    short_verdict,
    size,
    verdict_words,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from ..attempt import LevelResult
    from .rates import Scope

PAGE_NAME = "index.html"
_TEXT_LIMIT = 4000
#: Files of an attempt that belong to no level.
_FILES = (
    "task.md",
    "logs/build.log",
    "logs/agent.log",
    "transcript.jsonl",
    "model/calls.jsonl",
    "events.jsonl",
    "record.json",
)


@dataclass(frozen=True)
class _Row:
    """One attempt on the page."""

    name: str
    entry: Entry
    status: str
    cells: list[tuple[Level, str, str]]  #: level, words, class
    build: str
    size: str
    links: list[tuple[str, str]]  #: what, address; of logs that belong to no level


def write_page(
    run_folder: Path,
    attempts: Iterable[Record | Entry],
    *,
    title: str = "",
    suite: str = "",
    agent: str = "",
    scope: Scope | None = None,
) -> Path:
    """Write the page of the run in `run_folder`, and say where it is.

    A record stands for an attempt in the run's own `attempts/TASK--NUMBER`. `suite` and
    `agent` are those of attempts without a record.

    Raises:
        OSError: the page cannot be written.
    """
    entries = [
        entry_of(item, run_folder / "attempts" / f"{item.task}--{item.attempt}")
        if isinstance(item, Record)
        else item
        for item in attempts
    ]
    path = run_folder / PAGE_NAME
    title = title or run_folder.name
    write_atomically(
        path, page(entries, run_folder, title=title, suite=suite, agent=agent, scope=scope)
    )
    path.chmod(0o644)
    return path


def page(
    entries: Sequence[Entry],
    run_folder: Path,
    *,
    title: str,
    suite: str = "",
    agent: str = "",
    scope: Scope | None = None,
    page_folder: Path | None = None,
) -> str:
    """The page's text, for a file in `page_folder`; by default that is the run's.

    `scope` says which tasks of the suite were asked for.
    """
    from jinja2 import Environment, StrictUndefined

    environment = Environment(
        autoescape=True, undefined=StrictUndefined, trim_blocks=True, lstrip_blocks=True
    )
    environment.filters |= {
        "clean": lambda text: clean(text, _TEXT_LIMIT),
        "duration": duration,
        "size": size,
        "verdict": verdict_words,
        "css": _css,
        "plural": plural,
        "tasks_of": tasks_of,
        "assets": asset_words,
        "gpus": gpu_words,
        "network": network_words,
        "model": model_words,
    }
    environment.globals["imports"] = ImportCounts.of
    at = page_folder or run_folder

    def address(path: Path | None) -> str:
        return link(path, run_folder, at)

    environment.globals["link"] = address
    template = environment.from_string(
        files(__package__).joinpath("page.html.j2").read_text(encoding="utf-8")
    )
    used = {
        mark
        for entry in entries
        if entry.record is not None
        for result in entry.record.results.values()
        for mark in marks(result)
    }
    return template.render(
        title=title,
        made=f"{now()[:16].replace('T', ' ')} UTC",
        levels=list(Level),
        questions=QUESTIONS,
        marks=[(mark, meaning) for mark, meaning in MARKS.items() if mark in used],
        rows=_rows(entries, address),
        troubles=notes.troubles(entries),
        failures=notes.failures(entries),
        inconclusive=notes.inconclusive(entries),
        install=install_line(notes.system_packages(entries)),
        summaries=[
            (s, figures(s)) for s in summarise(entries, suite=suite, agent=agent, scope=scope)
        ],
    )


def link(path: Path | None, run_folder: Path, page_folder: Path) -> str:
    """The address of a file from the page, or nothing where it is not below the run."""
    if path is None or not path.is_file():
        return ""
    target = os.path.abspath(path)  # noqa: PTH100  # keeps links, drops `..`
    if not Path(target).is_relative_to(os.path.abspath(run_folder)):  # noqa: PTH100  # likewise
        return ""
    return "./" + quote(os.fsencode(os.path.relpath(target, page_folder)))


def _rows(entries: Sequence[Entry], address: Callable[[Path | None], str]) -> list[_Row]:
    statuses = {trouble.attempt: trouble.status for trouble in notes.troubles(entries)}
    rows = []
    for place, name in labels(entries).items():
        entry = entries[place]
        record = entry.record
        results = record.results if record and entry.judged else {}
        links = [
            (what, place_of)
            for what in _FILES
            if (place_of := address(entry.folder / what if entry.folder else None))
        ]
        rows.append(
            _Row(
                name=name,
                entry=entry,
                status=statuses.get(name, ""),
                cells=[
                    (level, short_verdict(results.get(level)), _css(results.get(level)))
                    for level in Level
                ],
                build=duration(record.build.seconds if record and record.build else None),
                size=size(record.sizes.prefix_bytes if record else None),
                links=links,
            )
        )
    return rows


def _css(result: LevelResult | None) -> Any:
    return "none" if result is None else str(result.verdict)
