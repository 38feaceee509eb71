"""Runs one program in a box with this terminal: a person's shell."""

from __future__ import annotations

import marshal
import os
import signal
import sys

from .execute import execute
from .namespaces import enter

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import NoReturn


def main(arguments: list[str]) -> NoReturn:
    """Run as a program: the process whose namespaces to join, or 0, and a file with the order."""
    holder, file = arguments
    with open(file, "rb") as stream:
        order = marshal.load(stream)  # noqa: S302 - from our parent
    if holder != "0":
        enter(int(holder))
    pid = os.fork()
    if pid == 0:
        error = execute(order["argv"], order["env"], order["cwd"])
        sys.stderr.write(f"{error}\n")
        sys.stderr.flush()
        os._exit(127)
    for number in (signal.SIGINT, signal.SIGQUIT, signal.SIGTERM):
        signal.signal(number, signal.SIG_IGN)  # the terminal sends them to the program too
    code = os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
    os._exit(128 - code if code < 0 else code)
