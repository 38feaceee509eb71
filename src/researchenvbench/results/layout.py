"""Lines for a terminal: those that wrap with a hanging indent, and those that never break."""

from __future__ import annotations

import os
from dataclasses import dataclass
from typing import TYPE_CHECKING

from rich.measure import Measurement
from rich.text import Text

from .wording import clean

if TYPE_CHECKING:
    from pathlib import Path

    from rich.console import Console, ConsoleOptions, RenderResult

_NARROWEST = 20


@dataclass(frozen=True)
class Hanging:
    """A line that is indented, and indented further where it goes on."""

    text: Text
    indent: int = 0
    hang: int = 2
    head: str = ""  #: stands in the first line's indent

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        """Wrap to the room that the indent leaves."""
        room = max(_NARROWEST, options.max_width - self.indent - self.hang)
        for place, line in enumerate(self.text.wrap(console, room)):
            line.rstrip()
            head = "" if place else self.head
            yield Text(f"{head:<{self.indent + self.hang * bool(place)}}") + line

    def __rich_measure__(self, console: Console, options: ConsoleOptions) -> Measurement:
        """As wide as there is room."""
        return Measurement(_NARROWEST, options.max_width)


def whole(text: str, colour: str = "") -> Text:
    """A line that is meant to be copied and is never broken; print it with `crop=False`."""
    return Text(text, colour, no_wrap=True, overflow="ignore")


def path_line(label: str, path: Path | str, indent: int = 0) -> Text:
    """A path, relative to the current folder where it is below it."""
    shown = str(path)
    try:
        relative = os.path.relpath(path)
    except OSError:  # the current folder is gone
        relative = ".."
    shown = shown if relative.startswith("..") else relative
    return whole(f"{' ' * indent}{label}{clean(shown, 4000)}")
