"""Base images: what containers start from, and which of them this host has.

A base is known by its labels and not by its name, so that any name will do. Its id and
digest go into every record. How bases are made stands in `debian` and `containerfile`.
"""

from __future__ import annotations

import hashlib
import json
import tempfile
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING

from ...errors import SandboxError
from ..engines import storage
from ..engines.engine import LABEL, AbsentError
from ..engines.known import known_image, known_images

if TYPE_CHECKING:
    from collections.abc import Mapping

    from ..engines.engine import Engine
    from ..engines.known import KnownImage

#: What every image of ours is called before its tag.
REPOSITORY = "localhost/researchenvbench/base"
KIND_LABEL = f"{LABEL}.kind"
RECIPE_LABEL = f"{LABEL}.recipe"
BASE_LABEL = f"{LABEL}.base"
_CREATED_LABEL = "org.opencontainers.image.created"
_HOW_TO_GET_ONE = (
    "make one: `reb image build`, or `reb image build --from-debian bookworm` "
    "where no image registry is reachable"
)


@dataclass(frozen=True)
class Image:
    """An image that the engine has."""

    id: str  #: "sha256:" and the digest of its configuration
    digest: str | None  #: of its manifest; docker has none for an image that it made itself
    name: str  #: with the tag; the id where it has no name
    recipe: str | None  #: digest of what decides its content; None: not made by `reb`
    base: str | None  #: what it was made on, such as "debian bookworm"
    created: str  #: ISO 8601, UTC
    size_bytes: int


def image_of(engine: Engine, name: str) -> Image:
    """The image of that name or id.

    Raises:
        SandboxError: the engine has no such image.
        HostError: the engine does not answer.
    """
    found = find_image(engine, name)
    if found is None:
        raise SandboxError(
            f"{engine.name} has no image {name}",
            advice=f"see `reb image list`; {_HOW_TO_GET_ONE}",
        )
    return found


def find_image(engine: Engine, name: str) -> Image | None:
    """The image of that name or id, or None where the engine has none."""
    try:
        return _image(known_image(engine, name), name)
    except AbsentError:
        return None


def base_images(engine: Engine) -> list[Image]:
    """The base images that the engine has, newest first.

    What a user builds on one of them has its labels too: it is used where it is named, and is
    nobody else's base.
    """
    ids = engine.listed("image", "ls", "--filter", f"label={KIND_LABEL}=base")
    labelled = list(known_images(engine, ids)) if ids else []
    images = [
        _image(known, "")
        for known in labelled
        if not any(_is_built_on(known, other) for other in labelled)
    ]
    return sorted(images, key=lambda image: image.created, reverse=True)


def default_image(engine: Engine) -> Image:
    """The newest base image that still has a name.

    Raises:
        SandboxError: there is none.
        HostError: the engine does not answer.
    """
    # One whose name a newer one has taken is kept for those who know its id.
    named = [image for image in base_images(engine) if image.name != image.id]
    if not named:
        raise SandboxError(f"{engine.name} has no base image yet", advice=_HOW_TO_GET_ONE)
    return named[0]


def labels(recipe: str, base: str) -> dict[str, str]:
    """The labels of a base image that is made now."""
    return {
        KIND_LABEL: "base",
        RECIPE_LABEL: recipe,
        BASE_LABEL: base,
        _CREATED_LABEL: datetime.now(UTC).isoformat(timespec="seconds"),
    }


def recipe_digest(recipe: Mapping[str, object]) -> str:
    """The digest of what decides an image's content, as far as we decide it."""
    text = json.dumps(recipe, sort_keys=True)
    return f"sha256:{hashlib.sha256(text.encode()).hexdigest()}"


def _is_built_on(known: KnownImage, other: KnownImage) -> bool:
    return len(known.layers) > len(other.layers) > 0 and (
        known.layers[: len(other.layers)] == other.layers
    )


def _image(known: KnownImage, asked: str) -> Image:
    name = asked if asked in known.names or not known.names else known.names[0]
    return Image(
        id=known.id,
        digest=known.digest,
        name=name or known.id,
        recipe=known.labels.get(RECIPE_LABEL),
        base=known.labels.get(BASE_LABEL),
        created=_utc(known.labels.get(_CREATED_LABEL) or known.created),
        size_bytes=known.size_bytes,
    )


def _utc(text: str) -> str:
    return datetime.fromisoformat(text).astimezone(UTC).isoformat(timespec="seconds")


def require_room(engine: Engine, need_bytes: int) -> None:
    """See that there is room where an image is made and where it is kept.

    Raises:
        HostError: there is not.
    """
    for folder in (Path(tempfile.gettempdir()), storage.storage_of(engine)):
        storage.require_room(
            need_bytes,
            folder,
            what="the image",
            advice=f"free some: {engine.name} image prune; or set TMPDIR to a larger disk",
        )
