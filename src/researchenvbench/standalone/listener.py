"""Makes a listening socket in the network namespace of another process, and hands it over.

A container without any network still has a loopback interface of its own. What listens there
is reached by its programs alone; so the harness can be reached without a network, and nothing
has to be put into the container.

Only a process with a single thread may join a user namespace, and who has joined cannot come
back: so this is a program of its own, which ends when it has answered.
"""

from __future__ import annotations

import ctypes
import errno
import fcntl
import os
import socket

from .holder import StepError, bring_up_loopback

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import NoReturn

#: Of <linux/nsfs.h>: the user namespace that owns another namespace.
_NS_GET_USERNS = 0xB701
_BACKLOG = 128

_libc = ctypes.CDLL(None, use_errno=True)


def main(arguments: list[str]) -> NoReturn:
    """Run as a program: the number of a socket, of the process, and of the port (0: any).

    By the socket goes a message of a Python literal: `{}` with the listening socket, or where
    it cannot be had `{"step": …, "why": …, "errno": …}`.
    """
    channel = socket.socket(fileno=int(arguments[0]))
    try:
        listening = _listen(int(arguments[1]), int(arguments[2]))
    except StepError as error:
        failed = {"step": error.step, "why": error.why, "errno": error.number}
        channel.send(ascii(failed).encode())
    else:
        socket.send_fds(channel, [b"{}"], [listening.fileno()])
    os._exit(0)


def _listen(pid: int, port: int) -> socket.socket:
    _enter(pid)
    bring_up_loopback()
    listening = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
    # After a crash of the harness connections of its last life may still be closing.
    listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        listening.bind(("127.0.0.1", port))
        listening.listen(_BACKLOG)
    except OSError as error:
        raise StepError("bind", os.strerror(error.errno or 0), error.errno or 0) from error
    return listening


def _enter(pid: int) -> None:
    """Join the network of the process; where that takes a right, by the namespace that grants it.

    That is the user namespace which owns the network, and not that of the process: an engine
    may make the network first, and give the process another user namespace.
    """
    try:
        theirs = os.open(f"/proc/{pid}/ns/net", os.O_RDONLY | os.O_CLOEXEC)
        if os.path.samestat(os.fstat(theirs), os.stat("/proc/self/ns/net")):
            return
        if _joined(theirs):
            return
        owner = fcntl.ioctl(theirs, _NS_GET_USERNS)
    except OSError as error:
        raise StepError("enter", os.strerror(error.errno or 0), error.errno or 0) from error
    if not (_joined(owner) and _joined(theirs)):
        raise StepError("enter", os.strerror(errno.EPERM), errno.EPERM)


def _joined(namespace: int) -> bool:
    """Whether it could be joined; False where this process lacks the right."""
    if _libc.setns(namespace, 0) == 0:
        return True
    number = ctypes.get_errno()
    if number != errno.EPERM:
        raise OSError(number, os.strerror(number))
    return False
