"""The network of a build, as its policy has it: what its programs are told, and what serves them.

`full` changes nothing but that no proxy is asked for a box's own loopback, where the harness may
listen. In a box without a network, settings of this host that name its own
proxies are of no use; with `registries` they name ours instead, which listens in the box's own
loopback. An index on this host's loopback is found there too, at the same port.
"""

from __future__ import annotations

from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

from ...errors import HostError, SandboxError
from ...network_use import NetworkUse
from .hosts import PROXIES, WITHOUT_PROXY, hosts_of, loopback_ports
from .log import FILE_NAME, FetchLog

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from ...network_use import Reach
    from ...sandbox import BuildBox, HostEnvironment

#: The same for each life of a build: its programs have been told. Nothing else is in its network
#: when it begins.
PORT = 47128
#: Where images name the mirrors of their packages.
_SOURCES = (
    "/etc/apt/sources.list",
    "/etc/apt/sources.list.d/debian.sources",
    "/etc/apt/sources.list.d/ubuntu.sources",
)
_SOURCES_BYTES = 1 << 20
#: By which installers do not try for minutes what cannot be there, and use what is at hand.
_OFFLINE = {"PIP_RETRIES": "0", "UV_OFFLINE": "1"}


@dataclass
class BuildNetwork:
    """The network of an open build."""

    host: HostEnvironment  #: what its programs are given of the host
    use: NetworkUse  #: what came of it, once it is closed


@contextmanager
def build_network(
    reach: Reach, box: BuildBox, attempt: Path, host: HostEnvironment
) -> Iterator[BuildNetwork]:
    """Serve a build's network as long as the context is open; it ends before the box does.

    Args:
        reach: What the build may reach.
        box: The build's, opened by a sandbox that has the same reach.
        attempt: Its folder, in which `fetched.jsonl` is kept.
        host: What this host hands to boxes.

    Raises:
        HostError: the harness cannot be reached from the box, or has no way on.
        SandboxError: the box has ended.
    """
    if reach.policy == "full":
        given = replace(host, installs=_past_the_proxy(host.installs))
        yield BuildNetwork(given, NetworkUse(**dict(reach)))
        return
    installs = {name: text for name, text in host.installs.items() if name.lower() not in PROXIES}
    if reach.policy == "none":
        given = replace(host, installs={**_OFFLINE, **installs})
        yield BuildNetwork(given, NetworkUse(**dict(reach)))
        return
    # Only here, since asyncio would cost every other build a tenth of a second.
    from .proxy import Proxy
    from .upstream import Upstream

    with ExitStack() as stack:
        hosts = hosts_of(host.installs, _sources(box), reach.allow_hosts)
        upstream = Upstream(host.installs)
        stack.callback(upstream.close)
        try:
            log = FetchLog(attempt / FILE_NAME)
        except OSError as error:
            raise HostError(
                f"{attempt / FILE_NAME}: cannot be written: {error.strerror}",
                advice="see to the folder, then run the same command again",
            ) from error
        stack.callback(log.close)
        listening = stack.enter_context(box.listen(PORT))
        forwards = [
            (stack.enter_context(box.listen(port)), port) for port in loopback_ports(host.installs)
        ]
        stack.enter_context(Proxy(listening, hosts, upstream, log.note, forwards))
        address, port = listening.getsockname()
        given = replace(host, installs={**installs, **_told(f"http://{address}:{port}")})
        network = BuildNetwork(given, NetworkUse(**dict(reach)))
        try:
            yield network
        finally:
            stack.close()
            network.use = log.use(reach)


def _past_the_proxy(installs: Mapping[str, str]) -> dict[str, str]:
    """Settings by which a proxy of this host, if any, is not asked for the loopback."""
    given = dict(installs)
    asked = {name.lower() for name, text in installs.items() if text} & PROXIES
    without = installs.get("no_proxy") or installs.get("NO_PROXY") or ""
    if asked - {"no_proxy"} and without.strip() != "*":
        names = [name.strip() for name in without.split(",") if name.strip()]
        text = ",".join(dict.fromkeys([*names, *WITHOUT_PROXY]))
        given |= {"no_proxy": text, "NO_PROXY": text}
    return given


def _told(address: str) -> Mapping[str, str]:
    """By both spellings, since tools differ in which they read."""
    names = {"http_proxy": address, "https_proxy": address, "no_proxy": ",".join(WITHOUT_PROXY)}
    return {spelled: text for name, text in names.items() for spelled in (name, name.upper())}


def _sources(box: BuildBox) -> Iterator[str]:
    for place in _SOURCES:
        try:
            yield box.read(Path(place), _SOURCES_BYTES).decode(errors="replace")
        except SandboxError:
            continue  # the image has none there; a box that has ended is found to be so next
