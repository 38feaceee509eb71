"""Which environment is meant, and what is said where there is none."""

import json
import os
import pwd
import shutil
import sys
from dataclasses import replace
from pathlib import Path

import pytest

from researchenvbench.attempt import RECORD_SCHEMA
from researchenvbench.results.wording import size
from researchenvbench.run.environments import other_task, other_task_of_folder, task_of
from researchenvbench.sandbox.containers.inventory import (
    EnvironmentImage,
    environment_image,
    environment_images,
)
from researchenvbench.sandbox.engines.engine import Engine
from researchenvbench.taskfile import load_task

from .conftest import SUITE, record_of


@pytest.fixture
def local_run(reb, suite, tmp_path):
    run = tmp_path / "run"
    done = reb("run", suite, "--agent", "gold", "--only", "adder", "--out", run)
    assert done.returncode == 0, done.stderr
    return run


def test_an_environment_of_this_host_cannot_be_moved(reb, local_run, tmp_path):
    attempt = local_run / "attempts" / "adder--1"
    assert record_of(local_run)["status"] == "ok"
    done = reb("env", "export", attempt, tmp_path / "file")
    assert done.returncode == 2
    assert "a folder of this host" in done.stderr
    assert "--sandbox podman" in done.stderr
    assert not (tmp_path / "file").exists()

    listed = reb("env", "list", local_run)
    heading, line, total = listed.stdout.splitlines()
    assert heading.split() == ["size", "prefix", "attempt", "python", "image"]
    assert line.index(str(attempt)) == heading.index("attempt")
    size = line.split(" MB")[0].strip()
    assert float(size) >= 0
    assert total == f"1 environment, {size} MB"


def test_a_run_lists_the_prefix_as_its_table_does_and_what_is_removed(reb, local_run):
    sizes = record_of(local_run)["sizes"]
    [row] = json.loads(reb("env", "list", local_run, "--json").stdout)
    assert row["prefix_bytes"] == sizes["prefix_bytes"]
    assert row["size_bytes"] == sizes["build_bytes"] > row["prefix_bytes"]
    shown = size(sizes["prefix_bytes"])
    assert f" MB  {shown}  " in reb("env", "list", local_run).stdout
    table = reb("report", local_run).stdout.splitlines()
    assert any(line.rstrip().endswith("prefix") for line in table)
    assert any(line.rstrip().endswith(shown) for line in table)

    shutil.rmtree(local_run / "attempts" / "adder--1" / "box")
    listed = reb("env", "list", local_run).stdout
    assert listed.splitlines()[1].startswith("removed  ")
    assert listed.splitlines()[2] == "1 environment, 0.0 MB"


@pytest.mark.container
def test_an_image_that_this_user_does_not_have_is_not_said_to_be_removed(
    reb, podman, local_run, tmp_path
):
    attempt = local_run / "attempts" / "adder--1"
    text = json.loads((attempt / "build.json").read_text())
    text["environment"] |= {"sandbox": "podman", "image": "0" * 64}
    (attempt / "build.json").write_text(json.dumps(text))
    assert "not here" in reb("env", "list", local_run).stdout
    me = pwd.getpwuid(os.getuid()).pw_name
    said = reb("env", "export", attempt, tmp_path / "file").stderr
    assert f"is not in the storage of podman that {me} uses here: it was removed, or is" in said
    assert "look as the user who built it: podman image ls" in said
    if os.getuid() == 0:
        os.chown(attempt, 65534, -1)
        said = reb("env", "export", attempt, tmp_path / "file").stderr
        name = pwd.getpwuid(65534).pw_name
        assert f"look as the user who built it ({name}, by the folder): podman image ls" in said


def test_a_folder_that_is_no_attempt_is_no_environment(reb, tmp_path):
    done = reb("env", "export", tmp_path, tmp_path / "file")
    assert done.returncode == 2
    assert "no attempt of a run" in done.stderr


@pytest.mark.container
def test_an_image_that_is_not_there_or_no_environment_is_said(reb, podman, tmp_path):
    done = reb("env", "export", "nonesuch:1", tmp_path / "file", "--sandbox", "podman")
    assert done.returncode == 2
    assert "nonesuch:1" in done.stderr
    probe = "localhost/researchenvbench/probe:1"
    done = reb("env", "export", probe, tmp_path / "file", "--sandbox", "podman")
    assert "no environment that `reb` has made" in done.stderr


def test_an_image_is_judged_by_a_task_alone(reb, suite, tmp_path):
    without = reb("verify", "--image", "x")
    assert without.returncode == 2
    assert "--image needs --task" in without.stderr
    both = reb("verify", tmp_path, "--image", "x", "--task", suite / "adder", "--in-place")
    assert both.returncode == 2
    assert str(tmp_path) in both.stderr
    assert "--in-place" in both.stderr
    assert "--image only" in reb("verify", "--sandbox", "podman").stderr


@pytest.fixture
def only_engine(tmp_path):
    """Variables for a command that finds one engine, which answers as a script says."""

    def only_engine(script=None):
        programs = tmp_path / "bin"
        programs.mkdir(exist_ok=True)
        if script is not None:
            (programs / "podman").write_text(f"#!{os.path.realpath('/bin/sh')}\n{script}\n")
            (programs / "podman").chmod(0o755)
        return {"PATH": str(programs), "REB_CACHE": str(tmp_path / "engines")}

    return only_engine


