"""A small real server that speaks the hub's protocol and plain HTTP, and can misbehave."""

from __future__ import annotations

import hashlib
import json
import re
import threading
import time
from contextlib import suppress
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler
from typing import TYPE_CHECKING
from urllib.parse import unquote, urlsplit

from tests import serving

if TYPE_CHECKING:
    from collections.abc import Iterator

REVISION = "a" * 40


@dataclass
class Fault:
    """What happens to one request instead of what should."""

    status: int = 200
    headers: dict[str, str] = field(default_factory=dict)
    body: bytes | None = None
    cut_after: int | None = None  #: bytes of the body, and then the connection ends
    without_length: bool = False


@dataclass
class Request:
    """What was asked."""

    host: str
    path: str
    headers: dict[str, str]
    status: int = 0


class Server(serving.Server):
    """The server; `faults` are used up one a request, the last of a list stays if `for_ever`."""

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.files: dict[str, bytes] = {}  #: plain files, by path
        self.repos: dict[str, dict[str, bytes]] = {}  #: `models/OWNER/NAME` -> files
        self.large: set[str] = set()  #: names that are kept as LFS, on another host
        self.faults: dict[str, list[Fault]] = {}
        self.for_ever: set[str] = set()
        self.ranges = True
        #: What else is said of every repository.
        self.card: dict[str, object] = {}
        self.answers_for = REVISION
        self.seconds_a_chunk = 0.0
        self.requests: list[Request] = []

    @property
    def address(self) -> str:
        return f"http://127.0.0.1:{self.server_address[1]}"

    def asked(self, part: str) -> list[Request]:
        """The requests whose path holds `part`."""
        return [request for request in self.requests if part in request.path]

    def handle_error(self, *_: object) -> None:
        """A client that has gone is part of the tests."""

    def fault(self, path: str) -> Fault | None:
        waiting = self.faults.get(path, [])
        if not waiting:
            return None
        return waiting[0] if path in self.for_ever else waiting.pop(0)


class _Handler(BaseHTTPRequestHandler):
    server: Server
    protocol_version = "HTTP/1.1"

    def log_message(self, *_: object) -> None:
        pass

    def do_GET(self) -> None:
        parts = urlsplit(self.path)
        path = unquote(parts.path)
        host = self.headers["Host"].partition(":")[0]
        self.asked = Request(host, path, dict(self.headers))
        self.server.requests.append(self.asked)
        fault = self.server.fault(path)
        if fault is not None and fault.status != 200:
            self._send(fault.status, fault.headers, fault.body or b"no")
        elif fault is not None and fault.body is not None:
            self._send(200, {"Content-Type": "text/plain", **fault.headers}, fault.body)
        elif match := re.fullmatch(
            r"/api/(models|datasets|spaces)/(.+?)(?:/revision/(\w+))?", path
        ):
            self._list(match[1], match[2])
        elif match := re.fullmatch(r"/((?:datasets|spaces)/)?(.+)/resolve/(\w+)/(.+)", path):
            self._resolve(match[1] or "models/", match[2], match[4], fault)
        elif path in self.server.files:
            self._file(self.server.files[path], fault)
        else:
            self._send(404, {"X-Error-Code": "RepoNotFound"}, b"")

    def _list(self, kind: str, repo: str) -> None:
        files = self.server.repos.get(f"{kind}/{repo}")
        if files is None:
            self._send(404, {"X-Error-Code": "RepoNotFound"}, b"")
            return
        siblings = []
        for name, content in files.items():
            blob = hashlib.sha1(b"blob %d\0" % len(content) + content).hexdigest()
            entry: dict[str, object] = {"rfilename": name, "size": len(content), "blobId": blob}
            if name in self.server.large:
                digest = hashlib.sha256(content).hexdigest()
                entry["lfs"] = {"sha256": digest, "size": len(content), "pointerSize": 130}
            siblings.append(entry)
        said = {"id": repo, "sha": self.server.answers_for, "siblings": siblings}
        said |= self.server.card
        self._send(200, {"Content-Type": "application/json"}, json.dumps(said).encode())

    def _resolve(self, kind: str, repo: str, name: str, fault: Fault | None) -> None:
        content = self.server.repos.get(f"{kind}{repo}", {}).get(name)
        if content is None:
            self._send(404, {"X-Error-Code": "EntryNotFound"}, b"")
        elif name in self.server.large:
            path = f"/cdn/{kind}{repo}/{name}"
            self.server.files[path] = content
            port = self.server.server_address[1]
            self._send(302, {"Location": f"http://localhost:{port}{path}?signature=SIGNED"}, b"")
        else:
            self._file(content, fault)

    def _file(self, content: bytes, fault: Fault | None) -> None:
        tag = f'"{hashlib.md5(content).hexdigest()}"'
        headers = {"ETag": tag, "Content-Type": "application/octet-stream"}
        match = re.fullmatch(r"bytes=(\d+)-", self.headers.get("Range", ""))
        status, start = 200, 0
        if match and self.server.ranges and self.headers.get("If-Range", tag) == tag:
            start = int(match[1])
            if start >= len(content):
                self._send(416, {"Content-Range": f"bytes */{len(content)}"}, b"")
                return
            status = 206
            headers["Content-Range"] = f"bytes {start}-{len(content) - 1}/{len(content)}"
        self._send(status, headers, content[start:], fault)

    def _send(
        self, status: int, headers: dict[str, str], body: bytes, fault: Fault | None = None
    ) -> None:
        self.asked.status = status
        self.send_response(status)
        for name, value in {**headers, **(fault.headers if fault else {})}.items():
            self.send_header(name, value)
        if fault is not None and fault.without_length:
            self.send_header("Connection", "close")
            self.close_connection = True
        else:
            self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        cut = fault.cut_after if fault is not None else None
        with suppress(ConnectionError):
            sent = body if cut is None else body[:cut]
            for at in range(0, len(sent), 65536):
                self.wfile.write(sent[at : at + 65536])
                time.sleep(self.server.seconds_a_chunk)
        if cut is not None:
            self.close_connection = True


def running() -> Iterator[Server]:
    """A server that runs, for a fixture."""
    server = Server()
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.05})
    thread.start()
    yield server
    server.shutdown()
    thread.join()
    server.server_close()
