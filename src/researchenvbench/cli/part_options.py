"""The options by which commands choose tasks of a suite."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, TypeVar

import click

if TYPE_CHECKING:
    from collections.abc import Callable

F = TypeVar("F", bound="Callable[..., Any]")

_OPTIONS = (
    click.option("--only", multiple=True, metavar="TASK", help="Only these tasks."),
    click.option(
        "--subset",
        "subsets",
        multiple=True,
        type=click.Choice(["cpu", "offline", "small", "proven"]),
        help="Only tasks with a stage that is in all of these: cpu, it needs no GPU; offline, no "
        "hub or server is asked for what stages read; small, gold took at most 2 GB and 10 "
        "minutes; proven, by the ledger.",
    ),
    click.option(
        "--domain", "domains", multiple=True, metavar="NAME", help="Only tasks of these domains."
    ),
)


def part_options(function: F) -> F:
    """`--only`, `--subset` and `--domain`, each of which may be given several times."""
    for option in reversed(_OPTIONS):
        function = option(function)
    return function


def check_offline(subsets: tuple[str, ...], assets: str) -> None:
    """See that nobody asks for what needs no hub, and for what lies on one.

    Raises:
        click.UsageError: both were asked for.
    """
    if "offline" in subsets and assets == "real":
        raise click.UsageError(
            "--subset offline is what needs no hub, and --assets real asks hubs for originals: "
            "leave one of them out"
        )
