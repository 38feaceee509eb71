"""Runs programs on this host, each under a supervisor: all that a box runs.

Every program runs under a supervisor (`standalone.supervise`), in an interpreter of its own,
which ends the whole process tree at the time limit, on demand, and when the harness dies.
Here is the harness's side: it gives the order, streams the output to a log, and says how it
ended. What a program does never raises an exception; how it ended is a `Finished`.
"""

from __future__ import annotations

import ast
import os
import selectors
import subprocess
import sys
import threading
import time
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

from .errors import SandboxError
from .logfile import LineWatcher, LogFile
from .out_of_memory import out_of_memory_kills, ran_out_of_memory
from .owner import own_folder
from .standalone.orders import encode_order
from .standalone.tree import LADDER, descendants, end_all

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

LOG_LIMIT_BYTES = 64 * 1024 * 1024
_READ_BYTES = 1 << 20
#: What a supervisor may take longer than the time limit and the graces before it is given up:
#: it starts later than we count, and on a busy host everything takes its time.
MARGIN_S = 60.0
_LOOK_S = 5.0
#: How often whoever may want a program ended is asked.
_ASK_S = 1.0
#: A module that stands alone needs nothing of the environment, and must not be changed by it.
STAND_ALONE_ENV = {"PATH": "/usr/bin:/bin", "LC_ALL": "C.UTF-8"}


@dataclass(frozen=True)
class Command:
    """A program to run in a box."""

    argv: Sequence[str]
    cwd: Path
    env: Mapping[str, str]
    time_limit_s: float


@dataclass(frozen=True)
class Finished:
    """How a program ended, and what it left."""

    exit_code: int | None  #: None where a signal ended it
    signal: str | None  #: such as SIGKILL
    seconds: float
    timed_out: bool
    log: Path  #: on the harness's side
    log_bytes: int = 0  #: what it printed
    log_bytes_dropped: int = 0  #: what the log's size limit left out of it
    leftovers: tuple[str, ...] = ()  #: processes that outlived it, ended by us: "pid name"
    start_error: str | None = None  #: why it could not be started at all
    out_of_memory: bool = False  #: the kernel ended a process of it for want of memory
    log_error: str | None = None  #: why the log is not complete, such as a full disk
    stopped: bool = False  #: it was ended on demand, not by itself and not at its limit
    overdue: bool = False  #: its supervisor did not end it at its limit: somebody has halted it
    lost: str | None = None  #: where it ran elsewhere: what came instead of a report of its end

    @property
    def ok(self) -> bool:
        """It ran to its end and exited 0."""
        return self.exit_code == 0 and not self.timed_out and self.start_error is None


class Running(Protocol):
    """A program that runs beside others: a stage's service."""

    log: Path

    def poll(self) -> Finished | None:
        """How it ended, or None while it runs."""
        ...

    def stop(self) -> Finished:
        """End its whole process tree: interrupt, terminate, kill."""
        ...


def stand_alone(
    module: str,
    python: Sequence[str] = (sys.executable,),
    package: Path = Path(__file__).parent,
) -> list[str]:
    """The command that runs `main` of a module of `standalone`, which lies in `package`.

    As a module and not as a script, since a script is compiled anew each time. The folder
    comes last on the path, since what lies in it may have names of the standard library.
    """
    start = (
        "import sys; sys.path.append(sys.argv[1]); "
        f"from standalone import {module}; {module}.main(sys.argv[2:])"
    )
    return [*python, "-I", "-S", "-X", "utf8", "-c", start, str(package)]


