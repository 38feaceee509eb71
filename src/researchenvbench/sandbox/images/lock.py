"""`image.lock`: which content the name of a base image stood for when it was looked up.

A tag can be given to other content at any time. The first build looks the digest up and
notes it; later ones use the digest. No digest is written that nobody looked up.
"""

from __future__ import annotations

import re
from datetime import UTC, datetime
from typing import TYPE_CHECKING

from pydantic import Field

from ...errors import SandboxError
from ...stored import Stored
from .base import image_of

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from ..engines.engine import Engine

_LOCAL = "localhost/"
_TIME_LIMIT_S = 3600.0


class LockedImage(Stored):
    """What a name stood for."""

    digest: str = Field(pattern=r"^sha256:[0-9a-f]{64}$")
    looked_up: str  #: ISO 8601, UTC


class ImageLock(Stored):
    """Names with their tags, and what they stood for."""

    schema_version: int = Field(1, alias="schema")
    images: dict[str, LockedImage] = Field(default_factory=dict)


def is_local(name: str) -> bool:
    """Whether an image is of no registry, but made on this host."""
    return name.startswith(_LOCAL)


def resolve(
    engine: Engine, name: str, lock_file: Path, say: Callable[[str], None] = lambda _: None
) -> str:
    """The name by digest, looked up and noted in the lock where it is not there yet.

    Args:
        engine: Pulls the image where it must be looked up.
        name: With its tag, or by digest already. An image of this host is given by its id.
        lock_file: Is read, and written where it lacks the name.
        say: Told in a line what is being done.

    Raises:
        SandboxError: the image cannot be had.
        RecordError: the lock cannot be read.
        HostError: the engine does not answer.
    """
    if is_local(name):
        return image_of(engine, name).id
    if re.search(r"@sha256:[0-9a-f]{64}$", name):
        return name
    lock = ImageLock.load(lock_file) if lock_file.exists() else ImageLock()
    locked = lock.images.get(name)
    if locked is None:
        say(f"pulling {name} to look up its digest")
        try:
            engine.call("pull", name, time_limit_s=_TIME_LIMIT_S)
        except SandboxError as error:
            raise SandboxError(
                str(error.args[0]),
                advice="where no image registry is reachable: "
                "reb image build --from-debian bookworm",
            ) from error
        digest = image_of(engine, name).digest
        if digest is None:
            raise SandboxError(f"{engine.name} does not say the digest of {name}")
        locked = LockedImage(
            digest=digest, looked_up=datetime.now(UTC).isoformat(timespec="seconds")
        )
        lock_file.parent.mkdir(parents=True, exist_ok=True)
        ImageLock(images={**lock.images, name: locked}).save(lock_file)
        say(f"{name} is {digest}, noted in {lock_file}")
    return f"{_untagged(name)}@{locked.digest}"


def _untagged(name: str) -> str:
    """Without the tag: what follows a colon in the last part (a registry may have a port)."""
    folder, slash, last = name.rpartition("/")
    return f"{folder}{slash}{last.partition(':')[0]}"
