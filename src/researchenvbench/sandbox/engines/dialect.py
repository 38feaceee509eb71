"""What podman and docker differ in, as far as we use them."""

from __future__ import annotations

import json
import os
from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True)
class Dialect:
    """The words of one engine."""

    package: str  #: of Debian, by which it is installed
    storage: str  #: format of `info` for where images and containers are kept
    processes: tuple[str, ...]  #: arguments of `top` for number and command line
    commit: tuple[str, ...]  #: flags of `commit`
    build: tuple[str, ...]  #: flags of `build`
    runtimes: tuple[str, ...]  #: others to try where the engine's own choice fails
    oci_since: int | None  #: the first release that moves OCI archives; None: all do
    leaves_steps: bool  #: an ended `build` leaves the container of its step
    size_history: tuple[str, ...]  #: flags of `history` for sizes in bytes

    @property
    def is_podman(self) -> bool:
        """For what is no matter of a word."""
        return self is PODMAN

    def save(self, form: str) -> list[str]:
        """Flags of `save` for an archive of the form oci or tar."""
        if not self.is_podman:
            return []  # it decides by its own version
        return ["--format", "oci-archive" if form == "oci" else "docker-archive"]

    def scratch(self) -> Path | None:
        """Where archives are put together and taken apart, if that is not the storage."""
        if not self.is_podman:
            return None
        return Path(os.environ.get("TMPDIR") or "/var/tmp")  # noqa: S108 - podman's own choice

    def may_move_scratch(self) -> bool:
        """Whether one command may have another folder for archives than the next.

        A podman of another user than root that has no folder of its session keeps its state
        in the temporary folder, too.
        """
        if os.geteuid() == 0:
            return True
        session = os.environ.get("XDG_RUNTIME_DIR") or f"/run/user/{os.geteuid()}"
        return os.access(session, os.W_OK)

    def newest_layer_bytes(self, history: str) -> int:
        """The size of an image's newest layer, from what `history` says."""
        if self.is_podman:
            layers = json.loads(history)
            return int(layers[0]["size"]) if layers else 0
        said = history.splitlines()
        return int(said[0]) if said and said[0].isdigit() else 0


PODMAN = Dialect(
    package="podman",
    storage="{{.Store.GraphRoot}}",
    processes=("pid", "args"),
    commit=("--format", "docker"),  # which older dockers can load, too
    build=("--layers=false",),
    runtimes=("crun", "runc"),
    oci_since=None,
    leaves_steps=True,
    size_history=("--format", "json"),  # whose other formats cannot give sizes in bytes
)
DOCKER = Dialect(
    package="docker.io",
    storage="{{.DockerRootDir}}",
    processes=("-eo", "pid,args"),
    commit=(),
    build=(),
    runtimes=(),
    oci_since=25,
    leaves_steps=False,
    size_history=("--human=false", "--format", "{{.Size}}"),
)


def dialect_of(engine: str) -> Dialect:
    """The dialect of the engine of that name."""
    return PODMAN if engine == "podman" else DOCKER
