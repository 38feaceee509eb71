"""A process that forks jobs, so that they share the memory of what is loaded.

`multiprocessing`'s fork server does the same with two processes more, which share nothing
with ours; four attempts at a time would then not fit into the memory that the harness may
take. The server is forked while this process has one thread, since a fork copies no others.
It asks for nothing: a line of JSON in starts a job or interrupts all, a line out says that
one ended. When this process ends, the server ends, and the kernel ends its jobs.
"""

from __future__ import annotations

import contextlib
import gc
import json
import os
import select
import signal
import socket
import sys
import threading
from concurrent.futures import Future
from typing import TYPE_CHECKING, Any, NoReturn

from ..process import die_with_parent

if TYPE_CHECKING:
    from collections.abc import Callable

_POLL_S = 0.1


class ForkServer:
    """Runs `work(*arguments)` in processes of their own; arguments are strings and booleans."""

    def __init__(self, work: Callable[..., None]) -> None:
        """Fork the server. The calling process must have one thread only."""
        ours, theirs = socket.socketpair()
        gc.collect()
        gc.freeze()  # a later collection would write to the pages that are shared
        sys.stdout.flush()
        sys.stderr.flush()
        pid = os.fork()
        if pid == 0:
            ours.close()
            _serve(theirs, work)
        theirs.close()
        self._pid = pid
        self._socket = ours
        self._lock = threading.Lock()
        self._waiting: dict[int, Future[int]] = {}
        self._last = 0
        threading.Thread(target=self._listen, name="jobs", daemon=True).start()

    def run(self, *arguments: str | bool) -> int:
        """Do the work in a new process, and wait; its exit status, negative for a signal."""
        ended: Future[int] = Future()
        with self._lock:
            self._last += 1
            number = self._last
            self._waiting[number] = ended
        self._send({"job": number, "arguments": arguments})
        return ended.result()

    def interrupt(self) -> None:
        """Send SIGINT to all jobs."""
        self._send({"signal": int(signal.SIGINT)})

    def close(self) -> None:
        """End the server; jobs that still run end with it."""
        with contextlib.suppress(OSError):
            self._socket.shutdown(socket.SHUT_RDWR)
        self._socket.close()
        with contextlib.suppress(ChildProcessError):
            os.waitpid(self._pid, 0)

    def _send(self, message: dict[str, Any]) -> None:
        with self._lock:
            self._socket.sendall(json.dumps(message).encode() + b"\n")

    def _listen(self) -> None:
        with contextlib.suppress(OSError), self._socket.makefile("rb") as lines:
            for line in lines:
                ended = json.loads(line)
                self._waiting.pop(ended["job"]).set_result(ended["status"])
        for future in self._waiting.values():
            future.set_result(-int(signal.SIGKILL))  # the server is gone, and they with it


def _serve(channel: socket.socket, work: Callable[..., None]) -> NoReturn:
    """The server: until the channel closes."""
    die_with_parent()
    os.setsid()  # the terminal's Ctrl-C is for `reb run`, which stops its jobs in order
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    nothing = os.open(os.devnull, os.O_RDWR)
    for stream in (0, 1, 2):
        os.dup2(nothing, stream)
    jobs: dict[int, int] = {}
    received = b""
    while True:
        ready, _, _ = select.select([channel], [], [], _POLL_S)
        if ready:
            data = channel.recv(65536)
            if not data:
                os._exit(0)
            received += data
        *lines, received = received.split(b"\n")
        for line in lines:
            message = json.loads(line)
            if "signal" in message:
                for pid in jobs:
                    os.kill(pid, message["signal"])
            else:
                jobs[_fork_job(channel, work, message["arguments"])] = message["job"]
        while jobs:
            pid, status = os.waitpid(-1, os.WNOHANG)
            if pid == 0:
                break
            answer = {"job": jobs.pop(pid), "status": os.waitstatus_to_exitcode(status)}
            channel.sendall(json.dumps(answer).encode() + b"\n")


def _fork_job(channel: socket.socket, work: Callable[..., None], arguments: list[Any]) -> int:
    pid = os.fork()
    if pid:
        return pid
    status = 1
    try:
        die_with_parent()
        channel.close()
        signal.signal(signal.SIGINT, signal.default_int_handler)
        work(*arguments)
        status = 0
    except SystemExit as error:
        status = error.code if isinstance(error.code, int) else 1
    finally:
        os._exit(status)  # whatever else was raised: `work` has noted it
