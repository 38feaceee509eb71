"""The proxy between little servers and clients of 127.0.0.1."""

import http.client
import http.server
import socket
import threading
import time
from contextlib import ExitStack, closing, contextmanager

import pytest

from researchenvbench.errors import HostError
from researchenvbench.relay.registries import proxy as proxy_module
from researchenvbench.relay.registries.hosts import Hosts, Rule, hosts_of
from researchenvbench.relay.registries.proxy import Proxy
from researchenvbench.relay.registries.upstream import Upstream, _is_own
from researchenvbench.sandbox.listening import listen_on_host


class Index(http.server.BaseHTTPRequestHandler):
    """Answers with what it was asked, and keeps it."""

    protocol_version = "HTTP/1.1"

    def do_GET(self):
        length = int(self.headers.get("Content-Length") or 0)
        body = self.rfile.read(length)
        self.server.asked.append((self.command, self.path, dict(self.headers), body))
        content = b"x" * 300_000 if self.path == "/large" else f"{self.path} {body!r}".encode()
        self.send_response(200)
        self.send_header("Content-Length", str(len(content)))
        self.end_headers()
        self.wfile.write(content)

    do_POST = do_GET  # noqa: N815 - the name that the library looks for

    def log_message(self, *arguments):
        pass


@pytest.fixture
def index():
    """A server of HTTP; `asked` is what it was asked."""
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Index)
    server.asked = []
    server.port = server.server_address[1]
    thread = threading.Thread(target=server.serve_forever, args=(0.05,))
    thread.start()
    yield server
    server.shutdown()
    thread.join()
    server.server_close()


@pytest.fixture
def echo():
    """A port that sends back what it gets, and `bye` when the client has ended."""
    with socket.create_server(("127.0.0.1", 0)) as listening, ExitStack() as stack:
        listening.settimeout(30)

        def serve():
            while True:
                try:
                    connection, _ = listening.accept()
                except OSError:
                    return
                thread = threading.Thread(target=talk, args=(connection,))
                thread.start()
                stack.callback(thread.join)

        def talk(connection):
            with connection:
                while piece := connection.recv(65536):
                    connection.sendall(piece)
                connection.sendall(b"bye")

        thread = threading.Thread(target=serve)
        thread.start()
        yield listening.getsockname()[1]
        listening.shutdown(socket.SHUT_RDWR)
        thread.join()


@contextmanager
def proxied(hosts, installs=None, forwards=()):
    """A proxy; its address, and a list of what it notes."""
    noted = []
    upstream = Upstream(installs or {})
    with (
        listen_on_host(0) as listening,
        Proxy(listening, hosts, upstream, noted.append, forwards),
    ):
        yield listening.getsockname(), noted
    upstream.close()


def ask(address, url, body=None, headers=None):
    """The answer of a proxy, whatever variables say of proxies: status, reason and body."""
    client = http.client.HTTPConnection(*address, timeout=20)
    client.request("GET" if body is None else "POST", url, body, headers or {})
    with closing(client), client.getresponse() as answer:
        return answer.status, answer.reason, answer.read()


def get(address, url, body=None, headers=None):
    status, reason, content = ask(address, url, body, headers)
    assert status == 200, reason
    return content


def connected(address, target, rest=b""):
    """A tunnel to a target, and the first line of the answer."""
    client = socket.create_connection(address, 20)
    client.sendall(f"CONNECT {target} HTTP/1.1\r\nHost: {target}\r\n\r\n".encode() + rest)
    head = b""
    while not head.endswith(b"\r\n\r\n"):
        piece = client.recv(1)
        if not piece:
            break
        head += piece
    return client, head.partition(b"\r\n")[0].decode()


def received(client):
    pieces = []
    while piece := client.recv(65536):
        pieces.append(piece)
    return b"".join(pieces)


def wait_for(condition):
    until = time.monotonic() + 20
    while not condition():
        assert time.monotonic() < until
        time.sleep(0.01)


def this_host(*ports):
    return hosts_of({}, allowed=[f"127.0.0.1:{port}" for port in ports])


