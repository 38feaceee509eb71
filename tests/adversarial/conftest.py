"""The base, built once in each kind of sandbox, for all tricks of a session."""

from __future__ import annotations

import os
import shutil
from contextlib import contextmanager
from typing import TYPE_CHECKING

import pytest

from .layers import ContainerLayers, LocalLayers
from .tasks import make_attempt, make_tasks

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from researchenvbench.sandbox.engines.engine import Engine
    from researchenvbench.sandbox.images.base import Image


@contextmanager
def _settings(cache: Path, wheels: Path | None = None) -> Iterator[None]:
    """A cache of our own, and wheels that the host's settings name: so also in containers."""
    with pytest.MonkeyPatch.context() as patch:
        for name in [name for name in os.environ if name.startswith(("GIT_", "VIRTUAL_ENV"))]:
            patch.delenv(name)
        patch.setenv("REB_CACHE", str(cache))
        if wheels is not None:
            patch.setenv("PIP_FIND_LINKS", str(wheels))
        yield


@pytest.fixture(scope="session")
def cache(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """For all tricks, and for no other tests of the session."""
    return tmp_path_factory.mktemp("cache")


@pytest.fixture(scope="session")
def tasks(cache: Path, tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """The variants of the task."""
    if shutil.which("git") is None:
        pytest.skip("git is not installed: apt-get install git")
    with _settings(cache):
        return make_tasks(tmp_path_factory.mktemp("tasks"))


@pytest.fixture(autouse=True)
def settings(request: pytest.FixtureRequest) -> Iterator[None]:
    """The settings, while a trick is played."""
    if "layers" not in request.fixturenames:
        yield
        return
    made = request.getfixturevalue("tasks")
    with _settings(request.getfixturevalue("cache"), made["line"] / "wheels"):
        yield


@pytest.fixture(scope="session")
def local(
    cache: Path, tasks: dict[str, Path], tmp_path_factory: pytest.TempPathFactory
) -> Iterator[LocalLayers]:
    """The base on this host."""
    with _settings(cache, tasks["line"] / "wheels"):
        attempt = make_attempt(tmp_path_factory.mktemp("local"), tasks["line"], "local")
        layers = LocalLayers(attempt, tasks)
    yield layers
    layers.remove()


@pytest.fixture(scope="session")
def container(
    podman: Engine,
    debian_image: Image,
    cache: Path,
    tasks: dict[str, Path],
    tmp_path_factory: pytest.TempPathFactory,
) -> Iterator[ContainerLayers]:
    """The base in a container of podman."""
    folder = tmp_path_factory.mktemp("container")
    with _settings(cache, tasks["line"] / "wheels"):
        attempt = make_attempt(folder, tasks["line"], "podman", image=debian_image.id)
        layers = ContainerLayers(attempt, tasks)
    yield layers
    layers.remove()
