"""A scripted model on 127.0.0.1 that speaks all three protocols, as a provider would.

    script = [Turn("I look.", (Tool("Bash", {"command": "ls"}),)), Fault(529), Turn("Done.")]
    with ModelServer(script, model="some-model") as server:
        ...                                   # the program of an agent asks server.address
    server.requests[0].json, server.requests[0].usage

Each call of the model takes the next entry of the script; when there is none left, the answer
is `after`. What a program asks beside its work takes none: other paths, models that are not
`model`, and what `aside` says (`without_tools` for programs that have titles made). No key is
checked unless `key` is given. Answers are chunked over HTTP/1.1; a thread for each connection.
"""

from __future__ import annotations

import gzip
import json
import threading
import time
import zlib
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import TYPE_CHECKING, Any, Self
from urllib.parse import urlsplit

from .model_answers import Tool, Turn, answer, error, stream

if TYPE_CHECKING:
    import socket
    from collections.abc import Callable, Iterable, Iterator, Mapping

    from researchenvbench.model_use import Tokens, Wire

__all__ = ["Fault", "ModelServer", "Raw", "Request", "Tool", "Turn", "without_tools"]

#: Under which path a call of a model comes.
PATHS: dict[str, Wire] = {
    "/v1/messages": "anthropic-messages",
    "/v1/responses": "openai-responses",
    "/v1/chat/completions": "openai-chat",
}
_KINDS = {
    400: "invalid_request_error",
    401: "authentication_error",
    403: "permission_error",
    404: "not_found_error",
    413: "request_too_large",
    429: "rate_limit_error",
    500: "api_error",
    529: "overloaded_error",
}


@dataclass(frozen=True)
class Fault:
    """Instead of an answer: a status with an error, or none at all."""

    status: int = 529
    kind: str = ""  #: the error's type; by default the one that goes with the status
    message: str = "of the script"
    headers: Mapping[str, str] = field(default_factory=dict)  #: such as retry-after
    delay_s: float = 0.0
    never: bool = False  #: the connection is held and nothing is sent, until the server ends
    drop: bool = False  #: the connection is closed before the head of the answer
    body: bytes | None = None  #: in place of the protocol's error


@dataclass(frozen=True)
class Raw:
    """An answer given byte for byte, in the pieces in which it is to be written."""

    pieces: tuple[bytes, ...]
    status: int = 200
    headers: Mapping[str, str] = field(
        default_factory=lambda: {"content-type": "text/event-stream"}
    )
    pause_s: float = 0.0
    cut: bool = False  #: the connection is closed in place of the answer's end


@dataclass
class Request:
    """What was asked, and what was answered."""

    number: int
    method: str
    path: str
    query: str
    headers: dict[str, str]
    body: bytes
    took_turn: bool = False
    usage: Tokens | None = None  #: as sent, in our words
    gone: bool = False  #: who asked went away before the end
    sent_bytes: int = 0  #: of the answer's body, as far as it was written

    @property
    def json(self) -> Any:
        """The body, where it is JSON; else null."""
        try:
            return json.loads(self.body)
        except ValueError:
            return None


Entry = Turn | Fault | Raw


def without_tools(request: Request) -> bool:
    """Whether a request offers no tools: programs ask so for titles and the like."""
    return not (request.json or {}).get("tools")


