"""The sandboxes that are containers: podman and docker, which differ by name only.

An attempt's folder holds `frozen.json`, the image that its build became, and while it is
built `container.json`, the journal of its container. The image's id is the digest of the
environment. Inside, paths are the same for all attempts:

    /workspace/repo, env, report.json     the source, where an environment is best put, the report
    /reb/host                             certificates of this host, while building, read-only
    /reb/stage                            a stage's own folders: work, out, tools, home, tmp, cache
    /reb-SOMETHING                        in stages, read-only: the harness's programs,
                                          certificates, assets
"""

from __future__ import annotations

import functools
import hashlib
import json
import time
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from ...attempt import Environment, Freshness
from ...errors import EnvironmentUnusableError, HostError, SandboxError
from ...gpu.inventory import gpu_words, inventory
from ...network_use import FULL
from ...places import default_cache
from .. import NO_ASSETS, Layout
from ..engines.bundle import bundle
from ..engines.engine import LABEL, AbsentError, Engine, InUseError
from ..engines.finding import find_engine
from ..engines.known import known_image
from ..host_environment import host_environment
from ..images.base import Image, default_image, find_image, image_of
from .build import ContainerBuildBox
from .clock import now
from .copies import copy_tree
from .following import INIT
from .freezing import freeze
from .given import (
    ATTEMPT_KEY,
    attempt_key,
    image_variables,
    labels,
    needs_host_network,
    package_mounts,
)
from .gpus import devices
from .inventory import BASE_DIGEST, BASE_ID, BASE_NAME, ENVIRONMENTS, SHOWN_GPUS
from .journal import Journal
from .options import Options, bytes_of
from .programs import PLACE, image_with
from .stage import Start, image_gone, open_container

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from ...network_use import Reach
    from .. import HostEnvironment, Program
    from .stage import ContainerStageBox

_FROZEN, _JOURNAL = "frozen.json", "container.json"
_WORKSPACE, _STAGE = Path("/workspace"), Path("/reb/stage")
_BUILD_FOLDERS = {"/workspace": 0o755, "/var/tmp": 0o1777}  # noqa: S108 - the agent's own
_LAYOUT = Layout(
    root=Path("/"),
    repo=_WORKSPACE / "repo",
    home=Path("/root"),
    tmp=Path("/tmp"),  # noqa: S108 - likewise
    cache=Path("/root/.cache"),
    env=_WORKSPACE / "env",
    report=_WORKSPACE / "report.json",
    work=_STAGE / "work",
    out=_STAGE / "out",
    tools=_STAGE / "tools",
    assets=_STAGE / "assets",
)


