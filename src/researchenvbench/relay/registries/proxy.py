"""A forwarding proxy in a thread: CONNECT for https, whole addresses for http.

It accepts on a socket that listens already, wherever that is. Bytes are passed as they are; of
https it sees the host alone. A connection carries one request, so that each one is looked at.
"""

from __future__ import annotations

import asyncio
import functools
import socket
import sys
import threading
import time
from collections.abc import Callable, Coroutine
from contextlib import suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING, Self

from ...attempt import now
from ...network_use import Fetch
from .heads import END, MOST_HEAD_BYTES, Asked, HeadError, read_head
from .hosts import plain_host
from .upstream import UnreachableError, Way

if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Literal

    from .hosts import Hosts
    from .upstream import Upstream

_Attend = Callable[[socket.socket], Coroutine[None, None, None]]

#: Large, since each piece costs two calls of the system and some of Python.
_PIECE_BYTES = 1 << 18
#: At a time; whoever comes then waits in the backlog.
_MOST_CONNECTIONS = 256
_HEAD_S = 60.0
#: How long the other side may take to end a connection that has ended on one side.
_LINGER_S = 5.0
_MOST_PATH = 500
_NO_ACCEPT_S = 0.2


@dataclass
class _Passed:
    """Bytes that have gone one way."""

    size_bytes: int = 0


class Proxy:
    """The proxy, as long as the context is open."""

    def __init__(
        self,
        listening: socket.socket,
        hosts: Hosts,
        upstream: Upstream,
        note: Callable[[Fetch], None],
        forwards: Sequence[tuple[socket.socket, int]] = (),
    ) -> None:
        """Nothing is accepted yet.

        Args:
            listening: Where clients connect to; the caller closes it.
            hosts: Which may be reached.
            upstream: The way there.
            note: Told each fetch when it has ended, in the proxy's thread.
            forwards: Sockets whose connections go to a port of this host's own loopback.
        """
        self._hosts, self._upstream, self._note = hosts, upstream, note
        self._accepted: list[tuple[socket.socket, _Attend]] = [(listening, self._attend)]
        for one, port in forwards:
            self._accepted.append((one, functools.partial(self._forward, port)))
        self._open: set[asyncio.Task[None]] = set()
        self._stop = asyncio.Event()
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._run, name="registries", daemon=True)

    def __enter__(self) -> Self:
        for listening, _ in self._accepted:
            listening.setblocking(False)
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        """End all connections; what they have fetched is noted then."""
        self._loop.call_soon_threadsafe(self._stop.set)
        self._thread.join()

    def _run(self) -> None:
        # Its end cancels all tasks: each connection notes what it has passed, and is closed.
        with asyncio.Runner(loop_factory=lambda: self._loop) as runner:
            runner.run(self._serve())

    async def _serve(self) -> None:
        self._listen()
        await self._stop.wait()
        self._pause()

    def _listen(self) -> None:
        """Accept, unless it is over, or more connections are open than may be."""
        if not self._stop.is_set() and len(self._open) < _MOST_CONNECTIONS:
            for listening, attend in self._accepted:
                self._loop.add_reader(listening, self._accept, listening, attend)

    def _pause(self) -> None:
        for listening, _ in self._accepted:
            self._loop.remove_reader(listening)

    def _accept(self, listening: socket.socket, attend: _Attend) -> None:
        try:
            client, _ = listening.accept()
        except BlockingIOError:
            return  # it has gone again
        except OSError:  # out of files: connections that end give some back
            self._pause()
            self._loop.call_later(_NO_ACCEPT_S, self._listen)
            return
        task = self._loop.create_task(_attended(client, attend))
        self._open.add(task)
        task.add_done_callback(functools.partial(self._ended, client))
        if len(self._open) >= _MOST_CONNECTIONS:
            self._pause()

    def _ended(self, client: socket.socket, task: asyncio.Task[None]) -> None:
        client.close()
        self._open.discard(task)
        self._listen()

    async def _attend(self, client: socket.socket) -> None:
        """One request, from its head to the last byte of the answer."""
        try:
            async with asyncio.timeout(_HEAD_S):
                head, rest = await _head(client)
            if not head:
                return
            asked = read_head(head)
        except HeadError as error:
            await _answer(client, error.status, error.why)
            return
        except TimeoutError:
            return
        entry = _Entry(asked, self._note)
        with entry:
            rule = self._hosts.rule(asked.host, asked.port)
            if rule is None:
                entry.end, entry.why = "refused", "not allowed by the policy"
                await _answer(client, 403, self._hosts.refusal(asked.host, asked.port))
                return
            try:
                way = await self._upstream.open(asked, rule)
            except UnreachableError as error:
                entry.end, entry.why = "failed", str(error)
                await _answer(client, 502, str(error))
                return
            with way.connection:
                await (_tunnel if asked.is_tunnel else _pass_on)(client, way, rest, entry)

    async def _forward(self, port: int, client: socket.socket) -> None:
        """Connect a client with an index on this host's own loopback."""
        asked = Asked("FORWARD", "127.0.0.1", port)
        with _Entry(asked, self._note) as entry:
            loop = asyncio.get_running_loop()
            with socket.socket() as server:
                server.setblocking(False)
                try:
                    await loop.sock_connect(server, ("127.0.0.1", port))
                except OSError as error:
                    entry.end, entry.why = "failed", error.strerror or ""
                    return
                await _both_ways(client, server, entry)


