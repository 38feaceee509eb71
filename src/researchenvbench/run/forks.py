"""A process that forks jobs, so that they share the memory of what is loaded.

`multiprocessing`'s fork server does the same with two processes more, which share nothing
with ours; four attempts at a time would then not fit into the memory that the harness may
take. The server is forked while this process has one thread, since a fork copies no others.
It asks for nothing: a line of JSON in starts a job or interrupts all, a line out says that
one ended. Once interrupted it starts no more. When this process ends, the server ends, and
the kernel ends its jobs.

The server and the start of a job hold SIGINT back rather than ignore it, so that one which
comes before a job can take it is taken as soon as it can.
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

from ..errors import HostError
from ..process import die_with_parent

if TYPE_CHECKING:
    from collections.abc import Callable

_POLL_S = 0.1
INTERRUPTED = 130  #: exit status of a job that SIGINT ended


class ForkServer:
    """Runs `work(*arguments)` in processes of their own; arguments are strings and booleans."""

    def __init__(self, work: Callable[..., None]) -> None:
        """Fork the server. The calling process must have one thread only."""
        ours, theirs = socket.socketpair()
        gc.collect()
        gc.freeze()  # a later collection would write to the pages that are shared
        sys.stdout.flush()
        sys.stderr.flush()
        held = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
        parent = os.getpid()
        pid = os.fork()
        if pid == 0:
            try:
                ours.close()
                _serve(theirs, work, parent)
            finally:
                os._exit(1)  # whatever was raised: this is no second copy of `reb run`
        signal.pthread_sigmask(signal.SIG_SETMASK, held)
        theirs.close()
        self.pid = pid
        self._socket = ours
        self._lock = threading.Lock()
        self._gone = False  #: the server takes no more jobs
        self._waiting: dict[int, Future[int]] = {}
        self._last = 0
        self._listener = threading.Thread(target=self._listen, name="jobs", daemon=True)
        self._listener.start()

    def run(self, *arguments: str | bool) -> int:
        """Do the work in a new process, and wait; its exit status, negative for a signal.

        Raises:
            HostError: the server has ended, or was closed.
        """
        ended: Future[int] = Future()
        with self._lock:
            if self._gone:
                raise HostError(
                    "no job can be started: the process that starts them has ended",
                    advice="the same command again goes on from what is finished",
                )
            self._last += 1
            self._waiting[self._last] = ended
            # Where the server has just gone, `_listen` answers in its stead.
            with contextlib.suppress(OSError):
                self._send({"job": self._last, "arguments": arguments})
        return ended.result()

    def interrupt(self) -> None:
        """Send SIGINT to all jobs; those that are asked for from now on do not start."""
        with self._lock, contextlib.suppress(OSError):
            self._send({"signal": int(signal.SIGINT)})

    def close(self) -> None:
        """End the server; jobs that still run end with it."""
        with self._lock:
            self._gone = True
        with contextlib.suppress(OSError):
            self._socket.shutdown(socket.SHUT_RDWR)
        self._socket.close()
        with contextlib.suppress(ChildProcessError):
            os.waitpid(self.pid, 0)
        self._listener.join()

    def _send(self, message: dict[str, Any]) -> None:
        self._socket.sendall(json.dumps(message).encode() + b"\n")

    def _listen(self) -> None:
        with contextlib.suppress(OSError), self._socket.makefile("rb") as lines:
            for line in lines:
                if not line.endswith(b"\n"):
                    break  # the server was ended in the middle of a word
                ended = json.loads(line)
                with self._lock:
                    future = self._waiting.pop(ended["job"])
                future.set_result(ended["status"])
        with self._lock:
            self._gone = True
            left = list(self._waiting.values())
            self._waiting.clear()
        for future in left:
            future.set_result(-int(signal.SIGKILL))  # the server is gone, and they with it


def _serve(channel: socket.socket, work: Callable[..., None], parent: int) -> NoReturn:
    """The server: until the channel closes. SIGINT is held back."""
    _end_with(parent)
    os.setsid()  # the terminal's Ctrl-C is for `reb run`, which stops its jobs in order
    nothing = os.open(os.devnull, os.O_RDWR)
    for stream in (0, 1, 2):
        os.dup2(nothing, stream)
    jobs: dict[int, int] = {}
    interrupted = False
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
                interrupted = True
                for pid in jobs:
                    os.kill(pid, message["signal"])
            elif interrupted:
                _tell(channel, message["job"], -int(signal.SIGINT))
            else:
                jobs[_fork_job(channel, work, message["arguments"])] = message["job"]
        while jobs:
            pid, status = os.waitpid(-1, os.WNOHANG)
            if pid == 0:
                break
            _tell(channel, jobs.pop(pid), os.waitstatus_to_exitcode(status))


def _tell(channel: socket.socket, job: int, status: int) -> None:
    channel.sendall(json.dumps({"job": job, "status": status}).encode() + b"\n")


def _end_with(parent: int) -> None:
    """Have this process end when its parent does, also where that has ended already."""
    die_with_parent()
    if os.getppid() != parent:
        os._exit(1)


def _fork_job(channel: socket.socket, work: Callable[..., None], arguments: list[Any]) -> int:
    server = os.getpid()
    pid = os.fork()
    if pid:
        return pid
    status = 1
    try:
        _end_with(server)
        channel.close()
        signal.signal(signal.SIGINT, signal.default_int_handler)
        signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGINT})
        work(*arguments)
        status = 0
    except KeyboardInterrupt:
        status = INTERRUPTED
    except SystemExit as error:
        status = error.code if isinstance(error.code, int) else 1
    finally:
        os._exit(status)  # whatever else was raised: `work` has noted it
