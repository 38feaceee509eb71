"""`reb verify`: judge one environment."""

from __future__ import annotations

import shlex
import sys
from pathlib import Path
from typing import TYPE_CHECKING, NoReturn

import click

from .assets_option import assets_option
from .gpus_option import gpus_option
from .sources import source_mirror_option

if TYPE_CHECKING:
    from ..assets import Choice
    from ..attempt import Level, Record
    from ..run.verification import ChosenPython
    from ..task import Task

#: Of a run, in a message; a run can have hundreds.
_LISTED_ATTEMPTS = 12


@click.command("verify")
@click.argument("path", type=click.Path(path_type=Path), default=".")
@click.option("--python", metavar="PATH", help="The interpreter to judge.")
@click.option("--task", "task_name", metavar="SUITE/NAME|FOLDER", help="Its stages are run.")
@click.option(
    "--image",
    metavar="IMAGE",
    help="Judge this container environment instead of PATH, by --task.",
)
@click.option(
    "--sandbox", type=click.Choice(["podman", "docker"]), help="Whose image.  [default: any]"
)
@click.option("--report", type=click.Path(path_type=Path), help="A report to audit (C5).")
@click.option("--level", "levels", multiple=True, metavar="LEVEL", help="Only these: C0 … C5.")
@click.option(
    "--stage",
    "stages",
    multiple=True,
    metavar="STAGE",
    help="Only these: cpu, single_gpu, multi_gpu.",
)
@click.option("--fail-fast", is_flag=True, help="Stop at the first level that fails.")
@click.option("--repeats", type=click.IntRange(1, 100), default=1, help="Run each level so often.")
@click.option("--entry", metavar="COMMAND", help="An entry point to run on the CPU (C1).")
@click.option(
    "--in-place",
    is_flag=True,
    help="Let an entry point run in PATH itself where this host allows no layer over it.",
)
@gpus_option
@assets_option(of_attempts=True)
@click.option("--out", type=click.Path(path_type=Path), help="Folder for logs and record.")
@click.option("--json", "as_json", is_flag=True, help="Print the record as JSON.")
@click.option("--quiet", is_flag=True, help="Print the verdicts and nothing else.")
@source_mirror_option
def command(
    path: Path,
    python: str | None,
    task_name: str | None,
    image: str | None,
    sandbox: str | None,
    report: Path | None,
    levels: tuple[str, ...],
    stages: tuple[str, ...],
    fail_fast: bool,
    repeats: int,
    entry: str | None,
    in_place: bool,
    assets: Choice | None,
    out: Path | None,
    as_json: bool,
    quiet: bool,
) -> int:
    """Judge the environment of the repository in PATH, or of an attempt of a run.

    \b
    Examples:
      reb verify path/to/repository --python path/to/venv/bin/python
      reb verify runs/starter-builtin/attempts/NAME--1
      reb verify --image IMAGE --task starter/NAME

    The interpreter is --python, else the report's, else the active VIRTUAL_ENV or
    CONDA_PREFIX unless that is reb's own, else PATH/.venv. Nothing in PATH or in the
    environment is changed, unless this host allows no layers and --in-place says that it
    may. An image is one that `reb env list` shows; its report is the one in it, unless
    --report names another.

    Exits with 0 when all that this host can test passed, 1 when something failed or was
    disqualified, 3 when something is inconclusive for another reason than the host's
    hardware.
    """
    from ..run.environments import other_task_of_folder
    from ..run.store import is_attempt
    from ..run.verification import check_python, new_results_folder, verify
    from .verdicts import exit_code, show_record

    def name_python(chosen: ChosenPython) -> None:
        click.echo(f"judging {chosen.path} (named by {chosen.named_by})", err=True)

    warnings: list[str] = []

    def warn(line: str) -> None:
        warnings.append(line)
        click.echo(line, err=True)

    # Whatever is wrong with the command line is said before anything is made or printed.
    chosen_levels = _levels(levels, stages)
    _check(path, image, sandbox, task_name, entry, report, in_place=in_place)
    if python is not None and image is None and not is_attempt(path):
        check_python(python)
    task = _task(None if image else path, task_name, entry, interactive=not (as_json or quiet))
    results = out or new_results_folder(None if image else path)
    tell = (
        (lambda *_, **__: None)
        if quiet or as_json
        else (lambda doing, **_: click.echo(f"  {doing}", err=True))
    )
    show_chosen = (lambda _: None) if as_json else name_python
    record: Record
    if image is not None:
        from ..run.image_verification import verify_image

        assert task is not None  # noqa: S101 - it was checked
        record = verify_image(
            image,
            task,
            engine=sandbox,
            report=report,
            python=python,
            levels=chosen_levels,
            fail_fast=fail_fast,
            repeats=repeats,
            out=results,
            assets=assets or "auto",
            say=tell,
            chosen=show_chosen,
            warn=warn,
        )
    else:
        if task is not None and (other := other_task_of_folder(path, task)):
            warn(f"this folder was built for {other}, and is judged by {task.name}")
        record = verify(
            path,
            python,
            task=task,
            report=report,
            levels=chosen_levels,
            fail_fast=fail_fast,
            repeats=repeats,
            out=results,
            in_place=in_place,
            assets=assets,
            say=tell,
            chosen=show_chosen,
        )
    show_record(record, results, as_json=as_json)
    if warnings and not as_json:
        click.echo(warnings[0], err=True)  # what was said first has gone out of sight
    return exit_code(record)


