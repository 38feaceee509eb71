"""Agents that end, halt or break what the engine and the harness need do not end the judging."""

import shlex
import subprocess
import time
from dataclasses import replace

import pytest
from container_boxes import images_of, ours, run

from researchenvbench import process
from researchenvbench.building import read_frozen_report
from researchenvbench.errors import EnvironmentUnusableError, LimitReachedError
from researchenvbench.sandbox.containers import keepable, stage
from researchenvbench.sandbox.containers import sandbox as sandbox_module
from researchenvbench.sandbox.containers.journal import Journal
from researchenvbench.sandbox.containers.sandbox import ContainerSandbox

pytestmark = [pytest.mark.container, pytest.mark.slow]

#: Makes the first process end by writing to its memory: all of its code that can be run.
SCRIBBLE = """
import re
for line in open("/proc/1/maps"):
    start, end, rights = re.match(r"(\\w+)-(\\w+) (\\S+)", line).groups()
    if "x" in rights and "[v" not in line:
        with open("/proc/1/mem", "r+b", buffering=0) as memory:
            memory.seek(int(start, 16))
            memory.write(b"\\xcc" * (int(end, 16) - int(start, 16)))
import os
os.system("kill -CHLD 1; sleep 0.2; pkill -KILL -x sleep; sleep 20")
"""


@pytest.fixture
def log(tmp_path):
    return tmp_path / "log"


def unusable(sandbox, attempt, words):
    """See that what the build left is the agent's own fault, and gone from the engine."""
    frozen = sandbox.freeze(attempt)
    assert frozen.unusable is not None
    assert words in frozen.unusable
    assert frozen.image is None
    assert not ours(attempt)
    assert not images_of(attempt)
    assert sandbox.environment(attempt) == frozen
    opened = sandbox.stage_box(attempt, network=False, gpus=())
    with pytest.raises(EnvironmentUnusableError, match=words[:20]), opened:
        pass
    opened = sandbox.stage_box(attempt, network=False, gpus=())
    assert read_frozen_report(lambda: opened) == (None, frozen.unusable)
    subprocess.run(["podman", "ps", "--all"], check=True, capture_output=True, timeout=60)


class TestBuild:
    def test_first_process_heeds_no_signal(self, sandbox, attempt, source, log):
        with sandbox.build_box(attempt, source, key="k") as box:
            line = "for s in TERM INT HUP QUIT USR1 PIPE ABRT SEGV KILL; do kill -$s 1; done"
            assert run(box, f"{line}; sleep 1; echo alive", log)[1] == "alive\n"
            # On a busy host the clock does not tell whether the engine waited for it to heed.
            asked = ["podman", "inspect", "--format", "{{.Config.StopTimeout}}", *ours(attempt)]
            told = subprocess.run(asked, check=True, capture_output=True, text=True, timeout=60)
            assert told.stdout.split() == ["0"], "it would wait for what is not heeded"
        assert sandbox.freeze(attempt).unusable is None

    def test_ended_from_within_is_kept_as_it_is(self, sandbox, attempt, source, log):
        with sandbox.build_box(attempt, source, key="k") as box:
            assert run(box, "echo left > ../left", log)[0].ok
            box.put(box.layout.repo / "scribble.py", SCRIBBLE.encode())
            with pytest.raises(LimitReachedError, match="has ended while the agent worked"):
                run(box, "python3 scribble.py", log)
            with pytest.raises(LimitReachedError, match="has ended while the agent worked"):
                run(box, "true", log)
        assert sandbox.freeze(attempt).unusable is None
        with sandbox.stage_box(attempt, network=False, gpus=()) as stage:
            assert run(stage, "cat /workspace/left", log)[1] == "left\n"


class TestBusyHost:
    """What takes longer for every container is not the doing of whoever was in one."""

    def test_copies_are_slow(self, podman, sandbox, attempt, source, log, monkeypatch, tmp_path):
        monkeypatch.setattr(keepable, "_PATIENCE_S", 0.2)
        monkeypatch.setattr(keepable, "_AGAIN_S", 0.2)
        with sandbox.build_box(attempt, source, key="k") as box:
            assert run(box, "true", log)[0].ok
            journal = Journal.load(attempt / "container.json")
            busy = slowed(podman, "cp", 0.5, tmp_path / "podman")
            assert keepable.names_trouble(busy, journal.container, journal.image) == ""
            run(box, "rm /etc/passwd; mkfifo /etc/passwd", log)
            said = keepable.names_trouble(busy, journal.container, journal.image)
            assert "keeps engines waiting" in said

    def test_starts_are_slow(self, podman, frozen, log, monkeypatch, tmp_path):
        monkeypatch.setattr(stage, "START_S", 1.0)
        busy = slowed(podman, "run", 2, tmp_path / "podman")
        monkeypatch.setattr(sandbox_module, "find_engine", lambda _: busy)
        busy_sandbox = ContainerSandbox("podman", {})
        with busy_sandbox.stage_box(frozen, network=False, gpus=()) as box:
            assert run(box, "echo alive", log)[1] == "alive\n"