def run(
    argv: Sequence[str],
    *,
    cwd: Path,
    env: Mapping[str, str],
    log: Path,
    time_limit_s: float,
    log_limit_bytes: int = LOG_LIMIT_BYTES,
    on_line: Callable[[str], None] | None = None,
    append: bool = False,
    namespaces_of: int | None = None,
    via: Sequence[str] = (),
    ladder: Sequence[tuple[str, float]] = LADDER,
    stop: Callable[[], bool] | None = None,
) -> Finished:
    """Run a program to its end, its output streamed to `log`.

    Args:
        argv: The program, found on the PATH of `env`, and its arguments.
        cwd: Its working folder.
        env: Its whole environment.
        log: Where its output and errors go, merged, as they come.
        time_limit_s: When its process tree is ended.
        log_limit_bytes: How much of the output the log keeps: the head and the tail.
        on_line: Told the newest line, some five times a second.
        append: Add to the log instead of starting it anew.
        namespaces_of: Run in the namespaces of the process with this id.
        via: What starts the supervisor somewhere else, such as in a container; it takes the
            order by standard input and reports on standard error.
        ladder: Signals and graces by which the tree is ended.
        stop: Asked about once a second; where it says yes, the tree is ended.

    Raises:
        SandboxError: the log cannot be written, or no supervisor can be started.
        KeyboardInterrupt: the harness was interrupted; the tree has been ended.
    """
    command = Command(argv, cwd, env, time_limit_s)
    program = _Program(command, log, log_limit_bytes, on_line, append, namespaces_of, via, ladder)
    try:
        program.attend(stop)
    except BaseException:
        program.order_stop()
        program.attend()
        raise
    finally:
        program.close()
    finished = program.finished()
    _Ran.seconds += finished.seconds
    return finished


class _Ran:
    """How long this process has waited for programs; a class, since it is changed in place."""

    seconds = 0.0


def seconds_in_programs() -> float:
    """Wall time, so far, of the programs that `run` has run to their end in this process.

    What is left of a phase's own wall time is what the harness adds to it.
    """
    return _Ran.seconds


def start(
    argv: Sequence[str],
    *,
    cwd: Path,
    env: Mapping[str, str],
    log: Path,
    time_limit_s: float,
    log_limit_bytes: int = LOG_LIMIT_BYTES,
    on_line: Callable[[str], None] | None = None,
    append: bool = False,
    namespaces_of: int | None = None,
    via: Sequence[str] = (),
    ladder: Sequence[tuple[str, float]] = LADDER,
) -> Running:
    """Start a program beside others; the arguments are those of `run`.

    `on_line` is called in another thread.

    Raises:
        SandboxError: the log cannot be written, or no supervisor can be started.
    """
    command = Command(argv, cwd, env, time_limit_s)
    return _Attended(
        _Program(command, log, log_limit_bytes, on_line, append, namespaces_of, via, ladder)
    )


def capture(
    argv: Sequence[str],
    *,
    cwd: Path,
    env: Mapping[str, str],
    time_limit_s: float,
    limit_bytes: int = 16 * 1024 * 1024,
    namespaces_of: int | None = None,
) -> tuple[Finished, bytes]:
    """Run a program whose output is an answer and not a log: how it ended, and the output.

    Raises:
        SandboxError: no temporary file can be written, or no supervisor can be started.
    """
    with own_folder("answer") as folder:
        log = folder / "output"
        finished = run(
            argv,
            cwd=cwd,
            env=env,
            log=log,
            time_limit_s=time_limit_s,
            log_limit_bytes=limit_bytes,
            namespaces_of=namespaces_of,
        )
        return finished, log.read_bytes()


def _start(
    argv: Sequence[str], stdin: int, stderr: int, pass_fds: Sequence[int] = ()
) -> subprocess.Popen[bytes]:
    return subprocess.Popen(
        argv,
        stdin=stdin,
        stdout=subprocess.PIPE,
        stderr=stderr,
        bufsize=0,
        pass_fds=pass_fds,
        cwd="/",
        # An engine's command line needs its own settings; the supervisor must have none.
        env=STAND_ALONE_ENV if pass_fds else None,
        start_new_session=True,  # Ctrl-C is for the harness, which then tells it
    )