class TestHttp:
    def test_is_passed_and_noted(self, index):
        with proxied(this_host(index.port)) as (address, noted):
            url = f"http://127.0.0.1:{index.port}/simple/torch/?a=b"
            assert get(address, url, headers={"Accept": "text/x"}) == b"/simple/torch/?a=b b''"
            body = b"y" * 200_000
            assert get(address, f"http://127.0.0.1:{index.port}/", body).endswith(b"y'")
            assert len(get(address, f"http://127.0.0.1:{index.port}/large")) == 300_000
        (method, path, fields, _), posted, _ = index.asked
        assert (method, path) == ("GET", "/simple/torch/?a=b")
        assert (fields["Accept"], fields["Connection"]) == ("text/x", "close")
        assert fields["Host"] == f"127.0.0.1:{index.port}"
        assert posted[3] == body
        assert [(one.end, one.method, one.path) for one in noted] == [
            ("passed", "GET", "/simple/torch/?a=b"),
            ("passed", "POST", "/"),
            ("passed", "GET", "/large"),
        ]
        assert (noted[0].host, noted[0].port) == ("127.0.0.1", index.port)
        assert noted[1].bytes_out > 200_000
        assert 300_000 < noted[2].bytes_in < 301_000

    def test_what_is_not_allowed_is_refused_with_the_reason(self, index):
        with proxied(hosts_of({})) as (address, noted):
            status, reason, body = ask(address, f"http://127.0.0.1:{index.port}/secret")
            assert status == 403
            assert "refused by the policy of this run" in reason
            assert "pypi.org" in reason
            assert body.decode() == f"{reason}\n"
        assert index.asked == []
        assert [(one.end, one.host, one.bytes_out) for one in noted] == [
            ("refused", "127.0.0.1", 0)
        ]

    def test_another_request_on_the_connection_is_not_passed(self, index):
        """A client that does not wait sends several; the second could be for any host."""
        with proxied(this_host(index.port)) as (address, noted):
            with socket.create_connection(address, 20) as client:
                one = f"GET http://127.0.0.1:{index.port}/large HTTP/1.1\r\n\r\n"
                other = "GET http://evil.example/ HTTP/1.1\r\n\r\n" * 1000
                client.sendall((one + other).encode())
                answer = received(client)
            # All of the first answer, though what was sent behind it was never read.
            assert answer.startswith(b"HTTP/1.1 200")
            assert len(answer.partition(b"\r\n\r\n")[2]) == 300_000
            wait_for(lambda: noted)
        assert [path for _, path, _, _ in index.asked] == ["/large"]
        assert len(noted) == 1

    def test_what_is_no_request_is_answered(self):
        with proxied(hosts_of({})) as (address, noted):
            for sent, status in (
                (b"GET / HTTP/1.1\r\n\r\n", b"400"),
                (b"POST http://pypi.org/ HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n", b"411"),
                (b"x" * 70_000, b"400"),
            ):
                with socket.create_connection(address, 20) as client:
                    client.sendall(sent)
                    assert received(client).startswith(b"HTTP/1.1 " + status)
            socket.create_connection(address, 20).close()
        assert noted == []

    def test_a_server_that_is_not_there(self, unused_port):
        with proxied(this_host(unused_port)) as (address, noted):
            status, reason, _ = ask(address, f"http://127.0.0.1:{unused_port}/")
            assert status == 502
            assert reason.endswith("cannot be reached: Connection refused")
        assert [one.end for one in noted] == ["failed"]


@pytest.fixture
def unused_port():
    with socket.create_server(("127.0.0.1", 0)) as listening:
        return listening.getsockname()[1]


class TestTunnel:
    def test_bytes_pass_both_ways_to_the_end_of_each(self, echo):
        content = bytes(range(256)) * 8192
        with proxied(this_host(echo)) as (address, noted):
            client, first = connected(address, f"127.0.0.1:{echo}", b"early ")
            with client:
                assert first == "HTTP/1.1 200 Connection established"
                sending = threading.Thread(
                    target=lambda: (client.sendall(content), client.shutdown(socket.SHUT_WR))
                )
                sending.start()
                assert received(client) == b"early " + content + b"bye"
                sending.join()
            wait_for(lambda: noted)
        [fetch] = noted
        assert (fetch.end, fetch.method, fetch.path) == ("passed", "CONNECT", "")
        assert fetch.bytes_out == len(content) + 6
        assert fetch.bytes_in == len(content) + 9

    def test_one_that_is_open_at_the_end_is_noted(self, echo):
        with proxied(this_host(echo)) as (address, noted):
            client, _ = connected(address, f"127.0.0.1:{echo}", b"hello")
            assert client.recv(5) == b"hello"
        with client:
            assert client.recv(1) == b""
        assert [(one.end, one.bytes_in) for one in noted] == [("passed", 5)]

    def test_a_client_that_goes_away_ends_it(self, echo):
        with proxied(this_host(echo)) as (address, noted):
            client, _ = connected(address, f"127.0.0.1:{echo}")
            client.close()
            wait_for(lambda: noted)

    def test_refused(self, echo):
        with proxied(hosts_of({})) as (address, noted):
            client, first = connected(address, f"127.0.0.1:{echo}")
            client.close()
            assert first.startswith(f"HTTP/1.1 403 127.0.0.1:{echo} is refused by the policy")
        assert [(one.end, one.host, one.port) for one in noted] == [("refused", "127.0.0.1", echo)]

    def test_more_at_a_time_than_may_be_wait(self, echo, monkeypatch):
        monkeypatch.setattr(proxy_module, "_MOST_CONNECTIONS", 2)
        with proxied(this_host(echo)) as (address, noted):
            open_ones = [connected(address, f"127.0.0.1:{echo}")[0] for _ in range(2)]
            third = socket.create_connection(address, 20)
            third.sendall(f"CONNECT 127.0.0.1:{echo} HTTP/1.1\r\n\r\n".encode())
            third.settimeout(0.2)
            with pytest.raises(TimeoutError):
                third.recv(1)
            for client in open_ones:
                client.close()
            third.settimeout(20)
            assert third.recv(12) == b"HTTP/1.1 200"
            third.close()
        assert len(noted) == 3


