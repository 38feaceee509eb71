"""Phase 1: what an agent leaves is frozen and read, whatever it is."""

import json
import os
import subprocess
import time
from contextlib import nullcontext

import pytest

from researchenvbench.agents import AgentOutcome
from researchenvbench.attempt import Level, Owner, Verdict
from researchenvbench.audit import audit
from researchenvbench.building import (
    build,
    compare_hardware,
    hardware_shown,
    parse_report,
    read_frozen_report,
    read_report,
)
from researchenvbench.errors import RefusedError
from researchenvbench.gpu.inventory import inventory
from researchenvbench.sandbox.host_environment import host_environment
from researchenvbench.sandbox.local.sandbox import LocalSandbox
from researchenvbench.source import fetch_source
from researchenvbench.task import Breakage, FolderSource, Recipe, Task


@pytest.fixture
def task(tmp_path):
    (tmp_path / "repository").mkdir()
    (tmp_path / "repository" / "train.py").write_text("print('training')\n")
    return Task(
        schema=1,
        name="little",
        domain="tests",
        source=FolderSource(kind="folder", path=str(tmp_path / "repository")),
    )


class Listens:
    """An agent that does nothing but remember what it was given."""

    name = "listens"
    built_in = True
    sees_task = True

    def __init__(self, *, needs_recipe):
        self.needs_recipe = needs_recipe

    def digest(self, task):
        return self.name

    def build(self, assignment):
        self.assignment = assignment
        return AgentOutcome("finished", 0)


@pytest.mark.parametrize("needs_recipe", [True, False])
def test_only_who_follows_the_gold_recipe_is_told_it(task, tmp_path, needs_recipe):
    gold = Recipe(steps=(("{python}", "install.py"),))
    broken = Breakage(description="the module is gone", remove=("adder.py",), because="gone")
    task = task.model_copy(update={"gold": gold, "breakages": {"gone": broken}})
    agent = Listens(needs_recipe=needs_recipe)
    result = built(task, tmp_path, agent=agent)
    assert agent.assignment.recipe == (gold if needs_recipe else None)
    assert agent.assignment.task.gold is None
    assert agent.assignment.task.breakages == {}
    assert agent.assignment.environment["CUDA_VISIBLE_DEVICES"] == ""
    assert result.shown_gpus == ()


class Leaves:
    """An agent that leaves what a test wants in place of a report."""

    name = "leaves"
    built_in = True
    sees_task = True
    needs_recipe = False

    def __init__(self, leave, outcome=("finished", 0)):
        self._leave, self._outcome = leave, outcome

    def digest(self, task):
        return self.name

    def build(self, assignment):
        self._leave(assignment.box.layout)
        return AgentOutcome(*self._outcome)


def built(task, tmp_path, leave=None, *, agent=None, **options):
    attempt = tmp_path / "attempt"
    attempt.mkdir()
    return build(
        attempt,
        task,
        fetch_source(task, cache=tmp_path / "cache"),
        agent or Leaves(leave, **options),
        LocalSandbox(),
        host_environment(),
        time_limit_s=60,
        build_gpus="none",
        say=lambda *_, **__: None,
    )


def write(text):
    return lambda layout: layout.report.write_bytes(text)


def link(layout):
    elsewhere = layout.root / "elsewhere.json"
    elsewhere.write_text("{}")
    layout.report.symlink_to(elsewhere)


