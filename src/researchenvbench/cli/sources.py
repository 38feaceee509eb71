"""`reb sources`: keep bare copies of the commits that tasks name. And the option that uses them."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING

import click

from . import EXIT_FAILED

if TYPE_CHECKING:
    from ..task import Task


def _remember(_ctx: click.Context, _option: click.Parameter, folder: Path | None) -> None:
    """Name the folder to this process and to all that it starts, attempts among them."""
    if folder is not None:
        os.environ["REB_SOURCE_MIRROR"] = str(folder.absolute())


#: For commands that fetch the sources of tasks.
source_mirror_option = click.option(
    "--source-mirror",
    type=click.Path(path_type=Path, exists=True, file_okay=False),
    metavar="DIR",
    envvar="REB_SOURCE_MIRROR",
    expose_value=False,
    callback=_remember,
    help="Take sources from these mirrors first (reb sources mirror).  [env: REB_SOURCE_MIRROR]",
)

#: For commands that look for commits in repositories of this host.
from_option = click.option(
    "--from",
    "places",
    multiple=True,
    metavar="PLACE",
    type=click.Path(path_type=Path, exists=True, file_okay=False),
    help="A git repository of this host, or a folder of them, to look for the commits first.",
)


@click.group("sources")
def command() -> None:
    """Sources of tasks: keep them, so that a deleted repository shrinks no suite.

    \b
    Example:
      reb sources mirror path/to/mirrors SUITE
    """


@command.command("mirror", short_help="Keep a bare mirror of each commit of a suite.")
@click.argument("folder", metavar="DIR", type=click.Path(path_type=Path, file_okay=False))
@click.argument("suite_name", metavar="[SUITE]", required=False)
@click.option("--only", multiple=True, metavar="TASK", help="Only these tasks.")
@from_option
@click.option("--quiet", is_flag=True, help="Only what could not be had.")
def mirror(
    folder: Path,
    suite_name: str | None,
    only: tuple[str, ...],
    places: tuple[Path, ...],
    quiet: bool,
) -> int:
    """Keep a bare mirror of every commit that SUITE names in DIR; default: of all suites.

    \b
    Examples:
      reb sources mirror path/to/mirrors SUITE
      reb sources mirror path/to/mirrors SUITE --from path/to/clones

    What is there and whole is left as it is, so the same command goes on after an
    interruption. Exits with 1 when a commit could not be had, but for those of which the task
    says that nobody has them any more.
    """
    import time

    from ..errors import SourceError
    from ..mirrors import Mirror, copies_of, repositories_below
    from ..task import GitSource

    if only and suite_name is None:
        raise click.UsageError("--only needs SUITE")
    sources = [
        (task, task.source)
        for task in _tasks(suite_name, only)
        if isinstance(task.source, GitSource)
    ]
    if not sources:
        click.echo("no source there is a commit of a git repository: nothing to mirror")
        return 0
    place = Mirror(folder)
    copies = copies_of((source.commit for _, source in sources), repositories_below(places))
    failed = taken_bytes = had = 0
    for task, source in sources:
        started = time.monotonic()
        try:
            taken = place.take(source, task.folder, copies=copies)
        except SourceError as error:
            if source.unavailable:
                click.echo(f"{task.name}: source not available: {source.unavailable}")
            else:
                failed += 1
                click.echo(f"{task.name}: {error}", err=True)
            continue
        had += 1
        taken_bytes += taken.size_bytes
        if not quiet:
            came = f"from {taken.taken_from}" if taken.taken_from else "there already"
            seconds = time.monotonic() - started
            click.echo(f"{task.name}: {came} ({taken.size_bytes / 1e6:.1f} MB, {seconds:.1f} s)")
    click.echo(f"{had} of {len(sources)} commits are in {folder} ({taken_bytes / 1e6:.0f} MB)")
    return EXIT_FAILED if failed else 0


def _tasks(suite_name: str | None, only: tuple[str, ...]) -> list[Task]:
    from ..taskfile import bundled_suites, load_suite

    if suite_name is None:
        return [task for name in bundled_suites() for task in load_suite(name).tasks]
    suite = load_suite(suite_name)
    return [suite.task(name) for name in only] or list(suite.tasks)