@pytest.mark.parametrize("command", ["list", "prune"])
def test_that_no_engine_could_be_asked_is_said(reb, only_engine, command):
    done = reb("env", command, **only_engine())
    assert done.returncode == 0
    assert "neither podman nor docker is installed" in done.stderr
    done = reb("env", command, "--sandbox", "podman", **only_engine())
    assert done.returncode == 2
    assert "podman is not installed" in done.stderr
    broken = only_engine("printf '\\033[2Jbroken\\nmore\\n' >&2; exit 3")
    done = reb("env", command, **broken)
    assert done.returncode == 2
    assert "broken" in done.stderr
    assert "\x1b" not in done.stderr + done.stdout
    assert done.stdout == ""


@pytest.mark.parametrize("days", ["x", "-1", "nan", "inf"])
def test_an_age_that_is_none_is_said_in_words(reb, days):
    done = reb("env", "prune", "--dry-run", f"--older-than={days}")
    assert done.returncode == 2
    assert f"'{days}' is not a number of days" in done.stderr


@pytest.fixture
def environments(podman, debian_image, tmp_path):
    """Six small environments over one base; gone in the end."""
    made = []
    for number in range(6):
        container = podman.ask(
            *("create", *podman.run_flags, debian_image.id, str(tmp_path / str(number)))
        ).splitlines()[-1]
        labels = ("kind=environment", f"base-id={debian_image.id}")
        changes = [f"--change=LABEL org.researchenvbench.{label}" for label in labels]
        name = f"localhost/researchenvbench/env:test-{container[:12]}"
        podman.call("commit", "--format", "docker", *changes, container, name)
        podman.call("rm", container)
        made.append(environment_image(podman, name))
    yield made
    for image in made:
        podman.call("rmi", "--force", image.id)


IMAGE = EnvironmentImage(
    engine="podman",
    id="sha256:" + "1" * 64,
    digest=None,
    names=(),
    attempt=None,
    base_name=None,
    base_id=None,
    base_digest=None,
    shown_gpus=(),
    created="2026-01-01T00:00:00Z",
    size_bytes=2,
    own_bytes=1,
    content="sha256:2",
)


def test_the_task_of_an_environment_is_said_as_far_as_it_is_known(tmp_path):
    assert task_of(IMAGE) == "SUITE/NAME"
    assert task_of(replace(IMAGE, attempt=Path("/gone/attempts/a-task--12"))) == "SUITE/a-task"
    assert task_of(replace(IMAGE, attempt=Path("/gone/attempts/e3nn--1"))) == "starter/e3nn"
    assert task_of(replace(IMAGE, attempt=Path("/gone/elsewhere"))) == "SUITE/NAME"
    attempt = tmp_path / "attempts" / "x--1"
    attempt.mkdir(parents=True)
    job = {"agent": "gold", "suite": "mine", "task": "x", "task_folder": "/suites/mine/x"}
    (attempt / "job.json").write_text(json.dumps({"schema": RECORD_SCHEMA, **job}))
    assert task_of(replace(IMAGE, attempt=attempt)) == "/suites/mine/x"


def test_what_was_built_for_another_task_is_known(tmp_path):
    adder = load_task(SUITE / "adder")
    assert other_task(IMAGE, adder) == ""
    assert other_task(replace(IMAGE, attempt=Path("/gone/attempts/adder--2")), adder) == ""
    assert other_task(replace(IMAGE, attempt=Path("/gone/attempts/e3nn--1")), adder) == (
        "starter/e3nn"
    )
    assert other_task(replace(IMAGE, attempt=Path("/gone/attempts/x--1")), adder) == "x"
    repo = tmp_path / "attempts" / "x--1" / "box" / "repo"
    repo.mkdir(parents=True)
    assert other_task_of_folder(repo, adder) == ""
    for task, other in (("x", "mine/x"), ("adder", "")):
        job = {"agent": "gold", "suite": "mine", "task": task, "task_folder": "/suites/mine/x"}
        file = tmp_path / "attempts" / "x--1" / "job.json"
        file.write_text(json.dumps({"schema": RECORD_SCHEMA, **job}))
        assert other_task_of_folder(repo, adder) == other


@pytest.mark.container
def test_many_environments_are_listed_by_few_questions(podman, environments, tmp_path):
    asked = tmp_path / "asked"
    program = tmp_path / "podman"
    gone = "f" * 64
    program.write_text(
        f'#!{sys.executable} -IS\nimport os, sys\nwith open("{asked}", "a") as log:\n'
        "    print(sys.argv[1:3], file=log)\n"
        'if sys.argv[1:3] == ["image", "ls"]:\n'
        f'    print("\\n".join({[image.id for image in environments]!r}))\n'
        f'    print("{gone}") if os.path.exists("{tmp_path}/gone") else None\n'
        f'    sys.exit()\nos.execv("{podman.program}", ["podman", *sys.argv[1:]])\n'
    )
    program.chmod(0o755)
    engine = Engine("podman", str(program), "1")
    listed = environment_images(engine)
    assert {image.id for image in listed} == {image.id for image in environments}
    assert asked.read_text().count("inspect") == 2  # the environments, and their bases
    assert "history" not in asked.read_text()
    for image in listed:  # of a base's manifest and configuration some kB are no layer
        assert abs(image.own_bytes - environment_image(podman, image.id).own_bytes) < 20_000
    (tmp_path / "gone").touch()  # one that was removed meanwhile takes no other along
    assert environment_images(engine) == listed
