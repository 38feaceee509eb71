"""`reb env`: the environments of a run."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import click


@click.group("env")
def command() -> None:
    """Environments that attempts left.

    \b
    Example:
      reb env shell runs/starter-builtin/attempts/NAME--1 --stage cpu
    """


@command.command("list")
@click.argument("run", type=click.Path(exists=True, file_okay=False, path_type=Path))
@click.option("--json", "as_json", is_flag=True, help="Print as JSON.")
def list_environments(run: Path, as_json: bool) -> None:
    """List the environments of RUN with their sizes.

    \b
    Example:
      reb env list runs/starter-builtin
    """
    import json

    from ..run.store import RunFolder

    rows = []
    for attempt in RunFolder(run).attempts():
        build = attempt.load_build()
        report = build.report if build else None
        environment = build.environment if build else None
        rows.append(
            {
                "attempt": str(attempt.path),
                "finished": build is not None,
                "python": report.python_path if report else None,
                "files": environment.files if environment else None,
                "size_bytes": environment.size_bytes if environment else None,
            }
        )
    if as_json:
        click.echo(json.dumps(rows, indent=1))
        return
    for row in rows:
        size = row["size_bytes"]
        if isinstance(size, int):
            shown = f"{size / 1e6:8.0f} MB"
        else:
            shown = "not built  " if row["finished"] else "unfinished "
        click.echo(f"{shown}  {row['attempt']}  {row['python'] or ''}")


@command.command("shell")
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
    from ..run.job import AttemptRun
    from ..run.store import is_attempt
    from ..sandbox.gpu import inventory
    from ..task import StageName
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
    subject = run.subject(attempt.absolute(), run.source())
    reported = subject.report.python_path if subject.report else None
    subject = with_interpreter(subject, reported)
    if subject.interpreter is None:
        raise RebError(f"no usable interpreter: {subject.interpreter_error}")
    stage = run.task.stages[name]
    with subject.open_box(network=stage.network) as box:
        prepared = prepare(subject, stage, box, inventory().gpus[: run.task.gpus(name)])
        environment = {**prepared.environment, "TERM": os.environ.get("TERM", "dumb")}
        if line is None:
            click.echo(f"the stage would run: {' '.join(prepared.argv)}", err=True)
        argv = ["bash", "--norc", *(["-c", line] if line else ["-i"])]
        order = prepared.command(argv, environment)
        return subprocess.run(box.interactive_argv(order), check=False).returncode
