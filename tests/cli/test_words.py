"""Numbers and short words in what the command line says."""

from pathlib import Path

from researchenvbench.agents import agent_names
from researchenvbench.cli.task_words import _SHORT
from researchenvbench.cli.totals import sum_words
from researchenvbench.run.totals import Sum

from .test_commands import reb

SUITE = Path(__file__).parents[1] / "suites" / "small"


def test_a_plan_of_one_attempt(tmp_path):
    line = ("run", SUITE, "--agent", "gold", "--only", "adder", "--out", tmp_path / "run")
    said = reb(*line, "--dry-run").stdout.splitlines()
    assert said[2].startswith("1 attempt, 1 to build, at 1 of 2 tasks: named tasks. Run folder: ")
    assert reb(*line, "--quiet").returncode == 0
    said = reb(*line, "--dry-run").stdout.splitlines()
    assert said[1].split() == ["adder--1", "-", "-", "-", "-", "done"]
    assert said[2].startswith("1 attempt, none to build, ")
    assert len(said) == 3


def test_a_sum_over_one_repository():
    for counted, said in ((1, "in 1 repository ("), (2, "in 2 repositories (")):
        summed = Sum(counted, 7, None, None, gone=(), missing=())
        assert said in next(iter(sum_words([], summed)))


def test_every_agent_is_named_in_help():
    said = " ".join(reb("run", "--help").stdout.split())
    assert "Who builds: builtin, which needs no model; claude_code, codex and others" in said
    listed = reb("agents", "list").stdout.split("presets")[0]
    for name in agent_names():
        assert f"  {name} " in listed
    assert "did you mean 'gold'?" in reb("run", SUITE, "--agent", "godl").stderr


def test_short_words_of_the_table_are_explained_below_it():
    said = reb("tasks", "list", "paper44").stdout
    assert "undistributed" not in said
    assert "one process: likewise, since the repository offers no distributed run" in said
    assert _SHORT["not_distributed"] == "one process"
