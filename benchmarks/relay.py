"""What the relay between an agent and its model costs: each figure direct, and through it.

    python benchmarks/relay.py [ROUNDS]

A scripted model on 127.0.0.1 answers in a process of its own, the relay runs in another, and
this one asks: in turn directly and through the relay, so that a noisy machine disturbs both
alike. Goals: under 5 ms more for a request, under 2 % more for a long stream at the pace of a
provider, at most 60 MB. A stream without any pace shows how much the relay can carry at most.
"""

from __future__ import annotations

import http.client
import json
import os
import re
import statistics
import subprocess
import sys
import tempfile
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path

ROOT = Path(__file__).parent.parent
MODEL, KEY = "some-model", "sk-benchmark-0123456789"
#: What an agent sends after some dozens of steps.
REQUEST_BYTES = 200_000
STREAM_MB = 100
#: Fifty times what the fastest providers write, so that 100 MB do not take all day.
PACE_MB_S = 20.0
PIECE_BYTES = 16_384
AGENTS, ASKS = 16, 10
LIMIT_MS, LIMIT_PERCENT, LIMIT_MB = 5.0, 2.0, 60.0


# --- the processes beside --------------------------------------------------------------------


def serve_model() -> None:
    """Answer as each request says, until the input ends."""
    from tests.relay.model_answers import stream
    from tests.relay.model_server import ModelServer, Raw, Turn

    from researchenvbench.model_use import Tokens

    filler = (
        b"event: content_block_delta\ndata: "
        + json.dumps(
            {"type": "content_block_delta", "index": 0, "delta": {"type": "text_delta", "text": ""}}
        ).encode()
    )

    def reply(request):
        asked = request.json
        if not asked.get("stream"):
            return Turn("Hm.")
        events = list(stream("anthropic-messages", Turn("Hm.", usage=Tokens(input=1)), asked, 1))
        text = b"".join(filler + b"%08d\n\n" % number for number in range(PIECE_BYTES // 150))
        pieces = [text] * max(1, asked["bytes"] // len(text))
        pause_s = len(text) / asked["pace"] if asked["pace"] else 0.0
        return Raw((*events[:3], *pieces, *events[3:]), pause_s=pause_s)

    with ModelServer(reply) as server:
        print(server.port, flush=True)
        sys.stdin.read()


def serve_relay(port: str) -> None:
    """Relay to the model at `port`, and tell what memory it takes when asked."""
    import researchenvbench.model_use

    assert researchenvbench.model_use  # what every job of the harness has anyway
    before = memory_mb()
    import socket

    from researchenvbench.relay import Budget, Key, Provider, Relay

    provider = Provider("anthropic-messages", f"http://127.0.0.1:{port}", MODEL)
    with tempfile.TemporaryDirectory(prefix="reb-relay-") as made:
        folder = Path(made) / "model"
        with Relay(provider, Key(KEY), folder, budget=Budget(tokens=10**12)) as relay:
            listening = socket.create_server(("127.0.0.1", 0))
            taken = listening.getsockname()[1]
            relay.serve([listening])
            print(taken, relay.token, flush=True)
            for _ in sys.stdin:
                print(before, memory_mb(), memory_mb("VmHWM"), time.process_time(), flush=True)
            assert not relay.problem, relay.problem


def memory_mb(what: str = "VmRSS") -> float:
    """What of this process is resident, or with VmHWM the most that ever was."""
    status = Path("/proc/self/status").read_text()
    return int(re.search(rf"^{what}:\s+(\d+) kB", status, re.M)[1]) / 1000


@contextmanager
def beside(*arguments: str):
    """This file in a process of its own; the process, and its first line in words."""
    path = os.pathsep.join([str(ROOT), os.environ.get("PYTHONPATH", "")])
    environment = {**os.environ, "PYTHONPATH": path, "no_proxy": "127.0.0.1"}
    # As where it is installed: to compile the table of prices takes 60 MB for a moment.
    environment.pop("PYTHONDONTWRITEBYTECODE", None)
    environment["PYTHONPYCACHEPREFIX"] = str(Path(tempfile.gettempdir()) / "reb-benchmark-pyc")
    with subprocess.Popen(
        [sys.executable, __file__, *arguments],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        env=environment,
    ) as process:
        try:
            yield process, process.stdout.readline().split()
        finally:
            process.stdin.close()


# --- asking ----------------------------------------------------------------------------------


class Way:
    """To the model, directly or through the relay, over one connection."""

    def __init__(self, port: str, token: str = "") -> None:
        self._port, self._token = int(port), token
        self._connection = http.client.HTTPConnection("127.0.0.1", self._port)

    def another(self) -> Way:
        """The same way, with a connection of its own."""
        return Way(str(self._port), self._token)

    def ask(self, **said: object) -> float:
        """Seconds until the whole answer is there."""
        body = json.dumps({"model": MODEL, **said}).encode()
        headers = {"x-api-key": self._token, "content-type": "application/json"}
        began = time.perf_counter()
        self._connection.request("POST", "/v1/messages", body, headers)
        answer = self._connection.getresponse()
        assert answer.status == 200, answer.read()
        while answer.read(1 << 16):
            pass
        return time.perf_counter() - began


def several(way: Way) -> list[float]:
    """Agents at once, each with short streams; seconds of each."""

    def work(_: int) -> list[float]:
        own = way.another()
        said = {"stream": True, "bytes": 60_000, "pace": 400_000, "fill": "x" * REQUEST_BYTES}
        return [own.ask(**said) for _ in range(ASKS)]

    with ThreadPoolExecutor(AGENTS) as pool:
        return [seconds for one in pool.map(work, range(AGENTS)) for seconds in one]


def main() -> int:
    """Measure and print."""
    rounds = int(sys.argv[1]) if len(sys.argv) > 1 else 200
    with beside("model") as (_, (port,)), beside("relay", port):
        pass  # so that all is compiled
    print(f"load of this host {os.getloadavg()[0]:.1f} on {os.cpu_count()} cores")
    with (
        beside("model") as (_, (port,)),
        beside("relay", port) as (relay, (relay_port, token)),
    ):
        ways = (Way(port), Way(relay_port, token))
        for way in ways:
            way.ask()
        *_, cpu_s = figures_of(relay)
        good = requests(ways, rounds)
        before, idle, _, cpu_then_s = figures_of(relay)
        # Which is the same however much else this host has to do.
        print(f"  of which its own work  {(cpu_then_s - cpu_s) / rounds * 1000:7.2f} ms")
        good &= streams(ways, PACE_MB_S, 3)
        streams(ways, 0.0, 3)
        at_once(ways)
        _, _, highest, _ = figures_of(relay)
    print("memory of the relay's process")
    print(f"  before it is loaded    {before:7.1f} MB   what every job has")
    print(f"  after {rounds:3} requests     {idle:7.1f} MB   {idle - before:.1f} MB more")
    print(f"  highest of all         {highest:7.1f} MB   limit {LIMIT_MB:.0f} more")
    return 0 if good and highest - before <= LIMIT_MB else 1


def figures_of(relay: subprocess.Popen[str]) -> list[float]:
    """Memory before, now and at most, in MB; seconds of work."""
    relay.stdin.write("?\n")
    relay.stdin.flush()
    return [float(word) for word in relay.stdout.readline().split()]


def requests(ways: tuple[Way, Way], rounds: int) -> bool:
    """One short answer after the other."""
    taken: tuple[list[float], list[float]] = ([], [])
    for _ in range(rounds):
        for way, seconds in zip(ways, taken, strict=True):
            seconds.append(way.ask(fill="x" * REQUEST_BYTES) * 1000)
    (direct, direct_95), (relayed, relayed_95) = map(middle_and_95, taken)
    print(f"a request of {REQUEST_BYTES // 1000} kB, {rounds} each way")
    print(f"  direct          median {direct:7.2f} ms   95 % {direct_95:7.2f} ms")
    print(f"  through it      median {relayed:7.2f} ms   95 % {relayed_95:7.2f} ms")
    print(
        f"  added           median {relayed - direct:7.2f} ms   95 % "
        f"{relayed_95 - direct_95:7.2f} ms   limit {LIMIT_MS:.0f}"
    )
    return relayed - direct <= LIMIT_MS


def streams(ways: tuple[Way, Way], pace_mb_s: float, rounds: int) -> bool:
    """One long answer."""
    said = {"stream": True, "bytes": STREAM_MB * 10**6, "pace": pace_mb_s * 1e6}
    taken: tuple[list[float], list[float]] = ([], [])
    for _ in range(rounds):
        for way, seconds in zip(ways, taken, strict=True):
            seconds.append(way.ask(**said))
    direct, relayed = map(statistics.median, taken)
    more = (relayed / direct - 1) * 100
    at = f"at {pace_mb_s:.0f} MB/s" if pace_mb_s else "without a pace"
    limit = f"   limit {LIMIT_PERCENT:.0f}" if pace_mb_s else ""
    print(f"a stream of {STREAM_MB} MB {at}, median of {rounds}")
    print(f"  direct          {direct:7.2f} s   {STREAM_MB / direct:6.1f} MB/s")
    print(f"  through it      {relayed:7.2f} s   {STREAM_MB / relayed:6.1f} MB/s")
    print(f"  more            {more:7.1f} %{limit}")
    return more <= LIMIT_PERCENT


def at_once(ways: tuple[Way, Way]) -> None:
    """Many agents on one relay, more than an attempt has."""
    print(f"{AGENTS} agents at once, {ASKS} streams of 60 kB each")
    for name, way in zip(("direct", "through it"), ways, strict=True):
        began = time.perf_counter()
        median, highest = middle_and_95(several(way))
        taken = time.perf_counter() - began
        print(f"  {name:15} {taken:7.2f} s   median {median:.3f} s   95 % {highest:.3f} s")


def middle_and_95(values: list[float]) -> tuple[float, float]:
    """The median, and what 95 of 100 stay below."""
    return statistics.median(values), statistics.quantiles(values, n=20)[-1]


if __name__ == "__main__":
    if sys.argv[1:2] == ["model"]:
        serve_model()
    elif sys.argv[1:2] == ["relay"]:
        serve_relay(sys.argv[2])
    else:
        sys.exit(main())
