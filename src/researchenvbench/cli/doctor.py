"""`reb doctor`: what this host can do."""

from __future__ import annotations

import click


@click.command("doctor")
@click.option("--json", "as_json", is_flag=True, help="Print as JSON.")
def command(as_json: bool) -> None:
    """Say what this host can do, what is missing, and how to get it.

    \b
    Example:
      reb doctor
    """
    import json

    from ..run.doctor import examine

    lines = examine()
    if as_json:
        click.echo(json.dumps([line.__dict__ for line in lines], indent=1))
        return
    for line in lines:
        mark = {"good": "  good ", "note": "  note ", "missing": "MISSING"}[line.state]
        click.echo(f"{mark}  {line.what}: {line.found}")
        if line.advice:
            click.echo(f"           {line.advice}")
