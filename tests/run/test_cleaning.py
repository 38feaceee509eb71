"""What crashes have left is removed, and nothing that may live."""

import os
import signal
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import get_args

import pytest
from filelock import FileLock

from researchenvbench.attempt import Environment
from researchenvbench.owner import Purpose, this_owner
from researchenvbench.run.cleaning import clean, clean_container, clean_folders, clean_image
from researchenvbench.run.environments import Found, prune
from researchenvbench.sandbox.containers.given import labels
from researchenvbench.sandbox.containers.in_use import using_image
from researchenvbench.sandbox.containers.inventory import (
    ENVIRONMENTS,
    OWNER,
    containers,
    environment_image,
)
from researchenvbench.sandbox.containers.sandbox import attempt_key
from researchenvbench.sandbox.engines.engine import Engine

container = pytest.mark.container


@pytest.fixture
def dead_owner():
    """The word for a process that has ended."""
    said = subprocess.run(
        [
            sys.executable,
            "-c",
            "from researchenvbench.owner import this_owner\nprint(this_owner())",
        ],
        capture_output=True,
        text=True,
        check=True,
    )
    return said.stdout.strip()


@pytest.fixture
def attempt(tmp_path):
    folder = tmp_path / "a run" / "attempts" / "adder--1"
    folder.mkdir(parents=True)
    return folder


@pytest.fixture
def start(podman, debian_image, attempt):
    """Start a container as the harness labels it; all are removed in the end."""
    started = []

    def start(kind, *more):
        identifier = podman.ask(
            *("run", "--detach", "--network", "none", *podman.run_flags),
            *labels(kind, attempt),
            *more,
            *(debian_image.id, "sleep", "300"),
        ).splitlines()[-1]
        started.append(identifier)
        return next(found for found in containers(podman) if found.id == identifier)

    yield start
    for identifier in started:
        subprocess.run(
            podman.argv("rm", "--force", "--time", "0", identifier),
            capture_output=True,
            check=False,
        )


@pytest.fixture
def image(podman, debian_image, attempt):
    """An environment of the attempt, with nothing in it."""
    names = []

    def image(where=attempt):
        name = f"{ENVIRONMENTS}:{attempt_key(where)}"
        made = podman.ask(
            *("create", *labels("build", where), *podman.run_flags, debian_image.id, "true")
        )
        identifier = made.splitlines()[-1]
        flags = ("--format", "docker", "--change", "LABEL org.researchenvbench.kind=environment")
        podman.call("commit", *flags, identifier, name)
        podman.call("rm", identifier)
        names.append(name)
        found = environment_image(podman, name)
        Environment(sandbox="podman", digest=found.id, files=None, size_bytes=1, digest_s=0.0).save(
            where / "frozen.json"
        )
        return found

    yield image
    for name in names:
        subprocess.run(podman.argv("rmi", "--force", name), capture_output=True, check=False)


def is_there(podman, identifier, kind="container"):
    done = subprocess.run(podman.argv(kind, "exists", identifier), check=False)
    return done.returncode == 0


# --- containers ------------------------------------------------------------------------


@container
def test_a_container_whose_process_lives_stays(podman, start):
    found = start("stage")
    assert found.owner == this_owner()
    assert clean_container(podman, found, dry_run=False).done == "kept"
    assert is_there(podman, found.id)


@container
@pytest.mark.parametrize("kind", ["build", "stage", "probe"])
def test_a_container_whose_process_has_ended_is_removed(podman, start, dead_owner, kind):
    found = start(kind, "--label", f"{OWNER}={dead_owner}")
    tried = clean_container(podman, found, dry_run=True)
    assert tried.done == "removed"
    assert is_there(podman, found.id)  # nothing was done
    assert ("gone on with" in tried.why) is (kind == "build")
    assert clean_container(podman, found, dry_run=False) == tried
    assert not is_there(podman, found.id)


@container
def test_a_build_that_another_process_goes_on_with_stays(podman, start, dead_owner, attempt):
    found = start("build", "--label", f"{OWNER}={dead_owner}")
    with FileLock(attempt.parent / f".{attempt.name}.lock"):
        item = clean_container(podman, found, dry_run=False)
    assert item.done == "kept"
    assert "working on" in item.why
    assert is_there(podman, found.id)


@container
def test_what_another_host_may_have_started_stays(podman, start):
    owner = ".".join(["0123456789ab", *this_owner().split(".")[1:]])
    found = start("stage", "--label", f"{OWNER}={owner}")
    item = clean_container(podman, found, dry_run=False)
    assert (item.done, "cannot be seen" in item.why) == ("kept", True)
    assert is_there(podman, found.id)


@container
def test_what_ended_before_this_host_was_restarted_is_removed(podman, start):
    owner = ".".join(["0123456789ab", *this_owner().split(".")[1:]])
    found = start("stage", "--label", f"{OWNER}={owner}")
    podman.call("stop", "--time", "0", found.id)
    (found,) = [entry for entry in containers(podman) if entry.id == found.id]
    assert clean_container(podman, found, dry_run=False).done == "removed"


