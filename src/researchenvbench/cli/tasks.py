"""`reb tasks`: list, show, check, totals, prove, new; `select` is `selection`'s.

How they look is `task_words`' subject.
"""

from __future__ import annotations

import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING

import click

from . import EXIT_FAILED, EXIT_INCONCLUSIVE
from .assets_option import assets_option
from .gpus_option import gpus_option
from .part_options import part_options
from .selection import select
from .sources import from_option, source_mirror_option

if TYPE_CHECKING:
    from ..assets import Choice
    from ..proofs import TaskProof
    from ..run.part import Subset
    from ..task import Suite, Task

#: Wide enough for every line, where no terminal limits it.
_FILE_COLUMNS = 200


@click.group("tasks")
def command() -> None:
    """Tasks: what is asked of an environment, and how far that is proven.

    \b
    Example:
      reb tasks list starter
    """


command.add_command(select)


@command.command("list")
@click.argument("suite_name", metavar="[SUITE]", required=False)
@part_options
@click.option("--json", "as_json", is_flag=True, help="Print as JSON.")
def list_tasks(
    suite_name: str | None,
    only: tuple[str, ...],
    subsets: tuple[Subset, ...],
    domains: tuple[str, ...],
    as_json: bool,
) -> None:
    """List the tasks of SUITE, or the bundled suites.

    \b
    Examples:
      reb tasks list starter
      reb tasks list paper44 --subset proven --subset cpu
      reb tasks list paper44 --domain llm-inference
    """
    import json

    from rich.console import Console

    from ..results.wording import plural
    from ..run.part import choose
    from ..taskfile import bundled_suites, load_suite
    from .task_words import stage_standings, suite_table, suite_words

    if suite_name is None and (only or subsets or domains):
        raise click.UsageError("--only, --subset and --domain choose tasks of a SUITE: give one")
    if suite_name is None:
        suites = [load_suite(name) for name in bundled_suites()]
        sizes = {suite.name: len(suite.tasks) for suite in suites}
        rows = [{"suite": name, "tasks": number} for name, number in sizes.items()]
        if as_json:
            click.echo(json.dumps(rows, indent=1))
        else:
            for name, number in sizes.items():
                click.echo(f"{name}: {plural(number, 'task')} (reb tasks list {name})")
        return
    tasks, part = choose(load_suite(suite_name), only=only, subsets=subsets, domains=domains)
    if as_json:
        click.echo(
            json.dumps(
                [
                    {
                        "task": task.name,
                        "domain": task.domain,
                        "frameworks": list(task.frameworks),
                        "demo": task.demo,
                        "stages": stage_standings(task),
                        "unavailable": task.unavailable,
                    }
                    for task in tasks
                ],
                indent=1,
            )
        )
        return
    Console(width=None if sys.stdout.isatty() else _FILE_COLUMNS).print(suite_table(tasks))
    for line in suite_words(tasks, part):
        click.echo(line)


@command.command("show", short_help="Show a task: stages, evidence, gold, breakages.")
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
    from .task_words import task_page

    for line in task_page(task):
        click.echo(line)


@command.command("check", short_help="Check tasks against schema and sources.")
@click.argument("name", metavar="SUITE|SUITE/TASK|FOLDER")
@click.option(
    "--online",
    is_flag=True,
    help="Ask every server that a task names whether commit, model and data are still there.",
)
@source_mirror_option
def check(name: str, online: bool) -> int:
    """Check the tasks of SUITE, or one of them, against schema and sources.

    \b
    Example:
      reb tasks check starter
      reb tasks check starter/NAME
      reb tasks check path/to/my-suite/my-task
      reb tasks check paper44 --online

    Exits with 1 when something is wrong, with 3 when all that could be looked at is good and
    a source could not be had here, or a server not be asked.
    """
    from ..run.check import check_with_source
    from ..run.check_online import check_online
    from ..sandbox.host_environment import host_environment
    from ..taskfile import load_suite
    from .task_words import stage_standings

    one_task = (Path(name) / "task.toml").is_file() or _is_of_a_suite(name)
    tasks = (_task(name),) if one_task else load_suite(name).tasks
    installs = host_environment().installs
    faulty = unreached = unasked = 0
    silent: set[str] = set()
    started = time.monotonic()
    for task in tasks:
        checked = check_with_source(task, installs)
        lines, notes = checked.problems, list(checked.notes)
        if online:
            found = check_online(task, lambda line: click.echo(line, err=True), unreached=silent)
            lines, notes = lines + found.problems, notes + found.notes
            silent |= found.unreached
            unasked += bool(found.unreached and not lines and not checked.not_compared)
            notes += [f"not asked: {', '.join(sorted(found.unreached))}"] if found.unreached else []
        for line in lines:
            click.echo(f"{task.folder / 'task.toml'}: {line}", err=True)
        if checked.not_compared:
            click.echo(f"{task.name}: {checked.not_compared}", err=True)
            notes.append("its source cannot be had here")
        faulty += bool(lines)
        unreached += bool(checked.not_compared and not lines)
        count = "1 problem" if len(lines) == 1 else f"{len(lines)} problems"
        fine = "not compared with its source" if checked.not_compared else "good"
        unwritten = [at for at, word in stage_standings(task).items() if word == "not written"]
        notes += [f"not written: {', '.join(unwritten)}"] if unwritten else []
        click.echo("; ".join([f"{task.name}: {count if lines else fine}", *notes]))
    if len(tasks) > 1:
        good = len(tasks) - faulty - unreached - unasked
        parts = [f"{good} good", f"{faulty} with problems" if faulty else ""]
        parts.append(f"{unreached} not compared with their source" if unreached else "")
        parts.append(f"{unasked} good as far as could be asked" if unasked else "")
        click.echo(
            f"{len(tasks)} tasks checked in {time.monotonic() - started:.1f} s: "
            f"{', '.join(part for part in parts if part)}"
        )
    if silent:
        click.echo(
            f"not asked, since they cannot be reached from here: {', '.join(sorted(silent))}; "
            "what they hold is neither good nor bad. Check the network and the proxy, then give "
            "the same command again",
            err=True,
        )
    if unreached:
        click.echo(
            "what has no source here is compared with --source-mirror DIR, which "
            "`reb sources mirror DIR` fills",
            err=True,
        )
    if faulty:
        return EXIT_FAILED
    return EXIT_INCONCLUSIVE if unreached or unasked else 0


