"""Agents that the box brings: NexAU by its command line, and the example of an own one."""

from __future__ import annotations

import re
import shutil
import sys
from dataclasses import replace
from pathlib import Path

import pytest

from researchenvbench.agents import make_agent
from researchenvbench.agents.definition import load_definition
from researchenvbench.agents.model import ModelChoice, open_access
from researchenvbench.attempt import Report

from ..relay.model_server import ModelServer, Tool, Turn

STAND_IN = Path(__file__).with_name("nexau_stand_in.py")
EXAMPLE = Path(__file__).parents[2] / "examples/agent.toml"


def built(assign, attempt, monkeypatch, script):
    monkeypatch.setenv("NEX_API_KEY", "canary-key-0123456789abcdef")
    with ModelServer(script, model="nex") as server:
        choice = ModelChoice.of(
            "nex", "openai-chat", upstream=f"{server.address}/v1", key="env:NEX_API_KEY"
        )
        agent, given = make_agent("nexau", {}, choice), assign()
        with open_access(choice, attempt, given.box.listen, resumed=False) as access:
            outcome = agent.build(replace(given, model=access))
            return outcome, access.relay.use(), server


def test_nexau_by_a_stand_in(assign, attempt, tmp_path, monkeypatch):
    folder = tmp_path / "bin"
    folder.mkdir()
    (folder / "nexau").write_text(f'#!/bin/sh\nexec {sys.executable} {STAND_IN} "$@"\n')
    (folder / "nexau").chmod(0o755)
    monkeypatch.setenv("PATH", str(folder), prepend=":")
    script = [Turn("", (Tool("run_shell_command", {"command": "echo made > made"}),)), Turn("Ok.")]
    outcome, use, server = built(assign, attempt, monkeypatch, script)
    assert (outcome.outcome, outcome.fault, outcome.exit_code) == ("finished", None, 0)
    assert (attempt / "box/repo/made").read_text() == "made\n"
    assert use.calls == 2
    assert use.tokens.input == sum(request.usage.input for request in server.requests)
    asked = server.requests[0].json
    assert asked["messages"][0]["content"] == (attempt / "task.md").read_text()


@pytest.mark.slow
@pytest.mark.skipif(
    shutil.which("nexau") is None or not Path("/opt/nexau").is_dir(),
    reason="NexAU is not installed: docs/agents.md",
)
def test_nexau_itself(assign, attempt, monkeypatch):
    command = {"command": "echo made > made"}
    script = [Turn("", (Tool("run_shell_command", command),)), Turn("It is built.")]
    outcome, use, _ = built(assign, attempt, monkeypatch, script)
    assert outcome.fault is None
    assert use.calls >= 2
    assert (attempt / "box/repo/made").read_text() == "made\n"


def test_the_example_is_a_definition_that_works(assign, tmp_path):
    text = EXAMPLE.read_text()
    assert load_definition(EXAMPLE).wire is None
    quick = tmp_path / "quick.toml"
    quick.write_text(re.sub(r"&& \S+/pip install --quiet \S+", "--without-pip", text))
    assert quick.read_text() != text
    given = assign()
    outcome = make_agent("command", {"file": str(quick)}).build(given)
    assert (outcome.outcome, outcome.exit_code) == ("finished", 0)
    layout = given.box.layout
    report = Report.model_validate_json(layout.report.read_text())
    assert Path(report.python_path).resolve().is_file()
    log = given.log.parent / "agent.log"
    assert "senior MLOps engineer" in log.read_text()


def test_the_example_with_a_model_has_what_it_names(tmp_path):
    """The lines that the example has in comments fit, too."""
    text = EXAMPLE.read_text()
    whole = "\n".join(
        line.removeprefix("# ") if line.startswith(("# wire =", "# OPENAI_")) else line
        for line in text.splitlines()
    )
    path = tmp_path / "model.toml"
    path.write_text(whole)
    found = load_definition(path)
    assert found.wire == "openai-chat"
    assert found.run.env["OPENAI_API_KEY"] == "{token}"