def slowed(engine, command, seconds, program):
    """The engine, some time slower with a command."""
    program.write_text(
        f'#!/bin/sh\ncase " $* " in *" {command} "*) sleep {seconds};; esac\n'
        f'exec {shlex.quote(engine.program)} "$@"\n'
    )
    program.chmod(0o755)
    return replace(engine, program=str(program))


class TestFreeze:
    @pytest.mark.parametrize("name", ["passwd", "group"])
    def test_pipe_for_the_names_of_users(self, sandbox, attempt, source, log, name, monkeypatch):
        monkeypatch.setattr(keepable, "_PATIENCE_S", 4.0)
        monkeypatch.setattr(keepable, "_AGAIN_S", 2.0)
        with sandbox.build_box(attempt, source, key="k") as box:
            run(box, f"rm /etc/{name}; mkfifo /etc/fifo; ln -s fifo /etc/{name}", log)
            with pytest.raises(LimitReachedError, match="keeps engines waiting"):
                run(box, "true", log)
        unusable(sandbox, attempt, "no container starts from what the build left")

    def test_folder_for_the_names_of_users(self, sandbox, attempt, source, log):
        with sandbox.build_box(attempt, source, key="k") as box:
            run(box, "rm /etc/passwd; mkdir /etc/passwd", log)
        unusable(sandbox, attempt, "no container starts from what the build left")

    def test_names_of_users_removed_are_no_trouble(self, sandbox, attempt, source, log):
        with sandbox.build_box(attempt, source, key="k") as box:
            run(box, "rm /etc/passwd; mv /etc/group /etc/g; ln -s g /etc/group", log)
        assert sandbox.freeze(attempt).unusable is None
        with sandbox.stage_box(attempt, network=False, gpus=()) as stage:
            assert run(stage, "echo alive", log)[1] == "alive\n"

    @pytest.mark.parametrize("names", ["/opt/.wh.", "/opt/.wh..", "/opt/.wh.x /opt/x"])
    def test_names_that_images_use_themselves(self, sandbox, attempt, source, log, names):
        with sandbox.build_box(attempt, source, key="k") as box:
            assert run(box, f"touch {names}", log)[0].ok
        frozen = sandbox.freeze(attempt)
        if frozen.unusable is None:  # the engine can do it
            with sandbox.stage_box(attempt, network=False, gpus=()) as stage:
                assert run(stage, "echo alive", log)[1] == "alive\n"
        else:
            assert "no image can be made" in frozen.unusable
            assert not images_of(attempt)

    def test_a_hole_over_the_limit(self, sandbox, attempt, source, log):
        with sandbox.build_box(attempt, source, key="k") as box:
            assert run(box, "truncate -s 1T /opt/hole", log)[0].ok
        began = time.monotonic()
        unusable(sandbox, attempt, "has left 1099.5 GB, more than")
        assert time.monotonic() - began < 60

    def test_a_hole_over_the_room(self, containers, attempt, source, log):
        sandbox = containers(disk="9000g")
        with sandbox.build_box(attempt, source, key="k") as box:
            assert run(box, "truncate -s 1T /opt/hole", log)[0].ok
        unusable(sandbox, attempt, "that are holes for the most part")


class TestStage:
    def test_first_process_heeds_no_signal(self, sandbox, frozen, log):
        with sandbox.stage_box(frozen, network=False, gpus=()) as box:
            line = "for s in INT TERM HUP; do kill -$s 1; kill -$s $PPID; done"
            finished, said = run(box, f"{line}; sleep 1; echo alive", log)
            assert (finished.exit_code, said) == (0, "alive\n")
            assert box.read(box.layout.env / "installed.py", 99) == b"frozen\n"

    def test_halted_supervisor_is_timed_out(self, sandbox, frozen, log, monkeypatch):
        monkeypatch.setattr(process, "MARGIN_S", 2.0)
        with sandbox.stage_box(frozen, network=False, gpus=()) as box:
            began = time.monotonic()
            finished, _ = run(box, "kill -STOP $PPID; sleep 300", log, time_limit_s=3)
            assert time.monotonic() - began < 40
            assert finished.timed_out
            assert not finished.ok
            assert not finished.out_of_memory
            finished, said = run(box, "pgrep -c sleep; echo alive", log)
            assert said == "0\nalive\n"

    def test_halted_with_all_others(self, sandbox, frozen, log, monkeypatch):
        monkeypatch.setattr(process, "MARGIN_S", 2.0)
        with sandbox.stage_box(frozen, network=False, gpus=()) as box:
            line = "kill -STOP -1; kill -STOP $PPID; sleep 300"
            finished, _ = run(box, line, log, time_limit_s=3)
            assert finished.timed_out
            assert run(box, "echo alive", log)[1] == "alive\n"
