"""What a build fetched: a line for each request in `fetched.jsonl`, and their sum.

A build that is gone on with adds to the lines of its earlier life. An agent can ask for
anything any number of times, so no more than a limit is written; the sum has all of this life.
"""

from __future__ import annotations

from contextlib import suppress
from typing import TYPE_CHECKING

from pydantic import ValidationError

from ...network_use import Fetch, NetworkUse

if TYPE_CHECKING:
    from pathlib import Path

    from ...network_use import Reach

FILE_NAME = "fetched.jsonl"
MOST_BYTES = 64 << 20
_MOST_HOSTS = 50


class FetchLog:
    """The lines of one attempt."""

    def __init__(self, path: Path) -> None:
        """Open the file, and count what is in it.

        Raises:
            OSError: it cannot be read or written.
        """
        self._counts = dict.fromkeys(("passed", "failed", "refused"), 0)
        self._refused: dict[str, None] = {}
        self._bytes_in = self._bytes_out = 0
        self._stream = path.open("a+b")
        self._stream.seek(0)
        line = b"\n"
        for line in self._stream:
            with suppress(ValidationError):  # cut off where the harness was killed
                self._count(Fetch.model_validate_json(line))
        self._size_bytes = self._stream.tell()
        if not line.endswith(b"\n"):
            self._stream.write(b"\n")

    def note(self, fetch: Fetch) -> None:
        """Keep one."""
        self._count(fetch)
        line = fetch.model_dump_json().encode() + b"\n"
        self._size_bytes += len(line)
        if self._size_bytes <= MOST_BYTES:
            with suppress(OSError):  # a full disk is said by what is built, not by what is fetched
                self._stream.write(line)
                self._stream.flush()

    def close(self) -> None:
        """Write no more."""
        with suppress(OSError):
            self._stream.close()

    def use(self, reach: Reach) -> NetworkUse:
        """What came of what the build might reach."""
        return NetworkUse(
            policy=reach.policy,
            allow_hosts=reach.allow_hosts,
            fetches=self._counts["passed"],
            failed=self._counts["failed"],
            refused=self._counts["refused"],
            refused_hosts=tuple(self._refused),
            bytes_in=self._bytes_in,
            bytes_out=self._bytes_out,
        )

    def _count(self, fetch: Fetch) -> None:
        self._counts[fetch.end] += 1
        self._bytes_in += fetch.bytes_in
        self._bytes_out += fetch.bytes_out
        if fetch.end == "refused" and len(self._refused) < _MOST_HOSTS:
            self._refused[f"{fetch.host}:{fetch.port}"] = None
