"""Answers of servers, kept for a day: so that what was cut off goes on, and nothing is asked twice.

An answer is kept under its address, without headers; no token is in either.
"""

from __future__ import annotations

import hashlib
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any

from ..errors import RecordError
from ..stored import Stored

if TYPE_CHECKING:
    from pathlib import Path

_KEPT = timedelta(days=1)


class Answer(Stored):
    """What a server said."""

    address: str
    asked: datetime
    said: dict[str, Any]


class Answers:
    """A folder of answers."""

    def __init__(self, folder: Path, *, fresh: bool = False) -> None:
        """The answers in `folder`; `fresh`: what is there already is not used."""
        self._folder = folder
        self._not_before = datetime.now(UTC) - (timedelta() if fresh else _KEPT)
        #: When the oldest was asked that was used; None where all are new.
        self.oldest: datetime | None = None

    def get(self, address: str) -> dict[str, Any] | None:
        """The answer of before; None where there is none, or it is too old."""
        try:
            answer = Answer.load(self._place(address))
        except RecordError:
            return None  # absent, or damaged: it is asked again
        if answer.address != address or answer.asked < self._not_before:
            return None
        self.oldest = min(self.oldest or answer.asked, answer.asked)
        return answer.said

    def keep(self, address: str, said: dict[str, Any]) -> None:
        """Keep an answer.

        Raises:
            OSError: the folder cannot be written.
        """
        self._folder.mkdir(parents=True, exist_ok=True)
        Answer(address=address, asked=datetime.now(UTC), said=said).save(self._place(address))

    def _place(self, address: str) -> Path:
        return self._folder / f"{hashlib.sha256(address.encode()).hexdigest()[:40]}.json"
