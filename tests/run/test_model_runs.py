"""Runs by an agent with a model: records, budgets, and a harness that dies."""

from __future__ import annotations

import json
import os
import shlex
import signal
import time
from pathlib import Path

import pytest

from researchenvbench.attempt import Record
from researchenvbench.sandbox import make_sandbox

from ..relay.model_server import Fault, ModelServer, Tool, Turn
from .conftest import SUITE

KEY = "canary-key-0123456789abcdef"
MODEL = "some-model"
STAND_IN = Path(__file__).parent.parent / "agents/stand_in.py"
BUILD = (
    'E="$(dirname "$PWD")/env"; python3 -m venv --without-pip "$E" && "$E/bin/python" install.py '
    '&& echo "{\\"python_path\\": \\"$E/bin/python\\"}" > ../report.json'
)


def shell(command):
    return Turn("", (Tool("run", {"command": command}),))


@pytest.fixture
def definition(tmp_path):
    """The stand-in as a definition that brings it along, so that it runs in containers, too."""
    path = tmp_path / "stand_in.toml"
    path.write_text(
        "\n".join(
            [
                'name = "stand_in"',
                'title = "Stand-in"',
                'program = "python3"',
                'wire = "anthropic-messages"',
                "[run]",
                'argv = ["{program}", "{config}/it.py", "{address}", "{model}", "{prompt_file}"]',
                'env = { STAND_IN_TOKEN = "{token}" }',
                f"files = {{ 'it.py' = {json.dumps(STAND_IN.read_text())} }}",
            ]
        )
    )
    return path


def arguments(definition, server, *more):
    return [
        *("run", SUITE, "--only", "adder", "--out", "run", "--quiet"),
        *("--agent", "command", "--agent-option", f"file={definition}"),
        *("--model", MODEL, "--upstream", server.address, "--key", "env:CANARY", *more),
    ]


def attempt_of(tmp_path):
    return tmp_path / "run" / "attempts" / "adder--1"


def test_a_run_is_recorded_with_what_it_used(reb, tmp_path, definition):
    script = [shell("ls; exit 4"), shell(BUILD), Turn("Done.")]
    prices = tmp_path / "prices.toml"
    prices.write_text(f'[models."{MODEL}"]\ninput = 10.0\noutput = 100.0\n')
    with ModelServer(script, model=MODEL, key=KEY) as server:
        more = ["--i-trust-this-agent", "--prices", prices, "--budget-usd", "1"]
        done = reb(*arguments(definition, server, *more), CANARY=KEY)
    assert done.returncode == 0, done.stderr
    record = Record.load(attempt_of(tmp_path) / "record.json")
    assert record.results["C1"].verdict == "passed"
    use = record.build.model
    assert (use.calls, use.failed_calls, use.model) == (3, 0, MODEL)
    assert use.tokens.input == sum(request.usage.input for request in server.requests)
    expected = (use.tokens.input * 10 + use.tokens.output * 100) / 1e6
    assert use.cost_usd == pytest.approx(expected)
    assert record.build.task_given == (attempt_of(tmp_path) / "task.md").read_text()
    assert "stand_in with some-model" in done.stdout
    assert KEY not in done.stdout + done.stderr
    page = (tmp_path / "run/index.html").read_text()
    assert f"{MODEL} at {server.address}" in page
    for path in (tmp_path / "run").rglob("*"):
        if path.is_file() and not path.is_symlink():
            assert KEY.encode() not in path.read_bytes(), path
    # The same again has nothing to do, and asks nobody for a key.
    again = reb(*arguments(definition, server, *more))
    assert again.returncode == 0, again.stderr


def test_a_providers_fault_is_void_and_tried_again(reb, tmp_path, definition):
    with ModelServer([Fault(401)], model=MODEL, after=Fault(401)) as server:
        done = reb(*arguments(definition, server, "--i-trust-this-agent"), CANARY=KEY)
        assert done.returncode == 1
        assert "the provider does not take the key (status 401)" in done.stdout + done.stderr
        record = Record.load(attempt_of(tmp_path) / "record.json")
        assert (record.status, record.build.fault) == ("void", "wrong_key")
        assert {result.verdict for result in record.results.values()} == {"inconclusive"}
    with ModelServer([shell(BUILD), Turn("Done.")], model=MODEL) as server:
        more = ["--i-trust-this-agent", "--upstream", server.address]
        done = reb(*arguments(definition, server, *more), CANARY=KEY)
        assert done.returncode == 0, done.stderr
        record = Record.load(attempt_of(tmp_path) / "record.json")
        assert (record.status, record.build.fault) == ("ok", None)


