"""mini-swe-agent: the real one against a scripted model, and its driver's side with a stand-in."""

import json
import os
import subprocess
import sys
import textwrap
import time
from pathlib import Path

import pytest

from researchenvbench.agents import agent_wire, make_agent
from researchenvbench.agents.mini_swe import (
    DRIVER,
    Conversation,
    MiniSweAgent,
    installing,
    started,
    tokens_of,
)
from researchenvbench.agents.model import ModelChoice, open_access
from researchenvbench.agents.transcript import TRANSCRIPT, read_steps
from researchenvbench.errors import RebError
from researchenvbench.model_use import Tokens
from researchenvbench.run.doctor_agents import examine_agent
from researchenvbench.sandbox.listening import listen_on_host
from tests.relay.model_server import Fault, ModelServer, Tool, Turn

KEY = "sk-canary-0123456789abcdef"
MODEL = "some-model"
SUITE = Path(__file__).parents[1] / "suites" / "small"


@pytest.fixture(autouse=True)
def nobodys_configuration(tmp_path, monkeypatch):
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    monkeypatch.setenv("no_proxy", "127.0.0.1,localhost")
    monkeypatch.setenv("THE_KEY", KEY)


def chosen(server, wire="openai-chat", **budget):
    address = server.address if wire == "anthropic-messages" else server.openai_address
    return ModelChoice.of(MODEL, wire, upstream=address, key="env:THE_KEY", **budget)


@pytest.fixture
def model():
    with ModelServer([Turn("Done.")], key=KEY) as server:
        yield server


@pytest.fixture
def converse(assign, attempt, model):
    """Holds the conversation with a program in place of the driver: lines of Python."""

    def hold(program, seconds=30.0, **budget):
        assignment = assign(seconds=seconds)
        body = """
            import json, sys, urllib.request
            def read(): return json.loads(sys.stdin.readline())
            def tell(**line): print(json.dumps(line), flush=True)
            def ask(**line): tell(**line); return read()
            def call():
                body = json.dumps({"model": order["model"], "messages": []}).encode()
                headers = {"authorization": "Bearer " + order["token"]}
                url = order["address"] + "/v1/chat/completions"
                urllib.request.urlopen(urllib.request.Request(url, body, headers)).read()
            order = read()
        """
        path = attempt / "driver.py"
        path.write_text(textwrap.dedent(body) + textwrap.dedent(program))
        log = attempt / "logs" / "agent.log"
        with (
            open_access(chosen(model, **budget), attempt, listen_on_host, resumed=False) as access,
            started([sys.executable, "-I", str(path)], log) as driver,
        ):
            order = {"model": access.name, "token": access.token, "address": access.address}
            return Conversation(driver, assignment, access).held(order)

    return hold


def test_commands_are_carried_out_and_kept(converse, attempt):
    outcome = converse("""
        call()
        said = {"said": "I look.", "turn": "r1", "usage": {"prompt_tokens": 9}}
        one = ask(ask="execute", command="echo one; cd deep; exit 3", **said)
        two = ask(ask="execute", command="pwd; echo $PAGER")
        print(one, two, file=sys.stderr)
        tell(ask="ended", status="Submitted")
    """)
    assert (outcome.outcome, outcome.exit_code, outcome.fault) == ("finished", 0, None)
    first, second = read_steps(attempt / TRANSCRIPT)
    assert (first.said, first.turn, first.tokens) == ("I look.", "r1", Tokens(input=9))
    assert (first.exit_status, first.output) == (3, "one\n")
    assert second.output.endswith("/box/repo\ncat\n"), "each begins in the repository"
    assert "'exit_status': 3" in (attempt / "logs" / "agent.log").read_text()


@pytest.mark.parametrize(
    ("program", "outcome", "fault"),
    [
        ("tell(ask='ended', status='Submitted')", "void", "no_calls"),
        ("call(); tell(ask='ended', status='RepeatedFormatError')", "finished", "crashed"),
        ("call(); sys.exit(7)", "finished", "crashed"),
        ("call(); tell(ask='ended', status='LimitsExceeded')", "budget", "budget"),
        ("call(); print('no line of ours', flush=True); read()", "finished", "crashed"),
        ("call(); print('[]', flush=True); read()", "finished", "crashed"),
    ],
)
def test_how_it_ends_is_told(converse, program, outcome, fault):
    ended = converse(program)
    assert (ended.outcome, ended.fault) == (outcome, fault), ended.reason
    assert ended.reason


def test_it_ends_with_the_time_for_building(converse, attempt):
    began = time.monotonic()
    ended = converse("call(); ask(ask='execute', command='sleep 60'); read()", seconds=2.5)
    assert (ended.outcome, ended.fault) == ("time_limit", "time_limit")
    assert time.monotonic() - began < 25


def test_it_ends_with_a_budget(converse, model):
    ended = converse("call(); read()", tokens=1)
    assert (ended.outcome, ended.fault) == ("budget", "budget")
    assert "token" in ended.reason


