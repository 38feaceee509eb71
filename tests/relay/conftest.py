"""What tests of the relay share: a relay that serves, and nothing of the developer's own."""

from __future__ import annotations

import socket
import time
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, Any

import httpx
import pytest

from researchenvbench.relay import Key, Patience, Prices, Provider, Relay

from .model_server import ModelServer

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from concurrent.futures import Future
    from pathlib import Path

    from researchenvbench.model_use import Call, Wire

#: It must turn up nowhere but at the model's server.
CANARY = "sk-canary/0123456789+abcdef"
MODEL = "some-model"
PATHS: dict[Wire, str] = {
    "anthropic-messages": "/v1/messages",
    "openai-responses": "/v1/responses",
    "openai-chat": "/v1/chat/completions",
}
#: Tests wait for nobody.
QUICK = Patience(tries=3, waiting_s=20.0, first_s=0.01, longest_s=0.02, silent_s=20.0)


@pytest.fixture
def nobodys_configuration(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """No proxy, no home, no key."""
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    monkeypatch.setenv("no_proxy", "127.0.0.1,localhost")
    for name in ("ANTHROPIC_API_KEY", "OPENAI_API_KEY", "ANTHROPIC_AUTH_TOKEN"):
        monkeypatch.delenv(name, raising=False)


class Asker:
    """Asks a relay that serves as an agent's program would."""

    def __init__(self, relay: Relay, server: ModelServer, wire: Wire) -> None:
        self.relay = relay
        self.server = server
        self.wire = wire
        listening = socket.create_server(("127.0.0.1", 0))
        self.port = listening.getsockname()[1]
        relay.serve([listening])
        self.address = f"http://127.0.0.1:{self.port}"
        self.http = httpx.Client(base_url=self.address, trust_env=False, timeout=30)
        self.http.headers["x-api-key"] = relay.token

    def ask(self, path: str = "", **body: Any) -> httpx.Response:
        """A call of the model."""
        return self.http.post(path or PATHS[self.wire], json={"model": MODEL, **body})

    def stream(self, **body: Any) -> bytes:
        """The body of an answer that is a stream."""
        answer = self.ask(stream=True, stream_options={"include_usage": True}, **body)
        assert answer.status_code == 200
        return answer.content

    def call(self, count: int = 1) -> Call:
        """The newest call, when there are `count`."""
        wait_until(lambda: len(self.relay.calls) >= count)
        calls = self.relay.calls
        assert len(calls) == count, calls
        return calls[-1]


def wait_until(holds: Callable[[], bool], seconds: float = 10.0) -> None:
    """Until something holds."""
    until = time.monotonic() + seconds
    while not holds():
        assert time.monotonic() < until, "it does not come to hold"
        time.sleep(0.01)


class Making:
    """Makes a model's server and a relay to it."""

    def __init__(self, folder: Path, ending: Callable[[Callable[[], object]], None]) -> None:
        self.folder = folder
        self._ending = ending

    def __call__(
        self, script: Any = (), wire: Wire = "anthropic-messages", **options: Any
    ) -> Asker:
        server = ModelServer(script, key=CANARY)
        relay = self.relay(server, wire, **options)
        asker = Asker(relay, server, wire)
        for close in (relay.close, server.close, asker.http.close):
            self._ending(close)
        return asker

    def relay(self, server: ModelServer, wire: Wire = "anthropic-messages", **options: Any):
        """A relay that does not serve yet."""
        upstream = server.address if wire == "anthropic-messages" else server.openai_address
        folder = options.pop("folder", self.folder)
        provider = Provider(wire, options.pop("upstream", upstream), MODEL)
        options = {"patience": QUICK, "prices": Prices(), **options}
        return Relay(provider, Key(CANARY), folder, **options)


@pytest.fixture(scope="module")
def in_the_end() -> Iterator[Callable[[Callable[[], object]], None]]:
    """Has servers end beside the tests, none of which waits; that they do is looked at.

    Its threads end with the module: there are tests that fork.
    """
    under_way: list[Future[object]] = []
    with ThreadPoolExecutor(4, "endings") as pool:
        yield lambda close: under_way.append(pool.submit(close))
        for end in under_way:
            end.result(30)


@pytest.fixture
def make(
    tmp_path: Path,
    in_the_end: Callable[[Callable[[], object]], None],
    nobodys_configuration: None,
) -> Iterator[Making]:
    """For a test that scripts the model."""
    closing: list[Callable[[], object]] = []
    yield Making(tmp_path / "attempt" / "model", closing.append)
    for close in reversed(closing):
        in_the_end(close)
