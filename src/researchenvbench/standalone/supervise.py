"""Runs one program, watches over all that comes of it, and leaves none of it behind.

It is the subreaper of the tree: whoever forks away, makes a session of its own or is
orphaned stays its descendant, and is found in /proc. The tree is ended at the time limit, on
demand, when the program itself has ended, and when the harness dies, by kill -9 too, since
the control pipe closes then.
"""

from __future__ import annotations

import ctypes
import os
import select
import signal
import sys
import time

from .execute import execute, reason
from .namespaces import enter
from .orders import answer, read_order
from .tree import descendants, end_all

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Any, NoReturn

#: A process that outlives the program by less than this was about to end by itself.
_LINGER_S = 0.3

# Numbers of <linux/prctl.h>.
_PR_SET_PDEATHSIG = 1
_PR_SET_DUMPABLE = 4
_PR_SET_CHILD_SUBREAPER = 36

_libc = ctypes.CDLL(None, use_errno=True)


class Supervision:
    """One program, from its start to the end of the last process that came of it."""

    def __init__(self, order: dict[str, Any], control: int, *, deaf: bool) -> None:
        self.argv: list[str] = order["argv"]
        self.env: dict[str, str] = order["env"]
        self.cwd: str = order["cwd"]
        self.time_limit_s: float = order["time_limit_s"]
        self.ladder: Sequence[tuple[str, float]] = order["ladder"]
        self.control = control
        self.deaf = deaf  #: orders come by the pipe alone; signals are somebody else's
        self.pid = 0
        self.wait_status: int | None = None
        self.childless = False
        self.told_to_stop = False
        self.timed_out = False
        self.killed_by_us = False

    def run(self) -> dict[str, object]:
        """Start it, wait for its end, end the rest, and say how it was."""
        wake = self._catch_signals()
        began = time.monotonic()
        error = self._start()
        if error:
            return {"start_error": error}
        self._wait(wake, began + self.time_limit_s)
        leftovers: dict[int, str] = {}
        if self.wait_status is not None:
            leftovers = self._lingering()
        self.killed_by_us = self.wait_status is None
        surviving = end_all(self._descendants, self.ladder, groups=True)
        # What had outlived the program when it was told to stop is no leftover of its own.
        leftovers.update(surviving)
        report: dict[str, object] = {
            "seconds": time.monotonic() - began,
            "timed_out": self.timed_out,
            "stopped": self.told_to_stop,
            "killed_by_us": self.killed_by_us,
            "leftovers": [
                f"{pid} {name}" + (" (could not be ended)" if pid in surviving else "")
                for pid, name in sorted(leftovers.items())
            ],
        }
        if self.wait_status is not None:
            if os.WIFSIGNALED(self.wait_status):
                report["signal"] = _signal_name(os.WTERMSIG(self.wait_status))
            else:
                report["exit_code"] = os.WEXITSTATUS(self.wait_status)
        return report

    def _catch_signals(self) -> int:
        read_end, write_end = os.pipe()
        os.set_blocking(write_end, False)
        os.set_blocking(read_end, False)
        signal.set_wakeup_fd(write_end, warn_on_full_buffer=False)
        signal.signal(signal.SIGCHLD, lambda *_: None)
        for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
            signal.signal(number, signal.SIG_IGN if self.deaf else self._told)
        return read_end

    def _told(self, *_: object) -> None:
        self.told_to_stop = True

    def _start(self) -> str | None:
        """Fork and execute; returns why it could not be done."""
        read_end, write_end = os.pipe()
        self.pid = os.fork()
        if self.pid == 0:
            self._become(write_end)
        os.close(write_end)
        trouble = b""
        while chunk := os.read(read_end, 65536):
            trouble += chunk
        os.close(read_end)
        if trouble:
            os.waitpid(self.pid, 0)
            return trouble.decode("utf-8", "surrogateescape")
        return None

    def _become(self, trouble: int) -> None:
        """In the child: turn into the program, or say why not. Never returns."""
        try:
            os.setsid()
            # Should this supervisor be killed, the program does not run on unwatched.
            _libc.prctl(_PR_SET_PDEATHSIG, int(signal.SIGKILL), 0, 0, 0)
            signal.set_wakeup_fd(-1)
            for number in (
                signal.SIGCHLD,
                signal.SIGINT,
                signal.SIGTERM,
                signal.SIGHUP,
                signal.SIGPIPE,
                signal.SIGXFSZ,
            ):
                signal.signal(number, signal.SIG_DFL)
            error = execute(self.argv, self.env, self.cwd)
            os.write(trouble, error.encode("utf-8", "surrogateescape"))
        finally:
            os._exit(127)

    def _wait(self, wake: int, deadline: float) -> None:
        """Until the program has ended, its time is over, or it is to be stopped."""
        poll = select.poll()
        poll.register(self.control, select.POLLIN)
        poll.register(wake, select.POLLIN)
        while self.wait_status is None and not self.told_to_stop:
            remaining_s = deadline - time.monotonic()
            if remaining_s <= 0:
                self.timed_out = True
                return
            for ready, _ in poll.poll(min(remaining_s, 3600.0) * 1000 + 1):
                if ready == wake:
                    os.read(wake, 4096)
                else:
                    # An order to stop, or the end of the harness: it comes to the same.
                    self.told_to_stop = True
            self._reap()

    def _reap(self) -> None:
        """Take leave of those that have ended; notes whether anybody is left."""
        while True:
            try:
                pid, status = os.waitpid(-1, os.WNOHANG)
            except ChildProcessError:
                self.childless = True
                return
            if pid == 0:
                return
            if pid == self.pid:
                self.wait_status = status

    def _descendants(self) -> dict[int, str]:
        """Those in /proc. A listing can miss one that is just born; having children cannot."""
        for _ in range(200):
            found = descendants(os.getpid())
            self._reap()
            if found or self.childless:
                return found
            time.sleep(0.001)
        return {}

    def _lingering(self) -> dict[int, str]:
        """What outlives the program for longer than it takes to tidy up."""
        until = time.monotonic() + _LINGER_S
        while True:
            living = self._descendants()
            if not living or time.monotonic() > until or self.told_to_stop:
                return living
            time.sleep(0.01)


