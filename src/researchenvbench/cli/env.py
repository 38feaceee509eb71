"""`reb env`: environments, of a run and of the container engines."""

from __future__ import annotations

import math
import os
import shlex
import subprocess
import threading
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

if TYPE_CHECKING:
    from collections.abc import Iterator

#: Columns of a run's environments, beside their sizes.
_RUN = ("attempt", "python", "image")
#: After which it is said what takes so long.
_PATIENCE_S = 2.0
_WHOSE = click.option(
    "--sandbox",
    type=click.Choice(["podman", "docker"]),
    help="Whose.  [default: all that work]",
)


@click.group("env")
def command() -> None:
    """Environments that attempts left: list, enter, move, remove.

    \b
    Examples:
      reb env shell runs/starter-builtin/attempts/NAME--1 --stage cpu
      reb env export runs/starter-builtin-podman/attempts/NAME--1 NAME.oci
    """


@command.command("list", short_help="List environments, with their sizes.")
@click.argument("run", required=False, type=click.Path(path_type=Path))
@_WHOSE
@click.option("--json", "as_json", is_flag=True, help="Print as JSON.")
def list_environments(run: Path | None, sandbox: str | None, as_json: bool) -> None:
    """List the environments of RUN, or all that podman and docker keep here, with their sizes.

    \b
    Examples:
      reb env list runs/starter-builtin
      reb env list

    The size is all that a build left: source, environment, caches. In a container it is what
    the image has over its base image, which environments share. The prefix is the folder of the
    reported interpreter alone, as the run's table and page show it; where that interpreter is
    the base image's, it is shared, too.
    """
    import json

    from ..results.wording import plural

    if run is not None and sandbox is not None:
        raise click.UsageError("--sandbox has a meaning without RUN only")
    with _patience():
        rows = _of_engines(sandbox) if run is None else _of_run(run)
    if as_json:
        click.echo(json.dumps(rows, indent=1))
        return
    if not rows:
        click.echo("none" if run is None else f"none in {run}")
        return
    headings = ("created", "name", "attempt") if run is None else ("prefix", *_RUN)
    for line in _table(("size", *headings), [(_size(row), *_cells(row, run)) for row in rows]):
        click.echo(line)
    sizes = [row["size_bytes"] for row in rows if row["size_bytes"] and not row.get("absent")]
    click.echo(f"{plural(len(rows), 'environment')}, {sum(sizes) / 1e6:.1f} MB")


def _size(row: dict[str, Any]) -> str:
    size = row["size_bytes"]
    if row.get("absent"):
        # An engine keeps images for each user: another one's may be there.
        return "not here" if row["image"] else "removed"
    if isinstance(size, int):
        return f"{size / 1e6:.1f} MB"
    return "not built" if row.get("finished") else "unfinished"


def _prefix(size_bytes: int | None) -> str:
    """As the run's table writes it."""
    from ..results.wording import size

    return size(size_bytes)


def _cells(row: dict[str, Any], run: Path | None) -> tuple[str, ...]:
    from ..sandbox.containers.inventory import short_id

    if run is not None:
        return (
            _prefix(row["prefix_bytes"]),
            row["attempt"],
            row["python"] or "",
            short_id(row["image"] or ""),
        )
    there = "" if row["attempt_exists"] else "  (not on this host)"
    name = row["name"] if row["name"] != row["image"] else short_id(row["image"])
    return (row["created"][:16].replace("T", " "), name, f"{row['attempt'] or '?'}{there}")


def _table(headings: tuple[str, ...], rows: list[tuple[str, ...]]) -> Iterator[str]:
    """Lines as they are, however narrow the terminal: paths in them are to be copied."""
    widths = [max(map(len, column)) for column in zip(headings, *rows, strict=True)]
    for first, *rest in (headings, *rows):
        cells = [first.rjust(widths[0])]
        cells += [cell.ljust(width) for cell, width in zip(rest, widths[1:], strict=True)]
        yield "  ".join(cells).rstrip()


@contextmanager
def _patience() -> Iterator[None]:
    """Say what takes so long, if it does."""
    timer = threading.Timer(_PATIENCE_S, _say, ["asking the engines what they have ..."])
    timer.daemon = True
    timer.start()
    try:
        yield
    finally:
        timer.cancel()


