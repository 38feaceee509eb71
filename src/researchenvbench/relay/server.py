"""The HTTP server of a relay, in a thread of its own, on sockets that it is given."""

from __future__ import annotations

import asyncio
import logging
import os
import socket
import threading
from typing import TYPE_CHECKING

from ..errors import INSTALL_AGENTS, HostError
from .exchange import Exchange

if TYPE_CHECKING:
    import ssl

    import uvicorn

    from .desk import Desk
    from .incoming import Receive, Scope, Send

_STARTING_S = 30.0
_ENDING_S = 15.0
#: Longer than programs keep a connection that is not used, so that they are the ones to close.
_KEEP_ALIVE_S = 600
#: Of connections to the provider that are not used.
_IDLE_S = 30.0


class ServerThread:
    """Serves until it is closed."""

    def __init__(self, desk: Desk, sockets: list[socket.socket]) -> None:
        """Begin; returns when requests are taken.

        Raises:
            HostError: a package is missing, or the server cannot start.
        """
        try:
            import httpx  # noqa: F401
            import uvicorn
        except ImportError as error:
            raise HostError(
                f"the relay to models needs the package {error.name}, which is not installed",
                advice=INSTALL_AGENTS,
            ) from error
        self._desk = desk
        # Made anew from their numbers, sockets know that they are of TCP. Of others asyncio does
        # not turn off the waiting for more to send, and each answer takes 40 ms.
        self._sockets = [socket.socket(fileno=given.detach()) for given in sockets]
        # At their most talkative they write headers, and a provider may send anything back.
        for name in ("httpx", "httpcore"):
            logging.getLogger(name).setLevel(logging.WARNING)
        self._ready = threading.Event()
        self._trouble: BaseException | None = None
        config = uvicorn.Config(
            self._application,
            # One of each on every host, whatever is installed beside.
            interface="asgi3",
            http="h11",
            loop="asyncio",
            ws="none",
            lifespan="off",
            # It says what an agent's program did; that is in the record.
            log_config=None,
            log_level=100,
            access_log=False,
            proxy_headers=False,
            server_header=False,
            date_header=False,
            timeout_keep_alive=_KEEP_ALIVE_S,
            timeout_graceful_shutdown=0,
        )
        self._server = uvicorn.Server(config)
        self._thread = threading.Thread(target=self._run, name="relay", daemon=True)
        self._thread.start()
        if not self._ready.wait(_STARTING_S) or self._trouble is not None:
            raise HostError(
                f"the relay to the model does not start: {self._trouble or 'no answer'}"
            ) from self._trouble

    def close(self) -> None:
        """Take no more requests, break those off that are under way, and end."""
        self._server.should_exit = True
        self._thread.join(_ENDING_S)

    def _run(self) -> None:
        try:
            asyncio.run(self._serve())
        except BaseException as error:  # noqa: BLE001  # told by who waits for the start
            self._trouble = error
        finally:
            self._ready.set()

    async def _serve(self) -> None:
        import httpx

        patience = self._desk.patience
        timeout = httpx.Timeout(
            patience.silent_s, connect=patience.connect_s, pool=None, write=patience.silent_s
        )
        limits = httpx.Limits(max_connections=None, keepalive_expiry=_IDLE_S)
        # The host's proxies hold for it, as for all that asks the net here.
        verify = _certificates() if self._desk.provider.upstream.startswith("https:") else False
        async with httpx.AsyncClient(
            timeout=timeout, limits=limits, verify=verify, trust_env=True
        ) as client:
            client.headers.clear()
            self._desk.client = client
            ready = asyncio.create_task(self._tell_ready(self._server))
            await self._server.serve(sockets=self._sockets)
            ready.cancel()

    async def _tell_ready(self, server: uvicorn.Server) -> None:
        while not server.started:
            await asyncio.sleep(0.002)
        self._ready.set()

    async def _application(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            return
        if scope["path"] == "/" and scope["method"] in ("GET", "HEAD"):
            # Programs look whether somebody is there; nothing is passed on.
            headers = [(b"content-length", b"0")]
            await send({"type": "http.response.start", "status": 200, "headers": headers})
            await send({"type": "http.response.body", "body": b"", "more_body": False})
            return
        await Exchange(self._desk, scope, receive, send).run()


def _certificates() -> ssl.SSLContext:
    """Whom to trust: what `SSL_CERT_FILE` or `SSL_CERT_DIR` says, else all that this host has.

    httpx by itself knows only the bundle that it brings; behind a proxy that opens connections
    the right certificate is in the host's own store, or where requests is told to look.
    """
    import httpx

    context = httpx.create_ssl_context()
    if not (os.environ.get("SSL_CERT_FILE") or os.environ.get("SSL_CERT_DIR")):
        context.load_default_certs()
        for name in ("REQUESTS_CA_BUNDLE", "CURL_CA_BUNDLE"):
            if bundle := os.environ.get(name):
                context.load_verify_locations(bundle)
    return context
