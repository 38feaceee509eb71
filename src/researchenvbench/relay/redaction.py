"""Takes keys and tokens out of what is kept or shown."""

from __future__ import annotations

import base64
import json
from typing import TYPE_CHECKING
from urllib.parse import quote

if TYPE_CHECKING:
    from collections.abc import Iterable

MARK = b"[redacted]"


class Redactor:
    """Replaces secrets, in the spellings in which they turn up in JSON, addresses, headers."""

    def __init__(self, secrets: Iterable[str]) -> None:
        spellings: set[bytes] = set()
        for secret in secrets:
            spellings |= {spelling.encode() for spelling in _spellings(secret)}
        #: The longest first: one may lie within another.
        self._spellings = sorted(spellings, key=len, reverse=True)
        self._longest = max(map(len, spellings), default=1)

    def clean(self, text: bytes) -> bytes:
        """`text` without secrets."""
        for spelling in self._spellings:
            text = text.replace(spelling, MARK)
        return text

    def holds_secret(self, text: bytes) -> bool:
        """Whether a secret occurs."""
        return any(spelling in text for spelling in self._spellings)

    def stream(self) -> RedactedStream:
        """For a text that comes in pieces."""
        return RedactedStream(self, self._longest - 1)


class RedactedStream:
    """Cleans pieces; a secret may be cut by them, so the end of each is held back."""

    def __init__(self, redactor: Redactor, hold: int) -> None:
        self._redactor = redactor
        self._hold = hold
        self._rest = b""

    def feed(self, piece: bytes) -> bytes:
        """What is clean for certain."""
        text = self._redactor.clean(self._rest + piece)
        cut = max(0, len(text) - self._hold)
        self._rest = text[cut:]
        return text[:cut]

    def end(self) -> bytes:
        """The rest."""
        rest, self._rest = self._rest, b""
        return self._redactor.clean(rest)


def _spellings(secret: str) -> set[str]:
    in_json = json.dumps(secret)[1:-1]
    basic = base64.b64encode(secret.encode()).decode().rstrip("=")
    return {
        secret,
        in_json,
        in_json.replace("/", "\\/"),
        quote(secret, safe=""),
        quote(secret),
        basic,
    }
