"""Sockets that listen where programs of a box reach them, on their own 127.0.0.1.

The harness accepts on them, whatever network the box has. Such a socket keeps the box's
network alive as long as it is open; it is closed before the box is.
"""

from __future__ import annotations

import ast
import errno
import os
import socket
import subprocess
from typing import Any

from ..errors import HostError, SandboxError
from ..process import STAND_ALONE_ENV, stand_alone

LOOPBACK = "127.0.0.1"
_BACKLOG = 128
_ANSWER_BYTES = 4096
#: A helper starts within a tenth of a second; a busy host takes longer.
_PATIENCE_S = 60.0
#: As the kernel says that this user may not enter.
_NOT_ALLOWED = (errno.EPERM, errno.EACCES)


class NotAllowedError(HostError):
    """The network of a process cannot be entered by this user."""


def listen_on_host(port: int, address: str = LOOPBACK) -> socket.socket:
    """A socket that listens on an address of this host.

    Args:
        port: 0 lets the system choose.
        address: IPv4.

    Raises:
        HostError: it cannot be had, such as where another program has the port.
    """
    listening = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
    try:
        listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listening.bind((address, port))
        listening.listen(_BACKLOG)
    except OSError as error:
        listening.close()
        raise _no_port(port, address, error.errno or 0) from error
    return listening


def listen_within(pid: int, port: int) -> socket.socket:
    """A socket that listens on 127.0.0.1 in the network namespace of a process.

    Args:
        pid: Its number on this host.
        port: 0 lets the system choose.

    Raises:
        NotAllowedError: this user may not enter it.
        HostError: the port is taken there.
        SandboxError: the process has ended, or it failed otherwise.
    """
    ours, theirs = socket.socketpair()
    with ours:
        with theirs:
            try:
                helper = subprocess.Popen(
                    [*stand_alone("listener"), str(theirs.fileno()), str(pid), str(port)],
                    stdin=subprocess.DEVNULL,
                    stdout=subprocess.DEVNULL,
                    stderr=subprocess.DEVNULL,
                    pass_fds=(theirs.fileno(),),
                    cwd="/",
                    env=STAND_ALONE_ENV,
                    start_new_session=True,
                )
            except OSError as error:
                raise SandboxError(f"no process can be started: {error.strerror}") from error
        try:
            failed, handles = _received(ours)
        finally:
            helper.kill()  # it has answered, or will not
            helper.wait()
    if handles:
        os.set_inheritable(handles[0], False)  # not every kernel heeds the flag
        return socket.socket(fileno=handles[0])
    number = int(failed.get("errno", 0))
    if failed.get("step") == "enter" and number in _NOT_ALLOWED:
        raise NotAllowedError(
            f"its network cannot be entered: {failed['why']}",
            advice="run reb as root, or use podman, whose containers are this user's own",
        )
    if failed.get("step") == "bind":
        raise _no_port(port, LOOPBACK, number, " in the box")
    raise SandboxError(
        f"no socket can be made in the network of process {pid}: "
        f"{failed.get('why', 'the helper of the harness has died')}",
        advice="run the same command again",
    )


def _received(channel: socket.socket) -> tuple[dict[str, Any], list[int]]:
    channel.settimeout(_PATIENCE_S)
    try:
        said, handles, _, _ = socket.recv_fds(
            channel, _ANSWER_BYTES, 1, flags=socket.MSG_CMSG_CLOEXEC
        )
    except TimeoutError:
        return {"why": f"the helper of the harness did not answer within {_PATIENCE_S:.0f} s"}, []
    except OSError as error:
        return {"why": error.strerror}, []
    return (ast.literal_eval(said.decode("ascii")) if said else {}), list(handles)


def _no_port(port: int, address: str, number: int, where: str = "") -> HostError:
    return HostError(
        f"nothing can listen at {address}:{port}{where}: {os.strerror(number)}",
        advice="end the program that has the port, or choose another"
        if number == errno.EADDRINUSE
        else "reb doctor says what this host allows",
    )
