"""Whether a host may be reached by a build that has package indexes and hubs alone.

Names are compared as a whole or by whole labels, so that `evilpypi.org` is not `pypi.org`.
An address is no name: it is refused unless this host's configuration or the user names it. So
is a port other than those of http and https.
"""

from __future__ import annotations

import ipaddress
import re
import tomllib
from dataclasses import dataclass
from importlib.resources import files
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from ...errors import RebError

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

_WEB = frozenset({80, 443})
_MOST_PORT = 65535
_NAME_LENGTH = 253
_NAME = re.compile(r"[a-z0-9_-]{1,63}(\.[a-z0-9_-]{1,63})*", re.ASCII)
#: Of an address in text: apt's sources have options before and a suite behind it.
_ADDRESS = re.compile(r"https?://[^\s\"'<>,;\]]+", re.IGNORECASE)
#: Settings that name the way to hosts, and no host that packages come from.
PROXIES = frozenset(
    {"http_proxy", "https_proxy", "ftp_proxy", "all_proxy", "no_proxy", "pip_proxy"}
)
#: What programs of a box reach without the proxy, since the harness listens there.
WITHOUT_PROXY = ("127.0.0.1", "localhost")
#: Hosts that an answer names at most.
_NAMED = 12


@dataclass(frozen=True)
class Rule:
    """Hosts that may be reached."""

    host: str  #: a name in lower case, or an address
    below: bool = False  #: all hosts below the name, and not itself
    ports: frozenset[int] = _WEB
    named: bool = False  #: by this host's configuration or the user, who may mean any address

    def matches(self, host: str, port: int) -> bool:
        """Whether it allows that host, as `plain_host` writes it, at that port."""
        same = host.endswith(f".{self.host}") if self.below else host == self.host
        return same and port in self.ports

    def __str__(self) -> str:
        ports = "" if self.ports == _WEB else f":{'/'.join(map(str, sorted(self.ports)))}"
        return f"{'*.' if self.below else ''}{self.host}{ports}"


class Hosts:
    """The hosts that a build may reach."""

    def __init__(self, rules: Iterable[Rule]) -> None:
        self._rules = tuple(rules)

    def rule(self, host: str, port: int) -> Rule | None:
        """What allows a host, by a name or address in any spelling; None where nothing does."""
        plain = plain_host(host)
        return next((rule for rule in self._rules if plain and rule.matches(plain, port)), None)

    def refusal(self, host: str, port: int) -> str:
        """Why a host is refused, in one line for whoever asked."""
        named = [str(rule) for rule in self._rules if rule.named]
        named += [str(rule) for rule in self._rules if not rule.named]
        more = f" and {len(named) - _NAMED} more" if len(named) > _NAMED else ""
        shown = host if host.isprintable() and len(host) <= _NAME_LENGTH else "that host"
        return (
            f"{shown}:{port} is refused by the policy of this run (--network registries), which "
            f"lets package indexes and hubs through: {', '.join(named[:_NAMED])}{more}"
        )


def hosts_of(
    installs: Mapping[str, str], sources: Iterable[str] = (), allowed: Sequence[str] = ()
) -> Hosts:
    """The package indexes and hubs, and what this host and the user name.

    Args:
        installs: The host's package settings.
        sources: Texts of the box that name its mirrors, such as sources of apt.
        allowed: As `--allow-host` has them.

    Raises:
        RebError: one of `allowed` is no host.
    """
    return Hosts(
        [
            *map(read_rule, allowed),
            *_rules_in(value for name, value in installs.items() if name.lower() not in PROXIES),
            *_rules_in(sources),
            *known_hosts(),
        ]
    )


def known_hosts() -> list[Rule]:
    """The package indexes and hubs of `hosts.toml`."""
    text = files(__package__).joinpath("hosts.toml").read_text(encoding="utf-8")
    return [
        Rule(entry.removeprefix("*."), below=entry.startswith("*."))
        for group in tomllib.loads(text).values()
        for entry in group
    ]


def read_rule(text: str) -> Rule:
    """What `--allow-host` says: HOST, *.DOMAIN or an address, and perhaps :PORT.

    Raises:
        RebError: it is none of them, or would allow nearly everything.
    """
    below = text.startswith("*.")
    host, port = _divided(text.removeprefix("*."))
    plain = plain_host(host)
    advice = "write a host as it is in an address, such as data.example.org or *.example.org"
    if not plain or (port is not None and not 0 < port <= _MOST_PORT):
        raise RebError(f"{text!r} is no host that could be allowed", advice=advice)
    if below and ("." not in plain or _is_address(plain)):
        raise RebError(f"{text!r} would allow too much", advice=advice)
    return Rule(plain, below, _WEB if port is None else frozenset({port}), named=True)


def plain_host(host: str) -> str:
    """The one spelling of a host by which it is compared; empty where it is none."""
    bare = host[1:-1] if host.startswith("[") and host.endswith("]") else host
    try:
        return str(ipaddress.ip_address(bare))
    except ValueError:
        pass
    name = host.lower().removesuffix(".")
    return name if len(name) <= _NAME_LENGTH and _NAME.fullmatch(name) else ""


def loopback_ports(installs: Mapping[str, str]) -> tuple[int, ...]:
    """Ports of this host's own loopback at which its package settings name an index."""
    found = {
        port
        for name, value in installs.items()
        if name.lower() not in PROXIES
        for host, port in _addresses(value)
        if host in WITHOUT_PROXY
    }
    return tuple(sorted(found))


def _rules_in(texts: Iterable[str]) -> Iterator[Rule]:
    """What settings name: an address at its port alone, a name also by those of the web."""
    for text in texts:
        for host, port in _addresses(text):
            if host not in WITHOUT_PROXY:
                ports = frozenset({port}) if _is_address(host) else _WEB | {port}
                yield Rule(host, ports=ports, named=True)


def _addresses(text: str) -> Iterator[tuple[str, int]]:
    """Hosts and ports of all addresses of the web in a text."""
    for match in _ADDRESS.finditer(text):
        try:
            address = urlsplit(match[0])
            host, port = plain_host(address.hostname or ""), address.port
        except ValueError:
            continue  # whoever uses it is told so by its own tools
        if host:
            yield host, port or (443 if address.scheme == "https" else 80)


def _divided(text: str) -> tuple[str, int | None]:
    """A host and its port, if it has one; an address of IPv6 with one is in brackets."""
    host, colon, port = text.rpartition(":")
    if colon and port.isascii() and port.isdigit() and (":" not in host or host.endswith("]")):
        return host, int(port)
    return text, None


def _is_address(host: str) -> bool:
    try:
        ipaddress.ip_address(host)
    except ValueError:
        return False
    return True
