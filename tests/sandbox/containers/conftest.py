"""Containers to test with: real ones of podman, on the base image that `tests/` makes once."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from container_boxes import ours, run

from researchenvbench.sandbox.containers.sandbox import ContainerSandbox

#: A folder name with all that labels, filters and shells trip over.
AWKWARD = "a,b:c d\\e'ü=1"


@pytest.fixture(scope="session")
def containers(debian_image):
    """Makes sandboxes of containers on the base image of the tests."""

    def make(**options):
        return ContainerSandbox("podman", {"image": debian_image.id, **options})

    return make


@pytest.fixture(scope="session")
def sandbox(containers):
    return containers()


@pytest.fixture(scope="session")
def source(tmp_path_factory):
    """A source tree with whatever a repository may hold."""
    folder = tmp_path_factory.mktemp("source")
    (folder / "package").mkdir()
    (folder / "package" / "__init__.py").write_text("value = 1\n")
    (folder / "run.sh").write_text("#!/bin/sh\necho ran\n")
    (folder / "run.sh").chmod(0o755)
    (folder / "raised").write_text("x")
    (folder / "raised").chmod(0o6755)
    (folder / "link").symlink_to("package")
    (folder / "away").symlink_to("/etc/passwd")
    (folder / "far").symlink_to("../../../../etc/passwd")
    os.link(folder / "run.sh", folder / "again.sh")
    os.mkfifo(folder / "fifo")
    (folder / "empty").mkdir(mode=0o700)
    Path(os.fsdecode(os.fsencode(folder) + b"/caf\xe9 \xff")).write_text("no UTF-8\n")
    os.utime(folder / "package" / "__init__.py", ns=(1, 1_234_567_890_123_456_789))
    return folder


@pytest.fixture
def attempt(tmp_path, sandbox):
    folder = tmp_path / AWKWARD
    folder.mkdir()
    yield folder
    sandbox.discard(folder)
    assert not ours(folder)


@pytest.fixture(scope="module")
def frozen(tmp_path_factory, sandbox, source):
    """An attempt whose build has left an environment of two files."""
    folder = tmp_path_factory.mktemp("attempt") / AWKWARD
    folder.mkdir()
    try:
        with sandbox.build_box(folder, source, key="k") as box:
            line = "mkdir ../env; echo frozen > ../env/installed.py; "
            line += "head -c 5000 /dev/zero > ../env/data"
            assert run(box, line, folder / "log")[0].ok
            box.put(box.layout.report, b'{"notes": "made"}')
        sandbox.freeze(folder)
        yield folder
    finally:
        sandbox.discard(folder)
    assert not ours(folder)
