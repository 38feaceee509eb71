"""Claude Code and Codex themselves, from their registry, in a container without a network.

They speak to the scripted model through the relay, and build the quickest task of the starter
suite with real commands; packages come by way of the harness. No provider is asked, and no
configuration of whoever runs the tests is read.
"""

from __future__ import annotations

import json
import re
import subprocess
import sys

import pytest

from researchenvbench.agents.transcript import read_steps
from researchenvbench.attempt import Record

from ..relay.model_server import ModelServer, Tool, Turn, without_tools

pytestmark = [pytest.mark.slow, pytest.mark.network, pytest.mark.container]

KEY = "canary-key-0123456789abcdef"
MODEL = "some-model"
TASK = "hmmlearn"
REPORT = {"python_path": "/workspace/env/bin/python", "python_version": None, "env_tool": "venv"}
BUILD = (
    "python3 -m venv /workspace/env && /workspace/env/bin/pip install --quiet hmmlearn==0.3.3 "
    f"&& echo '{json.dumps(REPORT)}' > /workspace/report.json && echo built"
)
_RUNS_ON = re.compile(r"session ID (\d+)")


def claude(command):
    return Tool("Bash", {"command": command, "description": "as the script says"})


def codex(command):
    return Tool("exec_command", {"cmd": command, "yield_time_ms": 30_000})


def scripted(tool, commands):
    """One command after the other; of Codex's, one that still runs is waited for first."""
    left = list(commands)

    def answer(request):
        outputs = [
            str(item.get("output"))
            for item in (request.json or {}).get("input", [])
            if isinstance(item, dict) and item.get("type") == "function_call_output"
        ]
        running = _RUNS_ON.search(outputs[-1]) if outputs else None
        if running:
            wait = {"session_id": int(running[1]), "chars": "", "yield_time_ms": 30_000}
            return Turn("I wait.", (Tool("write_stdin", wait),))
        return Turn("I work.", (tool(left.pop(0)),)) if left else Turn("It is built.")

    return answer


@pytest.mark.parametrize(
    ("agent", "tool", "suffix"), [("claude_code", claude, ""), ("codex", codex, "/v1")]
)
def test_a_task_is_built_and_judged(tmp_path, debian_image, monkeypatch, agent, tool, suffix):
    monkeypatch.setenv("CANARY", KEY)
    script = scripted(tool, ["git log -1; exit 3", BUILD])
    with ModelServer(script, model=MODEL, aside=without_tools, key=KEY) as server:
        done = subprocess.run(
            [
                *(sys.executable, "-m", "researchenvbench", "run", "starter", "--only", TASK),
                *("--agent", agent, "--model", MODEL, "--upstream", server.address + suffix),
                *("--key", "env:CANARY", "--sandbox", "podman", "--network", "registries"),
                *("--sandbox-option", f"image={debian_image.id}", "--out", str(tmp_path / "run")),
                *("--keep", "none", "--json"),
            ],
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=540,
            check=False,
        )
    assert done.returncode == 0, done.stderr
    attempt = tmp_path / "run" / "attempts" / f"{TASK}--1"
    record = Record.load(attempt / "record.json")
    build = record.build
    verdicts = {level: result.verdict for level, result in record.results.items()}
    assert (verdicts["C1"], verdicts["C5"]) == ("passed", "passed"), record.results["C1"].reason

    # Tokens are those that the provider told, and no call is missing.
    told = [request.usage for request in server.requests if request.usage]
    assert build.model.calls == len(told) == len(server.requests)
    assert build.model.tokens.input == sum(usage.input for usage in told)
    assert build.model.tokens.output == sum(usage.output for usage in told)
    assert build.agent_version
    assert (build.fault, build.outcome) == (None, "finished")

    # The transcript has the commands, with how they ended and what was counted of them.
    steps = [step for step in read_steps(attempt / "transcript.jsonl") if step.kind == "command"]
    assert steps[0].command == "git log -1; exit 3"
    assert (steps[0].exit_status, steps[0].failed) == (3, True)
    assert steps[1].command == BUILD
    assert "built" in "".join(step.output for step in steps)
    assert steps[0].tokens == told[0]
    assert build.report.python_path == REPORT["python_path"]

    # The model was told what is kept, packages were fetched by the harness, and the key is
    # nowhere: in no file that the run left, and not in what was printed.
    assert (attempt / "task.md").read_text() in server.requests[0].body.decode() or json.dumps(
        (attempt / "task.md").read_text()
    )[1:-1] in server.requests[0].body.decode()
    assert build.network.fetches > 0
    assert {
        request.headers.get("x-api-key") or request.headers["authorization"][7:]
        for request in server.requests
    } == {KEY}
    assert KEY not in done.stdout + done.stderr
    for path in tmp_path.rglob("*"):
        if path.is_file() and not path.is_symlink():
            assert KEY.encode() not in path.read_bytes(), path
