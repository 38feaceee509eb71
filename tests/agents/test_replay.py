"""What an attempt did is done again, elsewhere, and what comes out otherwise is said."""

import json
import shutil
from pathlib import Path

import pytest

from researchenvbench.agents import make_agent
from researchenvbench.agents.replay import mapped_to
from researchenvbench.agents.transcript import (
    LAYOUT,
    TRANSCRIPT,
    Places,
    Step,
    read_steps,
    write_steps,
)
from researchenvbench.errors import RebError, RecordError

OLD = "/old run/attempts/x--1/box"
PLACES = Places(
    root=OLD,
    repo=f"{OLD}/repo",
    home=f"{OLD}/home",
    tmp=f"{OLD}/tmp",
    cache=f"{OLD}/cache",
    env=f"{OLD}/env",
    report=f"{OLD}/report.json",
)
IN_A_CONTAINER = Places(
    root="/",
    repo="/workspace/repo",
    home="/root",
    tmp="/tmp",
    cache="/root/.cache",
    env="/workspace/env",
    report="/workspace/report.json",
)


@pytest.fixture
def earlier(tmp_path):
    """Makes the folder of an earlier attempt, of steps without their numbers."""

    def make(*steps, places=PLACES):
        folder = tmp_path / "earlier"
        folder.mkdir(exist_ok=True)
        numbered = [Step(number=number, **step) for number, step in enumerate(steps, start=1)]
        write_steps(folder / TRANSCRIPT, numbered)
        places.save(folder / LAYOUT)
        return folder

    return make


def command(text, status=0, **more):
    return {"kind": "command", "command": text, "exit_status": status, **more}


def replay(folder, assignment):
    return make_agent("replay", {"attempt": str(folder)}).build(assignment)


def test_commands_files_and_edits_are_done_again_here(earlier, assign):
    assignment = assign()
    repo, env = assignment.box.layout.repo, assignment.box.layout.env
    folder = earlier(
        command(f"mkdir -p '{OLD}/env/bin' && cd deep"),
        command("pwd > where"),
        command("pwd > above", cwd=f"{OLD}/repo"),
        {
            "kind": "write",
            "path": f"{OLD}/env/bin/run",
            "content": f"#!{OLD}/env/bin/python\nüx = 1\nx = 1\n",
        },
        command(f"chmod 750 '{OLD}/env/bin/run'"),
        {
            "kind": "edit",
            "path": f"{OLD}/env/bin/run",
            "replaced": "üx = 1",
            "content": f"y = '{OLD}/repo'",
        },
        {"kind": "write", "path": "relative/made.txt", "content": "no end of line"},
        {"kind": "write", "path": "large", "content": "abcdefghij" * 20_000},
        {"kind": "write", "path": "never", "content": "x", "failed": True},
        {"kind": "other", "command": "Task"},
    )
    outcome = replay(folder, assignment)
    assert (outcome.outcome, outcome.exit_code) == ("finished", 0)
    assert outcome.reason == "1 could not be done again: 10"
    assert (repo / "deep" / "where").read_text() == f"{repo}/deep\n"
    assert (repo / "above").read_text() == f"{repo}\n"
    run = env / "bin" / "run"
    assert run.read_text() == f"#!{env}/bin/python\ny = '{repo}'\nx = 1\n"
    assert run.stat().st_mode & 0o777 == 0o750, "an edit leaves a file's permissions"
    assert (repo / "relative" / "made.txt").read_text() == "no end of line"
    assert (repo / "large").read_text() == "abcdefghij" * 20_000
    assert not (repo / "never").exists()
    again = read_steps(assignment.log.parent.parent / TRANSCRIPT)
    assert [step.kind for step in again] == ["command"] * 3 + [
        *("write", "command", "edit", "write", "write", "write")
    ]
    assert OLD not in "".join(step.model_dump_json() for step in again)


def test_an_edit_is_of_one_place_or_of_each(earlier, assign):
    assignment = assign()
    twice = {"kind": "edit", "path": "text", "replaced": "a", "content": "b"}
    folder = earlier(
        {"kind": "write", "path": "text", "content": "a a"},
        twice,
        {**twice, "replaced": "c"},
        {**twice, "path": "absent"},
        {**twice, "everywhere": True},
    )
    outcome = replay(folder, assignment)
    assert outcome.reason == "3 of 5 steps ended otherwise: 2, 3, 4"
    assert (assignment.box.layout.repo / "text").read_text() == "b b"
    log = assignment.log.read_text()
    assert "replaced 2 times" in log
    assert "replaced 0 times" in log


def test_a_patch_is_applied_where_its_text_is(earlier, assign):
    diff = "@@ -1,2 +1,2 @@\n-print('training')\n+print('patched')\n@@ -9 +9 @@\n-two\n+2\n"
    folder = earlier(
        command("echo two >> train.py"),
        {"kind": "other", "command": "apply_patch", "path": "train.py", "content": diff},
        {"kind": "other", "command": "apply_patch", "path": "train.py", "content": diff},
    )
    assignment = assign()
    outcome = replay(folder, assignment)
    assert (assignment.box.layout.repo / "train.py").read_text() == "print('patched')\n2\n"
    assert outcome.reason == "1 of 3 steps ended otherwise: 3"


