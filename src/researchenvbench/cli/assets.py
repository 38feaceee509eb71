"""`reb assets`: what stages read. List it, fetch or make it beforehand, remove it."""

from __future__ import annotations

import json
import sys
from typing import TYPE_CHECKING, Any

import click

from . import EXIT_FAILED
from .assets_option import assets_option
from .part_options import check_offline, part_options
from .sources import source_mirror_option

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from rich.table import Table

    from ..assets import Choice, Missing, Ready
    from ..run.part import Subset
    from ..sandbox import HostEnvironment
    from ..source import Snapshot
    from ..task import StageName, Task

#: Wide enough for every line, where no terminal limits it.
_FILE_COLUMNS = 200


@click.group("assets")
def command() -> None:
    """Assets: the weights and data that stages read, and what stands in for them.

    \b
    Example:
      reb assets fetch SUITE
    """


@command.command("list", short_help="Show what stages read, and what of it is here.")
@click.argument("suite_name", metavar="SUITE")
@part_options
@click.option("--json", "as_json", is_flag=True, help="Print as JSON.")
def list_assets(
    suite_name: str,
    only: tuple[str, ...],
    subsets: tuple[Subset, ...],
    domains: tuple[str, ...],
    as_json: bool,
) -> None:
    """Show what the stages of SUITE read, and what of it is in the cache.

    \b
    Example:
      reb assets list SUITE --only TASK
    """
    from rich.console import Console

    rows = [row for task in _tasks(suite_name, only, subsets, domains) for row in _rows(task)]
    if as_json:
        click.echo(json.dumps(rows, indent=1))
    elif rows:
        Console(width=None if sys.stdout.isatty() else _FILE_COLUMNS).print(_table(rows))
    else:
        click.echo("no stage of these tasks reads an asset")


@command.command("fetch", short_help="Fetch or make what stages read.")
@click.argument("suite_name", metavar="SUITE")
@part_options
@assets_option()
@click.option(
    "--check",
    is_flag=True,
    help="Also read all of it again, and run each recipe a second time: it must make the same.",
)
@click.option("--quiet", is_flag=True, help="Only what could not be had.")
@source_mirror_option
def fetch(
    suite_name: str,
    only: tuple[str, ...],
    subsets: tuple[Subset, ...],
    domains: tuple[str, ...],
    assets: Choice,
    check: bool,
    quiet: bool,
) -> int:
    """Fetch or make, before anything is run, all that the stages of SUITE read.

    \b
    Examples:
      reb assets fetch SUITE
      reb assets fetch SUITE --subset proven
      reb assets fetch SUITE --only TASK --assets stand-in --check

    What is in the cache is left as it is, and a download that was cut off goes on. A hub's
    address is taken from HF_ENDPOINT and an account's token from HF_TOKEN. Exits with 1 when
    something could not be had.
    """
    from ..assets import Missing, check_again, prepare
    from ..sandbox.host_environment import host_environment

    def tell(line: str) -> None:
        if not quiet:
            click.echo(line, err=True)

    check_offline(subsets, assets)
    host = host_environment()
    failed = had = 0
    for task in _tasks(suite_name, only, subsets, domains):
        stages = [
            name
            for name, stage in task.stages.items()
            if not (stage.not_solvable or stage.not_distributed)
        ]
        snapshot = _snapshot(task, stages, host, tell)
        found = prepare(task, stages, assets, snapshot=snapshot, host=host, say=tell)
        for name, asset in found.items():
            problem = _problem(asset)
            if not problem and check:
                problem = check_again(task, name, host=host, say=tell) or ""
            failed += bool(problem)
            had += not problem
            if problem:
                click.echo(f"{task.name}: {name}: {problem}", err=True)
            elif not quiet and not isinstance(asset, Missing):
                click.echo(f"{task.name}: {name}: {asset.origin}, digest {asset.digest}")
    click.echo(f"{had} of {had + failed} assets are here")
    return EXIT_FAILED if failed else 0


@command.command("remove", short_help="Remove what was fetched and made.")
@click.option(
    "--unused",
    is_flag=True,
    help="Only what no task asks for any more, downloads that were cut off, and logs.",
)
def remove(unused: bool) -> None:
    """Remove what was fetched and made; it is had anew when a stage reads it.

    \b
    Example:
      reb assets remove --unused

    Not while something runs.
    """
    from ..assets import remove as remove_from_cache

    freed = remove_from_cache(unused=unused)
    click.echo(f"removed; {freed / 1e6:.1f} MB are free again")


def _tasks(
    suite_name: str,
    only: tuple[str, ...],
    subsets: tuple[Subset, ...],
    domains: tuple[str, ...],
) -> list[Task]:
    from ..run.part import choose
    from ..taskfile import load_suite

    return choose(load_suite(suite_name), only=only, subsets=subsets, domains=domains)[0]


def _snapshot(
    task: Task, stages: list[StageName], host: HostEnvironment, tell: Callable[[str], None]
) -> Snapshot | None:
    """The source, where an asset of a stage lies in it and it can be had."""
    from ..asset import SourceAsset
    from ..assets import names_of
    from ..errors import SourceError
    from ..source import fetch_source

    named = names_of(task, stages)
    if not any(isinstance(task.assets[name], SourceAsset) for name in named):
        return None
    try:
        return fetch_source(task, installs=host.installs)
    except SourceError as error:
        tell(f"{task.name}: its source cannot be had: {error}")
        return None


def _problem(asset: Ready | Missing) -> str:
    from ..assets import Missing

    if not isinstance(asset, Missing):
        return ""
    return f"{asset.why}\n  {asset.advice}" if asset.advice else asset.why


def _rows(task: Task) -> Iterator[dict[str, Any]]:
    """What there is to say of each asset of a task."""
    from ..asset import MadeAsset
    from ..assets import here

    for name, asset in task.assets.items():
        found = here(task, name)
        has = [("real", found.original), ("stand-in", found.stand_in)]
        if isinstance(asset, MadeAsset):
            has = [("made", found.stand_in)]
        there = [word for word, size in has if size is not None]
        sizes = [size for _, size in has if size is not None]
        yield {
            "task": task.name,
            "stages": [stage for stage in task.stages if name in task.stages[stage].assets],
            "asset": name,
            "kind": asset.kind,
            "placed": asset.placed,
            "bytes": asset.size_bytes if asset.size_bytes is not None else next(iter(sizes), None),
            "licence": asset.licence,
            "gated": asset.gated,
            "pinned": not asset.why_not_pinned,
            "stand_in": asset.recipe is not None,
            "here": there,
        }


def _table(rows: list[dict[str, Any]]) -> Table:
    from rich.table import Table

    table = Table(box=None, pad_edge=False)
    headings = ("task", "stages", "asset", "kind", "MB", "licence", "gated", "pinned", "stand-in")
    for heading in (*headings, "here"):
        table.add_column(heading, justify="right" if heading == "MB" else "left")
    for row in rows:
        table.add_row(
            row["task"],
            " ".join(row["stages"]) or "-",
            row["asset"],
            row["kind"],
            "?" if row["bytes"] is None else f"{row['bytes'] / 1e6:.1f}",
            row["licence"] or "?",
            "yes" if row["gated"] else "no",
            # What is made has no original, to be pinned or to be stood in for.
            *(
                "-" if row["kind"] == "made" else "yes" if row[key] else "no"
                for key in ("pinned", "stand_in")
            ),
            ", ".join(row["here"]) or "no",
        )
    return table