@command.command("totals", short_help="Count imports, and compare with what was published.")
@click.argument("suite_name", metavar="SUITE")
@click.option("--only", multiple=True, metavar="TASK", help="Only these tasks.")
@click.option(
    "--compare-checkout", is_flag=True, help="Count the files of a checkout too, beside it."
)
@click.option("--json", "as_json", is_flag=True, help="Print as JSON.")
@from_option
@source_mirror_option
def totals(
    suite_name: str,
    only: tuple[str, ...],
    compare_checkout: bool,
    as_json: bool,
    places: tuple[Path, ...],
) -> int:
    """Count what the repositories of SUITE import, and compare with what was published.

    \b
    Example:
      reb tasks totals SUITE --source-mirror path/to/mirrors

    Counted from git's objects, without a checkout. Exits with 1 when a number differs, with 3
    when none does and a repository could not be had.
    """
    from ..run.totals import count_tasks, sum_of
    from ..taskfile import load_suite
    from .totals import as_data, heading, row, sum_words

    suite = load_suite(suite_name)
    tasks = [suite.task(name) for name in only] or list(suite.tasks)
    width = max(len(task.name) for task in tasks)
    if not as_json:
        click.echo(heading(width, checkout=compare_checkout))
    found = []
    for total in count_tasks(tasks, places=places, compare_checkout=compare_checkout):
        found.append(total)
        if not as_json:
            click.echo(row(total, width))
    summed = sum_of(suite, found)
    if as_json:
        click.echo(as_data(found, summed))
    else:
        for line in sum_words(found, summed):
            click.echo(line)
    if summed.differs or any(total.differs for total in found):
        return EXIT_FAILED
    return EXIT_INCONCLUSIVE if summed.missing else 0


@command.command("prove", short_help="Prove that gold passes and breakages fail.")
@click.argument("suite_name", metavar="SUITE")
@click.option("--only", multiple=True, metavar="TASK", help="Only these tasks.")
@click.option("--all", "all_tasks", is_flag=True, help="Also tasks that take long to build.")
@click.option("--out", type=click.Path(path_type=Path), help="Folder for the gold environments.")
@assets_option()
@click.option("--no-ledger", is_flag=True, help="Do not write the suite's proofs.json.")
@click.option("--quiet", is_flag=True, help="Only a line a task.")
@gpus_option
@source_mirror_option
def prove(
    suite_name: str,
    only: tuple[str, ...],
    all_tasks: bool,
    out: Path | None,
    assets: Choice,
    no_ledger: bool,
    quiet: bool,
) -> int:
    """Prove the tasks of SUITE: gold passes, each breakage fails for its reason.

    \b
    Example:
      reb tasks prove starter --only NAME

    Gold environments are kept and used again. Proofs go into the suite's proofs.json, with
    what each stage cost: seconds, disk, downloads.
    """
    from ..results.wording import clean
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
            assets=assets,
        )
        problems = problems_of(task, proof)
        if not no_ledger:
            save_proof(suite, proof)
        stages = ", ".join(
            f"{s.stage} {proof.standing(s.stage)} ({s.verdict} in {s.seconds} s)"
            for s in proof.stages
        )
        word = "NOT as it should be" if problems else "good"
        click.echo(
            f"{task.name}: {word}: {stages or proof.problem.partition(':')[0]}; "
            f"{_breakages(task, proof)}"
        )
        for problem in problems:
            click.echo(f"  {clean(problem, 800)}")
        if problems:
            click.echo(f"  logs are in {folder.attempt(task.name, 1).path}")
        wrong += bool(problems)
    return EXIT_FAILED if wrong else 0


def _breakages(task: Task, proof: TaskProof) -> str:
    from ..results.wording import plural

    if task.breakages and not proof.breakages:
        return f"its {plural(len(task.breakages), 'breakage')} could not be tried"
    held = sum(breakage.as_expected for breakage in proof.breakages)
    return f"{held} of {plural(len(proof.breakages), 'breakage')} as they should be"


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


def _is_of_a_suite(name: str) -> bool:
    from ..taskfile import bundled_suites

    suite, _, task = name.partition("/")
    return bool(task) and suite in bundled_suites() and not Path(name).is_dir()


def _task(name: str) -> Task:
    from ..taskfile import find_task

    if "/" not in name and not (Path(name) / "task.toml").is_file():
        raise click.UsageError(f"give SUITE/TASK or a task's folder, not {name!r}")
    return find_task(name)
