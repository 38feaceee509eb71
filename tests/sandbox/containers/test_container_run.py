"""Whole runs in containers: `kill -9` of everything, then the same command, the same table."""

import json
import os
import shutil
import subprocess
import sys
import time
from pathlib import Path

import pytest
from container_boxes import images_of, kill_all, ours

pytestmark = [pytest.mark.container, pytest.mark.slow]

SMALL = Path(__file__).parents[2] / "suites" / "small"
#: A step that says in the container how often it was run, and takes its time.
SLOW = (
    'steps = [["sh", "-c", "echo ran >> {repo}/../steps; echo building; sleep SECONDS"], '
    '["{python}", "{repo}/install.py"], ["sh", "-c", "echo times $(wc -l < {repo}/../steps)"]]'
)


@pytest.fixture
def suite(tmp_path):
    """The task `adder`, with a build that takes some seconds."""
    folder = tmp_path / "suite"
    shutil.copytree(SMALL / "adder", folder / "adder")
    task = folder / "adder" / "task.toml"
    text = task.read_text().replace('steps = [["{python}", "{repo}/install.py"]]', SLOW)
    task.write_text(text.replace("SECONDS", "6"))
    return folder


@pytest.fixture
def start(suite, tmp_path, debian_image):
    """Starts `reb run` of the suite into a folder."""

    def start(run):
        return subprocess.Popen(
            [
                *(sys.executable, "-m", "researchenvbench", "run", suite, "--agent", "gold"),
                *("--sandbox", "podman", "--sandbox-option", f"image={debian_image.id}"),
                *("--out", run),
            ],
            env={**os.environ, "NO_COLOR": "1", "COLUMNS": "200"},
            cwd=tmp_path,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )

    return start


def finish(process):
    said, _ = process.communicate(timeout=400)
    assert process.returncode == 0, said
    return said


def builds(run):
    """Wait until the slow step of the build runs."""
    log = run / "attempts" / "adder--1" / "logs" / "build.log"
    until = time.monotonic() + 120
    while not (log.exists() and "building" in log.read_text().splitlines()):
        assert time.monotonic() < until
        time.sleep(0.1)


def record_of(run):
    return json.loads((run / "attempts" / "adder--1" / "record.json").read_text())


def verdicts(run):
    return {
        level: (result["verdict"], result["owner"])
        for level, result in record_of(run)["results"].items()
    }


@pytest.mark.timeout(900)  # it runs six times
def test_killed_in_the_middle_ends_as_undisturbed(start, tmp_path):
    undisturbed, killed, ended = tmp_path / "undisturbed", tmp_path / "killed", tmp_path / "ended"
    finish(start(undisturbed))
    assert verdicts(undisturbed)["C1"] == ("passed", None)

    first = start(killed)
    builds(killed)
    attempt = killed / "attempts" / "adder--1"
    (container,) = ours(attempt)
    kill_all(first)
    assert ours(attempt) == [container]
    finish(start(killed))
    log = (attempt / "logs" / "build.log").read_text()
    assert log == (undisturbed / "attempts" / "adder--1" / "logs" / "build.log").read_text()
    assert "times 1" in log

    first = start(ended)
    builds(ended)
    (container,) = ours(ended / "attempts" / "adder--1")
    kill_all(first)
    subprocess.run(["podman", "kill", container], check=True, capture_output=True)
    finish(start(ended))
    assert "times 1" in (ended / "attempts" / "adder--1" / "logs" / "build.log").read_text()

    for run in (killed, ended):
        assert verdicts(run) == verdicts(undisturbed)
        assert record_of(run)["status"] == record_of(undisturbed)["status"]
    for run in (undisturbed, killed, ended):
        attempt = run / "attempts" / "adder--1"
        assert not ours(attempt)
        assert len(images_of(attempt)) == 1
        assert not (attempt / "container.json").exists()
        finish(start(run))
        assert not ours(attempt)  # there was nothing more to do
        for image in images_of(attempt):
            subprocess.run(["podman", "rmi", "--force", image], check=True, capture_output=True)


def test_who_kills_all_in_a_stage_has_failed(start, suite, tmp_path):
    train = suite / "adder" / "repository" / "train.py"
    train.write_text("import os, signal\nos.kill(-1, signal.SIGKILL)\n" + train.read_text())
    task = suite / "adder" / "task.toml"
    task.write_text(task.read_text().replace("sleep 6", "sleep 0"))
    finish(start(tmp_path / "run"))
    assert verdicts(tmp_path / "run")["C1"] == ("failed", "agent")
    attempt = tmp_path / "run" / "attempts" / "adder--1"
    assert not ours(attempt)
    for image in images_of(attempt):
        subprocess.run(["podman", "rmi", "--force", image], check=True, capture_output=True)
