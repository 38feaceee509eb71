"""What a client of a forwarding proxy asks for, read from the head of its request.

RFC 9112 and RFC 9110 (CONNECT, connection-specific fields). What could be read in two ways is
refused.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

#: The longest head that is read.
MOST_HEAD_BYTES = 64 << 10
END = b"\r\n\r\n"
_HTTP, _HTTPS = 80, 443
_TOKEN = re.compile(rb"[!#$%&'*+.^_`|~0-9A-Za-z-]+")
_AUTHORITY = re.compile(r"(?P<host>\[[0-9A-Fa-f:.]+\]|[^\[\]:@/?#\s]+)(:(?P<port>\d{1,5}))?")
#: Fields that are of one connection, and not for the next.
_HOP = frozenset(
    {b"connection", b"proxy-connection", b"keep-alive", b"proxy-authorization"}
    | {b"proxy-authenticate", b"te", b"trailer", b"upgrade", b"host"}
)
_MOST_PORT = 65535


class HeadError(Exception):
    """A request that is not passed on, with the status that says so."""

    def __init__(self, status: int, why: str) -> None:
        super().__init__(why)
        self.status, self.why = status, why


@dataclass(frozen=True)
class Asked:
    """A request for another host."""

    method: str
    host: str  #: as the client wrote it; an address of IPv6 without brackets
    port: int
    path: str = ""  #: with its query; empty for a tunnel
    fields: tuple[bytes, ...] = ()  #: lines to pass on
    body_bytes: int = 0

    @property
    def is_tunnel(self) -> bool:
        """Whether the client wants to talk to the host itself."""
        return self.method == "CONNECT"

    @property
    def authority(self) -> str:
        """Host and port, as a request names them; a tunnel's port is always written."""
        host = f"[{self.host}]" if ":" in self.host else self.host
        return host if self.port == _HTTP and not self.is_tunnel else f"{host}:{self.port}"

    def head(self, *more: bytes, whole: bool = False) -> bytes:
        """The head as it is sent on; the connection is for this request alone.

        Args:
            more: Further lines.
            whole: Name the host in the first line, as another proxy needs it.
        """
        target = f"http://{self.authority}{self.path}" if whole else self.path
        first = f"{self.method} {target} HTTP/1.1\r\nHost: {self.authority}".encode("latin-1")
        return b"\r\n".join([first, *self.fields, *more, b"Connection: close"]) + END


def read_head(head: bytes) -> Asked:
    """What a client asks for.

    Raises:
        HeadError: it is no request for a proxy, or one that is not understood.
    """
    first, *lines = head.removesuffix(END).split(b"\r\n")
    words = first.split(b" ")
    if len(words) != 3 or not words[2].startswith(b"HTTP/1.") or not _TOKEN.fullmatch(words[0]):
        raise HeadError(400, "that is no request of HTTP/1")
    method, target = words[0].decode("ascii"), words[1].decode("latin-1")
    if not target.isprintable():
        raise HeadError(400, "the address holds control characters")
    if method == "CONNECT":
        host, port = _authority(target, None)
        return Asked(method, host, port)
    scheme, colon, rest = target.partition("://")
    if not colon:
        raise HeadError(400, "this is a proxy: it takes CONNECT and whole addresses of http")
    if scheme.lower() != "http":
        raise HeadError(400, f"{scheme[:10]} is reached by CONNECT alone")
    cut = re.search(r"[/?#]|$", rest)
    place = cut.start() if cut else len(rest)
    # A name and password in an address are the client's to send, in a field of their own.
    host, port = _authority(rest[:place].rpartition("@")[2], _HTTP)
    path = rest[place:].partition("#")[0]
    path = path if path.startswith("/") else f"/{path}"
    fields, body_bytes = _fields(lines)
    return Asked(method, host, port, path, fields, body_bytes)


def status_of(head: bytes) -> int:
    """The status of an answer, from its head; 0 where it is none."""
    match = re.match(rb"HTTP/1\.\d (\d{3})\b", head)
    return int(match[1]) if match else 0


def _authority(text: str, port: int | None) -> tuple[str, int]:
    match = _AUTHORITY.fullmatch(text)
    given = int(match["port"]) if match and match["port"] else port
    if match is None or given is None or not 0 < given <= _MOST_PORT:
        raise HeadError(400, "the address has no host, or no port that could be")
    return match["host"].strip("[]"), given


def _fields(lines: list[bytes]) -> tuple[tuple[bytes, ...], int]:
    """The lines to pass on, and how many bytes of a body follow."""
    fields: list[tuple[bytes, bytes]] = []
    for line in lines:
        name, colon, value = line.partition(b":")
        if not colon or not _TOKEN.fullmatch(name) or re.search(rb"[\r\n\0]", value):
            raise HeadError(400, "a field of the request cannot be read")
        fields.append((name.lower(), line))
    values = [(name, line.partition(b":")[2].strip()) for name, line in fields]
    if any(name == b"transfer-encoding" for name, _ in values):
        raise HeadError(411, "a body is passed on with its length alone")
    lengths = {value for name, value in values if name == b"content-length"}
    if len(lengths) > 1 or any(not re.fullmatch(rb"\d{1,18}", value) for value in lengths):
        raise HeadError(400, "the length of the body cannot be read")
    of_connection = {
        word.strip().lower()
        for name, value in values
        if name == b"connection"
        for word in value.split(b",")
    }
    dropped = _HOP | (of_connection - {b"content-length"})
    kept = tuple(line for name, line in fields if name not in dropped)
    return kept, int(next(iter(lengths), b"0"))
