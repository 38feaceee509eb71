"""`reb tasks`: list, show, check, prove, new."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from . import EXIT_FAILED

if TYPE_CHECKING:
    from ..task import Suite, Task


@click.group("tasks")
def command() -> None:
    """Tasks: what is asked of an environment, and how far that is proven.

    \b
    Example:
      reb tasks list starter
    """


@command.command("list")
@click.argument("suite_name", metavar="[SUITE]", required=False)
@click.option("--json", "as_json", is_flag=True, help="Print as JSON.")
def list_tasks(suite_name: str | None, as_json: bool) -> None:
    """List the tasks of SUITE, or the bundled suites.

    \b
    Example:
      reb tasks list starter
    """
    import json

    from rich.console import Console
    from rich.table import Table

    from ..proofs import standing
    from ..taskfile import bundled_suites, load_suite

    if suite_name is None:
        suites = [load_suite(name) for name in bundled_suites()]
        rows = [{"suite": suite.name, "tasks": len(suite.tasks)} for suite in suites]
        if as_json:
            click.echo(json.dumps(rows, indent=1))
        else:
            for row in rows:
                click.echo(f"{row['suite']}: {row['tasks']} tasks (reb tasks list {row['suite']})")
        return
    suite = load_suite(suite_name)
    if as_json:
        click.echo(
            json.dumps(
                [
                    {
                        "task": task.name,
                        "domain": task.domain,
                        "frameworks": list(task.frameworks),
                        "demo": task.demo,
                        "stages": {name: standing(task, name) for name in task.stages},
                    }
                    for task in suite.tasks
                ],
                indent=1,
            )
        )
        return
    table = Table(box=None, pad_edge=False)
    for heading in ("task", "domain", "frameworks", "stages"):
        table.add_column(heading)
    for task in suite.tasks:
        stages = [f"{name} ({standing(task, name)})" for name in task.stages]
        table.add_row(
            task.name, task.domain, ", ".join(task.frameworks) or "none", "\n".join(stages)
        )
    Console().print(table)


@command.command("show")
@click.argument("name", metavar="SUITE/TASK|FOLDER")
@click.option("--json", "as_json", is_flag=True, help="Print as JSON.")
def show_task(name: str, as_json: bool) -> None:
    """Show a task: source, stages, what they must leave behind, gold, breakages.

    \b
    Example:
      reb tasks show starter/NAME
    """
    task = _task(name)
    if as_json:
        click.echo(task.model_dump_json(indent=1, by_alias=True))
        return
    from ..proofs import standing
    from ..verify.evidence import describe

    click.echo(f"{task.name}: {task.title}\n  domain      {task.domain}")
    click.echo(f"  source      {task.source.kind} {_source_line(task)}")
    click.echo(f"  python      {task.python or 'any'}")
    click.echo(f"  frameworks  {', '.join(task.frameworks) or 'none'}")
    for stage_name, stage in task.stages.items():
        click.echo(f"\nstage {stage_name} ({standing(task, stage_name)})")
        if stage.readme_block:
            block = stage.readme_block
            click.echo(f"  runs        {block.language} block {block.number} of {block.file}")
        elif stage.command:
            click.echo(f"  runs        {' '.join(stage.command)}")
        for why in (stage.not_solvable, stage.not_distributed):
            if why:
                click.echo(f"  not run     {why}")
        click.echo(f"  time limit  {stage.time_limit_s:.0f} s")
        for entry in stage.evidence:
            click.echo(f"  evidence    {describe(entry)}")
    if task.gold:
        click.echo(f"\ngold: Python {task.gold.python}")
        for step in task.gold.steps:
            click.echo(f"  {' '.join(step)}")
    for breakage_name, breakage in task.breakages.items():
        click.echo(
            f"\nbreakage {breakage_name}: {breakage.description}\n"
            f"  {breakage.level} must {'fail' if breakage.expect == 'failed' else 'still pass'}"
        )
    if task.notes:
        click.echo(f"\n{task.notes}")


@command.command("check")
@click.argument("name", metavar="SUITE|FOLDER")
def check(name: str) -> int:
    """Check the tasks of SUITE, or the one in FOLDER, against schema and sources.

    \b
    Example:
      reb tasks check starter
      reb tasks check path/to/my-suite/my-task
    """
    from ..errors import SourceError, TaskError
    from ..run.check import check_task
    from ..sandbox.host_environment import host_environment
    from ..source import fetch_source
    from ..taskfile import load_suite, load_task

    one_task = (Path(name) / "task.toml").is_file()
    tasks = (load_task(Path(name)),) if one_task else load_suite(name).tasks
    installs = host_environment().installs
    problems = 0
    for task in tasks:
        try:
            lines = check_task(task, fetch_source(task, installs=installs))
        except (SourceError, TaskError) as error:
            lines = [str(error)]
        for line in lines:
            click.echo(f"{task.folder / 'task.toml'}: {line}", err=True)
        problems += len(lines)
        count = "1 problem" if len(lines) == 1 else f"{len(lines)} problems"
        click.echo(f"{task.name}: {count if lines else 'good'}")
    return EXIT_FAILED if problems else 0


@command.command("prove")
@click.argument("suite_name", metavar="SUITE")
@click.option("--only", multiple=True, metavar="TASK", help="Only these tasks.")
@click.option("--all", "all_tasks", is_flag=True, help="Also tasks that take long to build.")
@click.option("--out", type=click.Path(path_type=Path), help="Folder for the gold environments.")
@click.option("--no-ledger", is_flag=True, help="Do not write the suite's proofs.json.")
@click.option("--quiet", is_flag=True, help="Only a line a task.")
def prove(
    suite_name: str,
    only: tuple[str, ...],
    all_tasks: bool,
    out: Path | None,
    no_ledger: bool,
    quiet: bool,
) -> int:
    """Prove the tasks of SUITE: gold passes, each breakage fails for its reason.

    \b
    Example:
      reb tasks prove starter --only NAME

    Gold environments are kept and used again. Proofs go into the suite's proofs.json.
    """
    from ..run.prove import problems_of, prove_task, save_proof
    from ..run.store import RunFolder
    from ..taskfile import load_suite

    suite = load_suite(suite_name)
    folder = RunFolder((out or Path("runs") / f"{suite.name}-proofs").absolute())
    wrong = 0
    for task in _to_prove(suite, only, all_tasks=all_tasks):
        proof = prove_task(
            suite,
            task,
            folder,
            (lambda _: None) if quiet else lambda line: click.echo(line, err=True),
        )
        problems = problems_of(task, proof)
        if not no_ledger:
            save_proof(suite, proof)
        held = sum(breakage.as_expected for breakage in proof.breakages)
        stages = ", ".join(
            f"{s.stage} {proof.standing(s.stage)} ({s.verdict} in {s.seconds} s)"
            for s in proof.stages
        )
        word = "NOT as it should be" if problems else "good"
        click.echo(
            f"{task.name}: {word}: {stages or proof.problem}; "
            f"{held} of {len(proof.breakages)} breakages as they should be"
        )
        for problem in problems:
            click.echo(f"  {problem}")
        if problems:
            click.echo(f"  logs are in {folder.attempt(task.name, 1).path}")
        wrong += bool(problems)
    return EXIT_FAILED if wrong else 0


@command.command("new")
@click.argument("name")
@click.option("--suite", "folder", type=click.Path(path_type=Path), default=Path())
def new(name: str, folder: Path) -> None:
    """Write a commented task template into the folder NAME.

    \b
    Example:
      reb tasks new my-task --suite path/to/my-suite
    """
    import re
    import shlex
    from importlib.resources import files

    if not re.fullmatch(r"[A-Za-z0-9][A-Za-z0-9._-]*", name):
        raise click.UsageError(f"{name!r} is no name for a task: letters, digits, . _ and - only")
    place = folder / name / "task.toml"
    if place.parent.is_symlink() or (place.parent.exists() and not place.parent.is_dir()):
        raise click.UsageError(f"{place.parent} is there already, and is no folder")
    if place.parent.is_dir() and any(place.parent.iterdir()):
        raise click.UsageError(f"{place.parent} is there already, and is not empty")
    template = files("researchenvbench.suites").joinpath("template.toml")
    place.parent.mkdir(parents=True, exist_ok=True)
    place.write_text(
        template.read_text(encoding="utf-8").replace('name = "NAME"', f'name = "{name}"'),
        encoding="utf-8",
    )
    click.echo(
        f"{place} is written; check it with: reb tasks check {shlex.quote(str(place.parent))}"
    )


def _to_prove(suite: Suite, only: tuple[str, ...], *, all_tasks: bool) -> list[Task]:
    if only:
        return [suite.task(name) for name in only]
    return [task for task in suite.tasks if all_tasks or not task.slow]


def _task(name: str) -> Task:
    from ..taskfile import load_suite, load_task

    if (Path(name) / "task.toml").is_file():
        return load_task(Path(name))
    suite, _, task = name.partition("/")
    if not task:
        raise click.UsageError(f"give SUITE/TASK or a task's folder, not {name!r}")
    return load_suite(suite).task(task)


def _source_line(task: Task) -> str:
    source = task.source
    if source.kind == "git":
        return f"{source.url} at {source.commit}"
    if source.kind == "sdist":
        return f"{source.name} {source.version}"
    return source.path
