"""Agents that are command lines, run in a box: a real program, a real relay, a scripted model.

Each way in which a build by a model can end is played here once, from the program's start to
the fault that the record names.
"""

from __future__ import annotations

import sys
import time
from dataclasses import replace
from pathlib import Path

import pytest

from researchenvbench.agents.definition import AgentDefinition
from researchenvbench.agents.model import ModelChoice, open_access
from researchenvbench.agents.program import ProgramAgent
from researchenvbench.relay import Patience

from ..relay.model_server import Fault, ModelServer, Tool, Turn

STAND_IN = Path(__file__).with_name("stand_in.py")
MODEL = "some-model"
KEY = "canary-key-0123456789abcdef"


def definition(**changes):
    run = {
        "argv": ["{program}", str(STAND_IN), "{address}", "{model}", "{prompt_file}"],
        "env": {"STAND_IN_TOKEN": "{token}"},
        **changes.pop("run", {}),
    }
    return AgentDefinition.model_validate(
        {
            "name": "stand_in",
            "title": "Stand-in",
            "program": sys.executable,
            "wire": "anthropic-messages",
            "run": run,
            **changes,
        }
    )


def shell(command):
    return Turn("", (Tool("run", {"command": command}),))


@pytest.fixture
def play(assign, attempt, monkeypatch):
    """Have the stand-in build, answered by a script; returns outcome, use of the model, server."""
    monkeypatch.setenv("CANARY", KEY)
    monkeypatch.setattr("researchenvbench.relay.relay.Patience", lambda: Patience(3, 5.0, 0.1))

    def run(script, *, seconds=60.0, after=None, described=None, full_disk=False, **choice):
        with ModelServer(script, model=MODEL, after=after, key=KEY) as server:
            facts = {"name": MODEL, "wire": "anthropic-messages", "key": "env:CANARY"}
            chosen = ModelChoice(**{**facts, "upstream": server.address, **choice})
            agent = ProgramAgent(described or definition(), chosen)
            given = assign(seconds)
            with open_access(chosen, attempt, given.box.listen, resumed=False) as access:
                if full_disk:
                    (attempt / "model/calls.jsonl").symlink_to("/dev/full")
                outcome = agent.build(replace(given, model=access))
                return outcome, access.relay.use(), server

    return run


REPORT = "echo '{}' > ../report.json"


def test_it_builds_by_what_the_model_says(play, attempt):
    outcome, use, server = play([shell("echo hello > made; pwd"), shell(REPORT), Turn("Done.")])
    assert (outcome.outcome, outcome.exit_code, outcome.fault) == ("finished", 0, None)
    assert (attempt / "box/repo/made").read_text() == "hello\n"
    assert (use.calls, use.tokens.input) == (3, sum(x.usage.input for x in server.requests))
    assert use.tokens.output == sum(x.usage.output for x in server.requests)
    log = (attempt / "logs/agent.log").read_text()
    assert str(attempt / "box/repo") in log
    # The model was given the text that is kept, and no key was in the box.
    asked = server.requests[0].json["messages"][0]["content"]
    assert asked == (attempt / "task.md").read_text()
    assert server.requests[0].headers["x-api-key"] == KEY


def test_the_key_is_nowhere(play, attempt):
    """In no file of the attempt, in no variable of a program, in no command line."""
    spy = (
        "cat /proc/[0-9]*/environ /proc/[0-9]*/cmdline 2>/dev/null | tr '\\0' '\\n' "
        "| grep -a -c 'canary[-]key-0123' > ../seen; true"
    )
    outcome, _, _ = play([shell(spy), shell(REPORT), Turn("Done.")])
    assert outcome.fault is None
    assert (attempt / "box/seen").read_text() == "0\n"
    found = [
        path
        for path in attempt.rglob("*")
        if path.is_file() and not path.is_symlink() and KEY.encode() in path.read_bytes()
    ]
    assert found == []


def fault_of(played):
    outcome, *_ = played
    return outcome.outcome, outcome.fault


