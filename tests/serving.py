"""HTTP servers of tests that are wholly gone when they are closed."""

from __future__ import annotations

import socket
from contextlib import suppress
from http.server import ThreadingHTTPServer
from typing import Any


class Server(ThreadingHTTPServer):
    """Breaks off what clients hold open, and waits for its threads.

    A client that keeps its connection keeps a thread here, and tests that fork need a process
    of one thread.
    """

    daemon_threads = False

    def __init__(self, *arguments: Any) -> None:
        super().__init__(*arguments)
        self._connections: list[socket.socket] = []

    def process_request(self, request: Any, client_address: Any) -> None:
        """Note the connection."""
        self._connections.append(request)
        super().process_request(request, client_address)

    def server_close(self) -> None:
        """End all."""
        for connection in self._connections:
            with suppress(OSError):
                connection.shutdown(socket.SHUT_RDWR)
        super().server_close()
