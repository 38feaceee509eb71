"""Where Debian's packages come from on this host, and which suites are there.

The host's apt configuration names the mirror that is reachable from here. Not each source
of it is one of Debian: makers of other programs use the names of its suites too. A mirror
says of itself, in a suite's `Release` file, what it holds.
"""

from __future__ import annotations

import re
import urllib.error
import urllib.request
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING

from ...errors import HostError, SandboxError
from ..host_environment import redacted

if TYPE_CHECKING:
    from collections.abc import Iterator

#: Of the suites with a Python that is still in use, oldest first.
SUITES = ("bullseye", "bookworm", "trixie", "forky", "sid")
DEFAULT_MIRROR = "http://deb.debian.org/debian"
_TIME_LIMIT_S = 30.0
_RELEASE_LIMIT_BYTES = 4 << 20


def find_mirror(suite: str, asked: str | None = None, apt: Path = Path("/etc/apt")) -> str:
    """The mirror to take `suite` from.

    Args:
        suite: The code name of a release, or sid.
        asked: Take this one, whatever apt uses.
        apt: The folder of apt's configuration.

    Raises:
        SandboxError: an address that cannot be used, or a suite that the mirror lacks.
        HostError: the mirror cannot be reached.
    """
    if not re.fullmatch(r"[a-z][a-z0-9-]*", suite):
        raise SandboxError(
            f"{suite!r} is no name of a Debian suite", advice=f"such as {', '.join(SUITES)}"
        )
    candidates = [asked] if asked else list(dict.fromkeys(_configured(apt))) or [DEFAULT_MIRROR]
    lacking = ""
    for mirror in candidates:
        _refuse_unusable(mirror)
        if _holds(mirror, suite, any_origin=asked is not None):
            return mirror
        if asked or any(_holds(mirror, other) for other in SUITES):
            lacking = lacking or mirror
    if not lacking:
        raise SandboxError(
            "none of apt's sources is a mirror of Debian", advice=f"try --mirror {DEFAULT_MIRROR}"
        )
    there = [name for name in SUITES if _holds(lacking, name, any_origin=True)]
    raise SandboxError(
        f"{lacking} has no suite {suite}",
        advice=f"it has {', '.join(there)}" if there else f"try --mirror {DEFAULT_MIRROR}",
    )


def _configured(apt: Path) -> Iterator[str]:
    """Addresses in apt's sources that may be mirrors of Debian."""
    for path in [apt / "sources.list", *sorted((apt / "sources.list.d").glob("*"))]:
        with suppress(OSError):
            text = path.read_text(encoding="utf-8", errors="replace")
            if path.suffix == ".list":
                yield from _one_line_sources(text)
            elif path.suffix == ".sources":
                yield from _stanzas(text)


def _one_line_sources(text: str) -> Iterator[str]:
    """See sources.list(5), "one-line-style format"."""
    for line in text.splitlines():
        found = re.match(r"\s*deb\s+(?:\[(?P<options>[^]]*)\]\s+)?(?P<rest>[^#]*)", line)
        if found:
            words = [*found["rest"].split(), "", ""]
            address, suite, components = words[0], words[1], words[2:]
            key = re.search(r"signed-by=(\S+)", found["options"] or "", re.IGNORECASE)
            if _may_be_debian([suite], components, key[1] if key else ""):
                yield address.rstrip("/")


def _stanzas(text: str) -> Iterator[str]:
    """See sources.list(5), "deb822-style format"."""
    for stanza in re.split(r"\n\s*\n", text):
        lines = [line for line in stanza.splitlines() if not line.startswith("#")]
        fields = {}
        for line in lines:
            name, colon, value = line.partition(":")
            if colon and not line[:1].isspace():
                fields[name.lower()] = value.strip()
        if fields.get("enabled", "yes").lower() == "no" or "deb" not in fields.get(
            "types", ""
        ).split(" "):
            continue
        suites, components = fields.get("suites", "").split(), fields.get("components", "").split()
        if _may_be_debian(suites, components, fields.get("signed-by", "")):
            for address in fields.get("uris", "").split():
                yield address.rstrip("/")


def _may_be_debian(suites: list[str], components: list[str], signed_by: str) -> bool:
    ours = not signed_by or "debian-archive" in signed_by
    return ours and "main" in components and any(name in SUITES for name in suites)


def _refuse_unusable(mirror: str) -> None:
    if redacted(mirror) != mirror:
        raise SandboxError(
            f"{redacted(mirror)}: the address holds a password, which would stay in the image",
            advice="give --mirror URL without one",
        )
    if not mirror.startswith(("http://", "https://")):
        raise SandboxError(
            f"{mirror}: a mirror in a container must be reached by http or https",
            advice=f"try --mirror {DEFAULT_MIRROR}",
        )


def _holds(mirror: str, suite: str, *, any_origin: bool = False) -> bool:
    address = f"{mirror.rstrip('/')}/dists/{suite}/Release"
    try:
        with urllib.request.urlopen(address, timeout=_TIME_LIMIT_S) as answer:  # noqa: S310 - http
            text = answer.read(_RELEASE_LIMIT_BYTES).decode(errors="replace")
    except urllib.error.HTTPError as error:
        if error.code in {403, 404, 410}:
            return False
        raise HostError(
            f"{mirror} answers {error.code} {error.reason}", advice="try another: --mirror URL"
        ) from error
    except (OSError, ValueError) as error:
        why = getattr(error, "reason", None) or error
        raise HostError(
            f"{mirror} cannot be reached: {why}",
            advice="see that this host has a network and its proxy is set; or --mirror URL",
        ) from error
    return any_origin or bool(re.search(r"^Origin: Debian$", text, re.MULTILINE))
