"""What a plan says of its costs is what proofs measured and limits allow, and the rest is open."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from researchenvbench.attempt import AssetUse, Verdict
from researchenvbench.cli.plan_words import plan_lines
from researchenvbench.proofs import Ledger, StageProof, ledger_file
from researchenvbench.run.estimate import Bytes, estimate, makespan
from researchenvbench.run.part import choose
from researchenvbench.run.plan import RunPlan, plan_attempts
from researchenvbench.run.store import RunFolder
from researchenvbench.task import StageName
from researchenvbench.taskfile import load_suite

from ..test_proofs import proof_of
from .conftest import SUITE

if TYPE_CHECKING:
    from researchenvbench.run.estimate import Estimate

    from .conftest import Reb

#: Read by the task `adder`: what has a stand-in, what only a hub has, what is made with packages.
ASSETS = """
[assets.model]
kind = "hub"
repo = "o/model"
bytes = 7000

[assets.model.stand_in]
script = "make.py"

[assets.weights]
kind = "hub"
repo = "o/weights"
revision = "0123456789012345678901234567890123456789"
bytes = 500

[assets.drawn]
kind = "made"

[assets.drawn.recipe]
script = "make.py"
seed = 2
requirements = ["numpy==2.1.0"]
"""


@pytest.fixture(autouse=True)
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("REB_CACHE", str(tmp_path / "cache"))


@pytest.fixture
def suite(tmp_path: Path) -> Path:
    """The smallest suite; `adder` reads assets, and the ledger knows what gold took."""
    folder = Path(shutil.copytree(SUITE, tmp_path / "small"))
    task = folder / "adder" / "task.toml"
    text = task.read_text().replace(
        "time_limit_s = 60", 'time_limit_s = 60\nassets = ["model", "weights", "drawn"]'
    )
    task.write_text(text + ASSETS)
    (folder / "adder" / "make.py").write_text("")
    prove(folder)
    return folder


def prove(folder: Path, **more: object) -> None:
    """Write a ledger in which gold of `adder` took 10 s, its stage 20 s, and 1 GB."""
    stage = StageProof(
        stage=StageName.CPU,
        verdict=Verdict.PASSED,
        seconds=20.0,
        assets={
            "model": AssetUse(origin="stand-in", digest="1"),
            "weights": AssetUse(origin="real", digest="2"),
            "drawn": AssetUse(origin="made", digest="3"),
        },
        asset_bytes={"model": 30, "weights": 500, "drawn": 4},
        fetched_bytes=500,
    )
    values = {"build_seconds": 10.0, "size_bytes": 1_000_000_000, "archive_bytes": 300_000_000}
    proof = proof_of(load_suite(folder).task("adder"), stages=(stage,), **{**values, **more})
    Ledger(proofs={"adder": proof}).save(ledger_file(folder))


def estimated(
    folder: Path, *, attempts: int = 1, jobs: int = 1, only: tuple[str, ...] = (), **more: object
) -> Estimate:
    """Of gold on the suite, each build of which may take 100 s."""
    loaded = load_suite(folder)
    setting = {"keep": "all", "build_time_limit_s": 100.0, **more}
    plan = RunPlan(suite=str(folder), agent="gold", **setting)  # type: ignore[arg-type]
    tasks, _ = choose(loaded, only=only)
    planned = plan_attempts(plan, loaded, tasks, attempts, RunFolder(folder.parent / "run"))
    return estimate(planned, jobs=jobs, keep=plan.keep)


def test_attempts_side_by_side_take_as_long_as_the_longest_worker() -> None:
    assert makespan([], 3) == 0
    assert makespan([5, 1, 1, 1], 1) == 8
    assert makespan([5, 1, 1, 1], 2) == 5
    assert makespan([1, 1, 5], 2) == 6


def test_a_sum_keeps_what_it_leaves_out() -> None:
    total = Bytes.of(3, "a") + Bytes.of(None, "b") + Bytes.of(4, "c") + Bytes.of(None, "b")
    assert (total.known, total.unknown) == (7, ("b",))


def test_what_a_proof_measured_and_what_the_limits_are(suite: Path) -> None:
    found = estimated(suite, only=("adder",))
    (cost,) = found.costs
    assert (cost.ledger_s, cost.limit_s) == (30.0, 160.0)
    assert cost.environment == Bytes(1_000_000_000)
    assert cost.packages == Bytes(300_000_000)
    # The stand-in as it was made for the proof, the original as the task says, and what is made.
    assert cost.assets == Bytes(30 + 500 + 4)
    # Nobody has said what numpy weighs.
    assert cost.fetched_assets == Bytes(500, ("adder/drawn (what its recipe installs)",))


def test_originals_are_asked_for_with_their_sizes(suite: Path) -> None:
    (cost,) = estimated(suite, only=("adder",), assets="real").costs
    assert cost.assets.known == 7000 + 500 + 4
    assert cost.fetched_assets.known == 7000 + 500


def test_seconds_of_a_busy_host_are_said_to_be(suite: Path) -> None:
    _, part = choose(load_suite(suite))
    said = "adder are of a host that was busy"
    assert said not in "\n".join(plan_lines(Path("r"), part, estimated(suite), None))
    prove(suite, cpus=2, load_average=9.0)
    assert said in "\n".join(plan_lines(Path("r"), part, estimated(suite), None))


def test_of_a_task_without_a_proof_nothing_is_guessed(suite: Path) -> None:
    found = estimated(suite)
    cost = found.costs[1]
    assert cost.attempt.task.name == "server"
    assert cost.ledger_s is None
    assert cost.limit_s == 100 + 60 + 30  # of its service to get ready, too
    assert cost.environment == Bytes(unknown=("server",))
    assert cost.packages == Bytes(unknown=("server",))
    assert [one.attempt.task.name for one in found.in_ledger] == ["adder"]
    assert (found.ledger_s, found.limit_s) == (30.0, 160 + 190)


def test_a_proof_of_another_state_of_the_task_says_nothing(suite: Path) -> None:
    task = suite / "adder" / "task.toml"
    task.write_text(task.read_text().replace('"--steps", "3"', '"--steps", "4"'))
    (cost,) = estimated(suite, only=("adder",)).costs
    assert cost.ledger_s is None
    assert cost.environment.unknown == ("adder",)


def test_several_attempts_build_each_and_read_the_same_assets(suite: Path) -> None:
    found = estimated(suite, attempts=3, jobs=2, only=("adder",))
    assert (found.ledger_s, found.limit_s) == (60.0, 320.0)
    assert found.environments == Bytes(3_000_000_000)
    assert found.packages == Bytes(900_000_000)
    assert found.assets == Bytes(534)
    assert found.peak_bytes == 3_000_000_534
    removed = estimated(suite, attempts=3, jobs=2, only=("adder",), keep="none")
    assert removed.at_a_time == Bytes(2_000_000_000)
    assert removed.peak_bytes == 2_000_000_534


def test_it_is_said_in_words_and_what_is_not_known_is_named(suite: Path) -> None:
    found = estimated(suite)
    _, part = choose(load_suite(suite))
    text = "\n".join(plan_lines(Path("runs/x"), part, found, 500_000_000))
    assert "adder--1   30 s       2.7 min    1.0 GB  300 MB + ?  build" in text
    assert "server--1  ?          3.2 min    ?       ?           build" in text
    assert "2 attempts, 2 to build. Run folder: runs/x" in text
    assert "time: 30 s by the ledger for 1 of 2, as gold took; 5.8 min by the limits; one" in text
    assert "nothing is known of the time of server: " in text
    assert "not known, and in no sum: environments: server" in text
    assert "assets to fetch: adder/drawn (what its recipe installs)" in text
    assert "there is not room for all of it" in text
    assert "there is not room" not in "\n".join(
        plan_lines(Path("runs/x"), part, found, 2_000_000_000)
    )


def test_the_command_begins_nothing_and_says_it_to_programs_too(
    reb: Reb, suite: Path, tmp_path: Path
) -> None:
    line = ("run", suite, "--all", "--agent", "gold", "--out", tmp_path / "r", "--dry-run")
    done = reb(*line, "--jobs", "2", "--build-time-limit", "2", "--json")
    assert done.returncode == 0, done.stderr
    said = json.loads(done.stdout)
    adder, server = said["attempts"]
    assert (adder["seconds_by_ledger"], adder["seconds_by_limits"]) == (30.0, 180.0)
    assert adder["environment"] == {"known_bytes": 1_000_000_000, "unknown": []}
    assert server["seconds_by_ledger"] is None
    assert server["fetched_packages"] == {"known_bytes": 0, "unknown": ["server"]}
    total = said["total"]
    assert (total["seconds_by_ledger"], total["seconds_by_ledger_of_all"]) == (30.0, False)
    assert total["seconds_by_limits"] == 120 + 60 + 30
    assert said["free_bytes"] > 0
    assert said["part"]["suite_tasks"] == 2
    assert not (tmp_path / "r").exists()
    shown = reb(*line, "--jobs", "2")
    assert shown.returncode == 0
    assert "2 at a time" in shown.stdout
