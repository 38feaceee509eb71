"""Which sandbox `--sandbox auto` takes, and what `reb image` and `reb env` take."""

import json

import pytest

from researchenvbench.errors import HostError, SandboxError
from researchenvbench.network_use import Reach
from researchenvbench.sandbox import choose_sandbox, make_sandbox
from researchenvbench.sandbox.engines.engine import Engine
from researchenvbench.sandbox.engines.finding import _key, require_engine, usable_engines
from researchenvbench.sandbox.engines.known import known_image

IMAGE = {"Id": "1" * 64, "RepoTags": ["b:1"], "Created": "2026-01-01T00:00:00Z", "Size": 1}


@pytest.fixture
def engine_that(tmp_path, monkeypatch):
    """Installs an engine that answers as a script says; there is no other."""
    programs = tmp_path / "bin"
    programs.mkdir()
    monkeypatch.setenv("PATH", str(programs))
    monkeypatch.setenv("REB_CACHE", str(tmp_path / "cache"))

    def install(name, script, *, known=False):
        program = programs / name
        program.write_text(f"#!/bin/sh\n{script}\n")
        program.chmod(0o755)
        if known:  # as one that has started a container before
            facts = {"name": name, "program": str(program), "version": "1"}
            file = tmp_path / "cache" / "engines" / f"{name}.json"
            file.parent.mkdir(parents=True, exist_ok=True)
            key = _key(Engine(name, str(program), ""))
            file.write_text(json.dumps({"key": key, **facts}))

    return install


def has_an_image():
    return f"case $2 in ls) echo 111;; inspect) echo '{json.dumps([IMAGE])}';; esac"


def test_without_engines_it_is_local_and_says_why(engine_that):
    assert choose_sandbox() == ("local", "podman is not installed; docker is not installed")
    assert usable_engines() == []
    with pytest.raises(HostError, match="neither podman nor docker is installed"):
        require_engine(None)


def test_one_that_has_a_base_image_is_taken(engine_that):
    engine_that("docker", has_an_image(), known=True)
    assert choose_sandbox() == ("docker", "")
    assert require_engine(None).name == "docker"
    engine_that("podman", has_an_image(), known=True)
    assert choose_sandbox() == ("podman", "")
    assert [engine.name for engine in usable_engines()] == ["podman", "docker"]
    assert require_engine("docker").name == "docker"


def test_one_without_a_base_image_is_not_taken_and_that_is_said(engine_that):
    engine_that("podman", "exit 0", known=True)
    name, why = choose_sandbox()
    assert (name, "podman has no base image yet" in why) == ("local", True)


def test_one_that_fails_is_named_with_its_words(engine_that):
    engine_that("docker", "echo 'Cannot connect to the Docker daemon at unix:///x' >&2; exit 1")
    name, why = choose_sandbox()
    assert (name, "docker's daemon is not running" in why) == ("local", True)
    with pytest.raises(HostError, match="daemon is not running") as caught:
        require_engine(None)
    assert "dockerd" in caught.value.advice


@pytest.mark.parametrize("name", ["--help", "-a", "", " "])
def test_an_option_is_no_name_of_an_image(engine_that, name):
    engine_that("podman", "echo Usage:", known=True)
    with pytest.raises(SandboxError, match="cannot be called"):
        known_image(require_engine("podman"), name)


@pytest.mark.parametrize("said", ["Usage: \\033[2J of it", "[]", "[1]", "{}", '[{"Id": 1}]', ""])
def test_an_answer_that_is_none_is_said_in_one_line(engine_that, said):
    engine_that("podman", f"printf '{said}\\nmore\\n'", known=True)
    with pytest.raises(SandboxError, match="does not answer as it should") as caught:
        known_image(require_engine("podman"), "x")
    assert "more" not in str(caught.value.args[0])
    assert "\x1b" not in str(caught.value)


def test_what_an_engine_says_is_shown_without_control_characters_and_short(engine_that):
    engine_that(
        "podman", "printf '\\033[2J%05000d no space left on device\\n' 1 >&2; exit 1", known=True
    )
    with pytest.raises(HostError, match="disk is full") as caught:  # its end decides
        require_engine("podman").call("x")
    assert "\x1b" not in str(caught.value)
    assert len(str(caught.value)) < 600


@pytest.mark.parametrize("policy", ["none", "registries"])
class TestReach:
    def test_the_local_sandbox_keeps_nothing_from_the_network(self, policy):
        with pytest.raises(SandboxError, match=f"--network {policy} cannot be had") as caught:
            make_sandbox("local", {}, Reach(policy=policy))
        assert "--sandbox podman" in caught.value.advice

    def test_two_networks_at_once_are_refused(self, policy):
        with pytest.raises(SandboxError, match=f"network=mine .* --network {policy}"):
            make_sandbox("podman", {"network": "mine"}, Reach(policy=policy))
        sandbox = make_sandbox("podman", {"memory": "1g"}, Reach(policy=policy))
        assert sandbox.reach.policy == policy


def test_registries_need_networks_that_can_be_entered():
    sandbox = make_sandbox("docker", {}, Reach(policy="registries"))
    sandbox.engine = Engine("docker", "/bin/docker", "25", why_outside="it is root's")
    with pytest.raises(HostError, match=r"--network registries cannot be had here.*it is root's"):
        sandbox.check()