class _Program:
    """The pipes between the harness and one supervisor."""

    def __init__(
        self,
        command: Command,
        log: Path,
        log_limit_bytes: int,
        on_line: Callable[[str], None] | None,
        append: bool,
        namespaces_of: int | None,
        via: Sequence[str],
        ladder: Sequence[tuple[str, float]],
    ) -> None:
        self.log = log
        self._via = bool(via)
        self._watcher = LineWatcher(on_line) if on_line else None
        order = {
            "argv": [str(argument) for argument in command.argv],
            "cwd": str(command.cwd),
            "env": {str(key): str(value) for key, value in command.env.items()},
            "time_limit_s": float(command.time_limit_s),
            "ladder": [list(step) for step in ladder],
            "namespaces_of": namespaces_of,
        }
        self._oom_before = out_of_memory_kills()
        self._began = time.monotonic()
        self._patience_s = sum(grace_s for _, grace_s in ladder) + MARGIN_S
        self._deadline = self._began + command.time_limit_s + self._patience_s
        self._overdue = False
        self._report_text = b""
        self._seconds = 0.0
        try:
            self._logfile = LogFile(log, limit_bytes=log_limit_bytes, append=append)
        except OSError as error:
            raise SandboxError(f"{log}: the log cannot be written: {error.strerror}") from error
        control_read, self._control = os.pipe()
        self._status, status_write = os.pipe()
        try:
            self._supervisor = (
                _start(via, control_read, status_write)
                if via
                else _start(
                    [*stand_alone("supervise"), str(control_read), str(status_write)],
                    subprocess.DEVNULL,
                    subprocess.STDOUT,
                    (control_read, status_write),
                )
            )
        except OSError as error:
            self._logfile.close()
            os.close(self._control)
            os.close(self._status)
            raise SandboxError(f"no process can be started: {error.strerror}") from error
        finally:
            os.close(control_read)
            os.close(status_write)
        # In a thread, since one that does not read would keep us here without a deadline.
        self._giving = threading.Thread(target=self._give, args=(encode_order(order),), daemon=True)
        self._giving.start()

    def _give(self, order: bytes) -> None:
        with suppress(BrokenPipeError):  # it has died already; its report will be missing
            _write_all(self._control, order)

    def attend(self, stop: Callable[[], bool] | None = None) -> None:
        """Stream the output and wait for the report. May be called again after an interrupt.

        `stop` is asked now and then whether the program is to be ended.
        """
        assert self._supervisor.stdout is not None  # noqa: S101 - by the arguments of Popen
        output = self._supervisor.stdout.fileno()
        os.set_blocking(output, False)
        with selectors.DefaultSelector() as selector:
            selector.register(output, selectors.EVENT_READ)
            selector.register(self._status, selectors.EVENT_READ)
            reported = False
            look_s, ask_at = _ASK_S if stop else _LOOK_S, 0.0
            while not reported and not self._overdue:
                left_s = self._deadline - time.monotonic()
                if left_s <= 0:
                    self._give_up()
                if stop and time.monotonic() >= ask_at:
                    ask_at = time.monotonic() + look_s
                    if stop():
                        stop, look_s = None, _LOOK_S
                        self.order_stop()
                for key, _ in selector.select(max(0.0, min(left_s, look_s))):
                    if key.fd == output:
                        if not self._take(output):
                            selector.unregister(output)
                    else:
                        chunk = os.read(self._status, 65536)
                        self._report_text += chunk
                        reported = not chunk
        self._seconds = time.monotonic() - self._began
        # Whoever could not be ended may hold the pipe open: take what is there, no more.
        while self._take(output):
            pass

    def _give_up(self) -> None:
        """Kill a supervisor that does not do what it is for, and whoever is below it."""
        self._overdue = True
        pid = self._supervisor.pid
        end_all(lambda: descendants(pid), (("SIGKILL", _LOOK_S),))
        self._supervisor.kill()

    def _take(self, output: int) -> bool:
        """Pass on what can be read now; False at the end or when there is nothing more."""
        try:
            chunk = os.read(output, _READ_BYTES)
        except BlockingIOError:
            return False
        if chunk:
            self._logfile.write(chunk)
            if self._watcher:
                self._watcher.feed(chunk)
        return bool(chunk)

    def order_stop(self) -> None:
        """Have the supervisor end the tree. May be called at any time, from any thread."""
        self._giving.join(_LOOK_S)
        if self._giving.is_alive():  # it has not even read what it is to do
            self._deadline = 0.0
            return
        self._deadline = min(self._deadline, time.monotonic() + self._patience_s)
        with suppress(OSError):  # it has ended already
            os.write(self._control, b"s")

    def close(self) -> None:
        """Let go of the supervisor; one that still runs then ends the tree by itself."""
        self._giving.join(_LOOK_S)
        if self._giving.is_alive():
            self._give_up()
            self._giving.join()
        os.close(self._control)
        os.close(self._status)
        if self._supervisor.stdout:
            self._supervisor.stdout.close()
        try:
            self._supervisor.wait(self._patience_s)
        except subprocess.TimeoutExpired:
            self._give_up()
            self._supervisor.wait()
        self._logfile.close()
        if self._watcher:
            self._watcher.finish()

    def finished(self) -> Finished:
        """What the supervisor reported, once it has ended."""
        report = _parse_report(self._report_text)
        exit_code, signal_name = report.get("exit_code"), report.get("signal")
        if not report:
            # Nothing of ours kills it, so the kernel or a hostile program did.
            signal_name = "SIGKILL"
        failed_by_kill = exit_code == 137 or (
            signal_name == "SIGKILL" and not report.get("killed_by_us") and not self._overdue
        )
        return Finished(
            exit_code=exit_code,
            signal=signal_name,
            seconds=report.get("seconds", self._seconds),
            timed_out=report.get("timed_out", False) or self._overdue,
            log=self.log,
            log_bytes=self._logfile.received_bytes,
            log_bytes_dropped=self._logfile.dropped_bytes,
            leftovers=tuple(report.get("leftovers", ())),
            start_error=report.get("start_error"),
            out_of_memory=ran_out_of_memory(
                self._oom_before, exit_code, killed=bool(failed_by_kill)
            ),
            log_error=self._logfile.trouble,
            stopped=report.get("stopped", False),
            overdue=self._overdue,
            lost=None if report or not self._via else self._report_text.decode(errors="replace"),
        )