class _Entry:
    """A fetch under way; noted when it has ended, however that was."""

    def __init__(self, asked: Asked, note: Callable[[Fetch], None]) -> None:
        self.end: Literal["passed", "refused", "failed"] = "passed"
        self.why = ""
        self.inward, self.outward = _Passed(), _Passed()
        self.asked, self._note = asked, note
        self._began, self._clock = now(), time.monotonic()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        asked = self.asked
        self._note(
            Fetch(
                began=self._began,
                seconds=round(time.monotonic() - self._clock, 3),
                end=self.end,
                host=plain_host(asked.host) or asked.host[:_MOST_PATH],
                port=asked.port,
                method=asked.method[:20],
                path=asked.path[:_MOST_PATH],
                why=self.why,
                bytes_in=self.inward.size_bytes,
                bytes_out=self.outward.size_bytes,
            )
        )


async def _attended(client: socket.socket, attend: _Attend) -> None:
    client.setblocking(False)
    with suppress(OSError):  # the client has gone, or the host has
        client.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        await attend(client)
        await _let_go(client)


async def _head(client: socket.socket) -> tuple[bytes, bytes]:
    """The head of a request and what came after it; empty where the client left before."""
    loop, received = asyncio.get_running_loop(), b""
    while END not in received:
        if len(received) > MOST_HEAD_BYTES:
            raise HeadError(400, "the head of the request is too long")
        if not (piece := await loop.sock_recv(client, MOST_HEAD_BYTES)):
            return b"", b""
        received += piece
    head, _, rest = received.partition(END)
    return head + END, rest


async def _answer(client: socket.socket, status: int, why: str) -> None:
    """Say that a request is not passed on, and why: in the first line, which tools show."""
    text = why.encode("ascii", "replace").decode()
    body = f"{text}\n".encode()
    head = (
        f"HTTP/1.1 {status} {text}\r\nContent-Type: text/plain; charset=utf-8\r\n"
        f"Content-Length: {len(body)}\r\nConnection: close\r\n\r\n"
    )
    await asyncio.get_running_loop().sock_sendall(client, head.encode() + body)


async def _tunnel(client: socket.socket, way: Way, rest: bytes, entry: _Entry) -> None:
    loop = asyncio.get_running_loop()
    await loop.sock_sendall(client, b"HTTP/1.1 200 Connection established\r\n\r\n")
    if rest:
        await loop.sock_sendall(way.connection, rest)
        entry.outward.size_bytes += len(rest)
    await _both_ways(client, way.connection, entry)


async def _pass_on(client: socket.socket, way: Way, rest: bytes, entry: _Entry) -> None:
    """One request of http: its head as the host needs it, its body, and the whole answer."""
    loop, asked, server = asyncio.get_running_loop(), entry.asked, way.connection
    head = asked.head(*way.field, whole=way.whole)
    body = rest[: asked.body_bytes]
    await loop.sock_sendall(server, head + body)
    entry.outward.size_bytes += len(head) + len(body)
    sending = asyncio.ensure_future(
        _pass(client, server, entry.outward, asked.body_bytes - len(body))
    )
    try:
        await _pass(server, client, entry.inward)
    finally:
        sending.cancel()
        await asyncio.gather(sending, return_exceptions=True)


async def _both_ways(client: socket.socket, server: socket.socket, entry: _Entry) -> None:
    """Pass bytes until both sides have ended, or one that has ended is not answered."""
    outward = asyncio.ensure_future(_pass(client, server, entry.outward))
    inward = asyncio.ensure_future(_pass(server, client, entry.inward))
    outward.add_done_callback(lambda _: _shut(server))
    inward.add_done_callback(lambda _: _shut(client))
    try:
        await inward
        await asyncio.wait({outward}, timeout=_LINGER_S)
    finally:
        for task in (inward, outward):
            task.cancel()
        await asyncio.gather(inward, outward, return_exceptions=True)


async def _pass(
    source: socket.socket,
    target: socket.socket,
    passed: _Passed,
    limit_bytes: int = sys.maxsize,
) -> None:
    """Pass bytes from one to the other until its end, or until so many have gone."""
    loop, buffer = asyncio.get_running_loop(), memoryview(bytearray(_PIECE_BYTES))
    while limit_bytes:
        size = await loop.sock_recv_into(source, buffer[:limit_bytes])
        if not size:
            return
        await loop.sock_sendall(target, buffer[:size])
        passed.size_bytes += size
        limit_bytes -= size


def _shut(connection: socket.socket) -> None:
    with suppress(OSError):
        connection.shutdown(socket.SHUT_WR)


async def _let_go(client: socket.socket) -> None:
    """End a connection so that its last bytes arrive, also where the client has sent more.

    The system breaks off one that is closed with something unread.
    """
    _shut(client)
    loop = asyncio.get_running_loop()
    with suppress(OSError):  # TimeoutError among them
        async with asyncio.timeout(_LINGER_S):
            while await loop.sock_recv(client, _PIECE_BYTES):
                pass
