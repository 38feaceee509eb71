"""The option by which commands choose originals or stand-ins."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, TypeVar

import click

if TYPE_CHECKING:
    from collections.abc import Callable

F = TypeVar("F", bound="Callable[..., Any]")

_HELP = (
    "What stages read: the originals of weights and data, what stands in for them, or auto: "
    "originals where they are at hand."
)


def assets_option(*, of_attempts: bool = False) -> Callable[[F], F]:
    """`--assets`. For what may be an attempt, whose run was asked with a choice, no default."""
    choices = click.Choice(["auto", "real", "stand-in"])
    if of_attempts:
        told = f"{_HELP}  [default: auto; of an attempt, as its run]"
        return click.option("--assets", type=choices, help=told)
    return click.option("--assets", type=choices, default="auto", show_default=True, help=_HELP)