def _of_engines(sandbox: str | None) -> list[dict[str, Any]]:
    from ..run.environments import all_environments

    rows = []
    for found in all_environments(sandbox, say=_say):
        image = found.image
        rows.append(
            {
                "engine": image.engine,
                "image": image.id,
                "name": image.name,
                "digest": image.digest,
                "content": image.content,
                "attempt": str(image.attempt) if image.attempt else None,
                "attempt_exists": image.attempt is not None and image.attempt.is_dir(),
                "imported": image.moved,
                "size_bytes": image.own_bytes,
                "with_base_bytes": image.size_bytes,
                "created": image.created,
                "base": image.base_name,
                "base_id": image.base_id,
                "base_digest": image.base_digest,
            }
        )
    return rows


def _of_run(run: Path) -> list[dict[str, Any]]:
    from ..errors import RecordError
    from ..run.environments import absent_environments
    from ..run.store import RunFolder

    RunFolder(run).require()
    attempts = RunFolder(run).attempts()
    builds = [attempt.load_build() for attempt in attempts]
    absent = absent_environments(
        {
            attempt.path: build.environment
            for attempt, build in zip(attempts, builds, strict=True)
            if build is not None and build.environment is not None
        },
        say=_say,
    )
    rows = []
    for attempt, build in zip(attempts, builds, strict=True):
        report = build.report if build else None
        environment = build.environment if build else None
        record = None
        with suppress(RecordError):
            record = attempt.load_record()
        rows.append(
            {
                "attempt": str(attempt.path),
                "finished": build is not None,
                "python": report.python_path if report else None,
                "files": environment.files if environment else None,
                "size_bytes": environment.size_bytes if environment else None,
                "prefix_bytes": record.sizes.prefix_bytes if record else None,
                "image": environment.image if environment else None,
                "absent": attempt.path in absent,
                "base": environment.base_image if environment else None,
            }
        )
    return rows


def _days(_: click.Context, __: click.Parameter, text: str | None) -> float | None:
    """The number of days that was given."""
    if text is None:
        return None
    try:
        days = float(text)
    except ValueError:
        days = -1.0
    if not 0 <= days < math.inf:
        raise click.BadParameter(f"{text!r} is not a number of days, such as 7 or 0.5")
    return days


@command.command("prune", short_help="Remove container environments; records stay.")
@click.option("--dry-run", is_flag=True, help="Say what would be removed.")
@click.option(
    "--run",
    type=click.Path(path_type=Path),
    help="Those of this run, also where its folder is there.",
)
@click.option(
    "--older-than",
    "days",
    callback=_days,
    metavar="DAYS",
    help="Those older, also where their attempt is there.",
)
@_WHOSE
@click.option("--json", "as_json", is_flag=True, help="Print as JSON.")
def prune_environments(
    dry_run: bool, run: Path | None, days: float | None, sandbox: str | None, as_json: bool
) -> int:
    """Remove container environments; records and logs of attempts stay.

    \b
    Examples:
      reb env prune --dry-run
      reb env prune --run runs/starter-builtin-podman

    Without --run and --older-than those are removed whose attempt's folder is gone. Imported
    ones, those that you gave a name, and those in use stay. Base images stay.
    """
    from ..run.environments import all_environments, prune
    from ..run.store import RunFolder
    from .doctor import show_items

    if run is not None:
        RunFolder(run).require()
    with _patience():
        found = all_environments(sandbox, say=_say)
    items = prune(found, run=run, older_than_days=days, dry_run=dry_run)
    return show_items(items, dry_run, as_json)


