"""What an engine keeps of ours: containers of builds, stages and probes, and environments.

All of it is known by its labels. A container that somebody starts from an environment has
that one's labels, and is none of ours: its kind is `environment`.
"""

from __future__ import annotations

import json
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from ...errors import SandboxError
from ..engines.engine import LABEL, AbsentError
from ..engines.known import known_image, known_images

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from ..engines.engine import Engine
    from ..engines.known import KnownImage

#: What environments are called: the tag is made of the attempt's place.
ENVIRONMENTS = "localhost/researchenvbench/env"
#: What moved ones are called: the tag is the beginning of the image's id where it was made.
MOVED = "localhost/researchenvbench/moved"
#: Labels of an environment that say which image its build began on, and what it was shown.
BASE_NAME, BASE_ID, BASE_DIGEST = (f"{LABEL}.base-{what}" for what in ("name", "id", "digest"))
SHOWN_GPUS = f"{LABEL}.shown-gpus"
OWNER = f"{LABEL}.owner"
_KINDS = ("build", "stage", "probe")
_ENVIRONMENTS_ONLY = ("--filter", f"label={LABEL}.kind=environment")
#: Names in one question; an engine asks itself for each.
_MOST_NAMES = 50
_AT_A_TIME = 4
#: Words of podman and docker for a container in which nothing runs; a paused one can run on.
_ENDED = ("configured", "created", "dead", "exited", "initialized", "stopped")


@dataclass(frozen=True)
class Container:
    """One of ours."""

    id: str
    kind: str  #: build, stage or probe
    attempt: Path | None
    owner: str  #: the process that started it; empty where it is not said
    running: bool


@dataclass(frozen=True)
class EnvironmentImage:
    """An environment that an engine keeps as an image."""

    engine: str
    id: str
    digest: str | None  #: of its manifest, where the engine has one
    names: tuple[str, ...]
    attempt: Path | None  #: whose it was where it was built
    base_name: str | None
    base_id: str | None
    base_digest: str | None
    shown_gpus: tuple[str, ...]  #: name and architecture of each that its build was shown
    created: str  #: ISO 8601
    size_bytes: int
    own_bytes: int  #: over its base, which environments share
    content: str  #: digest of its layers: the same wherever it was moved to

    @property
    def moved(self) -> bool:
        """Whether it was imported here."""
        return any(name.startswith(f"{MOVED}:") for name in self.names)

    @property
    def name(self) -> str:
        """By which a person may call it."""
        return self.names[0] if self.names else self.id

    @property
    def short_id(self) -> str:
        """As engines show it."""
        return short_id(self.id)

    @property
    def task(self) -> str:
        """Of which task it is, as far as the name of its attempt says it; else empty."""
        name, dashes, number = (self.attempt.name if self.attempt else "").rpartition("--")
        return name if dashes and number.isdigit() else ""

    @property
    def called(self) -> str:
        """By its id and its attempt, short enough for a list."""
        return f"{self.short_id} ({self.attempt.name if self.attempt else self.name})"


def short_id(identifier: str) -> str:
    """An image's or a container's id as engines show it."""
    return identifier.removeprefix("sha256:")[:12]


def containers(engine: Engine) -> list[Container]:
    """Our containers, running or not.

    Raises:
        SandboxError: the engine does not say.
    """
    found = []
    for identifier in engine.listed("ps", "--all", "--filter", f"label={LABEL}.kind"):
        with suppress(AbsentError):  # it has ended meanwhile
            facts = json.loads(engine.call("container", "inspect", identifier))[0]
            labels = facts["Config"].get("Labels") or {}
            kind = labels.get(f"{LABEL}.kind", "")
            if kind in _KINDS:
                attempt = labels.get(f"{LABEL}.attempt")
                found.append(
                    Container(
                        id=identifier,
                        kind=kind,
                        attempt=Path(attempt) if attempt else None,
                        owner=labels.get(OWNER, ""),
                        running=facts["State"]["Status"].lower() not in _ENDED,
                    )
                )
    return found


def environment_images(engine: Engine) -> list[EnvironmentImage]:
    """The environments that the engine keeps, newest first.

    Raises:
        SandboxError: the engine does not say.
    """
    known = _known_of(engine, engine.listed("image", "ls", *_ENVIRONMENTS_ONLY))
    bases = {
        base.id: base
        for base in _known_of(engine, [image.labels.get(BASE_ID, "") for image in known])
    }

    def described(image: KnownImage) -> EnvironmentImage | None:
        own_bytes = _over_base(image, bases.get(image.labels.get(BASE_ID, "")))
        with suppress(AbsentError):  # it was removed meanwhile
            return _environment(engine, image, own_bytes)
        return None

    with ThreadPoolExecutor(_AT_A_TIME) as pool:
        found = [image for image in pool.map(described, known) if image is not None]
    return sorted(found, key=lambda image: image.created, reverse=True)


def image_ids(engine: Engine) -> set[str]:
    """Ids of all images that the engine has.

    Raises:
        SandboxError: the engine does not say.
    """
    return set(engine.listed("image", "ls", "--all"))


def _known_of(engine: Engine, names: Sequence[str]) -> list[KnownImage]:
    """Those of them that the engine has, asked for many at a time."""
    found = []
    wanted = [name for name in dict.fromkeys(names) if name]
    for at in range(0, len(wanted), _MOST_NAMES):
        part = wanted[at : at + _MOST_NAMES]
        try:
            found += known_images(engine, part)
        except AbsentError:  # then the engine says nothing of the others
            for name in part:
                with suppress(AbsentError):
                    found.append(known_image(engine, name))
    return found


def _over_base(image: KnownImage, base: KnownImage | None) -> int | None:
    """What it has over its base where that is here, which needs no further question."""
    if base is None or image.layers[:-1] != base.layers:
        return None
    return max(0, image.size_bytes - base.size_bytes)


def environment_image(engine: Engine, name: str) -> EnvironmentImage:
    """The environment of that name or id.

    Raises:
        SandboxError: there is none, or the image is no environment.
    """
    known = known_image(engine, name)
    if known.labels.get(f"{LABEL}.kind") != "environment":
        raise SandboxError(
            f"{name} is an image, and no environment that `reb` has made",
            advice="`reb env list` shows environments",
        )
    return _environment(engine, known)


def _environment(
    engine: Engine, known: KnownImage, own_bytes: int | None = None
) -> EnvironmentImage:
    labels: Mapping[str, str] = known.labels
    attempt = labels.get(f"{LABEL}.attempt")
    return EnvironmentImage(
        engine=engine.name,
        id=known.id,
        digest=known.digest,
        names=known.names,
        attempt=Path(attempt) if attempt else None,
        base_name=labels.get(BASE_NAME),
        base_id=labels.get(BASE_ID),
        base_digest=labels.get(BASE_DIGEST) or None,
        shown_gpus=_words(labels.get(SHOWN_GPUS)),
        created=known.created,
        size_bytes=known.size_bytes,
        own_bytes=_own_bytes(engine, known.id) if own_bytes is None else own_bytes,
        content=known.content,
    )


def _own_bytes(engine: Engine, name: str) -> int:
    """The newest layer: a build is committed as one over its base."""
    dialect = engine.dialect
    return dialect.newest_layer_bytes(engine.ask("history", *dialect.size_history, name))


def _words(text: str | None) -> tuple[str, ...]:
    try:
        listed = json.loads(text or "[]")
    except ValueError:
        return ()
    return tuple(map(str, listed)) if isinstance(listed, list) else ()
