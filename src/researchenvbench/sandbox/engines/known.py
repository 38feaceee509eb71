"""What an engine knows of an image, in the same words for podman and docker."""

from __future__ import annotations

import hashlib
import json
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from ...errors import SandboxError
from .engine import printable

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from .engine import Engine

_SHOWN = 200
#: Of an image that does not say when it was made.
_UNKNOWN_TIME = "1970-01-01T00:00:00Z"


@dataclass(frozen=True)
class KnownImage:
    """An image that the engine has."""

    id: str  #: "sha256:" and the digest of its configuration
    digest: str | None  #: of its manifest; docker has none for an image that it made itself
    names: tuple[str, ...]  #: with their tags
    labels: Mapping[str, str]
    variables: tuple[str, ...]  #: NAME=VALUE, of its programs
    created: str  #: as the engine writes it, ISO 8601
    size_bytes: int
    layers: tuple[str, ...]  #: digests of what each adds, the oldest first

    @property
    def content(self) -> str:
        """Digest of its layers: the same wherever it was moved to."""
        return content_of(self.layers)


def content_of(layers: Sequence[str]) -> str:
    """The digest of layers."""
    return f"sha256:{hashlib.sha256(' '.join(layers).encode()).hexdigest()}"


def known_images(engine: Engine, names: Sequence[str]) -> list[KnownImage]:
    """What the engine knows of images.

    Args:
        engine: Which is asked.
        names: Names or ids, at least one.

    Raises:
        AbsentError: it lacks one of them.
        SandboxError: it fails otherwise.
        HostError: it does not answer.
    """
    for name in names:
        require_name(name)
    said = engine.call("image", "inspect", *names)
    try:
        return [_known(facts) for facts in json.loads(said)]
    except (ValueError, LookupError, TypeError, AttributeError) as error:
        begin = printable(said[:_SHOWN].decode(errors="replace").partition("\n")[0])
        raise SandboxError(
            f"{engine.name} image inspect does not answer as it should: {begin!r}",
            advice=f"see that {engine.program} is {engine.name}: reb doctor",
        ) from error


def require_name(name: str) -> None:
    """Refuse what cannot be the name of an image, and would be an option of the engine.

    Raises:
        SandboxError: it is such.
    """
    if not name.strip() or name.startswith("-"):
        raise SandboxError(
            f"an image cannot be called {name!r}", advice="see `reb image list` and `reb env list`"
        )


def known_image(engine: Engine, name: str) -> KnownImage:
    """What the engine knows of one image; raises as `known_images`."""
    return known_images(engine, [name])[0]


def _known(facts: Mapping[str, Any]) -> KnownImage:
    """Podman's and docker's answers differ in where the labels are, and in the digest."""
    configuration = facts.get("Config") or {}
    digests = [str(name).rpartition("@")[2] for name in facts.get("RepoDigests") or ()]
    return KnownImage(
        id="sha256:" + str(facts["Id"]).removeprefix("sha256:"),
        digest=str(facts.get("Digest") or (digests[0] if digests else "")) or None,
        names=tuple(str(name) for name in facts.get("RepoTags") or ()),
        labels=facts.get("Labels") or configuration.get("Labels") or {},
        variables=tuple(map(str, configuration.get("Env") or ())),
        created=str(facts.get("Created") or _UNKNOWN_TIME),
        size_bytes=int(facts["Size"]),
        layers=tuple(map(str, (facts.get("RootFS") or {}).get("Layers") or ())),
    )
