"""Who says that a file was installed, and with which content: RECORDs, conda, dpkg.

A RECORD is that of an installed distribution (packaging.python.org, "Recording installed
projects"), conda's is `conda-meta/*.json`, Debian's are `/var/lib/dpkg/info/*.md5sums` and the
configuration files in `/var/lib/dpkg/status`.
"""

from __future__ import annotations

import base64
import hashlib
import json
import os

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from .paths import Root

_METADATA_LIMIT_BYTES = 64 << 20
#: Of all lists together: an environment of a thousand distributions has a tenth of it.
_ALL_METADATA_BYTES = 256 << 20
#: Those with a digest of one length; the others prove nothing that a RECORD could say.
ALGORITHMS = frozenset(hashlib.algorithms_guaranteed) - {"shake_128", "shake_256"}
_DPKG = "/var/lib/dpkg"
_OF_DEBIAN = ("/usr/lib/", "/usr/share/", "/etc/", "/lib/")
_MERGED = ("/bin/", "/lib/", "/lib64/", "/sbin/")  #: folders that lie in /usr today


class Installed:
    """What the folders of one environment, its prefixes and the system say."""

    def __init__(self, root: Root, prefixes: list[str]) -> None:
        self._root = root
        self._prefixes = prefixes
        self._left_bytes = _ALL_METADATA_BYTES
        self._records: dict[str, list[tuple[str, bytes]]] = {}
        self._conda: dict[str, dict[str, tuple[str, str]]] = {}
        self._dpkg: dict[str, str] | None = None

    def says(self, path: str, site: str, content: bytes) -> dict[str, Any] | None:
        """Which `owner` lists the file, and whether its content is the one listed (`same`)."""
        return (
            self._by_record(path, site, content)
            or self._by_conda(path, content)
            or (self._by_dpkg(path, content))
        )

    def lists(self, path: str, site: str) -> bool:
        """Whether a distribution of the folder `site` lists the file at all."""
        asked = os.fsencode(os.path.relpath(path, site))  # pathlib would cost start-up time
        return any(_line(record, asked) for _, record in self._of_site(site))

    def _by_record(self, path: str, site: str, content: bytes) -> dict[str, Any] | None:
        asked = os.fsencode(os.path.relpath(path, site))
        found = None
        for owner, record in self._of_site(site):
            line = _line(record, asked)
            if line is None:
                continue
            algorithm, _, digest = line.split(",")[0].partition("=")
            same = algorithm in ALGORITHMS and digest == encoded(
                hashlib.new(algorithm, content).digest()
            )
            # An older version may have left its RECORD: the one that fits is the owner.
            if same or found is None:
                origin = self._root.read(f"{site}/{owner}/direct_url.json", 65_536) or b""
                editable = b'"editable"' in origin and b"true" in origin
                found = {"owner": owner, "same": same, "editable": editable}
        return found

    def _of_site(self, site: str) -> list[tuple[str, bytes]]:
        if site not in self._records:
            self._records[site] = []
            for name in self._root.names(site):
                if name.endswith(".dist-info"):
                    record = self._metadata(f"{site}/{name}/RECORD")
                    if record:
                        self._records[site].append((name, b"\n" + record))
        return self._records[site]

    def _by_conda(self, path: str, content: bytes) -> dict[str, Any] | None:
        for prefix in self._prefixes:
            if path.startswith(prefix + "/"):
                listed = self.of_conda(prefix).get(path[len(prefix) + 1 :])
                if listed:
                    same = hashlib.sha256(content).hexdigest() == listed[1]
                    return {"owner": listed[0], "same": same, "editable": False}
        return None

    def of_conda(self, prefix: str) -> dict[str, tuple[str, str]]:
        """Package and SHA-256 of each file that conda put below the prefix."""
        if prefix in self._conda:
            return self._conda[prefix]
        found: dict[str, tuple[str, str]] = {}
        for name in self._root.names(f"{prefix}/conda-meta"):
            if not name.endswith(".json"):
                continue
            content = self._metadata(f"{prefix}/conda-meta/{name}")
            try:
                facts = json.loads(content)
                paths = facts["paths_data"]["paths"]
                for entry in paths:
                    path = entry["_path"]
                    digest = entry.get("sha256_in_prefix") or entry.get("sha256")
                    if digest and isinstance(path, str) and isinstance(digest, str):
                        found[path] = (name, digest)
            except (ValueError, TypeError, KeyError, AttributeError, RecursionError):
                continue  # no list of conda's: what it would list is listed by nobody
        self._conda[prefix] = found
        return found

    def _metadata(self, path: str) -> bytes:
        """What one list says; nothing where too much has been read already."""
        content = self._root.read(path, min(_METADATA_LIMIT_BYTES, self._left_bytes)) or b""
        self._left_bytes -= len(content)
        return content

    def _by_dpkg(self, path: str, content: bytes) -> dict[str, Any] | None:
        real = self._root.real(path)
        if not real.startswith(_OF_DEBIAN):
            return None
        listed = self._of_dpkg()
        for asked in (path, real, *_unmerged(path), *_unmerged(real)):
            if asked in listed:
                same = hashlib.md5(content, usedforsecurity=False).hexdigest() == listed[asked]
                return {"owner": "dpkg", "same": same, "editable": False}
        return None

    def of_dpkg(self, folder: str) -> dict[str, str]:
        """MD5 of each file below the folder that Debian's packages with Python in them list."""
        return {path: one for path, one in self._of_dpkg().items() if path.startswith(f"{folder}/")}

    def _of_dpkg(self) -> dict[str, str]:
        if self._dpkg is not None:
            return self._dpkg
        found: dict[str, str] = {}
        for name in self._root.names(f"{_DPKG}/info"):
            if name.endswith(".md5sums"):
                listed = self._metadata(f"{_DPKG}/info/{name}")
                for line in listed.decode("utf-8", "surrogateescape").splitlines():
                    if "python" in line:
                        digest, _, path = line.partition("  ")
                        found[f"/{path}"] = digest
        status = self._metadata(f"{_DPKG}/status")
        for line in status.decode("utf-8", "surrogateescape").splitlines():
            if line.startswith(" /etc/python"):
                path, _, digest = line.strip().partition(" ")
                found[path] = digest.partition(" ")[0]
        self._dpkg = found
        return found


def encoded(digest: bytes) -> str:
    """A digest as RECORDs write it."""
    return base64.urlsafe_b64encode(digest).rstrip(b"=").decode()


def _line(record: bytes, path: bytes) -> str | None:
    """What follows the path in the RECORD's line of it."""
    start = record.find(b"\n" + path + b",")
    if start < 0:
        return None
    start += len(path) + 2
    end = record.find(b"\n", start)
    return record[start : end if end >= 0 else None].decode("utf-8", "replace").strip()


def _unmerged(path: str) -> list[str]:
    """The path as a package from before /usr was merged names it."""
    return [path[4:]] if path[4:].startswith(_MERGED) and path.startswith("/usr/") else []
