"""What containers are given: labels, mounts and variables; devices are of `gpus.py`.

All of it is decided here, as arguments of the engine; nothing is started.
"""

from __future__ import annotations

import hashlib
import os
import re
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import unquote, urlsplit

from ...owner import this_owner
from ..engines.engine import LABEL
from ..engines.mounts import shown
from ..host_environment import variables_of
from .inventory import OWNER

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from .. import HostEnvironment, Layout

#: By which an attempt's containers are found; environments and what is started from them have
#: an empty one.
ATTEMPT_KEY = f"{LABEL}.attempt-key"
#: Where containers of builds see the certificates that this host trusts. Nobody has been in
#: their image before; a stage's are at a place that its agent could not foresee.
CERTIFICATES = Path("/reb/host/certificates.pem")
_CERTIFICATE_VARIABLES = (
    "CURL_CA_BUNDLE",
    "GIT_SSL_CAINFO",
    "NODE_EXTRA_CA_CERTS",
    "PIP_CERT",
    "REQUESTS_CA_BUNDLE",
    "SSL_CERT_FILE",
)
#: Where systems keep the certificates that they trust.
_SYSTEM_CERTIFICATES = (
    "/etc/ssl/certs/ca-certificates.crt",
    "/etc/pki/tls/certs/ca-bundle.crt",
    "/etc/ssl/ca-bundle.pem",
)
#: Variables of installs that name places which a container does not have.
_NOT_FOR_CONTAINERS = ("RUSTUP_HOME", "SSL_CERT_DIR", "PIP_CLIENT_CERT")
_DEFAULT_PATH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
#: Settings of installs whose values may be places of this host.
_PLACES = (
    "PIP_FIND_LINKS",
    "PIP_CONSTRAINT",
    "PIP_INDEX_URL",
    "PIP_EXTRA_INDEX_URL",
    "UV_FIND_LINKS",
    "UV_CONSTRAINT",
    "UV_INDEX",
    "UV_DEFAULT_INDEX",
)
#: `/opt/simple` would mean all of `/opt`.
_SYSTEM_DEPTH = 3


def labels(kind: str, attempt: Path) -> list[str]:
    """Flags that say whose a container is, so that it can be found again and removed."""
    return [
        *("--label", f"{LABEL}.kind={kind}"),
        *("--label", f"{LABEL}.attempt={attempt.resolve()}"),
        *("--label", f"{OWNER}={this_owner()}"),
        *("--label", f"{ATTEMPT_KEY}={attempt_key(attempt)}"),
    ]


def attempt_key(attempt: Path) -> str:
    """An attempt by its place, as a word that engines take for a tag and a filter alike.

    A path with a comma in it is none.
    """
    return hashlib.sha256(os.fsencode(attempt.resolve())).hexdigest()[:24]


def package_mounts(host: HostEnvironment, certificates: Path = CERTIFICATES) -> list[str]:
    """Flags for `package_places`, read-only."""
    places = package_places(host, certificates)
    return [flag for source, target in places for flag in shown(source, target)]


def package_places(
    host: HostEnvironment, certificates: Path = CERTIFICATES
) -> list[tuple[Path, Path]]:
    """What of this host installs need, and where they see it: certificates and local packages.

    Args:
        host: What names them.
        certificates: Where the container sees the certificates; local packages are at the
            same place as here, since the settings name it.
    """
    places = []
    if trusted := _host_certificates(host.installs):
        places.append((trusted, certificates))
    seen = set()
    for path in _local_places(host.installs):
        if path not in seen and path.exists():
            seen.add(path)
            places.append((path, path))
    return places


def container_variables(
    image: Mapping[str, str],
    layout: Layout,
    host: HostEnvironment,
    *,
    installs: bool,
    certificates: Path = CERTIFICATES,
) -> dict[str, str]:
    """The environment of a program in a container: the image's, ours, then the host's.

    Args:
        image: What the image sets.
        layout: Of the container.
        host: What this host hands to boxes.
        installs: Whether it gets the settings by which packages are installed.
        certificates: Where the container sees the host's, as `package_mounts` was told.
    """
    variables = {
        "PATH": _DEFAULT_PATH,
        **image,
        **variables_of(layout, "root"),
        **host.variables,
    }
    if installs:
        given = {
            name: value
            for name, value in host.installs.items()
            if name not in (*_NOT_FOR_CONTAINERS, *_CERTIFICATE_VARIABLES)
        }
        if _host_certificates(host.installs):
            given.update(dict.fromkeys(_CERTIFICATE_VARIABLES, str(certificates)))
        variables.update(given)
    return variables


def image_variables(listed: Sequence[str] | None) -> dict[str, str]:
    """An image's variables, from the list in its configuration."""
    return dict(entry.split("=", 1) for entry in listed or () if "=" in entry)


def needs_host_network(host: HostEnvironment) -> bool:
    """Whether an index or a proxy is on this host's own loopback, which containers have not."""
    for value in host.installs.values():
        for word in re.split(r"[\s,]+", value):
            if "://" in word and urlsplit(word).hostname in ("localhost", "127.0.0.1", "::1"):
                return True
    return False


def _host_certificates(installs: Mapping[str, str]) -> Path | None:
    named = [installs.get(name) for name in ("PIP_CERT", "SSL_CERT_FILE", "REQUESTS_CA_BUNDLE")]
    for place in (*filter(None, named), *_SYSTEM_CERTIFICATES):
        if Path(place).is_file():
            return Path(place).resolve()
    return None


def _local_places(installs: Mapping[str, str]) -> Iterator[Path]:
    """Folders and files of this host that the settings of installs name.

    Of an index all of its folder: its pages name the packages that lie beside them.
    """
    for name in _PLACES:
        for word in re.split(r"[\s,]+", installs.get(name, "")):
            place = unquote(urlsplit(word).path) if word.startswith("file:") else word
            if place.startswith("/"):
                path = Path(place)
                whole = path.name == "simple" and len(path.parts) > _SYSTEM_DEPTH
                yield path.parent if whole else path