def test_a_known_name_does_not_lead_to_this_host(echo):
    """Whoever rules over a name's addresses does not choose what is reached behind it."""
    hosts = Hosts([Rule("localhost", ports=frozenset({echo}))])
    with proxied(hosts) as (address, noted):
        client, first = connected(address, f"localhost:{echo}")
        client.close()
        assert first.startswith("HTTP/1.1 502 ")
        assert "one of this host itself" in first
    assert [one.end for one in noted] == ["failed"]


def test_a_name_that_is_not_found():
    with proxied(hosts_of({}, allowed=["nowhere.invalid"])) as (address, noted):
        client, first = connected(address, "nowhere.invalid:443")
        client.close()
        assert first.startswith("HTTP/1.1 502 nowhere.invalid is not found")
    assert [one.end for one in noted] == ["failed"]


@pytest.mark.parametrize(
    ("address", "own"),
    [
        ("127.0.0.1", True),
        ("127.9.9.9", True),
        ("::1", True),
        ("::ffff:127.0.0.1", True),
        ("169.254.169.254", True),
        ("fe80::1%eth0", True),
        ("0.0.0.0", True),
        ("224.0.0.1", True),
        ("151.101.0.223", False),
        # A mirror within a company, to which its names of public indexes lead.
        ("10.0.0.1", False),
        ("2a04:4e42::223", False),
    ],
)
def test_addresses_of_this_host(address, own):
    assert _is_own(address) == own


def test_an_index_on_this_host_s_loopback(index):
    """Programs of the box ask it without the proxy, so its port is served to them."""
    with (
        listen_on_host(0) as at_the_box,
        proxied(hosts_of({}), forwards=[(at_the_box, index.port)]) as (_, noted),
    ):
        port = at_the_box.getsockname()[1]
        assert get(("127.0.0.1", port), "/simple/") == b"/simple/ b''"
    assert [(one.end, one.method, one.port) for one in noted] == [("passed", "FORWARD", index.port)]


class TestThisHostsProxy:
    """The way on is by the proxy that this host is told to use: here, another one of ours."""

    def test_http_and_tunnels_go_by_it(self, index, echo):
        with proxied(this_host(index.port, echo)) as (outer, seen):
            installs = {
                "http_proxy": f"http://{outer[0]}:{outer[1]}",
                "HTTPS_PROXY": f"{outer[0]}:{outer[1]}",
            }
            with proxied(this_host(index.port, echo), installs) as (address, noted):
                assert get(address, f"http://127.0.0.1:{index.port}/a") == b"/a b''"
                client, first = connected(address, f"127.0.0.1:{echo}", b"hello")
                with client:
                    assert first.endswith("200 Connection established")
                    client.shutdown(socket.SHUT_WR)
                    assert received(client) == b"hellobye"
                wait_for(lambda: len(noted) == 2 and len(seen) == 2)
        for notes in (seen, noted):
            assert [(one.method, one.path) for one in notes] == [("GET", "/a"), ("CONNECT", "")]

    def test_what_it_refuses_is_said(self, echo):
        with proxied(hosts_of({})) as (outer, _):
            installs = {"ALL_PROXY": f"http://{outer[0]}:{outer[1]}"}
            with proxied(this_host(echo), installs) as (address, noted):
                client, first = connected(address, f"127.0.0.1:{echo}")
                client.close()
        assert first.startswith("HTTP/1.1 502 the proxy 127.0.0.1:")
        assert "does not let it through: 'HTTP/1.1 403" in first
        assert [one.end for one in noted] == ["failed"]

    def test_hosts_without_it(self, echo, unused_port):
        installs = {"https_proxy": f"http://127.0.0.1:{unused_port}", "no_proxy": "127.0.0.1"}
        with proxied(this_host(echo), installs) as (address, _):
            client, first = connected(address, f"127.0.0.1:{echo}")
            client.close()
            assert first.endswith("200 Connection established")

    def test_it_is_shown_its_password(self, index):
        """In the clear, as the scheme has it; what it passes on does not hold it."""
        installs = {"http_proxy": f"http://me:w%40rd@127.0.0.1:{index.port}"}
        with proxied(hosts_of({}, allowed=["x.example"]), installs) as (address, _):
            get(address, "http://x.example/a")
        [(_, path, fields, _)] = index.asked
        assert path == "http://x.example/a"
        assert fields["Proxy-Authorization"] == "Basic bWU6d0ByZA=="
        assert fields["Host"] == "x.example"

    @pytest.mark.parametrize("proxy", ["socks5://p.example:1080", "https://p.example", "http://"])
    def test_one_of_another_kind_is_named(self, proxy):
        with pytest.raises(HostError, match="cannot go by such a proxy") as caught:
            Upstream({"https_proxy": proxy})
        assert "--network full" in caught.value.advice
        with pytest.raises(HostError, match=r"socks5://\*\*\*@p"):
            Upstream({"all_proxy": "socks5://me:word@p.example"})
