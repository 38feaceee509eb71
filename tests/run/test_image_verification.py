"""An environment that was moved is judged as where it was built, without a network."""

import json
import subprocess

import pytest

from .conftest import record_of

pytestmark = [pytest.mark.container, pytest.mark.slow]


@pytest.fixture
def built(reb, suite, debian_image, podman, tmp_path):
    """A run in containers; its environment is gone in the end."""
    run = tmp_path / "a run"
    line = ["run", suite, "--agent", "gold", "--only", "adder", "--out", run]
    option = f"image={debian_image.id}"
    done = reb(*line, "--sandbox", "podman", "--sandbox-option", option)
    assert done.returncode == 0, done.stderr
    yield run
    mine = f"label=org.researchenvbench.attempt={run / 'attempts' / 'adder--1'}"
    for identifier in podman.listed("image", "ls", "--filter", mine):
        subprocess.run(podman.argv("rmi", "--force", identifier), capture_output=True, check=False)


@pytest.mark.timeout(900)
def test_verification_is_repeated_from_a_moved_environment(
    built, reb, suite, debian_image, tmp_path
):
    record = record_of(built)
    attempt, file = built / "attempts" / "adder--1", tmp_path / "adder.tar"
    exported = reb("env", "export", attempt, file, "--format", "tar")
    assert exported.returncode == 0, exported.stderr
    assert "reb env import" in exported.stdout
    pruned = json.loads(reb("env", "prune", "--run", built, "--json").stdout)
    assert [(item["done"], "(adder--1)" in item["name"]) for item in pruned] == [("removed", True)]
    assert "not here" in reb("env", "list", built).stdout
    (row,) = json.loads(reb("env", "list", built, "--json").stdout)
    assert row["absent"]
    assert (
        "is not in the storage of podman that"
        in reb("env", "export", attempt, tmp_path / "x").stderr
    )
    line = ("run", suite, "--agent", "gold", "--only", "adder", "--out", built)
    line += ("--sandbox", "podman", "--sandbox-option", f"image={debian_image.id}")
    assert " done\n" in reb(*line, "--dry-run").stdout
    again = reb(*line, "--reverify")
    assert again.returncode == 0, again.stderr
    assert "the environment was removed: adder--1." in again.stderr
    assert record_of(built) == record
    gone = reb("verify", attempt)
    assert gone.returncode == 2
    assert "no environment" in gone.stderr

    imported = reb("env", "import", file, "--sandbox", "podman")
    assert imported.returncode == 0, imported.stderr
    name = imported.stdout.splitlines()[0]
    assert f"reb verify --image {name} --task {suite / 'adder'}" in imported.stdout
    (row,) = json.loads(reb("env", "list", built, "--json").stdout)
    assert not row["absent"]
    listed = json.loads(reb("env", "list", "--json").stdout)
    (row,) = [row for row in listed if row["name"] == name]
    assert row["imported"]
    assert row["attempt"] == str(attempt)

    done = reb(
        "verify", "--image", name, "--task", suite / "adder", "--out", tmp_path / "out", "--json"
    )
    assert done.returncode == 0, done.stderr
    again = json.loads(done.stdout)
    assert again["status"] == record["status"] == "ok"
    assert verdicts(again) == verdicts(record)
    assert "passed" in verdicts(again).values()
    assert again["audit"] == record["audit"]
    assert again["python"] == record["python"]
    assert again["sizes"]["prefix_bytes"] == record["sizes"]["prefix_bytes"]
    assert again["results"]["C1"]["fresh"]["network"] == "none"
    said, was = again["environment"], record["build"]["environment"]
    assert said["image"] == was["image"]
    assert said["image_digest"].startswith("sha256:")
    for field in ("base_image", "base_image_id", "base_image_digest"):
        assert said[field] == was[field], field
    assert said["base_image_id"] == debian_image.id

    # A report that claims more than there is, is found out from the image as well.
    report = tmp_path / "report.json"
    report.write_text(json.dumps({**record["build"]["report"], "python_version": "3.1.0"}))
    lie = reb(
        *("verify", "--image", name, "--task", suite / "adder", "--json"),
        *("--report", report, "--level", "C5", "--out", tmp_path / "lie"),
    )
    assert lie.returncode == 1, lie.stderr
    assert json.loads(lie.stdout)["results"]["C5"]["verdict"] == "failed"


def verdicts(record):
    return {level: result["verdict"] for level, result in record["results"].items()}
