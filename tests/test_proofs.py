"""A ledger says what is proven, and only for what it was proven with."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest

from researchenvbench.attempt import Verdict
from researchenvbench.proofs import (
    BreakageProof,
    Ledger,
    StageProof,
    TaskProof,
    ledger_file,
    load_ledger,
    proof_digest,
    stage_seconds,
    standing,
)
from researchenvbench.task import StageName
from researchenvbench.taskfile import load_task

SUITE = Path(__file__).parent / "suites" / "small"


@pytest.fixture
def folder(tmp_path):
    """A copy of the smallest task, with a ledger beside it that proves it."""
    folder = Path(shutil.copytree(SUITE / "adder", tmp_path / "small" / "adder"))
    write(folder, proof_of(load_task(folder)))
    return folder


def proof_of(task, **more):
    values = {
        "task": task.name,
        "task_digest": task.digest,
        "recipe_digest": "",
        "proof_digest": proof_digest(task),
        "date": "2026-01-01T00:00:00+00:00",
        "reb_version": "0",
        "system": "",
        "python_version": "3.11.0",
        "build_seconds": 1.0,
        "stages": (StageProof(stage=StageName.CPU, verdict=Verdict.PASSED),),
        "breakages": (broken("no_adder"), broken("unused", "passed")),
        **more,
    }
    return TaskProof(**values)


def broken(name, expected="failed", *, right=True, level="C1"):
    return BreakageProof(
        name=name, level=level, expected=expected, verdict=Verdict(expected), as_expected=right
    )


def write(folder, proof):
    Ledger(proofs={proof.task: proof}).save(ledger_file(folder.parent))


def stands(folder):
    return standing(load_task(folder), StageName.CPU)


def edit(folder, old, new):
    path = folder / "task.toml"
    text = path.read_text()
    assert old in text
    path.write_text(text.replace(old, new))


def test_what_is_written_is_read_again(folder):
    task = load_task(folder)
    assert load_ledger(folder.parent).proofs == {"adder": proof_of(task)}
    assert stands(folder) == "proven"


def test_a_suite_without_a_ledger_proves_nothing(folder):
    ledger_file(folder.parent).unlink()
    assert stands(folder) == "unproven"


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ('"{repo}/install.py"', '"{repo}/other.py"'),
        ('remove = ["adder.py"]', 'remove = ["add*.py"]'),
        ("has no attribute 'add'", "has no attribute"),
        ("[breakages.unused]", "[breakages.another]"),
        ('"--steps", "3"', '"--steps", "4"'),
        ("min = 5, max = 5", "min = 4, max = 6"),
    ],
    ids=["recipe", "damage", "reason", "name", "command", "evidence"],
)
def test_a_change_of_the_task_or_of_what_proves_it_unproves_it(folder, old, new):
    edit(folder, old, new)
    assert stands(folder) == "unproven"


def test_a_change_of_prose_does_not(folder):
    edit(folder, "the module is gone", "the module has gone")
    edit(folder, "Adds two numbers", "Adds a pair of numbers")
    assert stands(folder) == "proven"


def test_a_file_that_the_recipe_brings_is_part_of_the_proof(folder):
    edit(folder, '"{repo}/install.py"', '"{task}/install.py"')
    (folder / "install.py").write_text("1")
    before = proof_digest(load_task(folder))
    (folder / "install.py").write_text("2")
    assert proof_digest(load_task(folder)) != before


def test_a_ledger_from_before_there_were_digests_of_proofs_proves_nothing(folder):
    path = ledger_file(folder.parent)
    lines = [line for line in path.read_text().splitlines() if "proof_digest" not in line]
    path.write_text("\n".join(lines))
    assert load_ledger(folder.parent).proofs["adder"].proof_digest == ""
    assert stands(folder) == "unproven"


def test_a_ledger_from_before_costs_were_kept_is_read_and_stands(folder):
    path = ledger_file(folder.parent)
    data = json.loads(path.read_text())
    old = data["proofs"]["adder"]
    del old["archive_bytes"], old["stages"][0]["asset_bytes"], old["stages"][0]["fetched_bytes"]
    path.write_text(json.dumps(data))
    proof = load_ledger(folder.parent).proofs["adder"]
    assert proof.archive_bytes is None
    assert proof.stages[0].asset_bytes is None
    assert stands(folder) == "proven"


def test_how_long_a_stage_took_is_known_where_it_passed_and_the_proof_holds(folder):
    took = StageProof(stage=StageName.CPU, verdict=Verdict.PASSED, seconds=7.5)
    task = load_task(folder)
    write(folder, proof_of(task, stages=(took,)))
    assert stage_seconds(task, StageName.CPU, load_ledger(folder.parent)) == 7.5
    failed = took.model_copy(update={"verdict": Verdict.FAILED})
    write(folder, proof_of(task, stages=(failed,)))
    assert stage_seconds(task, StageName.CPU, load_ledger(folder.parent)) is None
    write(folder, proof_of(task, stages=(took,)))
    edit(folder, '"--steps", "3"', '"--steps", "4"')
    assert stage_seconds(load_task(folder), StageName.CPU, load_ledger(folder.parent)) is None


@pytest.mark.parametrize(
    ("cpus", "load", "busy"),
    [(2, 1.9, False), (2, 4.0, False), (2, 4.1, True), (16, 20.0, False), (None, None, False)],
)
def test_seconds_of_a_busy_host_are_told_apart(folder, cpus, load, busy):
    assert proof_of(load_task(folder), cpus=cpus, load_average=load).was_busy is busy


@pytest.mark.parametrize(
    "more",
    [
        {"stages": (StageProof(stage=StageName.CPU, verdict=Verdict.FAILED),)},
        {"stages": ()},
        {"breakages": ()},
        {"breakages": (broken("unused", "passed"),)},
        {"breakages": (broken("no_adder"), broken("unused", "passed", right=False))},
        {"breakages": (broken("no_adder", level="C0"),)},
        {"problem": "tracked-file-changed train.py"},
    ],
    ids=["gold", "no stage", "no breakage", "controls", "a wrong one", "level", "disqualified"],
)
def test_a_proof_needs_gold_a_failure_and_nothing_wrong(folder, more):
    write(folder, proof_of(load_task(folder), **more))
    assert stands(folder) == "unproven"


def test_a_stage_that_cannot_be_solved_says_so_whatever_the_ledger(folder):
    edit(folder, "time_limit_s = 60", 'time_limit_s = 60\nnot_solvable = "line 3 raises"')
    assert stands(folder) == "not_solvable"
