"""Puts, reads, finds and examines files in a container, for the harness that is outside.

It is the first process of a stage's container, run by the harness's own Python, so that
nobody in the container can kill it. It ends when the harness closes its input, and the
container ends with it. Requests come by standard
input as marshalled dictionaries, answers leave by standard output: a line of JSON, and for
contents pieces with their lengths, the last of which is empty. Both sides say how long
each part is, so that no content can be taken for an answer.
"""

from __future__ import annotations

import ctypes
import json
import os
import shutil
import signal
import sys
import time
from contextlib import suppress
from pathlib import Path

from . import examine, files, memory
from .orders import read_order

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, NoReturn

_LENGTH_BYTES = 8
_PR_SET_DUMPABLE = 4
_ROUNDS, _ROUND_S = 10, 0.05


class Attendant:
    """Answers one request after the other."""

    def __init__(self, answers: int) -> None:
        self._answers = answers

    def attend(self, request: dict[str, Any]) -> None:
        """Answer one request; a refusal is an answer too."""
        try:
            answer = getattr(self, f"_{request['do']}")(request)
        except files.Refused as refusal:
            answer = {"refused": str(refusal), "errno": refusal.errno}
        except OSError as error:
            words = f"{error.filename or ''}: {error.strerror or error}"
            answer = {"refused": words, "errno": error.errno or 0}
        except Exception as error:  # noqa: BLE001 - whatever it was, who asked is told
            answer = {"refused": f"{type(error).__name__}: {error}", "errno": 0}
        if isinstance(answer, bytes):  # of a look, and large as it may be
            self._write(answer)
        else:
            self._say(answer)

    def _prepare(self, request: dict[str, Any]) -> dict[str, Any]:
        """Make a stage's own folders, empty, whatever was there; tells the file system's time."""
        folders = [Path(folder) for folder in request["folders"]]
        for folder in folders:
            for above in reversed(folder.parents):
                # A link that the build has left would lead the stage to another place.
                if above.is_symlink() or not above.is_dir():
                    above.unlink(missing_ok=True)
                    above.mkdir()
            _remove(folder)
            folder.mkdir()
        return {"opened_ns": folders[-1].stat().st_ctime_ns}

    def _put(self, request: dict[str, Any]) -> dict[str, Any]:
        for path, content, mode in request["files"]:
            files.write("/", path, content, mode)
        return {}

    def _read(self, request: dict[str, Any]) -> dict[str, Any]:
        content = files.read("/", request["path"], request["limit_bytes"])
        self._say({"size_bytes": len(content)})
        if content:
            self._write(content)
        self._write(b"")
        return {}

    def _collect(self, request: dict[str, Any]) -> dict[str, Any]:
        """Each file that is found: a line about it, then its content."""
        for fresh, path in files.find("/", request["pattern"], request["opened_ns"])[
            : request["limit"]
        ]:
            try:
                with files.opened("/", path) as handle:
                    size_bytes = os.fstat(handle).st_size
                    self._say({"path": path, "fresh": fresh, "size_bytes": size_bytes})
                    with suppress(OSError):  # the harness sees that it is too short
                        for piece in files.pieces(handle, size_bytes):
                            self._write(piece)
                    self._write(b"")
            except FileNotFoundError:
                continue  # gone since it was listed
        return {}

    def _examine(self, request: dict[str, Any]) -> dict[str, Any] | bytes:
        """The answer of a look by a child, so that we are there to say what has ended it.

        Where the container has no room for a child we look ourselves.
        """
        module, order = request["module"], request["order"]
        at_limit, ended = memory.times_at_limit(), memory.ended_by_host()
        signal.signal(signal.SIGCHLD, signal.SIG_DFL)
        try:
            child, answers = _looks(module, order)
        except OSError:
            return examine.look(module, order)
        else:
            with os.fdopen(answers, "rb") as stream:
                said = stream.read()
            _, status = os.waitpid(child, 0)
        finally:
            signal.signal(signal.SIGCHLD, _reap)
            _reap()
        if status == 0:
            return said
        cannot = f"what was left cannot be looked at ({module})"
        if memory.times_at_limit() > at_limit:
            why = "it took more memory than the container may have"
        elif memory.ended_by_host() > ended:
            return {"host": f"{cannot}: the host ran out of memory"}
        else:
            why = "somebody in the container has ended the look"
        return {"refused": f"{cannot}: {why}", "errno": 0}

    def _end(self, _: dict[str, Any]) -> dict[str, Any]:
        """Kill whoever else is in the container, also those that were stopped."""
        for _attempt in range(_ROUNDS):  # one that just forks can be missed
            try:
                os.kill(-1, signal.SIGKILL)
            except ProcessLookupError:
                break
            time.sleep(_ROUND_S)
        return {}

    def _say(self, answer: dict[str, Any]) -> None:
        self._write(json.dumps(answer).encode("ascii"))

    def _write(self, content: bytes) -> None:
        left = memoryview(len(content).to_bytes(_LENGTH_BYTES, "little") + content)
        while left:
            left = left[os.write(self._answers, left) :]


def _looks(module: str, order: dict[str, Any]) -> tuple[int, int]:
    """A child that looks, and where its answer comes from."""
    answers, into = os.pipe()
    try:
        child = os.fork()
    except OSError:
        os.close(answers)
        os.close(into)
        raise
    if child:
        os.close(into)
        return child, answers
    try:
        with os.fdopen(into, "wb") as stream:
            stream.write(json.dumps(examine.look(module, order)).encode("ascii"))
        os._exit(0)
    finally:
        os._exit(1)


def _remove(path: Path) -> None:
    if path.is_dir() and not path.is_symlink():
        shutil.rmtree(path)
    else:
        path.unlink(missing_ok=True)


def _reap(*_: object) -> None:
    """As the first process of the container we inherit whoever is orphaned."""
    with suppress(ChildProcessError):
        while os.waitpid(-1, os.WNOHANG)[0]:
            pass


def main(_: list[str]) -> NoReturn:
    """Attend to requests until the harness closes the input."""
    # Whoever is root in the container may not trace us or write to our memory (prctl(2)).
    ctypes.CDLL(None).prctl(_PR_SET_DUMPABLE, 0, 0, 0, 0)
    # The kernel keeps from us only those signals of the container for which we have no handler.
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, signal.SIG_IGN)
    requests, answers = os.dup(0), os.dup(1)
    os.dup2(2, 1)  # what a module prints must not get among the answers
    signal.signal(signal.SIGCHLD, _reap)
    attendant = Attendant(answers)
    sys.setrecursionlimit(10_000)
    try:
        while True:
            attendant.attend(read_order(requests))
    except (EOFError, BrokenPipeError):
        os._exit(0)
