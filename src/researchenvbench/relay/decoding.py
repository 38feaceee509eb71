"""Reads an answer that is compressed although that was not accepted."""

from __future__ import annotations

import zlib

_PLAIN = ("", "identity")
_KNOWN = (*_PLAIN, "gzip", "x-gzip", "deflate")
#: zlib finds out itself whether it is gzip or its own format.
_EITHER = 32 + zlib.MAX_WBITS


class Decoder:
    """For one answer. What it cannot read it gives back as it is, and says `failed`."""

    def __init__(self, encoding: str) -> None:
        encoding = encoding.strip().lower()
        self.failed = encoding not in _KNOWN
        self._reader = None
        if not self.failed and encoding not in _PLAIN:
            self._reader = zlib.decompressobj(_EITHER)

    def feed(self, piece: bytes, *, most_bytes: int = 0) -> bytes:
        """What `piece` holds; of that, `most_bytes` at most, or all for 0."""
        if self.failed or self._reader is None:
            return piece
        try:
            return self._reader.decompress(piece, most_bytes)
        except zlib.error:
            self.failed = True
            return piece
