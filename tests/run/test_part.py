"""A part of a suite: by name, by domain, and by rules of which one stage meets all."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import TYPE_CHECKING, get_args

import click
import pytest

from researchenvbench.attempt import Verdict
from researchenvbench.cli.run import command as run_command
from researchenvbench.errors import TaskError
from researchenvbench.proofs import GpuProof, Ledger, StageProof, damage_digest, ledger_file
from researchenvbench.run.part import SMALL_BYTES, Subset, choose
from researchenvbench.task import StageName
from researchenvbench.taskfile import bundled_suites, load_suite

from ..test_proofs import broken, proof_of
from .conftest import SUITE

if TYPE_CHECKING:
    from .conftest import Reb

TASK = """
schema = 1
name = "{name}"
domain = "{domain}"

[source]
kind = "git"
url = "https://example.org/x.git"
commit = "0123456789012345678901234567890123456789"
{source}
"""
STAGE = """
[stages.{stage}]
command = ["{{python}}", "x.py"]
assets = [{assets}]
{more}

[[stages.{stage}.evidence]]
kind = "output"
pattern = "done"
"""
BREAKAGES = """
[breakages.no_x]
description = "x is gone"
level = "{level}"
uninstall = ["x"]
because = "x"
"""
HUB = '\n[assets.{name}]\nkind = "hub"\nrepo = "o/r"\n'
STAND_IN = '\n[assets.{name}.stand_in]\nscript = "make.py"\n'


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A suite with a task of each kind; the ledger proves what it does."""
    suite = tmp_path / "mixed"
    write(suite, "plain", STAGE.format(stage="cpu", assets="", more=""))
    write(suite, "stood_in", STAGE.format(stage="cpu", assets='"m"', more="")
          + HUB.format(name="m") + STAND_IN.format(name="m"))  # fmt: skip
    write(suite, "from_hub", STAGE.format(stage="cpu", assets='"m"', more="")
          + HUB.format(name="m"))  # fmt: skip
    write(suite, "online", STAGE.format(stage="cpu", assets="", more="network = true"))
    write(suite, "gone", STAGE.format(stage="cpu", assets="", more=""),
          source='unavailable = "nobody has it"')  # fmt: skip
    write(suite, "unwritten", "")
    both = STAGE.format(stage="cpu", assets="", more="")
    both += STAGE.format(stage="single_gpu", assets='"m"', more="")
    write(suite, "both", both + HUB.format(name="m") + BREAKAGES.format(level="C3"), domain="gpus")
    return suite


def write(suite: Path, name: str, text: str, *, domain: str = "words", source: str = "") -> None:
    """One task of the suite, with a breakage of its CPU stage where it has none."""
    (suite / name).mkdir(parents=True)
    (suite / name / "make.py").write_text("")
    head = TASK.format(name=name, domain=domain, source=source)
    tail = "" if "breakages" in text else BREAKAGES.format(level="C1")
    (suite / name / "task.toml").write_text(head + text + tail)


def prove(suite: Path, *, on_gpus: str = "", **sizes: int) -> None:
    """Write a ledger that proves the CPU stages of these tasks, each with so many bytes."""
    tasks = load_suite(suite)
    stage = StageProof(stage=StageName.CPU, verdict=Verdict.PASSED, seconds=10.0)
    proofs = {
        name: proof_of(
            tasks.task(name),
            size_bytes=size,
            build_seconds=20.0,
            stages=(stage,),
            breakages=(broken("no_x"),),
        )
        for name, size in sizes.items()
    }
    seen = {}
    if on_gpus:
        task, name = tasks.task(on_gpus), StageName.SINGLE_GPU
        seen[f"{on_gpus}/{name}"] = GpuProof(
            task=on_gpus,
            stage=StageProof(stage=name, verdict=Verdict.PASSED, seconds=5.0),
            task_digest=task.digest,
            damage_digest=damage_digest(task, name),
            date="",
            reb_version="0",
            system="",
            python_version="3",
            gpus=("a card",),
            driver="",
            breakages=(broken("no_x", level="C3"),),
        )
    Ledger(proofs=proofs, on_gpus=seen).save(ledger_file(suite))


def names(folder: Path, **asked: object) -> list[str]:
    tasks, part = choose(load_suite(folder), **asked)  # type: ignore[arg-type]
    assert list(part.tasks) == [task.name for task in tasks]
    return [task.name for task in tasks]


def test_without_a_word_all_are_meant_or_the_default(folder: Path) -> None:
    assert len(names(folder)) == 7
    assert names(folder, default=lambda suite: suite.tasks[:1]) == ["both"]
    assert choose(load_suite(folder))[1].words == ""


def test_cpu_is_a_stage_that_is_written_and_can_be_had(folder: Path) -> None:
    assert names(folder, subsets=["cpu"]) == ["both", "from_hub", "online", "plain", "stood_in"]


def test_offline_asks_no_hub_whichever_stage_is_run(folder: Path) -> None:
    # `both` reads nothing on the CPU, and what only a hub has on a GPU.
    assert names(folder, subsets=["offline"]) == ["plain", "stood_in"]


