"""Boxes to test with: every way in which this host can keep stages apart."""

import os

import pytest

from researchenvbench.sandbox import Command
from researchenvbench.sandbox.local.namespace import namespace_support
from researchenvbench.sandbox.local.sandbox import LocalSandbox

#: A folder name with all that mount options, shells and encodings trip over.
AWKWARD = "a,b:c d\\e'ü"


@pytest.fixture(scope="session")
def needs_overlay():
    """Skip where this host does not let this user lay a layer over a folder."""
    kind, _, why = namespace_support()
    if kind != "overlay":
        pytest.skip(f"no overlay here: {why}")


@pytest.fixture(params=["overlay", "in-place"])
def fresh(request):
    if request.param == "overlay":
        request.getfixturevalue("needs_overlay")
    return request.param


@pytest.fixture
def sandbox(fresh):
    return LocalSandbox(fresh)


@pytest.fixture
def source(tmp_path):
    folder = tmp_path / "source"
    (folder / "package").mkdir(parents=True)
    (folder / "package" / "__init__.py").write_text("value = 1\n")
    (folder / "run.sh").write_text("#!/bin/sh\necho ran\n")
    (folder / "run.sh").chmod(0o755)
    (folder / "link").symlink_to("package")
    (folder / "away").symlink_to("/etc/passwd")
    os.mkfifo(folder / "fifo")
    return folder


@pytest.fixture
def attempt(tmp_path):
    folder = tmp_path / AWKWARD
    folder.mkdir()
    return folder


@pytest.fixture
def frozen(sandbox, attempt, source):
    """An attempt whose build has left an environment of two files."""
    with sandbox.build_box(attempt, source) as box:
        box.layout.env.mkdir()
        (box.layout.env / "installed.py").write_text("frozen\n")
        (box.layout.env / "data").write_bytes(b"x" * 5000)
    sandbox.freeze(attempt)
    return attempt


@pytest.fixture
def shell(tmp_path):
    """Run a shell line in a box; returns how it ended and what it printed."""

    def shell(box, line, *, cwd=None, time_limit_s=30):
        log = tmp_path / "shell.log"
        env = {"PATH": os.environ["PATH"], "HOME": str(box.layout.home)}
        command = Command(["sh", "-c", line], cwd or box.layout.work, env, time_limit_s)
        finished = box.run(command, log)
        return finished, log.read_text(errors="replace")

    return shell
