"""How long the relay waits out a provider's faults before it passes one on."""

from __future__ import annotations

import email.utils
import random
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

#: Faults of the provider that pass; 529 is Anthropic's word for overloaded.
PASSING = frozenset({429, 500, 502, 503, 504, 529})
#: Types of errors that come with such a status and do not pass: an account is empty.
LASTING = frozenset({"insufficient_quota", "billing_hard_limit_reached", "billing_error"})


@dataclass(frozen=True)
class Patience:
    """Limits of waiting. Programs of agents give up after some five minutes of silence."""

    tries: int = 8  #: in all
    waiting_s: float = 240.0  #: in all, from the first try on
    first_s: float = 1.0  #: doubled with each further one
    longest_s: float = 60.0
    connect_s: float = 30.0  #: until a connection is there
    silent_s: float = 600.0  #: between two bytes of the provider; long for models that think
    jitter: Callable[[], float] = field(default=random.random)

    def wait_s(
        self, tried: int, elapsed_s: float, headers: Mapping[str, str] | None = None
    ) -> float | None:
        """How long to wait before the next try; null where it is to be passed on now.

        `headers` are those of the answer, where there was one.
        """
        headers = headers or {}
        if tried >= self.tries or headers.get("x-should-retry", "").lower() == "false":
            return None
        # Half of it by chance, so that agents that were refused together do not return so.
        wait = min(self.longest_s, self.first_s * 2 ** (tried - 1)) * (0.5 + self.jitter() / 2)
        said = told_wait_s(headers)
        if said is not None:
            wait = max(wait, said)
        return wait if elapsed_s + wait <= self.waiting_s else None


def told_wait_s(headers: Mapping[str, str]) -> float | None:
    """What `retry-after` asks for, in seconds: a number, or a date (RFC 9110, 10.2.3)."""
    finer = headers.get("retry-after-ms", "").strip()  # OpenAI's
    if finer.isdecimal():
        return int(finer) / 1000
    text = headers.get("retry-after", "").strip()
    if not text:
        return None
    try:
        seconds = float(text)
    except ValueError:
        try:
            date = email.utils.parsedate_to_datetime(text)
        except ValueError:
            return None
        if date.tzinfo is None:
            date = date.replace(tzinfo=UTC)
        seconds = (date - datetime.now(UTC)).total_seconds()
    # Neither infinite nor no number at all: comparisons with the latter are false.
    return max(0.0, seconds) if seconds < float("inf") else None
