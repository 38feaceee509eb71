"""The harness's side of `standalone.attendant`: files of a container, over two pipes."""

from __future__ import annotations

import json
import select
import subprocess
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ...errors import SandboxError
from ...standalone.orders import encode_order
from .. import Collected
from ..collecting import check_total, place_of_copy, refused
from ..engines.engine import NO_FOLDER

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

_LENGTH_BYTES = 8
#: No answer, and no piece of a file, is longer.
_LONGEST_BYTES = 1 << 30
#: Files are handed over in groups of about this much.
_GROUP_BYTES = 32 << 20
_PATIENCE_S = 600.0
#: For the container to start; half a second is usual.
START_S = 120.0


class LateError(SandboxError):
    """The container did not answer in time."""


class Attended:
    """A container's files, for as long as it is open."""

    def __init__(
        self,
        argv: Sequence[str],
        folders: Sequence[Path],
        errors: Path,
        patience_s: float = START_S,
    ) -> None:
        """Start the container whose first program is the attendant.

        Args:
            argv: What starts it, interactive, so that its input and output are ours.
            folders: To be made in it, empty.
            errors: Where what the engine says is kept.
            patience_s: In which it has to start.

        Raises:
            LateError: it has not started in time.
            SandboxError: it does not start.
        """
        self._errors = errors
        self.forced = False  #: it did not end by itself
        with errors.open("wb") as stream:
            self._process = subprocess.Popen(
                argv,
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=stream,
                bufsize=0,
                cwd=NO_FOLDER,
                start_new_session=True,  # Ctrl-C is for the harness
            )
        try:
            order = {"do": "prepare", "folders": [str(folder) for folder in folders]}
            answer = self._ask(order, patience_s)
        except BaseException:
            self.close()
            raise
        self.opened_ns: int = answer["opened_ns"]  #: by the clock of the container's files

    def end_others(self) -> None:
        """Kill all that runs in the container but the attendant.

        Raises:
            SandboxError: the container has ended.
        """
        self._ask({"do": "end"})

    def put(self, files: Mapping[Path, bytes], mode: int) -> None:
        """Write files, with the folders that lead to them.

        Raises:
            SandboxError: one cannot be written, or a link is in the way.
        """
        group: list[tuple[str, bytes, int]] = []
        size_bytes = 0
        for path, content in files.items():
            group.append((str(path), content, mode))
            size_bytes += len(content)
            if size_bytes > _GROUP_BYTES:
                self._ask({"do": "put", "files": group})
                group, size_bytes = [], 0
        self._ask({"do": "put", "files": group})

    def read(self, path: Path, limit_bytes: int) -> bytes:
        """The content of a regular file; links are not followed.

        Raises:
            SandboxError: absent, no regular file, or over the limit.
        """
        self._ask({"do": "read", "path": str(path), "limit_bytes": limit_bytes})
        content = b"".join(self._pieces(limit_bytes))
        self._answer()
        return content

    def collect(self, pattern: str, into: Path, limit: int) -> list[Collected]:
        """Copy the regular files that match an absolute glob out of the container.

        Raises:
            SandboxError: the pattern is not absolute, or the files cannot be copied.
        """
        try:
            return self._collected(pattern, into, limit)
        except BaseException:
            self.close()  # what else would come is no answer to the next question
            raise

    def _collected(self, pattern: str, into: Path, limit: int) -> list[Collected]:
        order = {"do": "collect", "pattern": pattern, "limit": limit, "opened_ns": self.opened_ns}
        collected: list[Collected] = []
        total_bytes = 0
        told = self._ask(order)
        while "path" in told:
            path = Path(told["path"])
            check_total(pattern, total_bytes + told["size_bytes"])
            copy = place_of_copy(into, len(collected), path)
            with copy.open("wb") as stream:
                for piece in self._pieces(_LONGEST_BYTES):
                    total_bytes += len(piece)
                    check_total(pattern, total_bytes)
                    stream.write(piece)
            size_bytes = copy.stat().st_size
            if size_bytes < told["size_bytes"]:
                raise SandboxError(f"{path}: cannot be read to its end")
            collected.append(Collected(path, copy, size_bytes, bool(told["fresh"])))
            told = self._answer()
        return collected

    def examine(
        self, module: str, order: Mapping[str, object], time_limit_s: float
    ) -> dict[str, Any]:
        """What a module that stands alone finds in the container.

        Raises:
            SandboxError: it failed, or it did not answer in time.
        """
        request = {"do": "examine", "module": module, "order": dict(order)}
        found: dict[str, Any] = self._ask(request, time_limit_s)["found"]
        return found

    def close(self) -> None:
        """End the container; it ends by itself when its input is closed."""
        for stream in (self._process.stdin, self._process.stdout):
            if stream is not None:
                stream.close()
        try:
            self._process.wait(30)
        except subprocess.TimeoutExpired:
            self.forced = True
            self._process.kill()
            self._process.wait()

    def _ask(self, request: dict[str, Any], patience_s: float = _PATIENCE_S) -> dict[str, Any]:
        assert self._process.stdin is not None  # noqa: S101 - by the arguments of Popen
        if self._process.stdin.closed:
            raise self._lost()
        left = memoryview(encode_order(request))
        try:
            while left:
                left = left[self._process.stdin.write(left) :]
        except BrokenPipeError as error:
            raise self._lost() from error
        return self._answer(patience_s)

    def _answer(self, patience_s: float = _PATIENCE_S) -> dict[str, Any]:
        try:
            answer = json.loads(self._part(_LONGEST_BYTES, patience_s))
        except ValueError as error:
            raise SandboxError(f"the container's answer cannot be read: {error}") from error
        if not isinstance(answer, dict):
            raise SandboxError("the container's answer is none")
        if "host" in answer:
            raise SandboxError(
                str(answer["host"]), advice="run fewer attempts at a time, or on a larger host"
            )
        if "refused" in answer:
            raise refused(str(answer["refused"]), answer["errno"])
        return answer

    def _pieces(self, limit_bytes: int) -> Iterator[bytes]:
        while piece := self._part(limit_bytes, _PATIENCE_S):
            yield piece

    def _part(self, limit_bytes: int, patience_s: float) -> bytes:
        until = time.monotonic() + patience_s
        length = int.from_bytes(self._receive(_LENGTH_BYTES, until), "little")
        if length > limit_bytes:
            self.close()
            raise SandboxError(f"the container sent {length} bytes where {limit_bytes} may come")
        return self._receive(length, until)

    def _receive(self, wanted: int, until: float) -> bytes:
        assert self._process.stdout is not None  # noqa: S101 - by the arguments of Popen
        received = bytearray()
        while len(received) < wanted:
            left_s = until - time.monotonic()
            ready, _, _ = select.select([self._process.stdout], [], [], max(0.0, left_s))
            if not ready:
                self.close()  # what it may still say is no answer to the next question
                raise LateError("the container did not answer in time")
            piece = self._process.stdout.read(min(wanted - len(received), 1 << 20))
            if not piece:
                raise self._lost()
            received += piece
        return bytes(received)

    def _lost(self) -> SandboxError:
        said = self._errors.read_bytes()[-2000:].decode(errors="replace").strip()
        return SandboxError(f"the stage's container has ended: {said or 'ended from outside'}")
