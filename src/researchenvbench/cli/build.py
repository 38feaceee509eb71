"""`reb build`: an environment for a repository, without any model."""

from __future__ import annotations

import hashlib
import json
import os
import shlex
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
    default="commit",
    show_default=True,
    help="Take packages as of this day: YYYY-MM-DD, `commit` (that of the commit), or `none`.",
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
@click.option(
    "--log", type=click.Path(path_type=Path), help="The log.  [default: a file in the cache]"
)
@click.option("--replace", is_flag=True, help="Make an environment that is there already anew.")
@click.option("--json", "as_json", is_flag=True, help="Print outcome and report as JSON.")
@click.option("--quiet", is_flag=True, help="Only the last line.")
def command(
    path: Path,
    prefix: Path | None,
    index_date: str,
    minutes: float,
    report: Path | None,
    log: Path | None,
    replace: bool,
    as_json: bool,
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
    from ..agents.builtin import BuiltinAgent
    from ..building import assignment
    from ..gpu.inventory import inventory
    from ..sandbox.host_environment import host_environment
    from ..sandbox.local.in_place import user_box
    from ..source import commit_date

    agent = BuiltinAgent(index_date=index_date)
    repo = path.resolve()
    target = (prefix or repo / ".venv").absolute()
    _may_be_made(target, path, replace=replace)
    log_file = (log or _log_of(target)).absolute()
    log_file.parent.mkdir(parents=True, exist_ok=True)
    log_file.unlink(missing_ok=True)
    host = host_environment()

    def say(line: str) -> None:
        with log_file.open("a", encoding="utf-8") as stream:
            stream.write(f"# {line}\n")
        if not quiet and not as_json:
            click.echo(line, err=True)

    with user_box(repo, target) as box:
        outcome = agent.build(
            assignment(
                box,
                host,
                gpus=inventory().gpus,
                log=log_file,
                say=say,
                deadline=time.monotonic() + minutes * 60,
                date=commit_date(repo),
            )
        )
        written = box.layout.report.read_bytes() if box.layout.report.is_file() else None
    if report is not None and written is not None:
        report.write_bytes(written)
    complete = outcome.outcome == "finished" and outcome.exit_code == 0
    why = outcome.reason or ("" if complete else "see the log")
    if as_json:
        facts = {
            "complete": complete,
            "outcome": outcome.outcome,
            "reason": why,
            "prefix": str(target),
            "log": str(log_file),
            "report": json.loads(written) if written is not None else None,
        }
        click.echo(json.dumps(facts, indent=1))
    elif complete:
        if not quiet:
            click.echo(f"log: {log_file}", err=True)
        named = f" --python {shlex.quote(str(target))}" if prefix else ""
        click.echo(f"{target} is ready; judge it with: reb verify {shlex.quote(str(path))}{named}")
    else:
        click.echo(f"{target} is not complete: {why}; log: {log_file}")
    return 0 if complete else EXIT_FAILED


def _log_of(target: Path) -> Path:
    """Where the log of an environment is kept: beside verifications, and not in the repository.

    A repository is the user's own, and its status is looked at; the next build of the same
    environment writes over it.
    """
    from ..places import default_cache

    key = hashlib.sha256(os.fsencode(target)).hexdigest()[:12]
    return default_cache() / "builds" / f"{target.parent.name or 'root'}-{key}.log"


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
        f"{target} is there already. To make it anew: reb build {shlex.quote(str(path))} --replace"
    )