class _Attended:
    """A program that a thread attends while the harness does other things."""

    def __init__(self, program: _Program) -> None:
        self.log = program.log
        self._program = program
        self._finished: Finished | None = None
        self._thread = threading.Thread(target=self._attend, daemon=True)
        self._thread.start()

    def _attend(self) -> None:
        try:
            try:
                self._program.attend()
            finally:
                self._program.close()
        finally:
            self._finished = self._program.finished()

    def poll(self) -> Finished | None:
        """How it ended, or None while it runs."""
        return self._finished

    def stop(self) -> Finished:
        """End its whole process tree, and say how it ended."""
        self._program.order_stop()
        self._thread.join()
        if self._finished is None:
            raise SandboxError(f"{self.log}: whoever watched the program has failed")
        return self._finished


def _write_all(handle: int, content: bytes) -> None:
    view = memoryview(content)
    while view:
        view = view[os.write(handle, view) :]


def _parse_report(text: bytes) -> dict[str, Any]:
    """The supervisor's report, or nothing where it died before it could make one."""
    try:
        report = ast.literal_eval(text.decode("ascii"))
    except (ValueError, SyntaxError):
        return {}
    return report if isinstance(report, dict) else {}


def die_with_parent() -> None:
    """Have the kernel end this process when the thread that started it ends.

    For use between fork and exec (prctl(2), PR_SET_PDEATHSIG).
    """
    import ctypes
    import signal

    ctypes.CDLL(None).prctl(1, signal.SIGKILL)