@container
def test_a_container_that_somebody_started_from_an_environment_is_none_of_ours(podman, image):
    made = podman.ask("create", *podman.run_flags, image().id, "true").splitlines()[-1]
    try:
        assert made not in [found.id for found in containers(podman)]
    finally:
        podman.call("rm", made)


# --- environments ----------------------------------------------------------------------


@container
def test_the_environment_of_an_attempt_stays_while_its_folder_does(podman, image, attempt):
    found = image()
    assert found.attempt == attempt
    assert clean_image(podman, found, dry_run=False).done == "kept"
    assert [item.done for item in prune([Found(podman, found)])] == ["kept"]
    (attempt / "frozen.json").unlink()
    attempt.rmdir()
    item = clean_image(podman, found, dry_run=True)
    assert (item.done, "gone" in item.why) == ("removed", True)
    assert is_there(podman, found.id, "image")
    assert [item.done for item in prune([Found(podman, found)])] == ["removed"]
    assert not is_there(podman, found.id, "image")


@container
def test_the_image_of_an_interrupted_freeze_is_removed(podman, image, attempt):
    found = image()
    (attempt / "frozen.json").unlink()
    with FileLock(attempt.parent / f".{attempt.name}.lock"):
        assert clean_image(podman, found, dry_run=False).done == "kept"
    assert clean_image(podman, found, dry_run=False).done == "removed"


@container
def test_an_environment_that_is_being_verified_stays(podman, image, attempt):
    found = image()
    with using_image(found.id), using_image(found.id):
        (item,) = prune([Found(podman, found)], older_than_days=0)
    assert (item.done, item.why) == ("kept", "it is being verified")
    (item,) = prune([Found(podman, found)], older_than_days=0)
    assert item.done == "removed"
    assert not (attempt / "frozen.json").exists()  # it names nothing that is not there


@container
def test_an_environment_that_a_container_is_made_of_stays(podman, image):
    found = image()
    made = podman.ask("create", *podman.run_flags, found.id, "true").splitlines()[-1]
    try:
        (item,) = prune([Found(podman, found)], older_than_days=0)
        assert (item.done, "in use" in item.why) == ("kept", True)
    finally:
        podman.call("rm", made)
    assert is_there(podman, found.id, "image")


@container
def test_an_environment_that_somebody_has_named_stays(podman, image, attempt):
    found = image()
    name = f"localhost/test-{attempt_key(attempt)}:1"
    podman.call("tag", found.id, name)
    try:
        found = environment_image(podman, found.id)
        (attempt / "frozen.json").unlink()
        (item,) = prune([Found(podman, found)], older_than_days=0)
        assert (item.done, name in item.why) == ("kept", True)
        assert clean_image(podman, found, dry_run=False).done == "kept"
    finally:
        podman.call("untag", found.id, name)


@container
def test_an_age_and_a_run_choose_together(podman, image, attempt, tmp_path):
    found = [Found(podman, image())]
    run, other = attempt.parents[1], tmp_path / "other"
    (attempt / "job.json").write_text("{}")
    other.mkdir()
    assert prune(found, run=other, dry_run=True) == []  # what is of other runs is not its matter
    assert prune(found, run=run, older_than_days=1, dry_run=True)[0].done == "kept"
    assert prune(found, run=run, older_than_days=0, dry_run=True)[0].done == "removed"
    assert prune(found, run=run, dry_run=True)[0].done == "removed"


@container
def test_one_is_called_by_its_id_and_its_attempt(podman, image, start):
    found = image()
    (item,) = prune([Found(podman, found)], older_than_days=0, dry_run=True)
    assert item.name == f"{found.id.removeprefix('sha256:')[:12]} (adder--1)"
    held = start("stage")
    assert clean_container(podman, held, dry_run=True).name == f"{held.id[:12]} (adder--1)"


def test_an_engine_that_does_not_answer_keeps_nothing_else_from_being_cleaned(
    tmp_path, monkeypatch
):
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    monkeypatch.setenv("REB_CACHE", str(tmp_path / "cache"))
    program = tmp_path / "docker"
    program.write_text("#!/bin/sh\necho Cannot connect to the Docker daemon >&2; exit 1\n")
    program.chmod(0o755)
    (item,) = clean([Engine("docker", str(program), "1")])
    assert (item.what, item.done) == ("docker", "kept")
    assert "daemon is not running" in item.why


# --- folders ---------------------------------------------------------------------------


def folder_in(below, name, *files):
    (below / name).mkdir(parents=True)
    for file in files:
        (below / name / file).write_text("x")
    return below / name


