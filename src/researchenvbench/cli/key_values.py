"""Options that are written KEY=VALUE and may be repeated."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

if TYPE_CHECKING:
    from collections.abc import Iterable


def key_values(pairs: Iterable[str], flag: str) -> dict[str, str]:
    """What was given for the option `flag`; the last of two with one key holds.

    Raises:
        click.UsageError: one has no equals sign.
    """
    options = {}
    for pair in pairs:
        key, separator, value = pair.partition("=")
        if not separator:
            raise click.UsageError(f"{flag} takes KEY=VALUE, not {pair!r}")
        options[key] = value
    return options
