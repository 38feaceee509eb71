"""`reb job`: one phase of one attempt."""

from __future__ import annotations

from pathlib import Path

import click


@click.command("job")
@click.argument("folder", type=click.Path(exists=True, file_okay=False, path_type=Path))
@click.option(
    "--phase",
    type=click.Choice(["build", "verify", "all"]),
    default="all",
    show_default=True,
    help="Which phase to do.",
)
@click.option("--reverify", is_flag=True, help="Make the levels' results anew.")
def command(folder: Path, phase: str, reverify: bool) -> None:
    """Do one attempt, as the job.json in FOLDER describes it.

    \b
    Example:
      reb job runs/starter-builtin/attempts/NAME--1 --phase verify

    It writes its results into FOLDER, can be killed at any moment, and goes on where it was
    when it is called again. `reb run` does the same for each attempt, in a process of its own.
    """
    from ..run.job import run_job

    run_job(folder, phase, reverify=reverify)
