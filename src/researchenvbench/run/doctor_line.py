"""One line of what `reb doctor` says."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

State = Literal["good", "note", "missing"]


@dataclass(frozen=True)
class Line:
    """One thing that was looked at."""

    what: str
    found: str
    state: State = "good"
    advice: str = ""