class ModelServer:
    """The server; it runs from its making until `close`, or as a context."""

    def __init__(
        self,
        script: Iterable[Entry] | Callable[[Request], Entry] = (),
        *,
        model: str = "",
        after: Entry | None = None,
        aside: Callable[[Request], bool] | None = None,
        key: str = "",
    ) -> None:
        self._next = script if callable(script) else None
        self._script: Iterator[Entry] = iter(()) if callable(script) else iter(script)
        self._model = model
        self._after = Turn("Done.") if after is None else after
        self._aside = aside or (lambda _: False)
        self._key = key
        self._lock = threading.Lock()
        self.requests: list[Request] = []
        self.closing = threading.Event()
        self._server = _Server(self)
        self.port = self._server.server_address[1]
        self._thread = threading.Thread(target=self._server.serve_forever, args=(0.05,))
        self._thread.daemon = True
        self._thread.start()

    @property
    def address(self) -> str:
        """Without a path, such as programs of Anthropic's protocol want it."""
        return f"http://127.0.0.1:{self.port}"

    @property
    def openai_address(self) -> str:
        """With the path that programs of OpenAI's protocols want in it."""
        return f"{self.address}/v1"

    @property
    def turns(self) -> list[Request]:
        """The requests that took an entry of the script."""
        return [request for request in self.requests if request.took_turn]

    def close(self) -> None:
        """End, with whatever is being answered."""
        self.closing.set()
        self._server.shutdown()
        self._server.server_close()
        self._thread.join(10)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def record(self, request: Request) -> int:
        """Note a request; its number, from 1."""
        with self._lock:
            self.requests.append(request)
            request.number = len(self.requests)
            return request.number

    def wrong_key(self, headers: Mapping[str, str]) -> bool:
        """Whether a key is asked for and another one was brought."""
        brought = headers.get("x-api-key") or headers.get("authorization", "")
        return bool(self._key) and brought.removeprefix("Bearer ") != self._key

    def entry_for(self, request: Request) -> Entry:
        """What is answered to a call of a model."""
        asked = request.json or {}
        if (self._model and asked.get("model") != self._model) or self._aside(request):
            return Turn("Aside.")
        request.took_turn = True
        if self._next is not None:
            return self._next(request)
        with self._lock:
            return next(self._script, self._after)


