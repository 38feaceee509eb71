"""`reb doctor`: what this host can do, and the removal of what crashes have left."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

if TYPE_CHECKING:
    from collections.abc import Sequence

    from ..run.cleaning import Item

_MARKS = {"removed": "removed", "kept": "   kept", "failed": " FAILED"}


@click.command("doctor")
@click.option("--clean", is_flag=True, help="Remove what belongs to no live run, and nothing else.")
@click.option("--dry-run", is_flag=True, help="With --clean: say what would be removed.")
@click.option("--gpu", is_flag=True, help="Have each GPU compute, and copy to the others.")
@click.option("--json", "as_json", is_flag=True, help="Print as JSON.")
def command(clean: bool, dry_run: bool, gpu: bool, as_json: bool) -> int:
    """Say what this host can do, what is missing, and how to get it.

    \b
    Examples:
      reb doctor
      reb doctor --gpu
      reb doctor --clean --dry-run

    Nothing has to be set by hand: the flags that are shown are those that runs use.
    """
    import json

    if dry_run and not clean:
        raise click.UsageError("--dry-run has a meaning with --clean only")
    if gpu and clean:
        raise click.UsageError("--gpu and --clean are two questions: ask one after the other")
    if clean:
        from ..run.cleaning import clean as clean_up
        from ..sandbox.engines.finding import usable_engines

        return show_items(clean_up(usable_engines(), dry_run=dry_run), dry_run, as_json)
    from ..run.doctor import examine
    from ..run.doctor_gpus import examine_gpus

    lines = examine_gpus() if gpu else examine()
    if as_json:
        click.echo(json.dumps([line.__dict__ for line in lines], indent=1))
        return 0
    for line in lines:
        mark = {"good": "  good ", "note": "  note ", "missing": "MISSING"}[line.state]
        click.echo(f"{mark}  {line.what}: {line.found}")
        if line.advice:
            click.echo(f"           {line.advice}")
    return 0


def show_items(items: Sequence[Item], dry_run: bool, as_json: bool) -> int:
    """Print what was removed and what was kept, and why; 1 where something could not be."""
    import json

    from . import EXIT_FAILED

    failed = any(item.done == "failed" for item in items)
    if as_json:
        shown = [{**item.__dict__, "dry_run": dry_run} for item in items]
        click.echo(json.dumps(shown, indent=1))
        return EXIT_FAILED if failed else 0
    for item in items:
        mark = "  would" if dry_run and item.done == "removed" else _MARKS[item.done]
        size = f"  {item.size_bytes / 1e6:.0f} MB" if item.size_bytes else ""
        click.echo(f"{mark}  {item.what} {item.name}{size}: {item.why}")
    removed = [item for item in items if item.done == "removed"]
    freed = sum(item.size_bytes for item in removed) / 1e6
    would = "would be removed" if dry_run else "removed"
    click.echo(f"{len(removed)} {would}, {freed:.0f} MB; {len(items) - len(removed)} stay")
    return EXIT_FAILED if failed else 0
