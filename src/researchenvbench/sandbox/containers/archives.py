"""What an archive of an image says of itself, read before any engine is given it.

Whoever wrote it may mean harm: an engine would give the names in it to its images, also
those that others have here. So only archives of one image without a name are read.
"""

from __future__ import annotations

import hashlib
import json
import posixpath
import tarfile
from collections import Counter
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

from ...errors import SandboxError
from ..engines.known import content_of

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from pathlib import Path

Format = Literal["oci", "tar"]
DAMAGED = "export it again: reb env export"
#: Of manifests and configurations; ours have some kB.
_MOST_JSON_BYTES = 16 << 20
#: Files of an archive; one of ours has four, and three for each layer.
_MOST_FILES = 4096
#: Annotations by which engines call what they load.
_NAMING = ("org.opencontainers.image.ref.name", "io.containerd.image.name")


@dataclass(frozen=True)
class Archive:
    """What a file holds, as far as it was looked at."""

    format: Format
    labels: Mapping[str, str]
    content: str  #: digest of the layers, as `EnvironmentImage.content`
    names: tuple[str, ...]  #: which an engine would give to it


@dataclass(frozen=True)
class _Said:
    """What one of its lists says of the image."""

    config: Mapping[str, Any]
    config_digest: str
    names: tuple[str, ...]


def read_archive(file: Path) -> Archive:
    """What kind of archive a file is, and the labels of its image.

    Raises:
        SandboxError: it cannot be read to its end, or is no archive of one image.
    """
    if not file.is_file():
        raise SandboxError(f"{file}: is not a file", advice="give what reb env export has written")
    try:
        with tarfile.open(file, mode="r:") as archive:
            names = _names(archive)  # a file that was cut short ends here
            said = []
            form: Format = "tar"
            if "manifest.json" in names:
                said.append(_of_docker(archive))
            if {"index.json", "oci-layout"} <= names:
                form = form if said else "oci"
                said.append(_of_oci(archive))
        if not said:
            raise SandboxError(f"{file}: is an archive, and none of an image", advice=DAMAGED)
        config = said[0].config
        labels = config["config"].get("Labels") or {}
        layers = config["rootfs"]["diff_ids"]
        if len({one.config_digest for one in said}) != 1:
            raise ValueError("its lists name two images")
        return Archive(
            form,
            {str(name): str(value) for name, value in labels.items()},
            content_of([str(layer) for layer in layers]),
            tuple(name for one in said for name in one.names),
        )
    except (tarfile.TarError, EOFError, OSError) as error:
        raise SandboxError(f"{file}: is damaged, or no archive: {error}", advice=DAMAGED) from error
    except (KeyError, IndexError, TypeError, AttributeError, ValueError, RecursionError) as error:
        raise SandboxError(f"{file}: is no archive of an image: {error}", advice=DAMAGED) from error


def _names(archive: tarfile.TarFile) -> set[str]:
    """All names, each once: engines do not agree which of two they read."""
    found: Counter[str] = Counter()
    for member in archive:
        found[posixpath.normpath(member.name.lstrip("/"))] += not member.isdir()
        if found.total() > _MOST_FILES:
            raise ValueError(f"it has more than {_MOST_FILES} files")
    twice = [name for name, count in found.items() if count > 1 and _describes(name)]
    if twice:
        raise ValueError(f"it has {twice[0]!r:.200} twice")
    return set(found)


def _describes(name: str) -> bool:
    return name.startswith("blobs/") or name.endswith(".json") or name == "oci-layout"


def _of_docker(archive: tarfile.TarFile) -> _Said:
    entry = _only(_parsed(_content(archive, "manifest.json")))
    content = _content(archive, str(entry["config"]))
    return _said(content, tuple(map(str, entry.get("repotags") or ())))


def _of_oci(archive: tarfile.TarFile) -> _Said:
    described = _only(_parsed(_content(archive, "index.json"))["manifests"])
    manifest = _parsed(_blob(archive, described))
    return _said(
        _blob(archive, manifest["config"]), (*_annotated(described), *_annotated(manifest))
    )


def _said(config: bytes, names: tuple[str, ...]) -> _Said:
    return _Said(json.loads(config), hashlib.sha256(config).hexdigest(), names)


def _annotated(described: Mapping[str, Any]) -> Iterator[str]:
    annotations = described.get("annotations") or {}
    return (str(annotations[name]) for name in _NAMING if name in annotations)


def _only(images: list[Any]) -> Any:
    if not isinstance(images, list) or len(images) != 1:
        raise ValueError(f"it holds {len(images)} images, not one")
    return images[0]


def _parsed(content: bytes) -> Any:
    """JSON as engines read it: by them the case of a name does not matter."""

    def folded(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        found = {name.casefold(): value for name, value in pairs}
        if len(found) != len(pairs):
            raise ValueError("it says something twice")
        return found

    return json.loads(content, object_pairs_hook=folded)


def _content(archive: tarfile.TarFile, name: str) -> bytes:
    member = archive.getmember(name)
    content = archive.extractfile(member) if member.isreg() else None
    if content is None or member.size > _MOST_JSON_BYTES:
        raise ValueError(f"{name!r:.200} is not such a file as it should be")
    return content.read()


def _blob(archive: tarfile.TarFile, described: Mapping[str, Any]) -> bytes:
    return _content(archive, f"blobs/{str(described['digest']).replace(':', '/', 1)}")
