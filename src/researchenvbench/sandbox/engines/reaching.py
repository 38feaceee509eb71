"""How programs in a container reach the harness, whatever network it has.

The harness listens within the container's own network. Where this user may not enter that,
as with docker of another user than root, it listens on the gateway of the container's network
instead, which needs one.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from ...errors import HostError, SandboxError
from ..listening import NotAllowedError, listen_on_host, listen_within
from .storage import storage_of

if TYPE_CHECKING:
    import socket

    from .engine import Engine

#: Number on the host, the network's kind, and a gateway for each network that has one.
_ASKED = (
    "{{.State.Pid}} {{.HostConfig.NetworkMode}} "
    "{{range .NetworkSettings.Networks}}{{.Gateway}} {{end}}"
)


def listen_in_container(engine: Engine, container: str, port: int) -> socket.socket:
    """A socket that listens where programs in the container reach it: at its `getsockname`.

    That is 127.0.0.1 as they see it, or the gateway of their network.

    Args:
        engine: Whose container it is.
        container: Its id; it has to run.
        port: 0 lets the system choose.

    Raises:
        HostError: it is not allowed here and there is no gateway, or the port is taken.
        SandboxError: the container does not run, or the engine fails.
    """
    pid, mode, gateways = _asked(engine, container)
    if storage_of(engine) is None:
        raise HostError(
            f"{engine.name} runs on another host, where nothing of the harness can be reached",
            advice="run reb on the host of the containers",
        )
    if mode == "host":
        return listen_on_host(port)
    try:
        listening = listen_within(pid, port)
    except NotAllowedError as error:
        if not gateways:
            raise HostError(
                f"a container of {engine.name} without a network cannot reach the harness: "
                f"{error.args[0]}",
                advice=f"{error.advice}; or give builds a network: --network full",
            ) from error
        return listen_on_host(port, gateways[0])
    try:
        # Numbers of processes are given again: it must have been the container's to the end.
        if _asked(engine, container)[0] != pid:
            raise SandboxError(f"the container {container[:12]} was started anew meanwhile")
    except BaseException:
        listening.close()
        raise
    return listening


def _asked(engine: Engine, container: str) -> tuple[int, str, list[str]]:
    said = engine.ask("container", "inspect", "--format", _ASKED, container)
    pid, mode, *gateways = said.split()
    if int(pid) == 0:
        raise SandboxError(
            f"the container {container[:12]} does not run, so nothing can listen in it",
            advice="run the same command again",
        )
    return int(pid), mode, gateways
