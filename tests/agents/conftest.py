"""A build's box on this host, and what an agent in it is given."""

import time

import pytest

from researchenvbench.agents import Assignment
from researchenvbench.sandbox.host_environment import host_environment
from researchenvbench.sandbox.local.sandbox import LocalSandbox


@pytest.fixture
def attempt(tmp_path):
    folder = tmp_path / "attempts" / "little--1"
    (folder / "logs").mkdir(parents=True)
    return folder


@pytest.fixture
def source(tmp_path):
    folder = tmp_path / "source"
    folder.mkdir()
    (folder / "train.py").write_text("print('training')\n")
    (folder / "deep").mkdir()
    (folder / "deep" / "down").mkdir()
    return folder


@pytest.fixture
def assign(attempt, source):
    """Makes an assignment; the box is open for as long as the test runs."""
    boxes = []

    def make(seconds=60.0, **more):
        opened = LocalSandbox().build_box(attempt, source)
        box = opened.__enter__()
        boxes.append(opened)
        log = attempt / "logs" / "build.log"

        def say(line):
            with log.open("a") as stream:
                stream.write(f"# {line}\n")

        return Assignment(
            box=box,
            environment=box.variables(host_environment(), installs=True),
            log=log,
            say=say,
            deadline=time.monotonic() + seconds,
            **more,
        )

    yield make
    for opened in boxes:
        opened.__exit__(None, None, None)
