"""Turns, episodes and replays in containers: the same as on this host."""

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from researchenvbench import Episode, read_run, reward
from researchenvbench.agents.transcript import TRANSCRIPT, read_steps
from researchenvbench.run.job import run_job
from researchenvbench.run.store import Job

SUITE = Path(__file__).parents[2] / "suites" / "small"
pytestmark = [pytest.mark.container, pytest.mark.slow]


@pytest.fixture
def base(debian_image, monkeypatch, tmp_path):
    monkeypatch.setenv("REB_CACHE", str(tmp_path / "cache"))
    return debian_image


def discard(record_folder):
    from researchenvbench.sandbox import make_sandbox

    make_sandbox("podman").discard(record_folder)


def job(run, agent, **options):
    place = run / "attempts" / "adder--1"
    place.mkdir(parents=True)
    (run / "run.json").write_text(f'{{"agent": "{agent}"}}')
    Job(
        suite="small",
        task_folder=str(SUITE / "adder"),
        task="adder",
        sandbox="podman",
        agent=agent,
        agent_options=options,
    ).save(place / "job.json")
    return place


def test_an_episode_in_a_container_and_its_replays(base, tmp_path):
    places = []
    try:
        with Episode(
            str(SUITE / "adder"), "podman", folder=tmp_path / "first", time_limit_s=300
        ) as episode:
            begin = episode.reset()
            assert begin.repo == "/workspace/repo"
            made = episode.step("cd /workspace; python3 -m venv --without-pip env; exit 3")
            assert (made.exit_status, made.output) == (3, "")
            assert episode.step("pwd").output == "/workspace\n"
            late = episode.step("echo begun; sleep 60", time_limit_s=1)
            assert (late.output, late.timed_out) == ("begun\n", True)
            assert episode.step("env/bin/python repo/install.py").exit_status == 0
            first = episode.finish({"python_path": "/workspace/env/bin/python"})
            places.append(episode.folder)
        assert reward(first) == 1.0
        places.append(job(tmp_path / "second", "replay", attempt=str(tmp_path / "first")))
        run_job(places[-1], "all")
        [again] = read_run(tmp_path / "second")
        assert again.build.reason == ""
        assert reward(again) == 1.0
    finally:
        for place in places:
            discard(place)


def test_a_replay_that_was_killed_goes_on(base, tmp_path):
    folder = tmp_path / "earlier"
    folder.mkdir()
    steps = ["cd /workspace; echo one >> /root/count", "sleep 8; echo two >> /root/count", "pwd"]
    (folder / TRANSCRIPT).write_text(
        "".join(
            f'{{"number": {number}, "kind": "command", "command": "{text}", "exit_status": 0}}\n'
            for number, text in enumerate([*steps, "cat /root/count; exit 1"], start=1)
        )
    )
    places = '{"root": "/", "repo": "/workspace/repo", "home": "/root", "tmp": "/tmp", '
    places += '"cache": "/root/.cache", "env": "/workspace/env", "report": "/workspace/r.json"}'
    (folder / "layout.json").write_text(places)
    place = job(tmp_path / "run", "replay", attempt=str(folder))
    try:
        argv = [sys.executable, "-m", "researchenvbench", "job", str(place), "--phase", "build"]
        first = subprocess.Popen(argv, env=dict(os.environ), start_new_session=True)
        events, until = place / "events.jsonl", time.monotonic() + 60
        while not (events.exists() and "step 2" in events.read_text()):
            assert time.monotonic() < until
            time.sleep(0.2)
        os.killpg(first.pid, signal.SIGKILL)
        first.wait()
        run_job(place, "build")
        done = read_steps(place / TRANSCRIPT)
        assert done[2].output == "/workspace\n"
        assert done[3].output == "one\ntwo\n", "nothing was done twice"
    finally:
        discard(place)