@pytest.mark.parametrize("purpose", get_args(Purpose))
def test_folders_of_processes_that_have_ended_are_removed(tmp_path, dead_owner, purpose):
    left = folder_in(tmp_path, f"reb-{purpose}-{dead_owner}-a1b2c3d4", "cid", "errors", "more")
    (left / "closed").mkdir(mode=0)
    lives = folder_in(tmp_path, f"reb-{purpose}-{this_owner()}-a1b2c3d4", "variables")
    somebody_s = folder_in(tmp_path, f"reb-thesis-{dead_owner}-a1b2c3d4", "thesis.tex")
    unknown = folder_in(tmp_path, f"reb-{purpose}-a1b2c3d4", "variables")
    link = tmp_path / f"reb-{purpose}-{dead_owner}-linked00"
    link.symlink_to(folder_in(tmp_path, "elsewhere", "cid"))
    assert [item.name for item in clean_folders(tmp_path, dry_run=True)] == [str(left)]
    assert left.is_dir()
    list(clean_folders(tmp_path, dry_run=False))
    assert not left.exists()
    for kept in (lives, somebody_s, unknown, link, tmp_path / "elsewhere" / "cid"):
        assert kept.exists()


def test_all_that_a_killed_process_leaves_is_found(tmp_path, monkeypatch):
    """Whatever makes a temporary folder of ours, `clean` finds it, without an engine too."""
    temporary, cache = tmp_path / "tmp", tmp_path / "cache"
    temporary.mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(temporary))
    monkeypatch.setenv("REB_CACHE", str(cache))
    code = (
        "import os, signal\nfrom contextlib import ExitStack\nfrom pathlib import Path\n"
        "from researchenvbench.owner import own_folder\n"
        "from researchenvbench.places import default_cache\n"
        "from researchenvbench.sandbox.engines.bundle import bundles_of\n"
        "from researchenvbench.sandbox.images.scratch import scratch_folder\n"
        "from researchenvbench.sandbox.local.in_place import user_box\n"
        "bundles = bundles_of(default_cache())\nbundles.mkdir(parents=True)\n"
        "with ExitStack() as stack:\n"
        "    stack.enter_context(scratch_folder())\n"
        "    stack.enter_context(user_box(Path.cwd(), Path.cwd() / 'env'))\n"
        "    stack.enter_context(own_folder('bundle', bundles))\n"
        "    os.kill(os.getpid(), signal.SIGKILL)\n"
    )
    env = {**os.environ, "TMPDIR": str(temporary), "REB_CACHE": str(cache)}
    done = subprocess.run([sys.executable, "-c", code], cwd=tmp_path, env=env, check=False)
    assert done.returncode == -signal.SIGKILL
    left = {*temporary.iterdir(), *(cache / "tools").iterdir()}
    assert {item.what for item in clean([], dry_run=True)} == {
        f"temporary folder ({purpose})" for purpose in ("build", "bundle", "image")
    }
    assert {Path(item.name) for item in clean([], dry_run=True)} == left
    assert {item.done for item in clean([])} == {"removed"}
    assert not [folder for folder in left if folder.exists()]
    assert clean([]) == []


@pytest.mark.skipif(os.geteuid() != 0, reason="only root mounts")
def test_what_a_killed_build_of_an_image_left_mounted_is_not_emptied(tmp_path, dead_owner):
    outside = folder_in(tmp_path, "outside", "precious")
    left = folder_in(tmp_path / "below", f"reb-image-{dead_owner}-a1b2c3d4", "log")
    (left / "proc").mkdir()
    done = subprocess.run(["mount", "--bind", outside, left / "proc"], check=False)
    if done.returncode != 0:
        pytest.skip("nothing can be mounted here")
    (item,) = clean_folders(tmp_path / "below", dry_run=False)
    assert (item.done, left.exists()) == ("removed", False)
    assert (outside / "precious").read_text() == "x"


# --- a real crash ----------------------------------------------------------------------


@container
@pytest.mark.slow
def test_a_killed_run_leaves_what_clean_finds(podman, debian_image, reb, suite, tmp_path):
    task = suite / "adder" / "task.toml"
    task.write_text(
        task.read_text().replace(
            'steps = [["{python}", "{repo}/install.py"]]', 'steps = [["sleep", "250"]]'
        )
    )
    run = tmp_path / "run"
    line = ["run", suite, "--agent", "gold", "--only", "adder", "--out", run]
    option = f"image={debian_image.id}"
    process = reb.start(*line, "--sandbox", "podman", "--sandbox-option", option)
    try:
        found = None
        while found is None and process.poll() is None:
            found = next((c for c in containers(podman) if _of(c.attempt, run)), None)
        assert found is not None, process.communicate()
        assert clean_container(podman, found, dry_run=False).done == "kept"
        process.send_signal(signal.SIGKILL)
    finally:
        process.kill()
        process.communicate()
    # The kernel ends the job with it; its lock goes with it.
    deadline = os.times().elapsed + 30
    while clean_container(podman, found, dry_run=True).done != "removed":
        assert os.times().elapsed < deadline
    assert clean_container(podman, found, dry_run=False).done == "removed"
    assert not is_there(podman, found.id)


def _of(attempt: Path | None, run: Path) -> bool:
    return attempt is not None and attempt.is_relative_to(run.resolve())