def test_what_is_wrong_is_said_before_anything_is_built(reb, tmp_path, definition):
    with ModelServer([], model=MODEL) as server:
        for more, environment, said in (
            ([], {}, "the variable CANARY, which should hold the key, is not set"),
            (["--budget-usd", "3"], {"CANARY": KEY}, "a budget in dollars needs a price"),
            (["--key", KEY], {}, "what names a key is none of the forms"),
            (["--upstream", "nowhere"], {"CANARY": KEY}, "not an address of a provider"),
            (["--prices", definition], {"CANARY": KEY}, "models: is required"),
        ):
            line = arguments(definition, server, "--i-trust-this-agent", *more)
            done = reb(*line, **environment)
            assert done.returncode in (1, 2)
            assert said in done.stderr, done.stderr
            assert "Traceback" not in done.stderr
            assert KEY not in done.stderr
        assert server.requests == []
    assert not (tmp_path / "run" / "attempts").exists()


def test_a_build_that_was_lost_counts_its_tokens_as_spent(reb, tmp_path, definition):
    script = [shell("true"), shell("touch ../slow; sleep 60"), shell(BUILD), Turn("Done.")]
    with ModelServer(script, model=MODEL) as server:
        line = arguments(definition, server, "--i-trust-this-agent")
        first = reb.start(*line, CANARY=KEY)
        slow = attempt_of(tmp_path) / "box/slow"
        kill_when(first, slow.exists)
        done = reb(*line, CANARY=KEY)
        assert done.returncode == 0, done.stderr
        told = [request.usage.total for request in server.requests]
    use = Record.load(attempt_of(tmp_path) / "record.json").build.model
    assert use.lost_tokens.total == sum(told[:2])
    assert use.tokens.total == sum(told[2:])


@pytest.mark.slow
@pytest.mark.container
def test_an_agent_in_a_container_outlives_the_harness(
    reb, tmp_path, definition, podman, debian_image
):
    """It finds the relay again where it was, with the token that it had."""
    script = [
        shell("echo once >> ../once"),
        shell("sleep 12; echo twice >> ../once"),
        shell(BUILD),
        Turn("Done."),
    ]
    with ModelServer(script, model=MODEL) as server:
        options = ["--sandbox", "podman", "--sandbox-option", f"image={debian_image.id}"]
        line = arguments(definition, server, *options, "--network", "none")
        first = reb.start(*line, CANARY=KEY)
        kill_when(first, lambda: sum(request.took_turn for request in server.requests) >= 2)
        done = reb(*line, CANARY=KEY)
        assert done.returncode == 0, done.stderr
        told = [request.usage.total for request in server.requests]
    record = Record.load(attempt_of(tmp_path) / "record.json")
    assert record.results["C1"].verdict == "passed"
    assert len(told) == 4
    assert record.build.model.tokens.total == sum(told)
    assert record.build.model.lost_tokens.total == 0
    # The key is in no file of the image, and in nothing that the engine tells of it.
    image = record.build.environment.image
    search = ["grep", "-rlsF", "--exclude-dir=proc", "--exclude-dir=sys", KEY, "/"]
    found = podman.call(
        "run",
        "--rm",
        "--network",
        "none",
        *podman.run_flags,
        "--entrypoint",
        "",
        image,
        "sh",
        "-c",
        f"{shlex.join(search)}; true",
    )
    told_of_it = podman.call("image", "inspect", image) + podman.call("history", image)
    sandbox = make_sandbox("podman", {"image": debian_image.id})
    sandbox.discard(attempt_of(tmp_path))
    assert found == b""
    assert KEY.encode() not in told_of_it


def kill_when(process, condition):
    """Kill the harness, with its workers, once something is so."""
    until = time.monotonic() + 120
    while not condition():
        assert process.poll() is None, process.communicate()[1]
        assert time.monotonic() < until
        time.sleep(0.1)
    time.sleep(0.5)
    os.kill(process.pid, signal.SIGKILL)
    process.communicate()
    time.sleep(1)