class _Server(ThreadingHTTPServer):
    daemon_threads = True
    block_on_close = False
    request_queue_size = 64

    def __init__(self, owner: ModelServer) -> None:
        self.owner = owner
        super().__init__(("127.0.0.1", 0), _Handler)

    def handle_error(self, request: socket.socket | tuple[bytes, socket.socket], client_address):
        """Clients that go away are a part of the tests."""


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    server: _Server
    wbufsize = 0
    disable_nagle_algorithm = True

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002
        pass

    def do_HEAD(self) -> None:
        self._asked()
        self._head(200, {"content-length": "0"})

    def do_GET(self) -> None:
        request = self._asked()
        if request.path == "/v1/models":
            name = self.server.owner._model or "some-model"
            listed = {"id": name, "object": "model", "type": "model", "created": 1_700_000_000}
            listed |= {"owned_by": "tests", "display_name": name}
            self._json(200, {"object": "list", "data": [listed], "has_more": False})
        else:
            self._fault("openai-responses", Fault(404, message=f"no such path: {request.path}"))

    def do_POST(self) -> None:
        request = self._asked()
        wire = PATHS.get(request.path)
        if self.server.owner.wrong_key(request.headers):
            self._fault(wire or "anthropic-messages", Fault(401, message="invalid x-api-key"))
        elif request.path == "/v1/messages/count_tokens":
            self._json(200, {"input_tokens": max(1, len(request.body) // 4)})
        elif wire is None:
            self._fault("openai-responses", Fault(404, message=f"no such path: {request.path}"))
        elif not isinstance(request.json, dict):
            self._fault(wire, Fault(400, message="the body is no JSON object"))
        else:
            self._answer(wire, request, self.server.owner.entry_for(request))

    def _asked(self) -> Request:
        parts = urlsplit(self.path)
        headers = {name.lower(): value for name, value in self.headers.items()}
        body = self.rfile.read(int(headers.get("content-length", "0")))
        if headers.get("transfer-encoding") == "chunked":
            body = self._chunks()
        request = Request(0, self.command, parts.path, parts.query, headers, body)
        self.server.owner.record(request)
        return request

    def _chunks(self) -> bytes:
        body = b""
        while size := int(self.rfile.readline().split(b";")[0], 16):
            body += self.rfile.read(size)
            self.rfile.readline()
        while self.rfile.readline().strip():
            pass
        return body

    def _answer(self, wire: Wire, request: Request, entry: Entry) -> None:
        if isinstance(entry, Fault):
            self._fault(wire, entry)
        elif isinstance(entry, Raw):
            self._head(entry.status, {**entry.headers, "transfer-encoding": "chunked"})
            self._body(request, entry.pieces, entry.pause_s, None, cut=entry.cut)
        else:
            self._turn(wire, request, entry)

    def _turn(self, wire: Wire, request: Request, turn: Turn) -> None:
        self._wait(turn.delay_s)
        asked = request.json
        streamed = asked.get("stream") is True
        request.usage = turn.usage if turn.tells_usage else None
        pieces: Iterator[bytes]
        if streamed:
            pieces = stream(wire, turn, asked, request.number)
            kind = "text/event-stream; charset=utf-8"
        else:
            body = json.dumps(answer(wire, turn, asked, request.number)).encode()
            pieces = iter([body])
            kind = "application/json"
        headers = {"content-type": kind, "request-id": f"req_{request.number:04d}", **turn.headers}
        if turn.encoding:
            headers["content-encoding"] = turn.encoding
            pieces = iter([_compress(b"".join(pieces), turn.encoding)])
        self._head(200, {**headers, "transfer-encoding": "chunked"})
        self._body(request, pieces, turn.pause_s, turn.cut_after)

    def _body(
        self,
        request: Request,
        pieces: Iterable[bytes],
        pause_s: float,
        cut_after: int | None,
        *,
        cut: bool = False,
    ) -> None:
        left = cut_after
        due = time.monotonic()
        try:
            for piece in pieces:
                # By the clock, as a model writes: who reads slowly does not slow it down.
                due += pause_s
                self._wait(due - time.monotonic())
                part = piece if left is None else piece[:left]
                if part:
                    self.wfile.write(b"%x\r\n%b\r\n" % (len(part), part))
                    request.sent_bytes += len(part)
                if left is not None:
                    left -= len(part)
                    if left <= 0:
                        self.close_connection = True
                        return
            if cut:
                self.close_connection = True
            else:
                self.wfile.write(b"0\r\n\r\n")
        except OSError:
            request.gone = True
            self.close_connection = True

    def _fault(self, wire: Wire, fault: Fault) -> None:
        self._wait(fault.delay_s)
        if fault.never:
            self.server.owner.closing.wait(600)
        if fault.never or fault.drop:
            self.close_connection = True
            return
        kind = fault.kind or _KINDS.get(fault.status, "api_error")
        body = fault.body
        if body is None:
            body = json.dumps(error(wire, kind, fault.message)).encode()
        self._whole(fault.status, body, fault.headers)

    def _json(self, status: int, data: Any) -> None:
        self._whole(status, json.dumps(data).encode(), {})

    def _whole(self, status: int, body: bytes, headers: Mapping[str, str]) -> None:
        length = {"content-length": str(len(body))}
        self._head(status, {"content-type": "application/json", **headers, **length})
        self.wfile.write(body)

    def _head(self, status: int, headers: Mapping[str, str]) -> None:
        self.send_response(status)
        for name, value in headers.items():
            self.send_header(name, value)
        self.end_headers()

    def _wait(self, seconds: float) -> None:
        if seconds > 0 and self.server.owner.closing.wait(seconds):
            self.close_connection = True


def _compress(body: bytes, encoding: str) -> bytes:
    return gzip.compress(body) if encoding == "gzip" else zlib.compress(body)


def main() -> None:
    """Serve `Done.` until ended, for looking at a program by hand."""
    with ModelServer() as server:
        print(server.address, flush=True)  # noqa: T201
        while True:
            time.sleep(3600)


if __name__ == "__main__":
    main()
