"""The limit on what a build writes holds, also where the engine does not say what that is."""

import time

import pytest

from researchenvbench.errors import HostError, LimitReachedError, SandboxError
from researchenvbench.sandbox.containers import disk
from researchenvbench.sandbox.containers.disk import DiskWatch, written_bytes
from researchenvbench.sandbox.engines.engine import Engine


@pytest.fixture
def engine_that(tmp_path):
    """An engine that answers as a script says, and keeps what it keeps in a folder."""

    def make(script):
        program = tmp_path / "podman"
        program.write_text(
            f"#!/bin/sh\ncase $1 in info) echo {tmp_path}; exit;; "
            f"stop) echo stop >> {tmp_path}/said; esac\n{script}\n"
        )
        program.chmod(0o755)
        return Engine("podman", str(program), "1")

    return make


@pytest.fixture
def hasty(monkeypatch):
    """Look often."""
    for name in ("_CHECK_S", "_MEASURE_EVERY_S", "_AGAIN_S"):
        monkeypatch.setattr(disk, name, 0.01)


def watched(watch, seconds):
    with watch.watching():
        time.sleep(seconds)


def test_a_container_that_is_gone_has_written_nothing(engine_that):
    gone = engine_that("echo 'Error: inspecting object: no such container c' >&2; exit 125")
    assert written_bytes(gone, "c") == 0
    assert written_bytes(engine_that("echo 12345"), "c") == 12345


@pytest.mark.parametrize("script", ["echo 'Error: timed out' >&2; exit 1", "echo '<nil>'"])
def test_an_engine_that_fails_has_not_said_that_nothing_was_written(engine_that, script):
    with pytest.raises(SandboxError, match=r"timed out|does not say"):
        written_bytes(engine_that(script), "c")


@pytest.mark.usefixtures("hasty")
def test_more_than_the_limit_stops_the_container(engine_that, tmp_path):
    with pytest.raises(LimitReachedError, match=r"has written 3\.0 GB"):
        watched(DiskWatch(engine_that("echo 3000000000"), "c", 1 << 30), 1)
    assert (tmp_path / "said").read_text() == "stop\n"


@pytest.mark.usefixtures("hasty")
def test_what_cannot_be_measured_ends_the_build_and_is_said(engine_that, tmp_path):
    watch = DiskWatch(engine_that("echo 'Error: timed out' >&2; exit 1"), "c", 1 << 30)
    with pytest.raises(HostError, match="cannot be measured: podman container: Error: timed out"):
        watched(watch, 1)
    assert (tmp_path / "said").exists()


@pytest.mark.usefixtures("hasty")
def test_an_engine_that_fails_once_is_asked_again(engine_that, tmp_path):
    once = f"[ -e {tmp_path}/asked ] || {{ : > {tmp_path}/asked; exit 1; }}; echo 5"
    watched(DiskWatch(engine_that(once), "c", 1 << 30), 1)
    assert (tmp_path / "asked").exists()
    assert not (tmp_path / "said").exists()


@pytest.mark.usefixtures("hasty")
def test_stopping_is_tried_until_it_is_done(engine_that, tmp_path):
    script = f'[ "$1" != stop ] || [ $(wc -l < {tmp_path}/said) -ge 3 ] || exit 1; echo 3000000000'
    with pytest.raises(LimitReachedError):
        watched(DiskWatch(engine_that(script), "c", 1 << 30), 1)
    assert (tmp_path / "said").read_text() == "stop\n" * 3
