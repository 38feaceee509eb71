"""What a build left running ends at the freeze, wherever it went."""

import os
import shutil
import subprocess
import time

import pytest

from researchenvbench.sandbox.local.ending import MARKER, end_processes_of

QUICK = (("SIGINT", 0.2), ("SIGTERM", 0.2), ("SIGKILL", 5.0))


@pytest.fixture
def root(tmp_path):
    folder = tmp_path / "box"
    folder.mkdir()
    return folder


@pytest.fixture
def start():
    started = []

    def start(*argv, **options):
        process = subprocess.Popen(argv, **options)
        started.append(process)
        time.sleep(0.1)  # until it has become the program
        return process

    yield start
    for process in started:
        process.kill()
        process.wait()


def test_by_the_variable(root, start):
    process = start("sleep", "100", env={**os.environ, MARKER: str(root)}, cwd="/")
    assert end_processes_of(root, QUICK) == (f"{process.pid} sleep",)
    assert process.wait(5) < 0


def test_by_the_program(root, start):
    copy = shutil.copy2(shutil.which("sleep"), root / "own")
    process = start(copy, "100", cwd="/")
    assert end_processes_of(root, QUICK) == (f"{process.pid} own",)


def test_by_the_folder(root, start):
    process = start("sleep", "100", cwd=root, start_new_session=True)
    if b" 0 " not in b" " + open_stat(process.pid).split()[4] + b" ":
        pytest.skip("these tests run in a terminal")
    assert end_processes_of(root, QUICK) == (f"{process.pid} sleep",)


def open_stat(pid):
    with open(f"/proc/{pid}/stat", "rb") as stream:  # noqa: PTH123 - one line
        return stream.read().rpartition(b")")[2]


def test_one_that_ignores_signals(root, start):
    script = "trap '' INT TERM; while :; do sleep 1; done"
    process = start("sh", "-c", script, env={"PATH": os.environ["PATH"], MARKER: str(root)})
    ended = end_processes_of(root, QUICK)
    assert f"{process.pid} sh" in ended
    assert process.wait(5) == -9


def test_others_are_left_alone(root, start):
    near = start("sleep", "100", env={**os.environ, MARKER: f"{root}-2"}, cwd="/")
    assert end_processes_of(root, QUICK) == ()
    assert near.poll() is None


def test_not_the_harness_itself(root, monkeypatch):
    monkeypatch.chdir(root)
    assert end_processes_of(root, QUICK) == ()
