"""What stages read: fetched or made, kept in a cache by its content, checked before each use."""

from __future__ import annotations

from .preparing import Here, check_again, check_ready, here, names_of, prepare, remove
from .ready import Choice, Missing, Origin, Ready
from .sizes import cached_bytes, fetched_bytes

__all__ = [
    "Choice",
    "Here",
    "Missing",
    "Origin",
    "Ready",
    "cached_bytes",
    "check_again",
    "check_ready",
    "fetched_bytes",
    "here",
    "names_of",
    "prepare",
    "remove",
]
