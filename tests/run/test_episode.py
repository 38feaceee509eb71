"""An episode is an attempt like any other; only who decides what to do next is outside."""

import time
from pathlib import Path

import pytest

import researchenvbench
from researchenvbench import Episode, read_run, reward
from researchenvbench.agents import make_agent
from researchenvbench.agents.transcript import read_steps
from researchenvbench.agents.turns import OutOfTimeError
from researchenvbench.attempt import Level, Report, Verdict
from researchenvbench.errors import RebError, TaskError
from researchenvbench.run.job import AttemptRun

from .conftest import SUITE

BUILD = 'python3 -m venv --without-pip "$ENV" && "$ENV/bin/python" install.py'


@pytest.fixture(autouse=True)
def cache(shared_cache, monkeypatch):
    monkeypatch.setenv("REB_CACHE", str(shared_cache))


@pytest.fixture
def temporary(tmp_path, monkeypatch):
    """Where an episode without a folder of its own goes."""
    import tempfile

    (tmp_path / "temporary").mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path / "temporary"))
    return tmp_path / "temporary"


def adder(**options):
    return Episode(str(SUITE / "adder"), time_limit_s=options.pop("time_limit_s", 120), **options)


def build(episode, begin):
    env = Path(begin.repo).parent / "env"
    done = episode.step(f"export ENV='{env}'; {BUILD}")
    assert done.exit_status == 0, done.output
    return {"python_path": str(env / "bin" / "python"), "env_tool": "venv"}


def test_a_policy_builds_and_is_judged(temporary):
    with adder() as episode:
        begin = episode.reset()
        assert begin.repo in begin.text
        assert begin.report in begin.text
        assert 100 < begin.left_s <= 120
        listed = episode.step("ls; cd /; false")
        assert "train.py" in listed.output
        assert listed.exit_status == 1
        assert listed.left_s < begin.left_s
        assert episode.step("pwd").output == "/\n", "the folder stays, as in a shell"
        episode.step(f"cd {begin.repo}")
        record = episode.finish(build(episode, begin))
        assert record.results[Level.C1].verdict is Verdict.PASSED
        assert record.agent == "episode"
        assert record.build.report.env_tool == "venv"
        assert reward(record) == 1.0
        assert episode.record is record
        assert len(read_steps(episode.folder / "transcript.jsonl")) == 4
    assert list(temporary.iterdir()) == [], "nothing is left of what was not to be kept"


def test_what_is_kept_is_a_run(tmp_path, reb):
    run = tmp_path / "run"
    with adder(folder=run) as episode:
        begin = episode.reset()
        first = episode.finish(Report(**build(episode, begin)))
        episode.reset()
        second = episode.finish()
        episode.reset()
        given_up = episode.folder
    assert [record.attempt for record in read_run(run)] == [1, 2]
    assert (reward(first), second.status) == (1.0, "no_report")
    assert reward(second) < 1
    assert not given_up.exists()
    shown = reb("report", run)
    assert shown.returncode == 0, shown.stderr
    assert "episode" in shown.stdout
    again = AttemptRun(run / "attempts" / "adder--1")
    assert again.agent.name == "episode", "it can be judged again, by what is kept"


def test_what_is_done_out_of_order_is_said(temporary):
    episode = adder()
    for misuse in (lambda: episode.step("ls"), episode.finish, lambda: episode.folder):
        with pytest.raises(RebError, match=r"call reset\(\) first"):
            misuse()
    episode.reset()
    episode.finish()
    with pytest.raises(RebError, match="finished and judged"):
        episode.step("ls")
    with pytest.raises(RebError, match="finished and judged"):
        episode.finish()
    episode.close()
    episode.close()
    with pytest.raises(RebError, match="closed"):
        episode.reset()
    with pytest.raises(RebError, match="closed"):
        episode.step("ls")
    assert list(temporary.iterdir()) == []
    with pytest.raises(TaskError, match="no task"):
        Episode("starter/nothing-of-this-name")


def test_reset_begins_anew_and_nothing_is_left_of_the_first(temporary):
    with adder() as episode:
        episode.reset()
        episode.step("touch mine")
        first = episode.folder
        episode.reset()
        assert not first.exists()
        assert "mine" not in episode.step("ls").output


def test_when_the_time_is_over_what_is_there_is_judged(temporary):
    with adder(time_limit_s=2.5) as episode:
        episode.reset()
        late = episode.step("echo begun; sleep 60")
        assert late.timed_out
        assert (late.output, late.exit_status, late.left_s) == ("begun\n", None, 0)
        with pytest.raises(OutOfTimeError):
            episode.step("echo never")
        record = episode.finish({"env_tool": "none"})
    assert record.build.outcome == "time_limit"
    assert record.build.report.env_tool == "none"
    assert record.results[Level.C1].verdict is Verdict.FAILED


def test_a_single_command_has_a_limit_of_its_own(temporary):
    with adder(step_limit_s=0.5) as episode:
        episode.reset()
        began = time.monotonic()
        assert episode.step("sleep 60").timed_out
        assert time.monotonic() - began < 20
        assert episode.step("sleep 1; echo well", time_limit_s=30).output == "well\n"


def test_cheating_is_the_worst(temporary):
    with adder() as episode:
        begin = episode.reset()
        report = build(episode, begin)
        started = episode.step("setsid sleep 600 >/dev/null 2>&1 & echo $!; echo > train.py")
        assert reward(episode.finish(report)) == -1
        left = Path("/proc") / started.output.strip()
        assert not left.exists(), "what was left running ends with the episode"


def test_a_run_cannot_have_it(reb):
    done = reb("run", SUITE, "--only", "adder", "--agent", "episode", "--i-trust-this-agent")
    assert done.returncode != 0
    assert "built by the program that drove it" in done.stderr
    with pytest.raises(RebError):
        make_agent("episode", {"recipe": "x"})


def test_the_public_names_are_loaded_when_they_are_used():
    assert researchenvbench.reward is reward
    assert researchenvbench.Episode is Episode