def test_nothing_of_this_user_reaches_the_program(converse, attempt, monkeypatch):
    monkeypatch.setenv("OPENAI_API_KEY", KEY)
    monkeypatch.setenv("MSWEA_MODEL_NAME", "another")
    converse("""
        import os
        print(dict(os.environ), file=sys.stderr)
        call(); tell(ask="ended", status="Submitted")
    """)
    said = (attempt / "logs" / "agent.log").read_text()
    assert "MSWEA_GLOBAL_CONFIG_DIR" in said
    assert KEY not in said
    assert "another" not in said
    assert f"{os.environ['HOME']}'" not in said


def test_the_driver_ends_when_nobody_is_there_any_more():
    driver = subprocess.Popen(
        [sys.executable, "-I", str(DRIVER)], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    )
    driver.stdin.close()
    assert driver.wait(timeout=20) == 3
    driver.stdout.close()


def test_what_an_answer_used_is_counted_as_everywhere():
    chat = {
        "prompt_tokens": 100,
        "completion_tokens": 20,
        "prompt_tokens_details": {"cached_tokens": 60, "cache_creation_tokens": 10},
        "completion_tokens_details": {"reasoning_tokens": 5},
    }
    expected = Tokens(input=30, cached=60, cache_write=10, output=20, reasoning=5)
    assert tokens_of(chat) == expected
    responses = {"input_tokens": 7, "output_tokens": 2, "input_tokens_details": None}
    assert tokens_of(responses) == Tokens(input=7, output=2)
    assert tokens_of(None) is None
    assert tokens_of({"prompt_tokens": "many"}) == Tokens()


def test_what_it_is_made_of_is_in_its_digest(model):
    choice = chosen(model)
    digest = MiniSweAgent(choice).digest(None)
    assert MiniSweAgent(choice).digest(None) == digest
    assert MiniSweAgent(choice, steps="10").digest(None) != digest
    other = choice.model_copy(update={"name": "other"})
    assert MiniSweAgent(other).digest(None) != digest
    assert installing.version() == "2.4.6"


def test_options_that_are_none_are_refused(model):
    with pytest.raises(RebError, match="none is named"):
        make_agent("mini_swe")
    for options in ({"steps": "0"}, {"steps": "many"}, {"wire": "telepathy"}):
        with pytest.raises(RebError):
            make_agent("mini_swe", options, chosen(model))
    assert agent_wire("mini_swe", {}) == "openai-chat"
    assert agent_wire("mini_swe", {"wire": "anthropic-messages"}) == "anthropic-messages"


def test_the_doctor_knows_it(model, tmp_path, monkeypatch):
    monkeypatch.setenv("REB_CACHE", str(tmp_path / "cache"))
    lines = {line.what: line for line in examine_agent("mini_swe", {}, chosen(model), os.environ)}
    assert "2.4.6 will be installed by the first run" in lines["program"].found
    assert lines["protocol"].found == "openai-chat"


