"""Which changes of a task a gold build outlives, and which it does not."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from researchenvbench.agents.builtin import BuiltinAgent
from researchenvbench.agents.script import GoldAgent
from researchenvbench.network_use import NetworkUse, Reach
from researchenvbench.run.done import build_to_do
from researchenvbench.run.store import Job, RunFolder
from researchenvbench.taskfile import load_task

from .conftest import SUITE, Reb

REMOVED = "build again: its environment was removed"


@pytest.fixture(scope="module")
def built(shared_cache, tmp_path_factory):
    """A suite, and a run in which gold was built for its smallest task."""
    folder = tmp_path_factory.mktemp("built")
    suite = Path(shutil.copytree(SUITE, folder / "small"))
    text = (suite / "adder" / "task.toml").read_text()
    (suite / "adder" / "more.txt").write_text("a file that the recipe names")
    steps = '[["{python}", "{repo}/install.py"], ["ls", "{task}/more.txt"]]'
    text = text.replace('[["{python}", "{repo}/install.py"]]', steps)
    (suite / "adder" / "task.toml").write_text(text)
    # Its twin's recipe does not look into the task's folder.
    shutil.copytree(SUITE / "adder", suite / "twin")
    twin = suite / "twin" / "task.toml"
    twin.write_text(twin.read_text().replace('name = "adder"', 'name = "twin"'))
    tasks = ("--only", "adder", "--only", "twin")
    reb = Reb(shared_cache, folder)
    made = reb("run", suite, "--agent", "gold", *tasks, "--out", folder / "run")
    assert made.returncode == 0, made.stderr
    return suite, RunFolder(folder / "run")


@pytest.fixture
def after(built, shared_cache, tmp_path, monkeypatch):
    """Why gold is built again for a task after a change of a file in its folder."""
    monkeypatch.setenv("REB_CACHE", str(shared_cache))

    def ask(task, file="task.toml", old="", new="", *, change=lambda attempt: None, **asked):
        place = tmp_path / str(len(list(tmp_path.iterdir())))
        suite = Path(shutil.copytree(built[0], place / "small"))
        run = RunFolder(Path(shutil.copytree(built[1].path, place / "run", symlinks=True)))
        path = suite / task / file
        text = path.read_text()
        assert old in text
        path.write_text(text.replace(old, new) if old else text)
        attempt = run.attempt(task, 1)
        change(attempt)
        job = Job.load(attempt.job_file)
        return build_to_do(attempt, job, load_task(suite / task), GoldAgent(), **asked)

    return ask


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("at_least = 3", "at_least = 2"),
        ("time_limit_s = 60", "time_limit_s = 61"),
        ('remove = ["adder.py"]', 'stub = ["adder"]'),
        ('domain = "arithmetic"', 'domain = "arithmetic"\nframeworks = ["torch"]'),
    ],
    ids=["evidence", "stage", "breakage", "what is judged"],
)
def test_a_change_that_the_recipe_cannot_see_keeps_the_build(after, old, new):
    assert after("twin", old=old, new=new) == ""


@pytest.mark.parametrize(
    ("task", "file", "old", "new", "said"),
    [
        ("twin", "task.toml", "steps = [[", 'steps = [["true"], [', "the agent's configuration"),
        ("twin", "task.toml", "[gold]", '[gold]\nenv.X = "1"', "the agent's configuration"),
        ("twin", "task.toml", "[gold]", '[gold]\npython = ">=3.10"', "the agent's configuration"),
        ("twin", "repository/train.py", "import", "import sys\nimport", "the source has changed"),
        ("twin", "task.toml", 'path = "repository"', 'path = "./repository"', "the task"),
        ("adder", "more.txt", "file", "changed file", "the agent's configuration"),
        ("adder", "task.toml", "at_least = 3", "at_least = 2", "the agent's configuration"),
    ],
    ids=["steps", "variable", "python", "source", "named", "a file", "what it may read"],
)
def test_a_change_that_it_can_see_does_not(after, task, file, old, new, said):
    assert after(task, file, old, new).startswith(f"build again: {said}")


def test_an_older_or_a_failed_build_does_not_outlive_a_change(after):
    def older(attempt, **said):
        attempt.load_build().model_copy(update=said).save(attempt.build_file)

    for said in ({"given_digest": ""}, {"exit_code": 1}, {"exit_code": None}):
        found = after(
            "twin",
            old="at_least = 3",
            new="at_least = 2",
            change=lambda attempt, said=said: older(attempt, **said),
        )
        assert found == "build again: the task has changed"


@pytest.mark.parametrize(
    "asked", [Reach(policy="none"), Reach(policy="registries", allow_hosts=("x.example",))]
)
def test_a_build_that_could_reach_something_else_is_made_again(after, asked):
    def reached(attempt):
        use = NetworkUse(**dict(asked), fetches=3, refused=1)
        attempt.load_build().model_copy(update={"network": use}).save(attempt.build_file)

    def ask(attempt):
        setting = {"network": asked}
        Job.load(attempt.job_file).model_copy(update=setting).save(attempt.job_file)

    def both(attempt):
        reached(attempt)
        ask(attempt)

    other = "build again: what builds reach of networks has changed"
    assert after("twin", change=reached) == other
    assert after("twin", change=ask) == other
    # What came of it is no part of what was asked for.
    assert after("twin", change=both) == ""


def test_an_agent_that_sees_the_task_is_given_another(built, tmp_path):
    suite, run = built
    agent = BuiltinAgent()
    folder = tmp_path / "attempts" / "twin--1"
    folder.mkdir(parents=True)
    attempt = RunFolder(tmp_path).attempt("twin", 1)
    text = (suite / "twin" / "task.toml").read_text()
    task = load_task(suite / "twin")
    facts = {"agent": "builtin", "agent_digest": agent.digest(task)}
    run.attempt("twin", 1).load_build().model_copy(update=facts).save(attempt.build_file)
    changed = Path(shutil.copytree(suite, tmp_path / "changed")) / "twin"
    (changed / "task.toml").write_text(text.replace("at_least = 3", "at_least = 2"))
    job = Job.load(run.attempt("twin", 1).job_file)
    assert build_to_do(attempt, job, load_task(changed), agent) == (
        "build again: the task has changed"
    )


def test_what_was_judged_needs_no_environment_and_what_was_not_does(after):
    def remove(attempt):
        shutil.rmtree(attempt.path / "box")

    assert after("twin", change=remove) == ""
    assert after("twin", change=remove, needed=True) == REMOVED
    # Gold's build would be kept after such a change, and there is none to judge.
    assert after("twin", old="at_least = 3", new="at_least = 2", change=remove) == REMOVED
