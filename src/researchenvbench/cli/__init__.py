"""The command line: one module a command, loaded when it is called.

Prints and exit codes live in this package and nowhere else. `reb --help` imports click and
nothing of the project but its version.
"""

from __future__ import annotations

import os
import sys
from importlib import import_module
from typing import Any, NoReturn

import click

from .. import __version__

#: Command -> (module, one line for the help). The modules hold a click command `command`.
COMMANDS = {
    "run": ("run", "Build with an agent, verify, audit and tabulate a suite."),
    "verify": ("verify", "Judge an environment: does the repository's code run in it?"),
    "build": ("build", "Make an environment for a repository, without any model."),
    "report": ("report", "Show the table of a run, or of several side by side."),
    "tasks": ("tasks", "List, show, check, count, prove, write and select tasks."),
    "agents": ("agents", "Who builds: list agents and presets, and see what one needs."),
    "sources": ("sources", "Keep the sources of tasks, so that they cannot vanish."),
    "assets": ("assets", "Weights and data that stages read: list, fetch, make, remove."),
    "env": ("env", "List, enter, export, import and remove environments."),
    "image": ("image", "Make and list the base images that containers start from."),
    "doctor": ("doctor", "What this host can do, what is missing, and --clean after a crash."),
    "completion": ("completion", "Print the shell completion script."),
    "job": ("job", "One phase of one attempt, as `reb run` does it."),
}
_HIDDEN = {"job"}

#: Exit codes, the same for all commands.
EXIT_FAILED, EXIT_USAGE, EXIT_INCONCLUSIVE, EXIT_INTERRUPTED = 1, 2, 3, 130


class LazyGroup(click.Group):
    """A group whose commands are imported when they are called."""

    def list_commands(self, ctx: click.Context) -> list[str]:  # noqa: ARG002  # click's signature
        """The names, in the order in which a reader wants them."""
        return [name for name in COMMANDS if name not in _HIDDEN]

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:  # noqa: ARG002
        """Import the command's module."""
        if cmd_name not in COMMANDS:
            return None
        module = import_module(f".{COMMANDS[cmd_name][0]}", __name__)
        command: click.Command = module.command
        return command

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """As click does, with the closest command's name where there is none of that name."""
        if args and args[0] not in COMMANDS and not args[0].startswith("-"):
            import difflib

            close = difflib.get_close_matches(args[0], list(COMMANDS), n=1)
            hint = f" Did you mean {close[0]!r}?" if close else " See `reb --help`."
            ctx.fail(f"There is no command {args[0]!r}.{hint}")
        return super().resolve_command(ctx, args)

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """The list of commands, without importing any of them."""
        rows = [(name, COMMANDS[name][1]) for name in self.list_commands(ctx)]
        with formatter.section("Commands"):
            formatter.write_dl(rows)


def _print_version(ctx: click.Context, _option: click.Parameter, asked: bool) -> None:
    if asked and not ctx.resilient_parsing:
        from .versions import versions

        click.echo("\n".join(f"{name} {version}" for name, version in versions()))
        ctx.exit()


@click.group(
    cls=LazyGroup,
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100},
    epilog="Exit codes: 0 good, 1 failed, 2 usage, 3 inconclusive, 130 interrupted.",
)
@click.option(
    "--version",
    is_flag=True,
    expose_value=False,
    is_eager=True,
    callback=_print_version,
    help="Show the version, and those of the tools that it drives.",
)
def group() -> None:
    """Does the research code really run here?

    \b
    Example:
      reb verify path/to/repository --python path/to/venv/bin/python
    """


def main() -> NoReturn:
    """Run the command line; every expected error becomes a line and an exit code."""
    from ..errors import RebError

    try:
        code: Any = group.main(prog_name="reb", standalone_mode=False)
    except click.ClickException as error:
        error.show()
        code = EXIT_USAGE
    except click.Abort:
        code = EXIT_INTERRUPTED
    except KeyboardInterrupt:
        code = EXIT_INTERRUPTED
    except RebError as error:
        click.echo(f"reb: {error}", err=True)
        code = EXIT_USAGE
    except BrokenPipeError:
        # Whoever read the output has gone (`reb … | head`); say nothing more to it.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        code = 0
    except OSError as error:
        where = f"{error.filename}: " if error.filename else ""
        click.echo(f"reb: {where}{error.strerror or error}", err=True)
        code = EXIT_USAGE
    sys.exit(code if isinstance(code, int) else 0)


__all__ = ["EXIT_FAILED", "EXIT_INCONCLUSIVE", "EXIT_INTERRUPTED", "EXIT_USAGE", "__version__"]
