"""docker for real: a run, and an environment of podman; skipped where no daemon answers."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from researchenvbench.errors import HostError, SandboxError
from researchenvbench.sandbox.engines.finding import find_engine

SUITE = Path(__file__).parents[2] / "suites/small"
pytestmark = [pytest.mark.container, pytest.mark.slow]


@pytest.fixture(scope="module")
def docker(podman, debian_image, tmp_path_factory):
    """docker, with the base image that podman has made."""
    try:
        engine = find_engine("docker")
        engine.ask("version")  # a daemon that was known may have ended
    except (HostError, SandboxError) as error:
        pytest.skip(f"no docker here: {error}")
    archive = tmp_path_factory.mktemp("base") / "base.tar"
    subprocess.run(podman.argv("save", "--output", str(archive), debian_image.id), check=True)
    subprocess.run(engine.argv("load", "--input", str(archive)), check=True, capture_output=True)
    return engine


@pytest.fixture
def reb(tmp_path):
    def run(*arguments):
        done = subprocess.run(
            [sys.executable, "-m", "researchenvbench", *arguments],
            env={**os.environ, "NO_COLOR": "1", "COLUMNS": "200"},
            cwd=tmp_path,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=400,
            check=False,
        )
        assert done.returncode == 0, done.stdout + done.stderr
        return done.stdout

    return run


def run_by(reb, engine, image, folder):
    options = ["--sandbox-option", f"image={image}", "--agent", "gold", "--out", folder]
    reb("run", SUITE, "--sandbox", engine, *options)
    return json.loads((folder / "attempts/adder--1/record.json").read_text())["results"]


def test_a_run_and_an_environment_that_moves(docker, debian_image, reb, tmp_path):
    by_docker = run_by(reb, "docker", debian_image.id, tmp_path / "docker")
    by_podman = run_by(reb, "podman", debian_image.id, tmp_path / "podman")
    verdicts = {level: result["verdict"] for level, result in by_podman.items()}
    assert verdicts["C1"] == "passed"
    assert {level: result["verdict"] for level, result in by_docker.items()} == verdicts
    file = tmp_path / "adder.tar"
    reb("env", "export", tmp_path / "podman/attempts/adder--1", file, "--format", "tar")
    said = reb("env", "import", file, "--sandbox", "docker")
    name = said.partition("--image ")[2].split()[0]
    try:
        again = reb("verify", "--image", name, "--sandbox", "docker", "--task", SUITE / "adder",
                    "--json")  # fmt: skip
        found = json.loads(again)["results"]
        assert {level: result["verdict"] for level, result in found.items()} == verdicts
    finally:
        for run in ("docker", "podman"):
            reb("env", "prune", "--run", tmp_path / run)
        docker.ask("image", "rm", name)
