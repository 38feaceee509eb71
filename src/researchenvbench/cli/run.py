"""`reb run`: a suite, an agent, a table."""

from __future__ import annotations

import re
from pathlib import Path
from typing import TYPE_CHECKING

import click

from ..errors import RebError
from . import EXIT_FAILED, EXIT_INCONCLUSIVE
from .assets_option import assets_option
from .gpus_option import gpus_option
from .key_values import key_values
from .model_options import chosen_model, chosen_preset, model_options
from .network_options import chosen_reach, network_options
from .part_options import check_offline, part_options
from .sources import source_mirror_option

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from ..agents.model import ModelChoice
    from ..assets import Choice
    from ..attempt import Record
    from ..network_use import Network
    from ..run.part import Subset
    from ..run.plan import PlannedAttempt
    from ..run.store import RunFolder
    from ..task import Suite, Task

#: Attempts that a line names.
_NAMED = 3
#: A build with a deep-learning framework takes some GB; with less room than this none begins.
DEFAULT_MIN_FREE = "10g"


@click.command("run")
@click.argument("suite_name", metavar="SUITE")
@click.option(
    "--agent",
    metavar="NAME",
    help="Who builds: builtin, which needs no model; claude_code, codex and others with a "
    "--model; command, your own; gold, each task's own recipe (reb agents list).  "
    "[default: builtin]",
)
@click.option(
    "--agent-option",
    "agent_options",
    multiple=True,
    metavar="KEY=VALUE",
    help="Given to the agent; script takes recipe=FILE, command file=FILE.",
)
@model_options
@part_options
@click.option("--all", "all_tasks", is_flag=True, help="Also tasks that are no part of the demo.")
@click.option("--attempts", type=click.IntRange(1, 100), default=1, help="Attempts at each task.")
@click.option("--jobs", type=click.IntRange(1, 64), default=1, help="Attempts at a time.")
@click.option(
    "--sandbox",
    default="local",
    show_default=True,
    type=click.Choice(["local", "podman", "docker", "auto"]),
    help="Where it happens; auto: in containers where this host can, else local.",
)
@click.option(
    "--sandbox-option",
    "sandbox_options",
    multiple=True,
    metavar="KEY=VALUE",
    help="Of containers: image, memory, cpus, pids, disk, shm, network.",
)
@network_options
@click.option(
    "--keep",
    type=click.Choice(["all", "failed", "none"]),
    default="all",
    show_default=True,
    help="Which environments stay once they are verified; records and logs always do.",
)
@click.option(
    "--min-free",
    default=DEFAULT_MIN_FREE,
    show_default=True,
    metavar="SIZE",
    help="Begin no build with less room than this where environments are kept, nor than the "
    "ledger says that it and those under way need; 0: always.",
)
@click.option(
    "--build-time-limit",
    "build_minutes",
    type=click.FloatRange(min=0.01),
    metavar="MINUTES",
    help="For each build.  [default: 60, or the preset's]",
)
@click.option(
    "--build-gpus",
    default=None,
    metavar="all|N|none",
    help="GPUs that a build is shown, of those of nvidia-smi -L that CUDA_VISIBLE_DEVICES leaves; "
    "default: what the tasks' stages need, if the host has it.",
)
@gpus_option
@assets_option()
@click.option("--out", type=click.Path(path_type=Path), help="Run folder.")
@click.option("--reverify", is_flag=True, help="Make all results anew; builds are kept.")
@click.option(
    "--fail-on",
    type=click.Choice(["failed", "inconclusive"]),
    help="Exit with 1 when a level failed or an attempt is disqualified; with `inconclusive` "
    "also with 3 when a level is inconclusive.",
)
@click.option(
    "--dry-run",
    is_flag=True,
    help="Begin nothing: show what would be done, and what of its time, disk and downloads is "
    "known.",
)
@click.option(
    "--i-trust-this-agent",
    "trusted",
    is_flag=True,
    help="Needed for agents other than the built-in ones in a sandbox that isolates nothing.",
)
@click.option(
    "--json",
    "as_json",
    is_flag=True,
    help="Print the records and rates as JSON; with --dry-run, the plan.",
)
@click.option("--quiet", is_flag=True, help="No progress, only the table.")
@source_mirror_option
def command(
    suite_name: str,
    agent: str | None,
    agent_options: tuple[str, ...],
    model: str | None,
    preset_name: str | None,
    upstream: str | None,
    key: str | None,
    budget_tokens: int | None,
    budget_usd: float | None,
    prices: str | None,
    only: tuple[str, ...],
    subsets: tuple[Subset, ...],
    domains: tuple[str, ...],
    all_tasks: bool,
    attempts: int,
    jobs: int,
    sandbox: str,
    sandbox_options: tuple[str, ...],
    network: Network,
    allow_hosts: tuple[str, ...],
    keep: str,
    min_free: str,
    build_minutes: float | None,
    build_gpus: str | None,
    assets: Choice,
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
      reb run starter --sandbox podman --sandbox-option memory=16g
      reb run starter --sandbox podman --network registries
      reb run starter --agent codex --model gpt-5.1-codex --sandbox podman
      reb run paper44 --preset paper/codex --sandbox podman
      reb run paper44 --agent gold --subset proven --subset cpu --dry-run

    SUITE is a bundled suite or a folder of task folders. The same command again goes on
    where it was and redoes nothing that is done. Exits with 0 when every attempt was judged,
    whatever its verdicts; with 1 when one was not: it has no record, or is void by a fault
    of this host.
    """
    from ..agents import check_agent, make_agent
    from ..results.wording import plural
    from ..run.estimate import estimate
    from ..run.part import choose
    from ..run.plan import RunPlan, plan_attempts
    from ..run.pool import LocalPool
    from ..run.room import RoomGuard
    from ..run.store import RunFolder
    from ..sandbox import choose_sandbox, make_sandbox
    from ..sandbox.containers.options import bytes_of
    from ..taskfile import load_suite
    from .plan_words import plan_as_json, plan_lines

    suite = load_suite(suite_name)
    check_offline(subsets, assets)
    tasks, part = choose(
        suite,
        only=only,
        subsets=subsets,
        domains=domains,
        default=lambda suite: _default(suite, all_tasks=all_tasks),
    )
    min_free_bytes = bytes_of(min_free, "--min-free")
    options = key_values(agent_options, "--agent-option")
    preset = chosen_preset(preset_name)
    agent = agent or (preset.agent if preset else "builtin")
    check_agent(agent, options)
    chosen = chosen_model(
        agent,
        options,
        preset,
        model=model,
        upstream=upstream,
        key=key,
        budget_tokens=budget_tokens,
        budget_usd=budget_usd,
        prices=prices,
    )
    if sandbox == "auto":
        sandbox, why = choose_sandbox()
        click.echo(f"sandbox: {sandbox}{f' ({why})' if why else ''}", err=True)
    given = key_values(sandbox_options, "--sandbox-option")
    reach = chosen_reach(network, allow_hosts)
    make_sandbox(sandbox, given, reach).check()
    if (
        not make_agent(agent, options, chosen).built_in
        and sandbox == "local"
        and not (trusted or dry_run)
    ):
        raise click.UsageError(
            f"the local sandbox isolates nothing: {agent} would run with your rights on this "
            "host. If that is what you want, add --i-trust-this-agent."
        )
    plan = RunPlan(
        suite=str(suite.folder) if Path(suite_name).is_dir() else suite.name,
        part=part,
        agent=agent,
        agent_options=options,
        model=chosen,
        sandbox=sandbox,
        sandbox_options=given,
        network=reach,
        keep=keep,
        build_time_limit_s=(build_minutes or (preset.build_minutes if preset else 60.0)) * 60,
        build_gpus=_build_gpus(build_gpus, tasks),
        assets=assets,
    )
    name = _run_name(suite.name, agent, chosen, sandbox, (*subsets, *domains))
    folder = RunFolder((out or Path("runs") / name).absolute())
    folder.check_free()
    planned = plan_attempts(plan, suite, tasks, attempts, folder, reverify=reverify)
    if removed := [attempt.folder.name for attempt in planned if attempt.removed]:
        click.echo(
            f"not verified again, since the environment was removed: {', '.join(removed[:_NAMED])}"
            f"{f' and {len(removed) - _NAMED} more' if len(removed) > _NAMED else ''}. Their "
            "records stand; another --out builds anew",
            err=True,
        )
    guard = RoomGuard.of(sandbox, folder.path, min_free_bytes)
    found = estimate(planned, jobs=jobs, keep=keep)
    if dry_run:
        if chosen is not None:
            _warn_of(chosen)
        free_bytes = guard.free_bytes()
        if as_json:
            click.echo(plan_as_json(folder.path, part, found, free_bytes))
        else:
            for line in plan_lines(folder.path, part, found, free_bytes):
                click.echo(line)
        return 0
    if chosen is not None and not all(attempt.done for attempt in planned):
        chosen.check()
    folder.claim(plan)
    left_out = len(suite.tasks) - len(tasks)
    if left_out and not only and not quiet:
        of = f"{len(tasks)} of {plural(len(suite.tasks), 'task')}"
        why = part.words or "--all takes the rest too"
        click.echo(f"{of}; {why}", err=True)

    from .progress import make_watcher

    try:
        # Before the watcher, which may have threads.
        pool = LocalPool(jobs, guard.expecting(found).problem)
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


def _warn_of(model: ModelChoice) -> None:
    """Say what the run itself would refuse of its model, and what it may cost."""
    try:
        model.check()
    except RebError as error:
        click.echo(f"the run would be refused: {error}", err=True)
    for limit in model.limits:
        click.echo(f"each build: {limit}", err=True)


def _run_name(
    suite: str,
    agent: str,
    model: ModelChoice | None,
    sandbox: str,
    part: Sequence[str],
) -> str:
    """The folder of a run that was given none: another agent, model or subset is another run."""
    parts = [suite, agent, model.name if model else "", "" if sandbox == "local" else sandbox]
    parts += sorted(part)
    return re.sub(r"[^A-Za-z0-9._-]+", "_", "-".join(filter(None, parts)))


def _finish(
    folder: RunFolder,
    planned: list[PlannedAttempt],
    problems: Mapping[str, str],
    *,
    fail_on: str | None,
    as_json: bool,
) -> int:
    """Print the table, write the page, choose the exit code."""
    from ..attempt import AttemptStatus, Verdict
    from ..results.page import write_page
    from .report import read_entries, scope_of, show

    plan, entries = read_entries(folder.path, problems)
    write_page(
        folder.path,
        entries,
        suite=Path(plan.suite).name,
        agent=plan.builder,
        scope=scope_of(plan),
    )
    show([folder.path], as_json=as_json, problems=problems)
    if not as_json:
        click.echo(f"page: {folder.page_file}")
    begun = {entry.folder.name for entry in entries if entry.folder is not None}
    for problem in {why for name, why in problems.items() if name not in begun}:
        click.echo(f"reb: {problem}", err=True)
    mine = {attempt.folder.path: attempt.folder.name for attempt in planned}
    chosen = [entry for entry in entries if entry.folder in mine]
    records = [entry.record for entry in chosen if entry.record is not None]
    void = [record for record in records if record.status is AttemptStatus.VOID]
    if void:
        _say_void(void)
    # A record of an earlier time is no answer where today's job ended with a problem.
    if void or len(records) < len(mine) or not problems.keys().isdisjoint(mine.values()):
        return EXIT_FAILED
    verdicts = {result.verdict for record in records for result in record.results.values()}
    failed = Verdict.FAILED in verdicts or any(entry.disqualified for entry in chosen)
    if fail_on and failed:
        return EXIT_FAILED
    if fail_on == "inconclusive" and Verdict.INCONCLUSIVE in verdicts:
        return EXIT_INCONCLUSIVE
    return 0


def _say_void(void: list[Record]) -> None:
    """As the last line, where it is seen below a table: what to do about them."""
    from ..results.wording import clean, plural

    names = ", ".join(f"{record.task}--{record.attempt}" for record in void[:_NAMED])
    more = f" and {len(void) - _NAMED} more" if len(void) > _NAMED else ""
    build = void[0].build
    message, _, advice = (build.reason if build else "").partition("\n")
    click.echo(
        f"reb: {plural(len(void), 'attempt')} could not be judged here ({names}{more}): "
        f"{clean(message) or 'the build ended by a fault of this host'}. "
        f"What to do: {f'{clean(advice)}; then ' if advice else 'mend that, then '}"
        "give the same command again, which tries them anew.",
        err=True,
    )


def _default(suite: Suite, *, all_tasks: bool) -> Sequence[Task]:
    """What is run where nothing else is asked for: the tasks of the demo, if it has such."""
    demo = [task for task in suite.tasks if task.demo]
    return suite.tasks if all_tasks or not demo else demo


def _build_gpus(asked: str | None, tasks: list[Task]) -> str:
    from ..gpu.inventory import inventory

    if asked is not None:
        if asked not in ("all", "none") and not asked.isdigit():
            raise click.UsageError(f"--build-gpus takes all, none or a number, not {asked!r}")
        there = len(inventory().gpus)
        if asked.isdigit() and int(asked) > there:
            click.echo(f"--build-gpus {asked}: this host has {there}, and shows those", err=True)
        return asked
    needed = max((task.gpus(name) for task in tasks for name in task.stages), default=0)
    shown = min(needed, len(inventory().gpus))
    return str(shown) if shown else "none"
