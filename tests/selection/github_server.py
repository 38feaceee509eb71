"""A small real server that speaks what a selection asks of GitHub, and can misbehave.

Its search reads the qualifiers that GitHub's does; its repositories are served by git itself
(git-http-backend), so that what is fetched is fetched as from anywhere.
"""

from __future__ import annotations

import json
import os
import re
import subprocess
import threading
from contextlib import suppress
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler
from typing import TYPE_CHECKING, Any
from urllib.parse import parse_qs, urlsplit

from tests import serving

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

JSON = {"Content-Type": "application/json; charset=utf-8"}


@dataclass
class Fault:
    """What a request gets in place of its answer."""

    status: int = 200
    headers: dict[str, str] = field(default_factory=dict)
    body: bytes = b'{"message": "no"}'  #: of a refusal
    instead: bytes | None = None  #: of what else is sent with 200
    cut_after: int | None = None  #: bytes, and then the connection ends
    incomplete: bool = False  #: the answer itself, marked as incomplete


@dataclass
class Request:
    """What was asked."""

    path: str
    query: dict[str, str]
    headers: dict[str, str]


class Server(serving.Server):
    """The server; `faults` are used up one a search."""

    def __init__(self, root: Path) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.root = root  #: of bare repositories, OWNER/NAME.git
        self.items: list[dict[str, Any]] = []
        self.faults: list[Fault] = []
        self.requests: list[Request] = []

    @property
    def address(self) -> str:
        return f"http://127.0.0.1:{self.server_address[1]}"

    @property
    def searches(self) -> list[Request]:
        return [request for request in self.requests if request.path == "/search/repositories"]

    @property
    def fetches(self) -> list[Request]:
        return [request for request in self.requests if request.path.endswith("/info/refs")]

    def add(self, name: str, **facts: Any) -> None:
        """A repository that the search knows; it is served where `root` has it."""
        said = {
            "id": len(self.items) + 1,
            "full_name": name,
            "clone_url": f"{self.address}/{name}.git",
            "created_at": "2024-06-01T10:00:00Z",
            "pushed_at": "2025-01-02T03:04:05Z",
            "stargazers_count": 500,
            "archived": False,
            "fork": False,
            "language": "Python",
            "description": "",
            "topics": [],
        }
        self.items.append(said | facts)

    def handle_error(self, *_: object) -> None:
        """A client that has gone is part of the tests."""


class _Handler(BaseHTTPRequestHandler):
    server: Server
    protocol_version = "HTTP/1.1"

    def log_message(self, *_: object) -> None:
        pass

    def do_GET(self) -> None:
        parts = urlsplit(self.path)
        query = {name: values[0] for name, values in parse_qs(parts.query).items()}
        self.server.requests.append(Request(parts.path, query, dict(self.headers)))
        if parts.path == "/search/repositories":
            self._search(query)
        else:
            self._git(b"")

    def do_POST(self) -> None:
        self._git(self.rfile.read(int(self.headers.get("Content-Length", "0"))))

    def _search(self, query: dict[str, str]) -> None:
        fault = self.server.faults.pop(0) if self.server.faults else Fault()
        if fault.status != 200:
            self._send(fault.status, {**JSON, **fault.headers}, fault.body)
            return
        if fault.instead is not None:
            self._send(200, {**JSON, **fault.headers}, fault.instead)
            return
        per_page, page = int(query["per_page"]), int(query["page"])
        if per_page * page > 1000:
            body = b'{"message": "Only the first 1000 search results are available"}'
            self._send(422, JSON, body)
            return
        found = [item for item in self.server.items if _fits(item, query["q"])]
        found.sort(key=lambda item: -item["stargazers_count"])
        shown = found[per_page * (page - 1) : per_page * page]
        said = {
            "total_count": len(found),
            "incomplete_results": fault.incomplete,
            "items": shown[: len(shown) // 2] if fault.incomplete else shown,
        }
        self._send(200, {**JSON, **fault.headers}, json.dumps(said).encode(), fault.cut_after)

    def _send(
        self, status: int, headers: dict[str, str], body: bytes, cut_after: int | None = None
    ) -> None:
        self.send_response(status)
        for name, value in headers.items():
            self.send_header(name, value)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        with suppress(ConnectionError):
            self.wfile.write(body if cut_after is None else body[:cut_after])
        if cut_after is not None:
            self.close_connection = True

    def _git(self, body: bytes) -> None:
        """Hand the request to git, by CGI (RFC 3875)."""
        parts = urlsplit(self.path)
        done = subprocess.run(
            ["git", "http-backend"],
            input=body,
            capture_output=True,
            env={
                "PATH": os.environ["PATH"],
                "GIT_PROJECT_ROOT": str(self.server.root),
                "GIT_HTTP_EXPORT_ALL": "1",
                "GIT_CONFIG_COUNT": "1",
                "GIT_CONFIG_KEY_0": "uploadpack.allowFilter",
                "GIT_CONFIG_VALUE_0": "true",
                "REQUEST_METHOD": self.command,
                "PATH_INFO": parts.path,
                "QUERY_STRING": parts.query,
                "CONTENT_TYPE": self.headers.get("Content-Type", ""),
                "CONTENT_LENGTH": str(len(body)),
                "HTTP_CONTENT_ENCODING": self.headers.get("Content-Encoding", ""),
                "GIT_PROTOCOL": self.headers.get("Git-Protocol", ""),
            },
            check=False,
        )
        head, _, content = done.stdout.partition(b"\r\n\r\n")
        headers = dict(line.split(": ", 1) for line in head.decode().splitlines() if ": " in line)
        self._send(int(headers.pop("Status", "200")[:3]), headers, content)


def _fits(item: dict[str, Any], query: str) -> bool:
    """As GitHub's search: words in name and description, and the qualifiers that we send."""
    day = item["created_at"][:10]
    for word in query.split():
        name, colon, value = word.partition(":")
        if name == "created" and ".." in value:
            first, _, last = value.partition("..")
            fits = first <= day <= last
        elif name == "created":
            fits = day >= value.removeprefix(">=")
        elif name == "stars":
            fits = item["stargazers_count"] > int(value.removeprefix(">"))
        elif colon:
            fits = name in ("language", "archived")  # what they keep out is judged again
        else:
            fits = bool(re.search(re.escape(word), f"{item['full_name']} {item['description']}"))
        if not fits:
            return False
    return True


def running(root: Path) -> Iterator[Server]:
    """A server that runs, for a fixture."""
    server = Server(root)
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.05})
    thread.start()
    yield server
    server.shutdown()
    thread.join()
    server.server_close()
