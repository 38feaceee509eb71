"""`reb completion`: what makes the shell complete commands and options."""

from __future__ import annotations

import click
from click.shell_completion import get_completion_class


@click.command("completion")
@click.argument("shell", type=click.Choice(["bash", "zsh", "fish"]))
def command(shell: str) -> None:
    """Print the completion script for SHELL.

    \b
    Example:
      reb completion bash > ~/.local/share/bash-completion/completions/reb
    """
    from . import group

    kind = get_completion_class(shell)
    if kind is None:
        raise click.UsageError(f"this version of click knows no completion for {shell}")
    click.echo(kind(group, {}, "reb", "_REB_COMPLETE").source())
