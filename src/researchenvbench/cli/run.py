"""`reb run`: a suite, an agent, a table."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import TYPE_CHECKING

import click

from . import EXIT_FAILED, EXIT_INCONCLUSIVE

if TYPE_CHECKING:
    from collections.abc import Mapping

    from ..run.plan import PlannedAttempt
    from ..run.store import RunFolder
    from ..task import Suite, Task

#: Of one attempt at a task with a deep-learning framework; measured on the starter suite.
_TYPICAL_MINUTES, _TYPICAL_GB = 3, 1.5


@click.command("run")
@click.argument("suite_name", metavar="SUITE")
@click.option("--agent", default="builtin", show_default=True, help="Who builds.")
@click.option(
    "--agent-option",
    "agent_options",
    multiple=True,
    metavar="KEY=VALUE",
    help="Given to the agent; script takes recipe=FILE.",
)
@click.option("--only", multiple=True, metavar="TASK", help="Only these tasks.")
@click.option("--all", "all_tasks", is_flag=True, help="Also tasks that are no part of the demo.")
@click.option("--attempts", type=click.IntRange(1, 100), default=1, help="Attempts at each task.")
@click.option("--jobs", type=click.IntRange(1, 64), default=1, help="Attempts at a time.")
@click.option("--sandbox", default="local", show_default=True, help="Where it happens.")
@click.option(
    "--build-time-limit",
    "build_minutes",
    type=click.FloatRange(min=0.01),
    default=60.0,
    show_default=True,
    metavar="MINUTES",
    help="For each build.",
)
@click.option(
    "--build-gpus",
    default=None,
    metavar="all|N|none",
    help="GPUs that a build is shown; default: what the tasks' stages need, if the host has it.",
)
@click.option("--out", type=click.Path(path_type=Path), help="Run folder.")
@click.option("--reverify", is_flag=True, help="Make all results anew; builds are kept.")
@click.option(
    "--fail-on",
    type=click.Choice(["failed", "inconclusive"]),
    help="Exit with 1 when a level failed or an attempt is disqualified; with `inconclusive` "
    "also with 3 when a level is inconclusive.",
)
@click.option("--dry-run", is_flag=True, help="Show what would be done.")
@click.option(
    "--i-trust-this-agent",
    "trusted",
    is_flag=True,
    help="Needed for agents other than the built-in ones in a sandbox that isolates nothing.",
)
@click.option("--json", "as_json", is_flag=True, help="Print the records and rates as JSON.")
@click.option("--quiet", is_flag=True, help="No progress, only the table.")
def command(
    suite_name: str,
    agent: str,
    agent_options: tuple[str, ...],
    only: tuple[str, ...],
    all_tasks: bool,
    attempts: int,
    jobs: int,
    sandbox: str,
    build_minutes: float,
    build_gpus: str | None,
    out: Path | None,
    reverify: bool,
    fail_on: str | None,
    dry_run: bool,
    trusted: bool,
    as_json: bool,
    quiet: bool,
) -> int:
    """Build an environment for each task of SUITE, verify it, audit the report, tabulate.

    \b
    Examples:
      reb run starter
      reb run starter --only NAME --jobs 2

    SUITE is a bundled suite or a folder of task folders. The same command again goes on
    where it was and redoes nothing that is done. Exits with 0 when every attempt has a
    record, whatever its verdicts.
    """
    from ..agents import make_agent
    from ..run.plan import RunPlan, plan_attempts
    from ..run.pool import LocalPool
    from ..run.store import RunFolder
    from ..sandbox import make_sandbox
    from ..taskfile import load_suite

    suite = load_suite(suite_name)
    tasks = _chosen(suite, only, all_tasks=all_tasks)
    options = _options(agent_options)
    make_sandbox(sandbox)
    if not make_agent(agent, options).built_in and sandbox == "local" and not trusted:
        raise click.UsageError(
            f"the local sandbox isolates nothing: {agent} would run with your rights on this "
            "host. If that is what you want, add --i-trust-this-agent."
        )
    plan = RunPlan(
        suite=str(suite.folder) if Path(suite_name).is_dir() else suite.name,
        agent=agent,
        agent_options=options,
        sandbox=sandbox,
        build_time_limit_s=build_minutes * 60,
        build_gpus=_build_gpus(build_gpus, tasks),
    )
    folder = RunFolder((out or Path("runs") / f"{suite.name}-{agent}").absolute())
    planned = plan_attempts(plan, suite, tasks, attempts, folder, reverify=reverify)
    if dry_run:
        _show_plan(folder, planned)
        return 0
    folder.claim(plan)
    left_out = len(suite.tasks) - len(tasks)
    if left_out and not only and not quiet:
        click.echo(f"{len(tasks)} of {len(suite.tasks)} tasks; --all takes the rest too", err=True)

    from .progress import make_watcher

    try:
        pool = LocalPool(jobs)  # before the watcher, which may have threads
        with make_watcher(quiet=quiet, json=as_json) as watcher:
            pool.run(planned, watcher, reverify=reverify)
    except KeyboardInterrupt:
        click.echo(
            f"\ninterrupted; what is finished is kept in {folder.path}. "
            "The same command goes on from there.",
            err=True,
        )
        raise
    return _finish(folder, planned, watcher.problems, fail_on=fail_on, as_json=as_json)


def _finish(
    folder: RunFolder,
    planned: list[PlannedAttempt],
    problems: Mapping[str, str],
    *,
    fail_on: str | None,
    as_json: bool,
) -> int:
    """Print the table, write the page, choose the exit code."""
    from ..attempt import Verdict
    from ..results.page import write_page
    from .report import read_entries, show

    plan, entries = read_entries(folder.path, problems)
    write_page(folder.path, entries, suite=Path(plan.suite).name, agent=plan.agent)
    show([folder.path], as_json=as_json, problems=problems)
    if not as_json:
        click.echo(f"page: {folder.page_file}")
    mine = {attempt.folder.path: attempt.folder.name for attempt in planned}
    chosen = [entry for entry in entries if entry.folder in mine]
    records = [entry.record for entry in chosen if entry.record is not None]
    # A record of an earlier time is no answer where today's job ended with a problem.
    if len(records) < len(mine) or not problems.keys().isdisjoint(mine.values()):
        return EXIT_FAILED
    verdicts = {result.verdict for record in records for result in record.results.values()}
    failed = Verdict.FAILED in verdicts or any(entry.disqualified for entry in chosen)
    if fail_on and failed:
        return EXIT_FAILED
    if fail_on == "inconclusive" and Verdict.INCONCLUSIVE in verdicts:
        return EXIT_INCONCLUSIVE
    return 0


def _chosen(suite: Suite, only: tuple[str, ...], *, all_tasks: bool) -> list[Task]:
    if only:
        return [suite.task(name) for name in only]
    demo = [task for task in suite.tasks if task.demo]
    return list(suite.tasks) if all_tasks or not demo else demo


def _options(pairs: tuple[str, ...]) -> dict[str, str]:
    options = {}
    for pair in pairs:
        key, separator, value = pair.partition("=")
        if not separator:
            raise click.UsageError(f"--agent-option takes KEY=VALUE, not {pair!r}")
        options[key] = value
    return options


def _build_gpus(asked: str | None, tasks: list[Task]) -> str:
    from ..sandbox.gpu import inventory

    if asked is not None:
        if asked not in ("all", "none") and not asked.isdigit():
            raise click.UsageError(f"--build-gpus takes all, none or a number, not {asked!r}")
        return asked
    needed = max((task.gpus(name) for task in tasks for name in task.stages), default=0)
    shown = min(needed, len(inventory().gpus))
    return str(shown) if shown else "none"


def _show_plan(folder: RunFolder, planned: list[PlannedAttempt]) -> None:
    for attempt in planned:
        click.echo(f"{attempt.folder.name:40} {'done' if attempt.done else attempt.why}")
    builds = [a for a in planned if not a.done and a.why.startswith("build")]
    there = folder.path if folder.path.exists() else Path.cwd()
    free_gb = shutil.disk_usage(there).free / 1e9
    click.echo(
        f"{len(planned)} attempts, {len(builds)} to build: some {len(builds) * _TYPICAL_MINUTES} "
        f"minutes and {len(builds) * _TYPICAL_GB:.0f} GB; {free_gb:.0f} GB are free. "
        f"Run folder: {folder.path}"
    )