@pytest.mark.parametrize(
    ("leave", "why"),
    [
        (lambda layout: None, "report.json"),
        (write(b"all good, trust me"), "not JSON"),
        (write(b""), "not JSON"),
        (write(b"[1, 2]"), "is a list"),
        (write(b"\xff\xfe\x00"), "not JSON"),
        (write(b"[" * 100_000), "not JSON"),
        (write(b'{"python_path": ' + b" " * 100_000_000 + b"null}"), "bytes"),
        (write(b'{"gpu_count": "many"}'), "gpu_count"),
        (write(b'{"env_tool": "apt"}'), "env_tool"),
        (link, "link"),
        (lambda layout: os.mkfifo(layout.report), "FIFO"),
        (lambda layout: layout.report.mkdir(), "folder"),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_what_is_no_report_is_no_report_and_says_why(task, tmp_path, leave, why):
    started = time.monotonic()
    result = built(task, tmp_path, leave)
    assert time.monotonic() - started < 60, "a FIFO must not be waited for"
    assert result.report is None
    assert why.lower() in result.report_error.lower()
    _, verdict = audit(
        result.report,
        report_error=result.report_error,
        report_due=True,
        python_version=None,
        python_error="",
        framework_versions={},
        results={},
    )
    assert (verdict.level, verdict.verdict, verdict.owner) == (
        Level.C5,
        Verdict.FAILED,
        Owner.AGENT,
    )


def test_a_report_with_more_in_it_than_is_known_is_a_report(task, tmp_path):
    report = {"python_path": "/usr/bin/python3", "mood": "confident", "claims": []}
    result = built(task, tmp_path, write(json.dumps(report).encode()))
    assert result.report.python_path == "/usr/bin/python3"
    assert result.report.torch_version is None, "what was not said is null"


def test_the_build_is_frozen_and_counted(task, tmp_path):
    def leave(layout):
        (layout.root / "big").write_bytes(b"x" * 1_000_000)

    result = built(task, tmp_path, leave)
    assert result.outcome == "finished"
    assert result.environment.size_bytes >= 1_000_000
    again = LocalSandbox().environment(tmp_path / "attempt")
    assert again.digest == result.environment.digest


def test_an_agent_that_ran_out_of_time_is_frozen_all_the_same(task, tmp_path):
    result = built(task, tmp_path, write(b"{}"), outcome=("time_limit", None, "still compiling"))
    assert result.outcome == "time_limit"
    assert result.environment is not None
    assert result.report is not None


def test_a_void_build_has_an_owner(task, tmp_path):
    result = built(task, tmp_path, lambda _: None, outcome=("void", None, "the index is down"))
    assert (result.outcome, result.owner) == ("void", Owner.HOST)


def test_what_the_build_left_running_is_ended(task, tmp_path):
    started = []

    def leave(layout):
        variables = {"PATH": os.environ["PATH"], "REB_BOX": str(layout.root)}
        started.append(
            subprocess.Popen(
                ["sleep", "600"], cwd=layout.repo, env=variables, start_new_session=True
            )
        )

    result = built(task, tmp_path, leave)
    assert started[0].wait(timeout=10) < 0
    assert any("sleep" in process for process in result.environment.ended_processes)


def test_parse_report_names_the_fields_that_are_wrong():
    report, why = parse_report(b'{"cuda_available": "perhaps", "claims": 3}')
    assert report is None
    assert "cuda_available" in why
    assert "claims" in why


def test_a_report_is_read_by_its_own_box_only(task, tmp_path):
    attempt = tmp_path / "attempt"
    attempt.mkdir()
    sandbox = LocalSandbox()
    with sandbox.build_box(attempt, fetch_source(task, cache=tmp_path / "cache").tree) as box:
        box.layout.report.write_text("{}")
    sandbox.freeze(attempt)
    with sandbox.stage_box(attempt, network=False, gpus=()) as box:
        report, why = read_report(box)
    assert report is not None
    assert why is None


@pytest.mark.parametrize(
    ("build_shown", "seen_now", "same"),
    [
        ((), (), True),
        (("A (sm_90)",), ("A (sm_90)",), True),
        (("A (sm_90)",), ("A (sm_90)",) * 8, True),
        (("A (sm_90)",) * 8, ("A (sm_90)",), False),
        (("A (sm_90)",), ("B (sm_80)",), False),
        ((), ("A (sm_90)",), False),
        (("A (sm_90)",), (), False),
    ],
)
def test_fewer_gpus_of_the_same_kind_are_the_same_hardware(build_shown, seen_now, same):
    hardware = compare_hardware(build_shown, seen_now)
    assert (hardware.same, hardware.shown) == (same, len(build_shown))


def test_what_no_gpu_was_shown_to_is_compared_with_this_host(task, tmp_path):
    result = built(task, tmp_path, write(b"{}"))
    assert hardware_shown(result).shown == 0
    assert hardware_shown(result).same is (not inventory().gpus)


def test_what_is_too_large_to_keep_of_an_agents_own_files_costs_no_report(task, tmp_path):
    """The agent can make them as large as it likes: that is no fault of the host."""

    class Box:
        layout = LocalSandbox().layout(tmp_path)

        def collect(self, pattern, into):
            raise RefusedError("sessions/big: holds more than is kept")

        def read(self, path, limit):
            return b'{"python_path": "/x", "env_tool": "venv"}'

    report, why = read_frozen_report(lambda: nullcontext(Box()), ("*",), tmp_path / "kept")
    assert why is None
    assert report.python_path == "/x"
    assert "more than is kept" in (tmp_path / "kept" / "not-kept.txt").read_text()
