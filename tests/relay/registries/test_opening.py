"""The network of a build, as its policy has it; in `local`, whose boxes can be listened in, too."""

import json
import socket

import pytest

from researchenvbench.errors import HostError
from researchenvbench.network_use import Fetch, NetworkUse, Reach
from researchenvbench.relay.registries import log as log_module
from researchenvbench.relay.registries import opening
from researchenvbench.relay.registries.log import FetchLog
from researchenvbench.relay.registries.opening import build_network
from researchenvbench.sandbox import HostEnvironment
from researchenvbench.sandbox.listening import listen_on_host
from researchenvbench.sandbox.local.sandbox import LocalSandbox

HOST = HostEnvironment(
    installs={
        "PIP_INDEX_URL": "https://mirror.example/simple",
        "HTTP_PROXY": "http://proxy.example:3128",
        "no_proxy": "x.example",
        "PIP_PROXY": "http://proxy.example:3128",
    }
)


@pytest.fixture
def attempt(tmp_path):
    folder = tmp_path / "attempt"
    folder.mkdir()
    return folder


@pytest.fixture
def box(attempt, tmp_path):
    (tmp_path / "source").mkdir()
    with LocalSandbox().build_box(attempt, tmp_path / "source") as box:
        yield box


@pytest.fixture
def port(monkeypatch):
    """Another than a build's own, which a run on this host may have."""
    with listen_on_host(0) as listening:
        chosen = listening.getsockname()[1]
    monkeypatch.setattr(opening, "PORT", chosen)
    return chosen


def test_full_changes_nothing_but_what_the_proxy_is_asked_for(box, attempt):
    with build_network(Reach(), box, attempt, HOST) as network:
        without = dict.fromkeys(("no_proxy", "NO_PROXY"), "x.example,127.0.0.1,localhost")
        assert network.host.installs == HOST.installs | without
    for installs in ({"PIP_NO_INDEX": "1"}, {"http_proxy": "http://p", "NO_PROXY": "*"}):
        host = HostEnvironment(installs=installs)
        with build_network(Reach(), box, attempt, host) as network:
            assert network.host == host
    assert network.use == NetworkUse()
    assert not (attempt / "fetched.jsonl").exists()


def test_none_takes_proxies_away_and_does_not_try_again(box, attempt):
    with build_network(Reach(policy="none"), box, attempt, HOST) as network:
        assert network.host.installs == {
            "PIP_INDEX_URL": "https://mirror.example/simple",
            "PIP_RETRIES": "0",
            "UV_OFFLINE": "1",
        }
    assert network.use.policy == "none"


def test_registries_names_its_own_proxy(box, attempt, port):
    reach = Reach(policy="registries", allow_hosts=("data.example",))
    with build_network(reach, box, attempt, HOST) as network:
        own = f"http://127.0.0.1:{port}"
        assert network.host.installs == {
            "PIP_INDEX_URL": "https://mirror.example/simple",
            **dict.fromkeys(("http_proxy", "https_proxy", "HTTP_PROXY", "HTTPS_PROXY"), own),
            **dict.fromkeys(("no_proxy", "NO_PROXY"), "127.0.0.1,localhost"),
        }
        with socket.create_connection(("127.0.0.1", port), 20) as client:
            client.sendall(b"CONNECT evil.example:443 HTTP/1.1\r\n\r\n")
            assert client.recv(12) == b"HTTP/1.1 403"
    with pytest.raises(OSError, match="refused"):
        socket.create_connection(("127.0.0.1", port), 20)
    use = network.use
    assert (use.policy, use.allow_hosts) == ("registries", ("data.example",))
    assert (use.fetches, use.refused, use.refused_hosts) == (0, 1, ("evil.example:443",))
    [line] = (attempt / "fetched.jsonl").read_text().splitlines()
    assert json.loads(line)["end"] == "refused"
    # The next life of a build that was interrupted.
    with build_network(reach, box, attempt, HOST) as network:
        assert network.host.installs["http_proxy"] == own
    assert network.use.refused == 1


def test_what_was_fetched_is_known_after_an_error_too(box, attempt, port):
    reach = Reach(policy="registries")
    with pytest.raises(ZeroDivisionError), build_network(reach, box, attempt, HOST) as network:
        raise ZeroDivisionError
    assert network.use.policy == "registries"
    with listen_on_host(port):
        pass  # it is free again


def test_a_port_that_is_taken_is_said(box, attempt, port):
    with (
        listen_on_host(port),
        pytest.raises(HostError, match=f"127.0.0.1:{port}"),
        build_network(Reach(policy="registries"), box, attempt, HOST),
    ):
        pass


class TestLog:
    FETCH = Fetch(
        began="2026-01-01T00:00:00+00:00",
        seconds=0.5,
        end="passed",
        host="pypi.org",
        port=443,
        method="CONNECT",
        bytes_in=100,
        bytes_out=7,
    )

    def test_lines_of_an_earlier_life_count(self, tmp_path):
        path = tmp_path / "fetched.jsonl"
        first = FetchLog(path)
        first.note(self.FETCH)
        first.close()
        with path.open("a") as stream:
            stream.write('{"began": "20')  # the harness was killed here
        second = FetchLog(path)
        second.note(self.FETCH.model_copy(update={"end": "failed", "why": "gone"}))
        second.close()
        third = FetchLog(path)
        third.close()
        assert third.use(Reach()) == second.use(Reach())
        use = third.use(Reach(policy="registries"))
        assert (use.fetches, use.failed, use.refused) == (1, 1, 0)
        assert (use.bytes_in, use.bytes_out) == (200, 14)

    def test_more_than_a_limit_is_counted_and_not_written(self, tmp_path, monkeypatch):
        monkeypatch.setattr(log_module, "MOST_BYTES", 1000)
        log = FetchLog(tmp_path / "fetched.jsonl")
        for number in range(500):
            log.note(self.FETCH.model_copy(update={"end": "refused", "host": f"h{number}"}))
        log.close()
        assert (tmp_path / "fetched.jsonl").stat().st_size <= 1000
        use = log.use(Reach())
        assert (use.refused, len(use.refused_hosts)) == (500, 50)
        assert use.refused_hosts[0] == "h0:443"