def test_what_ends_otherwise_is_said_and_the_rest_is_done(earlier, assign):
    folder = earlier(
        command("exit 3", 3),
        command("exit 4", 0),
        command("sleep 600", None, failed=True, seconds=0.1),
        command("true", None, failed=True),
        command("touch reached"),
    )
    assignment = assign()
    outcome = replay(folder, assignment)
    assert outcome.reason == "2 of 5 steps ended otherwise: 2, 4"
    assert (assignment.box.layout.repo / "reached").exists()
    assert "it exited with 0, and now exited with 4" in assignment.log.read_text()


def test_it_ends_with_the_time_for_building(earlier, assign):
    folder = earlier(command("sleep 600"), {"kind": "write", "path": "x", "content": "x"})
    outcome = replay(folder, assign(seconds=0.7))
    assert outcome.outcome == "time_limit"
    assert outcome.reason == "out of time before step 2 of 2"


def test_paths_are_known_by_where_they_begin_and_end(assign):
    assignment = assign()
    layout = assignment.box.layout
    here = mapped_to(IN_A_CONTAINER, assignment)
    assert here("cd /workspace/repo&&ls /tmp") == f"cd {layout.repo}&&ls {layout.tmp}"
    assert here("X=/root/.cache:/root") == f"X={layout.cache}:{layout.home}"
    assert here("file:///workspace/repo/a") == f"file://{layout.repo}/a"
    for same in ("/tmpfs", "/var/tmp", "~/tmp", "$X/tmp", "${X}/tmp", "/root.old", "a/root", "/"):
        assert here(same) == same
    assert here("It is in /workspace/repo.") == f"It is in {layout.repo}."


def test_what_decides_is_in_the_digest(earlier):
    def digest(*steps, places=PLACES):
        return make_agent("replay", {"attempt": str(earlier(*steps, places=places))}).digest(None)

    first = digest(command("ls"))
    assert digest(command("ls", output="otherwise", said="hm", seconds=3.0)) == first
    assert digest(command("ls -l")) != first
    assert digest(command("ls"), places=IN_A_CONTAINER) != first


def test_what_cannot_be_replayed_is_said(earlier, tmp_path):
    with pytest.raises(RebError, match="needs an attempt"):
        make_agent("replay", {})
    with pytest.raises(RecordError, match="no such folder"):
        make_agent("replay", {"attempt": str(tmp_path / "nowhere")}).digest(None)
    with pytest.raises(RecordError, match="has no transcript"):
        make_agent("replay", {"attempt": str(tmp_path)}).digest(None)
    folder = earlier(command("ls"))
    (folder / TRANSCRIPT).write_text('{"number": 1}\n')
    with pytest.raises(RecordError, match="line 1"):
        make_agent("replay", {"attempt": str(folder)}).digest(None)


def test_claude_codes_shell_stays_where_a_command_ends(tmp_path):
    from researchenvbench.agents.transcripts import claude_code

    def uses(name, command):
        return {
            "type": "assistant",
            "message": {
                "id": name,
                "content": [
                    {"type": "tool_use", "id": name, "name": "Bash", "input": {"command": command}}
                ],
            },
        }

    lines = [{"type": "system", "cwd": "/workspace/repo"}, uses("1", "cd deep"), uses("2", "ls")]
    assert [step.cwd for step in claude_code.steps(lines)] == ["/workspace/repo", None]


def test_an_episode_is_replayed_with_its_report(tmp_path, monkeypatch):
    from researchenvbench import Episode, reward
    from researchenvbench.attempt import BuildResult
    from researchenvbench.run.job import run_job
    from researchenvbench.run.store import Job

    monkeypatch.setenv("REB_CACHE", str(tmp_path / "cache"))
    suite = Path(__file__).parents[1] / "suites" / "small"
    with Episode(str(suite / "adder"), folder=tmp_path / "first", time_limit_s=120) as episode:
        env = Path(episode.reset().repo).parent / "env"
        episode.step(f"python3 -m venv --without-pip {env}; cat {env}/pyvenv.cfg")
        episode.step(f"{env}/bin/python install.py")
        first = episode.finish({"python_path": f"{env}/bin/python", "env_tool": "venv"})
    kept = shutil.move(tmp_path / "first", tmp_path / "moved")
    place = tmp_path / "second" / "attempts" / "adder--1"
    place.mkdir(parents=True)
    Job(
        suite="small",
        task_folder=str(suite / "adder"),
        task="adder",
        agent="replay",
        agent_options={"attempt": str(kept)},
    ).save(place / "job.json")
    (tmp_path / "second" / "run.json").write_text(json.dumps({"agent": "replay"}))
    run_job(place, "build")
    again = BuildResult.load(place / "build.json")
    assert (again.outcome, again.reason) == ("finished", "")
    assert again.report.python_path == first.python.replace("/first/", "/second/")
    assert Path(again.report.python_path).is_file()
    assert reward(first) == 1.0
