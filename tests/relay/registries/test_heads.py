"""What clients of a proxy ask for, and what could be read in two ways."""

import pytest

from researchenvbench.relay.registries.heads import HeadError, read_head, status_of


def head(first, *fields):
    return "\r\n".join([first, *fields, "", ""]).encode("latin-1")


@pytest.mark.parametrize(
    ("target", "host", "port"),
    [
        ("pypi.org:443", "pypi.org", 443),
        ("PyPI.org:8443", "PyPI.org", 8443),
        ("[::1]:443", "::1", 443),
        ("10.0.0.1:80", "10.0.0.1", 80),
    ],
)
def test_tunnels(target, host, port):
    asked = read_head(head(f"CONNECT {target} HTTP/1.1", "Host: elsewhere"))
    assert asked.is_tunnel
    assert (asked.host, asked.port) == (host, port)
    assert asked.authority == target


@pytest.mark.parametrize(
    ("address", "authority", "path"),
    [
        ("http://deb.debian.org/debian/x", "deb.debian.org", "/debian/x"),
        ("http://a.example:8080/x?y=1#z", "a.example:8080", "/x?y=1"),
        ("http://a.example", "a.example", "/"),
        ("http://a.example?x", "a.example", "/?x"),
        ("HTTP://user:word@a.example/", "a.example", "/"),
        ("http://[::1]:81/", "[::1]:81", "/"),
        ("http://evil.example\\@pypi.org/", "pypi.org", "/"),
        ("http://a.example/http://b.example/", "a.example", "/http://b.example/"),
    ],
)
def test_whole_addresses(address, authority, path):
    asked = read_head(head(f"GET {address} HTTP/1.1"))
    assert (asked.authority, asked.path) == (authority, path)
    assert asked.head() == (
        f"GET {path} HTTP/1.1\r\nHost: {authority}\r\nConnection: close\r\n\r\n".encode()
    )
    assert asked.head(whole=True).startswith(f"GET http://{authority}{path} HTTP/1.1\r\n".encode())


def test_fields_of_the_connection_stay_here():
    asked = read_head(
        head(
            "POST http://a.example/ HTTP/1.1",
            "Host: b.example",
            "Accept: */*",
            "Proxy-Authorization: Basic eDp5",
            "Proxy-Connection: keep-alive",
            "Connection: keep-alive, X-Own",
            "X-Own: 1",
            "Authorization: Basic eDp5",
            "Content-Length: 5",
        )
    )
    assert asked.body_bytes == 5
    assert asked.head(b"X: y").split(b"\r\n") == [
        b"POST / HTTP/1.1",
        b"Host: a.example",
        b"Accept: */*",
        b"Authorization: Basic eDp5",
        b"Content-Length: 5",
        b"X: y",
        b"Connection: close",
        b"",
        b"",
    ]


@pytest.mark.parametrize(
    ("first", "fields", "status"),
    [
        ("GET / HTTP/1.1", (), 400),
        ("GET pypi.org HTTP/1.1", (), 400),
        ("GET https://pypi.org/ HTTP/1.1", (), 400),
        ("GET ftp://a.example/ HTTP/1.1", (), 400),
        ("GET http:///x HTTP/1.1", (), 400),
        ("GET http://a.example:0/ HTTP/1.1", (), 400),
        ("GET http://a.example:99999/ HTTP/1.1", (), 400),
        ("GET http://a.example:80:80/ HTTP/1.1", (), 400),
        ("GET http://a.example/\x7f HTTP/1.1", (), 400),
        ("GET  http://a.example/ HTTP/1.1", (), 400),
        ("GET http://a.example/", (), 400),
        ("GET http://a.example/ HTTP/2", (), 400),
        ("G\tT http://a.example/ HTTP/1.1", (), 400),
        ("CONNECT pypi.org HTTP/1.1", (), 400),
        ("CONNECT http://pypi.org:443 HTTP/1.1", (), 400),
        ("CONNECT x@pypi.org:443 HTTP/1.1", (), 400),
        ("", (), 400),
        ("GET http://a.example/ HTTP/1.1", (" folded: x",), 400),
        ("GET http://a.example/ HTTP/1.1", ("no colon",), 400),
        ("GET http://a.example/ HTTP/1.1", ("Space : x",), 400),
        ("GET http://a.example/ HTTP/1.1", ("X: a\nHost: b",), 400),
        ("POST http://a.example/ HTTP/1.1", ("Content-Length: 1", "Content-Length: 2"), 400),
        ("POST http://a.example/ HTTP/1.1", ("Content-Length: +1",), 400),
        ("POST http://a.example/ HTTP/1.1", ("Content-Length: ",), 400),
        ("POST http://a.example/ HTTP/1.1", ("Transfer-Encoding: chunked",), 411),
    ],
)
def test_what_is_not_understood_is_refused(first, fields, status):
    with pytest.raises(HeadError) as caught:
        read_head(head(first, *fields))
    assert caught.value.status == status
    assert caught.value.why.isprintable()


def test_status():
    assert status_of(b"HTTP/1.1 200 Connection established\r\n\r\n") == 200
    assert status_of(b"HTTP/1.0 407 x\r\n") == 407
    assert status_of(b"SSH-2.0-x\r\n") == 0
    assert status_of(b"") == 0
