"""What tests of several areas share: little git repositories, podman, a base image."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from pathlib import Path


# Whoever runs the tests in the background ignores Ctrl-C for them, and programs inherit that;
# here they are started as from a terminal.
signal.signal(signal.SIGINT, signal.default_int_handler)


def pytest_make_parametrize_id(val: object, argname: str) -> str | None:
    """Name a test by a short text, never by bytes.

    Bytes that are made while tests are collected may hold the time, as gzip's do. Then two
    workers name one test in two ways, and run none.
    """
    return argname if isinstance(val, bytes) else None


class GitRepository:
    """A repository of git, made with git and with nobody's configuration."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        folder.mkdir(parents=True)
        self("init", "--quiet", "--initial-branch=main")

    def __call__(self, *arguments: str) -> str:
        """What `git ARGUMENTS` prints."""
        identity = {"NAME": "A", "EMAIL": "a@example.org"}
        done = subprocess.run(
            ["git", "-c", "protocol.file.allow=always", *arguments],
            cwd=self.folder,
            env={
                "PATH": os.environ["PATH"],
                "HOME": str(self.folder.parent),
                "GIT_CONFIG_NOSYSTEM": "1",
                "GIT_COMMITTER_DATE": "2025-03-04T05:06:07+02:00",
                **{f"GIT_AUTHOR_{key}": value for key, value in identity.items()},
                **{f"GIT_COMMITTER_{key}": value for key, value in identity.items()},
            },
            check=True,
            capture_output=True,
            text=True,
        )
        return done.stdout.strip()

    def write(self, files: dict[str, str]) -> None:
        """Write files, without committing them."""
        for name, text in files.items():
            path = self.folder / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text)

    def commit(self, files: dict[str, str] | None = None) -> str:
        """Commit everything, `files` among it; returns the commit."""
        self.write(files or {})
        self("add", "--all")
        self("commit", "--quiet", "--allow-empty", "--message=x")
        return self("rev-parse", "HEAD")


@pytest.fixture
def repository(tmp_path: Path) -> GitRepository:
    """An empty repository in the folder `repo`."""
    if shutil.which("git") is None:
        pytest.skip("git is not installed: apt-get install git")
    return GitRepository(tmp_path / "repo")


@pytest.fixture
def another_repository(tmp_path: Path, repository: GitRepository) -> GitRepository:
    """A second one, in the folder `other`."""
    return GitRepository(tmp_path / "other")


@pytest.fixture(scope="session")
def podman():
    """podman, with the flags that this host needs."""
    from researchenvbench.errors import HostError
    from researchenvbench.sandbox.engines.finding import find_engine

    try:
        return find_engine("podman")
    except HostError as error:
        pytest.skip(f"no containers here: {error}")


@pytest.fixture(scope="session")
def debian_image(podman):
    """The base image that tests in containers start from; made once, and kept for later runs."""
    from researchenvbench.errors import HostError
    from researchenvbench.sandbox.images.debian import build_debian_image

    try:
        return build_debian_image(podman, "bookworm")
    except HostError as error:
        pytest.skip(f"no base image can be made here: {error}")
