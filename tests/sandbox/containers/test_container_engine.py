"""Engines that are not there, may not be used, or have no room: named, with what to do."""

import io
import json
import os
import shutil
import subprocess
import tarfile
import tempfile
from dataclasses import replace
from pathlib import Path

import pytest

from researchenvbench.errors import HostError, SandboxError
from researchenvbench.sandbox.containers.given import attempt_key
from researchenvbench.sandbox.containers.options import Options
from researchenvbench.sandbox.engines.bundle import bundled_tools, new_place
from researchenvbench.sandbox.engines.engine import AbsentError, Engine, InUseError
from researchenvbench.sandbox.engines.finding import _key, find_engine


def test_engine_that_is_not_installed(tmp_path, monkeypatch):
    monkeypatch.setenv("PATH", str(tmp_path))
    for name, package in (("podman", "podman"), ("docker", "docker.io")):
        with pytest.raises(HostError, match=f"{name} is not installed") as raised:
            find_engine(name)
        assert package in raised.value.advice


@pytest.mark.parametrize(
    ("said", "kind", "words"),
    [
        (
            b"permission denied while trying to connect to the Docker daemon socket at unix:///v",
            HostError,
            "may not be used by this user",
        ),
        (
            b"Cannot connect to the Docker daemon at unix:///v. Is the docker daemon running?",
            HostError,
            "daemon is not running",
        ),
        (b"Error: writing blob: write /x: no space left on device", HostError, "disk is full"),
        (b"Error: something else", SandboxError, "something else"),
        (b"Error: inspecting object: no such container x", AbsentError, "no such container"),
        (b"Error: x: image not known", AbsentError, "not known"),
        (b"Error: determining container for y: container not known", AbsentError, "not known"),
        (b'Error: container "x" does not exist', AbsentError, "does not exist"),
        (b"Error response from daemon: No such image: x:latest", AbsentError, "No such image"),
        (b"sh: /x: no such file or directory", SandboxError, "no such file"),
        (b"image used by 1: image is in use by a container", InUseError, "in use"),
        (
            b"conflict: unable to remove it - container 1 is using its referenced image 2",
            InUseError,
            "is using",
        ),
        (b"", SandboxError, "said nothing"),
    ],
)
def test_what_engines_say(said, kind, words):
    trouble = Engine("docker", "/usr/bin/docker", "").trouble("run", said)
    assert type(trouble) is kind
    assert words in str(trouble)
    assert trouble.advice or kind is not HostError


def test_engine_that_cannot_be_run_or_hangs(tmp_path):
    program = tmp_path / "podman"
    program.write_text("#!/bin/sh\nsleep 100\n")
    with pytest.raises(HostError, match="cannot be run"):
        Engine("podman", str(program), "").call("ps")
    program.chmod(0o755)
    with pytest.raises(SandboxError, match="did not end within 1 s"):
        Engine("podman", str(program), "").call("ps", time_limit_s=1)


def test_what_is_known_of_an_engine_is_asked_once(tmp_path, monkeypatch):
    program = tmp_path / "podman"
    program.write_text("#!/bin/sh\nexit 1\n")
    program.chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:/usr/bin:/bin")
    monkeypatch.setenv("REB_CACHE", str(tmp_path / "cache"))
    key = _key(Engine("podman", str(program), ""))
    known = tmp_path / "cache" / "engines" / "podman.json"
    known.parent.mkdir(parents=True)
    facts = {"key": key, "name": "podman", "program": str(program), "version": "9"}
    known.write_text(json.dumps({**facts, "run_flags": ["--x"]}))
    assert find_engine("podman").run_flags == ("--x",)
    program.write_text("#!/bin/sh\nexit 2\n# another version\n")
    with pytest.raises(SandboxError):
        find_engine("podman")


def test_options():
    with pytest.raises(SandboxError, match="no option 'colour'"):
        Options.of({"colour": "red"})
    with pytest.raises(SandboxError, match="memory is a size"):
        Options.of({"memory": "much"})
    with pytest.raises(SandboxError, match="cpus is a number"):
        Options.of({"cpus": "all"})
    assert Options.of({"cpus": 2}).cpus == "2"


def test_attempts_are_known_by_their_place(tmp_path):
    one, other = tmp_path / "a,b", tmp_path / "a,c"
    assert attempt_key(one) != attempt_key(other)
    assert attempt_key(one).isalnum()
    assert attempt_key(tmp_path / "x" / ".." / "a,b") == attempt_key(one)


def test_programs_have_a_place_that_nobody_foresees(tmp_path):
    (tmp_path / "lib").mkdir()
    (tmp_path / "lib" / "ld-linux-x86-64.so.2").touch()
    first, second = new_place(), new_place()
    assert first != second
    assert len(first.parts) == 2  # a folder above could be renamed with all that it holds
    python = bundled_tools(tmp_path, first).python
    assert all(str(first) in part for part in python if part.startswith("/"))


@pytest.mark.container
def test_full_disk_is_the_hosts(podman):
    short = Path(tempfile.mkdtemp(prefix="reb-"))  # podman wants at most 50 characters
    root = short / "storage"
    root.mkdir()
    mounted = subprocess.run(
        ["mount", "-t", "tmpfs", "-o", "size=24m", "none", root], capture_output=True, check=False
    )
    if mounted.returncode != 0:
        pytest.skip("no file system can be mounted here")
    try:
        flags = ("--root", str(root), "--runroot", str(short / "run"))
        engine = replace(podman, global_flags=(*podman.global_flags, *flags))
        content = io.BytesIO()
        with tarfile.open(fileobj=content, mode="w") as archive:
            entry = tarfile.TarInfo("big")
            entry.size = 60_000_000
            archive.addfile(entry, io.BytesIO(os.urandom(1 << 20) * 60))
        with pytest.raises(HostError, match="disk is full") as raised:
            engine.call(
                "import", "-", "localhost/researchenvbench/full:1", stdin=content.getvalue()
            )
        assert "free room" in raised.value.advice
    finally:
        subprocess.run(["umount", "--lazy", root / "overlay"], capture_output=True, check=False)
        subprocess.run(["umount", "--lazy", root], capture_output=True, check=True)
        shutil.rmtree(short, ignore_errors=True)
