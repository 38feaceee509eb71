"""Joining the namespaces that a holder keeps open."""

from __future__ import annotations

import ctypes
import os

#: In the order in which they must be entered: the user namespace grants the right to the others.
_NAMESPACES = ("user", "ipc", "net", "pid", "mnt")

_libc = ctypes.CDLL(None, use_errno=True)


def enter(pid: int) -> None:
    """Join the namespaces of the process `pid`; the pid namespace holds for children only.

    Raises:
        OSError: that process has ended, or this one has no right to join it.
    """
    opened = []
    for name in _NAMESPACES:
        theirs = f"/proc/{pid}/ns/{name}"
        if os.readlink(theirs) != os.readlink(f"/proc/self/ns/{name}"):
            opened.append((name, os.open(theirs, os.O_RDONLY | os.O_CLOEXEC)))
    for name, handle in opened:
        if _libc.setns(handle, 0) != 0:
            number = ctypes.get_errno()
            raise OSError(number, f"cannot join its {name} namespace: {os.strerror(number)}")
        os.close(handle)