def _signal_name(number: int) -> str:
    try:
        return signal.Signals(number).name
    except ValueError:
        return f"signal {number}"  # a real-time signal has no name


def supervise(control: int, status: int, *, deaf: bool = False) -> None:
    """Carry out the order that comes by `control`, and report to `status`.

    Args:
        control: Where the order comes, and that to stop.
        status: Where the report goes.
        deaf: No heed is paid to signals, which others in a container may send.
    """
    os.set_inheritable(control, False)
    os.set_inheritable(status, False)
    order = read_order(control)
    if order["namespaces_of"]:
        try:
            enter(order["namespaces_of"])
        except OSError as error:
            answer(status, {"start_error": f"the box cannot be entered: {reason(error)}"})
            return
        # The process namespace holds for children only.
        inner = os.fork()
        if inner:
            # The harness must see the status pipe close when the inner one ends.
            os.close(status)
            os.close(control)
            os.waitpid(inner, 0)
            return
    _libc.prctl(_PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)
    answer(status, Supervision(order, control, deaf=deaf).run())


def _take_over() -> tuple[int, int]:
    """Free standard input and error for the program; what prints an error, prints to its log."""
    control, status = os.dup(0), os.dup(2)
    nothing = os.open(os.devnull, os.O_RDONLY)
    os.dup2(nothing, 0)
    os.close(nothing)
    os.dup2(1, 2)
    return control, status


def _keep_others_out() -> None:
    """Whoever is root beside us may not trace us or write to our memory (prctl(2))."""
    _libc.prctl(_PR_SET_DUMPABLE, 0, 0, 0, 0)


def main(arguments: list[str]) -> NoReturn:
    """Run as a program, with the numbers of the control and the status pipe.

    They may be standard input and error, where nothing else can be handed on, as into a
    container. Ends at once: taking an interpreter apart costs a third of what its start does.
    """
    control, status = int(arguments[0]), int(arguments[1])
    try:
        within = (control, status) == (0, 2)
        if within:
            for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
                signal.signal(number, signal.SIG_IGN)
            control, status = _take_over()
            _keep_others_out()
        supervise(control, status, deaf=within)
    except EOFError:
        os._exit(0)  # there is no harness any more
    finally:
        error = sys.exc_info()[1]
        if error is not None:
            # To the program's log: that is where one looks for why there is no report.
            sys.excepthook(type(error), error, error.__traceback__)
            sys.stderr.flush()
        os._exit(0 if error is None else 70)  # EX_SOFTWARE of <sysexits.h>
