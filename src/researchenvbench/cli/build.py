"""`reb build`: an environment for a repository, without any model."""

from __future__ import annotations

import sys
import time
from pathlib import Path

import click

from . import EXIT_FAILED


@click.command("build")
@click.argument("path", type=click.Path(exists=True, file_okay=False, path_type=Path), default=".")
@click.option(
    "--prefix", type=click.Path(path_type=Path), help="The environment.  [default: PATH/.venv]"
)
@click.option(
    "--index-date",
    metavar="DATE",
    help="Take packages as of this day (YYYY-MM-DD), or `commit`: the day of the commit.",
)
@click.option(
    "--time-limit",
    "minutes",
    type=click.FloatRange(min=0.01),
    default=60.0,
    show_default=True,
    metavar="MINUTES",
)
@click.option("--report", type=click.Path(path_type=Path), help="Also write the report here.")
@click.option("--log", type=click.Path(path_type=Path), help="The log.  [default: PREFIX.log]")
@click.option("--replace", is_flag=True, help="Make an environment that is there already anew.")
@click.option("--quiet", is_flag=True, help="Only the last line.")
def command(
    path: Path,
    prefix: Path | None,
    index_date: str | None,
    minutes: float,
    report: Path | None,
    log: Path | None,
    replace: bool,
    quiet: bool,
) -> int:
    """Make an environment in which the repository in PATH runs.

    \b
    Example:
      reb build path/to/repository && reb verify path/to/repository

    Reads the repository's own manifests and imports, chooses a Python and a framework that
    fit this host, installs, tries the imports, and says why at each step. It installs no
    system packages.
    """
    from ..agents import Assignment
    from ..agents.builtin import BuiltinAgent
    from ..sandbox.gpu import inventory
    from ..sandbox.host_environment import base_environment, host_environment
    from ..sandbox.in_place import user_box
    from ..source import commit_date

    repo = path.resolve()
    target = (prefix or repo / ".venv").absolute()
    _may_be_made(target, path, replace=replace)
    log_file = (log or target.with_name(f"{target.name}.log")).absolute()
    log_file.parent.mkdir(parents=True, exist_ok=True)
    log_file.unlink(missing_ok=True)
    host = host_environment()

    def say(line: str) -> None:
        with log_file.open("a", encoding="utf-8") as stream:
            stream.write(f"# {line}\n")
        if not quiet:
            click.echo(line, err=True)

    with user_box(repo, target) as box:
        outcome = BuiltinAgent(index_date=index_date or "commit").build(
            Assignment(
                box=box,
                environment=base_environment(box.layout, host, installs=True),
                log=log_file,
                say=say,
                deadline=time.monotonic() + minutes * 60,
                gpus=tuple(gpu.name for gpu in inventory().gpus),
                date=commit_date(repo),
            )
        )
        written = box.layout.report.read_bytes() if box.layout.report.is_file() else None
    if report is not None and written is not None:
        report.write_bytes(written)
    if outcome.outcome == "finished" and outcome.exit_code == 0:
        click.echo(f"{target} is ready; judge it with: reb verify {path}")
        return 0
    why = outcome.reason or "see the log"
    click.echo(f"{target} is not complete: {why}; log: {log_file}")
    return EXIT_FAILED


def _may_be_made(target: Path, path: Path, *, replace: bool) -> None:
    """Refuse to empty a folder that the user has not said may go."""
    if not target.exists() or (target.is_dir() and not any(target.iterdir())):
        return
    if not (target / "pyvenv.cfg").is_file():
        raise click.UsageError(f"{target} is there, and is no virtual environment: choose another")
    if replace:
        return
    if sys.stdin.isatty() and sys.stderr.isatty():
        click.confirm(f"{target} is there already; make it anew?", err=True, abort=True)
        return
    raise click.UsageError(
        f"{target} is there already. To make it anew: reb build {path} --replace"
    )