def _check(
    path: Path,
    image: str | None,
    sandbox: str | None,
    task_name: str | None,
    entry: str | None,
    report: Path | None,
    *,
    in_place: bool,
) -> None:
    """Refuse options that contradict each other, with what to do instead."""
    from ..run.store import is_attempt

    if image is not None:
        _refuse_of_an_image(path, {"--entry": entry, "--in-place": in_place or None})
        if task_name is None:
            raise click.UsageError("--image needs --task: SUITE/NAME, or a task's folder")
        return
    if sandbox is not None:
        raise click.UsageError("--sandbox has a meaning with --image only")
    if is_attempt(path):
        _refuse_of_an_attempt(path, {"--task": task_name, "--entry": entry, "--report": report})
    elif (path / "run.json").is_file():
        _refuse_a_run(path)
    if task_name is not None and entry is not None:
        raise click.UsageError("--task gives the stages already: leave out --entry, or --task")


def _refuse_of_an_image(path: Path, options: dict[str, object]) -> None:
    given = [name for name, value in options.items() if value is not None]
    if str(path) != ".":
        given.insert(0, str(path))
    if given:
        raise click.UsageError(f"an image is judged by its task: leave out {' and '.join(given)}")


def _refuse_of_an_attempt(path: Path, options: dict[str, object]) -> None:
    given = " and ".join(name for name, value in options.items() if value is not None)
    if given:
        raise click.UsageError(
            f"{path} is an attempt of a run, which has its own task and report: leave out {given}"
        )


def _refuse_a_run(path: Path) -> NoReturn:
    from ..run.store import RunFolder

    attempts = [shlex.quote(str(attempt.path)) for attempt in RunFolder(path).attempts()]
    if not attempts:
        raise click.UsageError(f"{path} is a run, and has no attempts yet: nothing to judge")
    shown = attempts[:_LISTED_ATTEMPTS]
    more = len(attempts) - len(shown)
    lines = [f"  reb verify {attempt}" for attempt in shown]
    lines += [f"  and {more} more in {path / 'attempts'}"] if more else []
    raise click.UsageError(
        "\n".join([f"{path} is a run, not an environment; judge an attempt of it:", *lines])
    )


def _levels(levels: tuple[str, ...], stages: tuple[str, ...]) -> tuple[Level, ...]:
    from ..attempt import Level
    from ..task import StageName
    from ..verify.entrypoint import LEVELS

    chosen = []
    for name in levels:
        try:
            chosen.append(Level(name.upper()))
        except ValueError:
            raise click.UsageError(f"there is no level {name!r}; levels are C0 to C5") from None
    for name in stages:
        try:
            chosen.append(LEVELS[StageName(name)])
        except ValueError:
            raise click.UsageError(
                f"there is no stage {name!r}; stages are {', '.join(StageName)}"
            ) from None
    return tuple(chosen) or tuple(Level)


def _task(
    path: Path | None, name: str | None, entry: str | None, *, interactive: bool
) -> Task | None:
    """The task that gives the stages: named, or made of an entry point that was confirmed."""
    if name is not None:
        from ..taskfile import find_task

        if "/" not in name and not (Path(name) / "task.toml").is_file():
            raise click.UsageError(f"--task takes SUITE/NAME or a task's folder, not {name!r}")
        return find_task(name)
    from ..run.store import is_attempt

    if path is None or is_attempt(path) or not path.is_dir():
        return None
    from ..run.entry_points import propose, task_of_entry

    if entry is not None:
        return task_of_entry(path, entry)
    proposed = propose(path)
    if proposed is None:
        return None
    if interactive and sys.stdin.isatty() and sys.stderr.isatty():
        if click.confirm(f"run `{proposed}` as the entry point on the CPU?", err=True):
            return task_of_entry(path, proposed)
    else:
        click.echo(
            f"an entry point was found and not run; to run it: "
            f"reb verify {shlex.quote(str(path))} --entry {shlex.quote(proposed)}",
            err=True,
        )
    return None