class TestFaults:
    def test_overloaded_for_good(self, play):
        played = play([shell("true"), *[Fault(529)] * 20])
        assert fault_of(played) == ("void", "overloaded")
        outcome, use, _ = played
        assert use.waited_s > 0
        assert "overloaded (status 529)" in outcome.reason

    def test_overloaded_for_a_while_is_waited_out(self, play):
        played = play([Fault(529), Fault(429, headers={"retry-after": "0"}), shell(REPORT)])
        assert fault_of(played) == ("finished", None)
        assert played[1].failed_calls == 0

    def test_cut(self, play):
        cut = Turn("This is long.", cut_after=100)
        assert fault_of(play([shell("true"), cut, cut, cut])) == ("void", "stream_cut")

    def test_wrong_key(self, play, monkeypatch):
        monkeypatch.setenv("OTHER", "another-key-0123456789")
        assert fault_of(play([], key="env:OTHER")) == ("void", "wrong_key")

    def test_no_credit(self, play):
        poor = Fault(429, "insufficient_quota", "You exceeded your current quota")
        assert fault_of(play([shell("true"), *[poor] * 3])) == ("void", "no_credit")

    def test_provider_error(self, play):
        played = play([shell("true"), *[Fault(500, "api_error", "Internal error")] * 20])
        assert fault_of(played) == ("void", "provider_error")

    def test_rejected(self, play):
        odd = Fault(422, "invalid_request_error", "tools: unknown field")
        assert fault_of(play([odd])) == ("void", "rejected")

    def test_rejected_after_good_work_is_its_own_doing(self, play):
        odd = Fault(422, "invalid_request_error", "tools: unknown field")
        assert fault_of(play([shell("true"), odd])) == ("finished", "crashed")

    def test_the_disk_of_the_record_is_full(self, play):
        played = play([shell("sleep 30"), Turn("Done.")], full_disk=True)
        assert fault_of(played) == ("void", "not_recorded")
        assert "the record of calls is not whole" in played[0].reason

    def test_unknown_model(self, play):
        played = play([Fault(404, "not_found_error", "model: some-model")])
        assert fault_of(played) == ("void", "unknown_model")

    def test_unreachable(self, play):
        played = play([], upstream="http://127.0.0.1:1")
        assert fault_of(played) == ("void", "unreachable")

    def test_context_exhausted(self, play):
        full = Fault(400, "invalid_request_error", "prompt is too long: 300000 tokens")
        assert fault_of(play([shell("true"), full])) == ("finished", "context_exhausted")

    def test_refused(self, play):
        played = play([shell("true"), Turn("No.", stop="refusal")])
        assert fault_of(played) == ("finished", "refused")
        assert played[0].exit_code == 1

    def test_no_calls(self, play):
        idle = definition(run={"argv": ["/bin/true", "{prompt_file}"], "env": {}})
        assert fault_of(play([], described=idle)) == ("void", "no_calls")

    def test_not_there(self, play):
        played = play([], described=definition(program="/nonexistent/agent"))
        assert fault_of(played) == ("void", "not_started")
        assert "install Stand-in into the image" in played[0].reason

    def test_crashed(self, play):
        played = play([shell("true"), Turn("", (Tool("crash", {}),))])
        assert fault_of(played) == ("finished", "crashed")
        assert "SIGSEGV" in played[0].reason

    def test_hung(self, play):
        sleepy = definition(run={"quiet_minutes": 0.05})
        played = play([Turn("", (Tool("sleep", {"seconds": 60}),))], described=sleepy)
        assert fault_of(played) == ("finished", "hung")

    def test_time_limit(self, play, attempt):
        began = time.monotonic()
        played = play([shell(REPORT), Turn("", (Tool("sleep", {"seconds": 60}),))], seconds=4.0)
        assert fault_of(played) == ("time_limit", "time_limit")
        assert time.monotonic() - began < 30
        assert (attempt / "box/report.json").exists()

    def test_time_that_the_provider_took_is_given_back(self, play):
        script = [shell("sleep 1"), Fault(529, headers={"retry-after": "3"}), shell(REPORT)]
        played = play(script, seconds=3.5)
        assert fault_of(played) == ("finished", None)

    def test_budget(self, play):
        played = play([shell("sleep 0.1")] * 50, tokens=350)
        assert fault_of(played) == ("budget", "budget")
        outcome, use, server = played
        assert "350 tokens is used up" in outcome.reason
        assert use.calls - use.failed_calls == len(server.requests)
        assert use.tokens.total < 1000

    def test_budget_where_no_usage_is_told(self, play):
        played = play([replace(shell("sleep 3"), tells_usage=False)] * 5, tokens=1000)
        assert fault_of(played) == ("void", "uncounted")


def test_a_program_without_a_model(assign):
    described = definition(
        wire=None, run={"argv": ["sh", "-c", "cat {prompt_file} > seen; echo hi"], "env": {}}
    )
    agent = ProgramAgent(described, None)
    given = assign()
    outcome = agent.build(given)
    assert (outcome.outcome, outcome.exit_code) == ("finished", 0)
    assert "senior MLOps engineer" in (given.box.layout.repo / "seen").read_text()


def test_files_of_its_own_lie_outside_of_the_work_tree(assign):
    described = definition(
        wire=None,
        run={
            "argv": ["sh", "-c", "cat {config}/deep/settings {prompt_file}"],
            "env": {},
            "files": {"deep/settings": "home = {home}"},
        },
    )
    given = assign()
    assert ProgramAgent(described, None).build(given).exit_code == 0
    kept = given.box.layout.home / ".stand_in/deep/settings"
    assert kept.read_text() == f"home = {given.box.layout.home}"
    assert sorted(path.name for path in given.box.layout.repo.iterdir()) == ["deep", "train.py"]


def test_the_version_of_one_that_the_box_has_is_asked(assign):
    run = {"argv": ["true", "{prompt_file}"], "env": {}}
    asked = definition(wire=None, run=run, version_argv=["{program}", "--version"])
    agent = ProgramAgent(asked, None)
    agent.build(assign())
    assert agent.version.startswith("Python 3.")


def test_a_program_that_does_not_say_how_is_not_started_for_its_version(assign, attempt):
    run = {"argv": ["sh", "-c", "echo x >> started; cat {prompt_file} > seen"], "env": {}}
    agent = ProgramAgent(definition(wire=None, run=run), None)
    given = assign()
    agent.build(given)
    assert agent.version == ""
    assert (given.box.layout.repo / "started").read_text() == "x\n"
    assert not (attempt / "logs" / "agent-version.log").exists()
    # Nobody reads what it wrote, which is not the same as nothing.
    assert agent.steps(attempt, ()) is None