class ContainerSandbox:
    """Attempts in containers of podman or docker."""

    def __init__(
        self, name: str, options: Mapping[str, object] | None = None, reach: Reach = FULL
    ) -> None:
        self.name, self.reach = name, reach
        self._options = Options.of(options or {})
        if reach.policy != "full" and self._options.network:
            raise SandboxError(
                f"--sandbox-option network={self._options.network} gives builds a network, and "
                f"--network {reach.policy} takes it from them",
                advice="leave one of them out",
            )

    @functools.cached_property
    def engine(self) -> Engine:
        """The engine, with the flags that this host needs."""
        return find_engine(self.name)

    @functools.cached_property
    def _tools(self) -> Path:
        """The harness's programs; they stay the same while it runs."""
        return bundle(default_cache())

    def check(self) -> None:
        """Look whether the engine starts containers, and has what was chosen for them."""
        self._options.check(self.engine)
        if self.reach.policy == "registries" and self.engine.why_outside:
            raise HostError(
                f"--network registries cannot be had here: {self.engine.why_outside}",
                advice="run reb as root or use --sandbox podman; reb doctor says more",
            )
        self.base_image()

    def layout(self, attempt: Path) -> Layout:  # noqa: ARG002 - the same for all
        """The paths while building; a stage box's own layout differs in home, tmp and cache."""
        return _LAYOUT

    def base_image(self) -> Image:
        """What builds start from.

        Raises:
            SandboxError: there is none.
        """
        chosen = self._options.image
        return image_of(self.engine, chosen) if chosen else default_image(self.engine)

    def resumes(self, attempt: Path, key: str) -> bool:
        """Whether the build of that key was begun, and its container can be gone on with."""
        return self._resumable(attempt, key) is not None

    @contextmanager
    def build_box(
        self,
        attempt: Path,
        source: Path,
        *,
        key: str = "",
        gpus: Sequence[str] = (),
        program: Program | None = None,
    ) -> Iterator[ContainerBuildBox]:
        """The container of an agent, with its own copy of `source`; attached to where it runs."""
        resumed = self._resumable(attempt, key)
        if resumed is None:
            self.discard(attempt)
        journal = resumed or self._begin(attempt, source, key, gpus, program)
        box = ContainerBuildBox(
            self.engine,
            journal,
            _LAYOUT,
            self._variables_of(journal.image),
            bytes_of(self._options.disk, "disk"),
            PLACE if program else None,
        )
        try:
            if resumed is not None:
                box.resume()
            yield box
        except (KeyboardInterrupt, SandboxError, HostError):
            self.discard(attempt)
            raise

    def freeze(self, attempt: Path) -> Environment:
        """Stop the container, and keep its state as an image.

        Where the harness is killed meanwhile, the build is gone on with, and this done again.
        """
        engine, journal = self.engine, Journal.load(attempt / _JOURNAL)
        if journal is None:
            raise SandboxError(f"{attempt}: nothing has been built here")
        began = time.monotonic()
        name = f"{ENVIRONMENTS}:{attempt_key(attempt)}"
        try:
            limit_bytes = bytes_of(self._options.disk, "disk")
            unusable = freeze(engine, journal, name, limit_bytes)
            base = image_of(engine, journal.image)
            image = None if unusable else image_of(engine, name)
        except (KeyboardInterrupt, SandboxError, HostError):
            self.discard(attempt)
            raise
        known = known_image(engine, image.id) if image else None
        told = known.labels if known else {}
        environment = Environment(
            sandbox=self.name,
            digest=image.id if image else _digest_of(f"{journal.container} {unusable}"),
            files=None,
            size_bytes=max(0, image.size_bytes - base.size_bytes) if image else 0,
            digest_s=time.monotonic() - began,
            ended_processes=tuple(journal.left),
            image=image.id if image else None,
            image_digest=image.digest if image else None,
            content_digest=known.content if known else None,
            # Where an agent's program was put between the two, the base is still the base.
            base_image=told.get(BASE_NAME) or base.name,
            base_image_id=told.get(BASE_ID) or base.id,
            base_image_digest=(told.get(BASE_DIGEST) or None) if told else base.digest,
            unusable=unusable,
        )
        environment.save(attempt / _FROZEN)
        engine.remove(journal.container)
        journal.remove()
        return environment

    def environment(self, attempt: Path) -> Environment:
        """The frozen state, which an image cannot depart from."""
        frozen = self._frozen(attempt)
        if frozen.unusable is None and find_image(self.engine, frozen.digest) is None:
            raise image_gone(self.engine, frozen.digest)
        return frozen

    def holds(self, attempt: Path) -> bool:
        """Whether the engine has the image; what became none is as it was left."""
        if not (attempt / _FROZEN).exists():
            return False
        frozen = self._frozen(attempt)
        return frozen.unusable is not None or find_image(self.engine, frozen.digest) is not None

    @contextmanager
    def stage_box(
        self,
        attempt: Path,
        *,
        network: bool,
        gpus: Sequence[str],
        assets: Mapping[str, Path] = NO_ASSETS,
    ) -> Iterator[ContainerStageBox]:
        """A new container of the frozen image."""
        frozen = self._frozen(attempt)
        if frozen.unusable is not None:
            raise EnvironmentUnusableError(frozen.unusable)
        with self.image_box(
            frozen.digest, attempt, network=network, gpus=gpus, assets=assets
        ) as box:
            yield box

    @contextmanager
    def image_box(
        self,
        image: str,
        attempt: Path,
        *,
        network: bool,
        gpus: Sequence[str] = (),
        assets: Mapping[str, Path] = NO_ASSETS,
    ) -> Iterator[ContainerStageBox]:
        """A new container of any image, on behalf of `attempt`."""
        host = host_environment()
        flags = self._network(host_network=needs_host_network(host))
        start = Start(
            engine=self.engine,
            image=image,
            image_variables=self._variables_of(image),
            layout=_LAYOUT.of_stage(_STAGE),
            tools=self._tools,
            options=self._options,
            attempt=attempt,
            network=flags if network else ("--network", "none"),
            host=host,
            gpus=gpus,
            assets=assets,
        )
        shared: Literal["none", "host", "engine"] = "none"
        if network:
            shared = "host" if "host" in flags else "engine"
        freshness = Freshness(kind="container", network=shared)
        with open_container(start, freshness) as box:
            yield box

    def discard(self, attempt: Path) -> None:
        """Remove the attempt's containers and its image, where there are any.

        Raises:
            SandboxError: one stays, such as an image of which somebody has made a container.
            HostError: the engine does not answer.
        """
        (attempt / _FROZEN).unlink(missing_ok=True)
        mine = ("--filter", f"label={ATTEMPT_KEY}={attempt_key(attempt)}")
        for kind in ("build", "stage"):  # what somebody starts from an image has its labels, too
            of_kind = ("--filter", f"label={LABEL}.kind={kind}")
            for container in self.engine.listed("ps", "--all", *mine, *of_kind):
                self.engine.remove(container)
        name = f"{ENVIRONMENTS}:{attempt_key(attempt)}"
        try:
            self.engine.call("rmi", name)  # not by force, which removes containers of it, too
        except AbsentError:
            pass
        except InUseError as error:
            raise SandboxError(
                f"the environment {name} stays, since a container is made of it: {error.args[0]}",
                advice=f"remove the container ({self.name} ps --all), then {self.name} rmi {name}",
            ) from error
        Journal("", "", "", 0.0, path=attempt / _JOURNAL).remove()

    def _begin(
        self,
        attempt: Path,
        source: Path,
        key: str,
        gpus: Sequence[str],
        program: Program | None,
    ) -> Journal:
        """Start the container, and copy the source into it."""
        engine, base = self.engine, self.base_image()
        image = image_with(engine, base, program) if program else base
        host = host_environment()
        container = engine.ask(
            *("run", "--detach", "--interactive", "--pull", "never"),
            *("--stop-timeout", "0"),  # its first process heeds no other signal than KILL
            *self._build_network(host),
            *engine.run_flags,
            *self._options.limits(engine),
            *labels("build", attempt),
            *_told(base, gpus),
            *devices(engine, gpus),
            *package_mounts(host),
            *("--workdir", "/", "--entrypoint", "", image.id),
            *("/bin/sh", "-c", INIT),
        ).splitlines()[-1]
        path = attempt / _JOURNAL
        journal = Journal(container, self._key(key), image.id, now(), path=path)
        try:
            copy_tree(engine, container, source, _LAYOUT.repo, _BUILD_FOLDERS)
            journal.save()
        except BaseException:
            engine.remove(container)
            raise
        return journal

    def _build_network(self, host: HostEnvironment) -> list[str]:
        if self.reach.policy != "full":
            return ["--network", "none"]
        return self._network(host_network=needs_host_network(host))

    def _network(self, *, host_network: bool) -> list[str]:
        """Flags of a container that has a network."""
        if self._options.network:
            return ["--network", self._options.network]
        return ["--network", "host"] if host_network else []

    def _key(self, key: str) -> str:
        """A digest of what a build is for, its container's options and network among it."""
        return _digest_of(f"{key} {self._options} {self.reach!r}")

    def _resumable(self, attempt: Path, key: str) -> Journal | None:
        """The journal of a build of that key whose container is as it was left."""
        journal = Journal.load(attempt / _JOURNAL)
        if journal is None or journal.key != self._key(key):
            return None
        state = self.engine.state(journal.container)
        if state.paused:
            self.engine.call("unpause", journal.container)
        elif not state.running and (state.status == "gone" or not journal.stopped):
            return None
        return journal

    @functools.cache  # noqa: B019 - as long as the sandbox, which is one a process
    def _variables_of(self, image: str) -> dict[str, str]:
        try:
            return image_variables(known_image(self.engine, image).variables)
        except AbsentError as error:
            raise image_gone(self.engine, image) from error

    def _frozen(self, attempt: Path) -> Environment:
        path = attempt / _FROZEN
        if not path.exists():
            raise SandboxError(
                f"{attempt}: there is no environment here: none was frozen, or it was removed",
                advice="remove the attempt's folder, then reb run builds it anew; one that was "
                "exported is verified by reb env import and reb verify --image",
            )
        return Environment.load(path)


def _digest_of(words: str) -> str:
    return hashlib.sha256(words.encode()).hexdigest()


def _told(base: Image, gpus: Sequence[str]) -> Iterator[str]:
    """Labels of a build's container, which its image keeps wherever it is moved to."""
    shown = [gpu_words(gpu) for gpu in inventory({}).gpus if gpu.uuid in gpus]
    facts = {
        BASE_NAME: base.name,
        BASE_ID: base.id,
        BASE_DIGEST: base.digest or "",
        SHOWN_GPUS: json.dumps(shown),
    }
    for name, value in facts.items():
        yield from ("--label", f"{name}={value}")