def test_proven_and_small_are_what_the_ledger_says_now(folder: Path) -> None:
    prove(folder, plain=SMALL_BYTES, online=SMALL_BYTES + 1)
    assert names(folder, subsets=["proven"]) == ["online", "plain"]
    assert names(folder, subsets=["small"]) == ["plain"]
    task = folder / "plain" / "task.toml"
    task.write_text(task.read_text().replace("x.py", "y.py"))
    assert names(folder, subsets=["proven"]) == ["online"]
    with pytest.raises(TaskError, match="no task of mixed is in all of: subset small"):
        names(folder, subsets=["small"])


def test_several_subsets_are_met_by_one_stage(folder: Path) -> None:
    prove(folder, on_gpus="both", plain=1)
    assert names(folder, subsets=["proven"]) == ["both", "plain"]
    # Its stage on the CPU is there, and it is the one on a GPU that is proven.
    assert names(folder, subsets=["proven", "cpu"]) == ["plain"]


def test_domains_and_names_narrow_what_is_meant(folder: Path) -> None:
    assert names(folder, domains=["gpus"]) == ["both"]
    assert len(names(folder, domains=["gpus", "words"])) == 7
    assert names(folder, only=["online", "unwritten", "online"], subsets=["cpu"]) == ["online"]
    with pytest.raises(TaskError, match="subset cpu, domain gpus, named tasks"):
        names(folder, only=["plain"], subsets=["cpu"], domains=["gpus"])


def test_a_domain_that_is_not_there_is_said_with_the_nearest(folder: Path) -> None:
    with pytest.raises(TaskError, match="did you mean 'gpus'") as caught:
        names(folder, domains=["gpu"])
    assert "gpus, words" in caught.value.advice


def test_of_the_suites_that_come_with_it_each_subset_has_tasks() -> None:
    for name in bundled_suites():
        suite = load_suite(name)
        for subset in ("cpu", "offline", "small", "proven"):
            assert 0 < len(choose(suite, subsets=[subset])[0]) <= len(suite.tasks), (name, subset)


def test_the_options_offer_every_subset() -> None:
    offered = {
        option.name: option.type.choices
        for option in run_command.params
        if isinstance(option.type, click.Choice)
    }
    assert tuple(offered["subsets"]) == get_args(Subset)


@pytest.fixture
def proven(tmp_path: Path) -> Path:
    """The smallest suite, of which a ledger proves one task."""
    suite = Path(shutil.copytree(SUITE, tmp_path / "small"))
    proof = proof_of(load_suite(suite).task("adder"))
    Ledger(proofs={"adder": proof}).save(ledger_file(suite))
    return suite


def test_a_run_of_a_subset_keeps_it_and_its_rates_say_of_how_many(
    reb: Reb, proven: Path, tmp_path: Path
) -> None:
    line = ("run", proven, "--agent", "gold", "--min-free", "0")
    line += ("--subset", "proven", "--domain", "arithmetic")
    done = reb(*line)
    assert done.returncode == 0, done.stderr
    assert "1 of 2 tasks; subset proven, domain arithmetic" in done.stderr
    assert "1 of 2 tasks (subset proven, domain arithmetic), 1 attempt" in done.stdout
    run = tmp_path / "runs" / "small-gold-arithmetic-proven"
    assert "1 of 2 tasks (subset proven" in (run / "index.html").read_text()
    kept = json.loads((run / "run.json").read_text())["part"]
    assert (kept["subsets"], kept["tasks"], kept["suite_tasks"]) == (["proven"], ["adder"], 2)

    said = json.loads(reb("report", run, "--json").stdout)["runs"][0]
    assert said["part"] == kept
    rates = said["rates"][0]
    assert (rates["tasks"], rates["suite_tasks"]) == (1, 2)
    assert rates["subset"] == "subset proven, domain arithmetic"
    beside = reb("report", run, run).stdout
    assert "rates are over" in beside
    assert "1 of 2 tasks (subset" in beside

    # What the same folder is asked for later is not what these rates are over any more.
    assert reb(*line[:6], "--only", "server", "--out", run).returncode == 0
    assert "small by gold: 2 tasks, 2 attempts" in " ".join(reb("report", run).stdout.split())


def test_the_three_commands_take_the_same_words(reb: Reb, proven: Path) -> None:
    listed = reb("tasks", "list", proven, "--subset", "proven")
    assert "1 of 2 tasks (subset proven)" in listed.stdout
    assert "server" not in listed.stdout
    rows = json.loads(reb("tasks", "list", proven, "--domain", "serving", "--json").stdout)
    assert [row["task"] for row in rows] == ["server"]
    fetched = reb("assets", "fetch", proven, "--subset", "cpu", "--only", "adder")
    assert fetched.stdout == "0 of 0 assets are here\n"
    for command in (("run",), ("tasks", "list"), ("assets", "fetch")):
        done = reb(*command, proven, "--domain", "servings")
        assert done.returncode == 2
        assert "did you mean 'serving'?" in done.stderr
    assert "give one" in reb("tasks", "list", "--subset", "cpu").stderr


def test_offline_and_originals_contradict_each_other(reb: Reb, proven: Path) -> None:
    for command in ("run",), ("assets", "fetch"):
        done = reb(*command, proven, "--subset", "offline", "--assets", "real")
        assert done.returncode == 2
        assert "leave one of them out" in done.stderr