def test_an_installation_that_fails_says_why(tmp_path, monkeypatch):
    for name in ("UV_FIND_LINKS", "PIP_FIND_LINKS"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("PIP_CONFIG_FILE", "/dev/null")
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    said = []
    with pytest.raises(RebError, match="cannot be installed") as raised:
        installing.install(said.append, tmp_path)
    assert "index" in raised.value.advice
    assert not installing.is_installed(installing.environment(tmp_path))
    assert len(said) == 1


@pytest.fixture(scope="session")
def real_cache(tmp_path_factory):
    """The cache in which the real mini-swe-agent is installed, once."""
    return tmp_path_factory.mktemp("cache")


def bash(said, command):
    return Turn(said, (Tool("bash", {"command": command}),))


REPORT = 'cd .. && printf \'{"python_path": "%s/env/bin/python", "env_tool": "venv"}\' $PWD'
SCRIPT = [
    bash("I look around.", "ls; cd /"),
    Turn("I forgot to call the tool."),
    bash("I make an environment.", "python3 -m venv --without-pip ../env && echo $PWD"),
    bash("I install.", "../env/bin/python install.py; seq 100000"),
    bash("I report.", f"{REPORT} > report.json; cat report.json"),
    bash("Done.", "echo COMPLETE_TASK_AND_SUBMIT_FINAL_OUTPUT"),
]


@pytest.mark.slow
@pytest.mark.network
@pytest.mark.parametrize("wire", ["openai-chat", "anthropic-messages", "openai-responses"])
def test_the_real_one_builds_through_the_relay(wire, real_cache, tmp_path, monkeypatch):
    from researchenvbench import read_run, reward
    from researchenvbench.run.job import run_job
    from researchenvbench.run.store import Job

    monkeypatch.setenv("REB_CACHE", str(real_cache))
    place = tmp_path / "run" / "attempts" / "adder--1"
    place.mkdir(parents=True)
    (tmp_path / "run" / "run.json").write_text('{"agent": "mini_swe"}')
    with ModelServer(SCRIPT, model=MODEL, key=KEY) as server:
        Job(
            suite="small",
            task_folder=str(SUITE / "adder"),
            task="adder",
            agent="mini_swe",
            agent_options={"wire": wire},
            model=chosen(server, wire),
        ).save(place / "job.json")
        run_job(place, "all")
        asked = [request.json for request in server.turns]
    [record] = read_run(tmp_path / "run")
    assert record.build.outcome == "finished", (place / "logs" / "agent.log").read_text()
    assert (record.build.reason, record.build.fault) == ("", None)
    assert reward(record) == 1.0
    assert len(asked) == len(SCRIPT)
    assert "bytes left out" in json.dumps(asked[-1]), "much output is shortened"
    steps = read_steps(place / TRANSCRIPT)
    assert [step.said for step in steps] == [turn.text for turn in SCRIPT if turn.tools]
    assert [step.failed for step in steps] == [False] * 5
    assert len({step.turn for step in steps}) == 5
    used = record.build.model
    assert used.calls == len(SCRIPT)
    assert used.failed_calls == 0
    assert used.tokens == sum((r.usage for r in server.turns), Tokens())
    told = [step.tokens for step in steps]
    assert told == [r.usage for r in server.turns if r.number != 2]
    assert record.build.steps == 5
    kept = json.loads((place / "trajectory.json").read_text())
    assert kept["info"]["exit_status"] == "Submitted"
    assert kept["info"]["mini_version"] == "2.4.6"
    for path in place.rglob("*"):
        if path.is_file() and "box" not in path.parts:
            assert KEY.encode() not in path.read_bytes(), path
    token = (place / "model" / "token").read_bytes().strip()
    for name in ("trajectory.json", "logs/agent.log", "logs/build.log", TRANSCRIPT):
        assert token not in (place / name).read_bytes(), name


@pytest.mark.slow
@pytest.mark.network
@pytest.mark.parametrize(
    ("script", "outcome", "fault"),
    [
        ([Fault(401)], "void", "wrong_key"),
        ([Fault(404), Fault(404), Fault(404)], "void", "unknown_model"),
        ([bash("Once.", "ls"), Fault(404), Fault(404), Fault(404)], "finished", "crashed"),
        ([Turn("No."), Turn("No."), Turn("No.")], "finished", "crashed"),
        ([bash("Never done.", "sleep 60")] * 9, "time_limit", "time_limit"),
    ],
)
def test_how_the_real_one_fails(script, outcome, fault, real_cache, assign, attempt, monkeypatch):
    monkeypatch.setenv("REB_CACHE", str(real_cache))
    with ModelServer(script, model=MODEL, key=KEY) as server:
        agent = make_agent("mini_swe", {}, chosen(server))
        with open_access(agent.model, attempt, listen_on_host, resumed=False) as access:
            installing.install(print)
            given = assign(seconds=25.0 if outcome == "time_limit" else 120.0, model=access)
            ended = agent.build(given)
    assert (ended.outcome, ended.fault) == (outcome, fault), (
        ended,
        (attempt / "logs" / "agent.log").read_text()[-2000:],
    )
    assert ended.reason


@pytest.mark.slow
@pytest.mark.network
@pytest.mark.container
def test_a_build_whose_harness_was_killed_begins_anew_and_is_replayed_elsewhere(
    debian_image, real_cache, tmp_path, monkeypatch
):
    from researchenvbench import read_run
    from researchenvbench.run.job import run_job
    from researchenvbench.run.store import Job
    from researchenvbench.sandbox import make_sandbox

    monkeypatch.setenv("REB_CACHE", str(real_cache))
    place = tmp_path / "run" / "attempts" / "adder--1"
    place.mkdir(parents=True)
    (tmp_path / "run" / "run.json").write_text('{"agent": "mini_swe"}')
    again = tmp_path / "again" / "attempts" / "adder--1"
    again.mkdir(parents=True)
    (tmp_path / "again" / "run.json").write_text('{"agent": "replay"}')
    script = [bash("I wait.", "touch waited; sleep 300"), *SCRIPT]
    task = {"suite": "small", "task_folder": str(SUITE / "adder"), "task": "adder"}
    try:
        with ModelServer(script, model=MODEL, key=KEY) as server:
            job = Job(**task, agent="mini_swe", sandbox="podman", model=chosen(server))
            job.save(place / "job.json")
            argv = [sys.executable, "-m", "researchenvbench", "job", str(place)]
            first = subprocess.Popen(argv, start_new_session=True)
            events, until = place / "events.jsonl", time.monotonic() + 120
            while not (events.exists() and "step 1" in events.read_text()):
                assert time.monotonic() < until
                time.sleep(0.2)
            time.sleep(1)
            first.kill()
            first.wait()
            run_job(place, "all")
        [record] = read_run(tmp_path / "run")
        assert (record.build.outcome, record.build.reason) == ("finished", "")
        assert record.results["C1"].verdict == "passed"
        assert record.build.model.calls == len(SCRIPT)
        assert record.build.model.lost_tokens == server.turns[0].usage
        assert "waited" not in record.untracked, "the first container was left"
        Job(**task, agent="replay", agent_options={"attempt": str(place)}).save(again / "job.json")
        run_job(again, "all")
        [replayed] = read_run(tmp_path / "again")
        assert replayed.build.reason == ""
        assert replayed.results["C1"].verdict == "passed", "what ran in a container runs here"
    finally:
        make_sandbox("podman").discard(place)