@command.command("export", short_help="Write a container environment to a file.")
@click.argument("environment", metavar="ATTEMPT|IMAGE")
@click.argument("file", type=click.Path(dir_okay=False, path_type=Path))
@click.option(
    "--format",
    "form",
    type=click.Choice(["oci", "tar"]),
    default="oci",
    show_default=True,
    help="oci: an OCI archive, compressed; tar: for `docker load`, keeps the image's id.",
)
@click.option("--sandbox", type=click.Choice(["podman", "docker"]), help="Whose image.")
@click.option("--force", is_flag=True, help="Write over a file.")
def export(environment: str, file: Path, form: Any, sandbox: str | None, force: bool) -> None:
    """Write an attempt's container environment to a file, to be verified elsewhere.

    \b
    Example:
      reb env export runs/starter-builtin-podman/attempts/NAME--1 NAME.oci
    """
    from ..run.environments import find_environment
    from ..sandbox.containers.moving import export_image

    found = find_environment(environment, sandbox)
    size_bytes = export_image(found.engine, found.image, file, form, force=force, say=_say)
    click.echo(f"{file}  {size_bytes / 1e6:.0f} MB\n  content  {found.image.content}")
    click.echo(f"to load it there: reb env import {shlex.quote(file.name)}")


@command.command("import", short_help="Load an environment from such a file.")
@click.argument("file", type=click.Path(dir_okay=False, path_type=Path))
@click.option(
    "--sandbox",
    type=click.Choice(["podman", "docker"]),
    help="Where to.  [default: the first that works]",
)
def import_(file: Path, sandbox: str | None) -> None:
    """Load an environment from a file that `reb env export` wrote.

    \b
    Example:
      reb env import NAME.oci
    """
    from ..run.environments import task_of
    from ..sandbox.containers.moving import import_image
    from ..sandbox.engines.finding import require_engine

    image = import_image(require_engine(sandbox), file, say=_say)
    click.echo(f"{image.name}\n  id       {image.id}\n  content  {image.content}")
    click.echo(f"  base     {image.base_name or 'not said'}")
    task = shlex.quote(task_of(image))
    click.echo(f"to verify it: reb verify --image {image.name} --task {task}")


def _say(line: str) -> None:
    click.echo(f"  {line}", err=True)


@command.command("shell", short_help="Open a shell in it, as a stage would see it.")
@click.argument("attempt", type=click.Path(exists=True, file_okay=False, path_type=Path))
@click.option("--stage", "stage_name", default="cpu", show_default=True, help="As it would see it.")
@click.option("-c", "line", metavar="COMMAND", help="Run this and leave.")
def shell(attempt: Path, stage_name: str, line: str | None) -> int:
    """Open a shell in ATTEMPT's environment, as a stage would see it.

    \b
    Example:
      reb env shell runs/starter-builtin/attempts/NAME--1

    It starts from the frozen state; what is changed in it is thrown away when it ends.
    """
    from ..errors import RebError
    from ..gpu.inventory import inventory
    from ..run.job import AttemptRun
    from ..run.store import is_attempt
    from ..task import StageName
    from ..verify import assets
    from ..verify.entrypoint import prepare
    from ..verify.pyramid import with_interpreter

    if not is_attempt(attempt):
        raise click.UsageError(f"{attempt} is no attempt of a run; they lie in RUN/attempts/")
    run = AttemptRun(attempt)
    run.say = lambda *_, **__: None
    if stage_name not in run.task.stages:
        raise click.UsageError(
            f"the task has no stage {stage_name!r}; it has {', '.join(run.task.stages)}"
        )
    name = StageName(stage_name)
    subject = run.subject(attempt.absolute(), run.source(), stages=[name])
    reported = subject.report.python_path if subject.report else None
    subject = with_interpreter(subject, reported)
    if subject.interpreter is None:
        raise RebError(f"no usable interpreter: {subject.interpreter_error}")
    stage = run.task.stages[name]
    if problem := assets.problem(subject, stage):
        raise RebError(problem[0], advice=problem[1])
    places = assets.shown(subject, stage).places
    with subject.open_box(network=stage.network, assets=places) as box:
        prepared = prepare(subject, stage, box, inventory().gpus[: run.task.gpus(name)])
        environment = {**prepared.environment, "TERM": os.environ.get("TERM", "dumb")}
        if line is None:
            click.echo(f"the stage would run: {' '.join(prepared.argv)}", err=True)
        argv = ["bash", "--norc", *(["-c", line] if line else ["-i"])]
        order = prepared.command(argv, environment)
        return subprocess.run(box.interactive_argv(order), check=False).returncode
