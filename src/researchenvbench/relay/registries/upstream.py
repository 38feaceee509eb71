"""The way on from this host: direct, or by the proxy that this host itself is told to use."""

from __future__ import annotations

import asyncio
import base64
import ipaddress
import os
import socket
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import TYPE_CHECKING
from urllib.parse import unquote, urlsplit

from ...errors import HostError
from ...sandbox.host_environment import redacted
from .heads import END, MOST_HEAD_BYTES, Asked, status_of

if TYPE_CHECKING:
    from collections.abc import Mapping

    from .hosts import Rule

_CONNECT_S = 20.0
_TUNNEL_S = 60.0
_SUCCESS = 200
_DEFAULT_PORT = 80


class UnreachableError(Exception):
    """A host that may be reached could not be."""


@dataclass(frozen=True)
class Hop:
    """A proxy of this host's configuration."""

    host: str
    port: int
    credentials: str = ""  #: of the scheme Basic

    @property
    def field(self) -> tuple[bytes, ...]:
        """The line by which it lets us through, where it wants one."""
        return (b"Proxy-Authorization: Basic " + self.credentials.encode(),) * bool(
            self.credentials
        )


@dataclass
class Way:
    """An open connection on which a request can be sent."""

    connection: socket.socket
    field: tuple[bytes, ...] = ()  #: lines that it needs
    whole: bool = False  #: it leads to another proxy, which needs whole addresses


class Upstream:
    """Opens ways to hosts."""

    def __init__(self, installs: Mapping[str, str]) -> None:
        """Read which proxies this host uses, as curl and pip do.

        Raises:
            HostError: one of a kind that is not understood.
        """
        settings = {name.lower(): value for name, value in installs.items()}
        # By the small spelling first, as curl has it.
        settings.update({name: value for name, value in installs.items() if name.islower()})
        rest = settings.get("all_proxy") or settings.get("pip_proxy") or ""
        self._without = settings.get("no_proxy", "")
        self._http = _hop(settings.get("http_proxy") or rest)
        self._https = _hop(settings.get("https_proxy") or rest)
        # Names are looked up in threads; those of asyncio's own would be waited for at the end.
        self._lookups = ThreadPoolExecutor(8, thread_name_prefix="lookup")

    def close(self) -> None:
        """Look up no more names."""
        self._lookups.shutdown(wait=False, cancel_futures=True)

    async def open(self, asked: Asked, rule: Rule) -> Way:
        """A way to the host that was asked for.

        Raises:
            UnreachableError: there is none, and why.
        """
        hop = self._hop_to(asked)
        if hop is None:
            return Way(await self._connected(asked.host, asked.port, anywhere=rule.named))
        connection = await self._connected(hop.host, hop.port, anywhere=True)
        if not asked.is_tunnel:
            return Way(connection, hop.field, whole=True)
        try:
            async with asyncio.timeout(_TUNNEL_S):
                await _dig(connection, asked, hop)
        except BaseException as error:
            connection.close()
            if isinstance(error, OSError):  # TimeoutError among them
                raise UnreachableError(
                    f"the proxy {hop.host}:{hop.port} of this host does not answer"
                ) from error
            raise
        return Way(connection)

    def _hop_to(self, asked: Asked) -> Hop | None:
        from urllib.request import proxy_bypass_environment  # type: ignore[attr-defined]

        hop = self._https if asked.is_tunnel else self._http
        if hop is None or proxy_bypass_environment(
            asked.authority, {"no": self._without} if self._without else {}
        ):
            return None
        return hop

    async def _connected(self, host: str, port: int, *, anywhere: bool) -> socket.socket:
        """Connect; only a host that was named by its user may be this one, or beside it."""
        loop = asyncio.get_running_loop()
        try:
            found = await loop.run_in_executor(
                self._lookups, lambda: socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)
            )
        except (OSError, UnicodeError) as error:
            why = getattr(error, "strerror", None) or "it is no name"
            raise UnreachableError(f"{host} is not found: {why}") from error
        why = "it has no address"
        for family, kind, protocol, _, address in found:
            if not anywhere and _is_own(str(address[0])):
                why = f"its address {address[0]} is one of this host itself"
                continue
            connection = socket.socket(family, kind, protocol)
            connection.setblocking(False)
            try:
                async with asyncio.timeout(_CONNECT_S):
                    await loop.sock_connect(connection, address)
            except OSError as error:  # TimeoutError among them
                connection.close()
                # asyncio has words of its own in strerror.
                why = (
                    os.strerror(error.errno)
                    if error.errno
                    else f"no answer within {_CONNECT_S:.0f} s"
                )
            except BaseException:
                connection.close()
                raise
            else:
                connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
                return connection
        raise UnreachableError(f"{host}:{port} cannot be reached: {why}")


async def _dig(connection: socket.socket, asked: Asked, hop: Hop) -> None:
    """Have another proxy make a tunnel.

    Raises:
        UnreachableError: it does not.
        OSError: it cannot be talked to.
    """
    loop = asyncio.get_running_loop()
    lines = [
        f"CONNECT {asked.authority} HTTP/1.1".encode("latin-1"),
        f"Host: {asked.authority}".encode("latin-1"),
        *hop.field,
    ]
    await loop.sock_sendall(connection, b"\r\n".join(lines) + END)
    head = b""
    while END not in head and len(head) < MOST_HEAD_BYTES:
        # Byte by byte at its end, since what follows it is the host's.
        if not (piece := await loop.sock_recv(connection, 1)):
            break
        head += piece
    if status_of(head) != _SUCCESS:
        said = head.partition(b"\r\n")[0].decode("latin-1")[:100]
        said = "".join(letter for letter in said if letter.isprintable())
        raise UnreachableError(
            f"the proxy {hop.host}:{hop.port} of this host does not let it through: {said!r}"
        )


def _hop(address: str) -> Hop | None:
    if not address:
        return None
    whole = address if "://" in address else f"http://{address}"
    try:
        parts = urlsplit(whole)
        host, port = parts.hostname, parts.port or _DEFAULT_PORT
    except ValueError:
        host, port, parts = None, 0, urlsplit("")
    if not host or parts.scheme != "http":
        raise HostError(
            f"{redacted(whole)}: the way to package indexes cannot go by such a proxy",
            advice="set http_proxy and https_proxy to one whose address begins with http://, or "
            "use --network full",
        )
    credentials = ""
    if parts.username is not None:
        pair = f"{unquote(parts.username)}:{unquote(parts.password or '')}"
        credentials = base64.b64encode(pair.encode()).decode()
    return Hop(host, port, credentials)


def _is_own(address: str) -> bool:
    """Whether it leads to this host or its link, where clouds answer with their secrets."""
    found = ipaddress.ip_address(address.partition("%")[0])
    if isinstance(found, ipaddress.IPv6Address) and found.ipv4_mapped:
        found = found.ipv4_mapped
    return found.is_loopback or found.is_link_local or found.is_unspecified or found.is_multicast
