"""`reb report`: the table of a run, of several side by side, as a page or as JSON."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from ..errors import RebError, RecordError

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from rich.console import RenderableType

    from ..results.entries import Entry
    from ..results.rates import Scope
    from ..run.plan import RunPlan
    from ..run.store import AttemptFolder

_SCHEMA = 1


@click.command("report")
@click.argument("runs", metavar="RUN...", nargs=-1, required=True, type=click.Path(path_type=Path))
@click.option("--json", "as_json", is_flag=True, help="Print rates and records as JSON.")
@click.option(
    "--html",
    "html_file",
    type=click.Path(path_type=Path, dir_okay=False),
    help="Write the page of one run to this file; - for the output.",
)
def command(runs: tuple[Path, ...], as_json: bool, html_file: Path | None) -> int:
    """Show what a run found.

    \b
    Examples:
      reb report runs/starter-builtin
      reb report runs/starter-builtin runs/starter-script
      reb report runs/starter-builtin --json

    RUN is the folder that `reb run` named. Several are shown side by side. An attempt that
    is not finished, or whose record cannot be read, is shown with the reason.
    """
    if html_file is not None:
        if len(runs) > 1 or as_json:
            raise click.UsageError("--html takes one RUN, and no --json")
        _write_html(runs[0], html_file)
        return 0
    show(runs, as_json=as_json)
    return 0


def show(runs: Sequence[Path], *, as_json: bool, problems: Mapping[str, str] | None = None) -> None:
    """Print the table of one run, or several side by side.

    `problems` says of attempts, by the names of their folders, why they have no record.

    Raises:
        RecordError: one of them is no run folder.
    """
    found = [(run, *read_entries(run, problems)) for run in runs]
    if as_json:
        click.echo(json.dumps({"schema": _SCHEMA, "runs": [_as_json(*run) for run in found]}))
        return
    from ..results.table import Run, comparison_view, run_view

    if len(found) == 1:
        _, plan, entries = found[0]
        print_view(run_view(entries, suite=_suite(plan), agent=plan.builder, scope=scope_of(plan)))
        return
    names = [run.name or str(run) for run in runs]
    if len(set(names)) < len(names):
        names = [str(run) for run in runs]
    print_view(
        comparison_view(
            [
                Run(name, entries, _suite(plan), plan.builder, scope_of(plan))
                for name, (_, plan, entries) in zip(names, found, strict=True)
            ]
        )
    )


def print_view(view: RenderableType) -> None:
    """Print a table or lines to the output; paths and commands in it are not cut."""
    from rich.console import Console

    # A character that the terminal's encoding lacks is no reason to fail.
    reconfigure = getattr(sys.stdout, "reconfigure", None)
    if reconfigure is not None:
        reconfigure(errors="replace")
    Console(highlight=False, emoji=False).print(view, crop=False)


def read_entries(
    run: Path, problems: Mapping[str, str] | None = None
) -> tuple[RunPlan, list[Entry]]:
    """What a run was asked for, and all attempts that were begun in it.

    Raises:
        RecordError: `run` is no run folder.
    """
    from ..run.plan import RunPlan
    from ..run.store import RunFolder

    folder = RunFolder(run)
    folder.require()
    plan = RunPlan.load(folder.run_file)
    return plan, [_entry(attempt, problems or {}) for attempt in folder.attempts()]


def _entry(attempt: AttemptFolder, problems: Mapping[str, str]) -> Entry:
    from ..results.entries import Entry

    task, _, number = attempt.name.rpartition("--")
    task, number = (task, number) if number.isdigit() else (attempt.name, "1")
    record, problem = None, problems.get(attempt.name, "")
    try:
        record = attempt.load_record()
    except RecordError as error:
        problem = str(error.args[0])
    if record is None and not problem:
        problem = _unfinished(attempt)
    return Entry(task, int(number), record, attempt.path, problem)


def _unfinished(attempt: AttemptFolder) -> str:
    from .progress import Activity

    activity = Activity(attempt.name, attempt.path, doing="")
    activity.look()
    phase = "verification" if attempt.build_file.is_file() else "the build"
    last = f"; the last that it did: {activity.doing}" if activity.doing else ""
    return f"{phase} has not ended{last}"


def _as_json(run: Path, plan: RunPlan, entries: list[Entry]) -> dict[str, Any]:
    from ..results.rates import summarise

    summaries = summarise(entries, suite=_suite(plan), agent=plan.builder, scope=scope_of(plan))
    return {
        "run": str(run),
        "suite": _suite(plan),
        "agent": plan.agent,
        "part": plan.part.model_dump(mode="json") if plan.part else None,
        "rates": [summary.model_dump(mode="json") for summary in summaries],
        "attempts": [
            {
                "task": entry.task,
                "attempt": entry.attempt,
                "folder": str(entry.folder),
                "problem": entry.problem,
                "older": entry.older,
                "research_ready": entry.record.research_ready if entry.record else False,
                "record": entry.record.model_dump(mode="json", by_alias=True)
                if entry.record
                else None,
            }
            for entry in entries
        ],
    }


def scope_of(plan: RunPlan) -> Scope | None:
    """Which tasks of its suite a run was asked for; None where an older version ran it."""
    from ..results.rates import Scope

    asked = plan.part
    return Scope(asked.words, asked.tasks, asked.suite_tasks) if asked else None


def _suite(plan: RunPlan) -> str:
    """A suite that was given as a folder is shown by the folder's name, as records do."""
    return Path(plan.suite).name


def _write_html(run: Path, target: Path) -> None:
    from ..results.page import page

    plan, entries = read_entries(run)
    to_output = str(target) == "-"
    base = Path.cwd() if to_output else target.absolute().parent
    text = page(
        entries,
        run.absolute(),
        title=run.absolute().name,
        suite=_suite(plan),
        agent=plan.builder,
        scope=scope_of(plan),
        page_folder=base,
    )
    if to_output:
        click.echo(text)
        return
    try:
        target.write_text(text, encoding="utf-8")
    except OSError as error:
        raise RebError(
            f"{target}: cannot be written: {error.strerror}", advice="choose another file"
        ) from error
