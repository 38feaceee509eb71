"""A record that says something else than a trick expects is told apart in every respect."""

from __future__ import annotations

from pathlib import Path

import pytest

from researchenvbench.attempt import Finding, HostFacts, LevelResult, Owner, Record

from .catalogue import Expected, Trick
from .verdicts import differences


def record(*results: LevelResult, where: str = "train.py", status: str = "disqualified") -> Record:
    """What was found of an environment with one finding, or without where `where` is empty."""
    found = Finding(kind="tracked-file-changed", what="it was edited", where=where, why="it runs")
    return Record(
        **dict.fromkeys(("reb_version", "task", "task_digest", "source_digest", "agent"), "x"),
        **dict.fromkeys(("sandbox", "started", "finished"), "x"),
        status=status,
        results={result.level: result for result in results},
        findings=(found,) if where else (),
        host=HostFacts(system="x", cpus=1, memory_bytes=1),
    )


FAILED = LevelResult(level="C1", verdict="failed", owner=Owner.AGENT, reason="gradkit is missing")
PASSED = LevelResult(level="C1", verdict="passed")
TRICK = Trick(
    Path("x"),
    tries="x",
    why="x",
    status="disqualified",
    findings=("tracked-file-changed",),
    where={"tracked-file-changed": r"^train\.py$"},
    levels={"C1": Expected("failed", "agent", "gradkit")},
)


def test_what_is_expected_is_no_difference() -> None:
    assert differences(TRICK, record(PASSED), record(FAILED)) == []


@pytest.mark.parametrize(
    ("found", "said"),
    [
        (record(FAILED, where="setup.py"), "is of setup.py, not of"),
        (record(FAILED, where=""), "findings []"),
        (record(FAILED, status="ok"), "status ok, not disqualified"),
        (record(PASSED), "C1 passed (None), not"),
        (record(FAILED.model_copy(update={"owner": Owner.HOST})), "C1 failed (host), not"),
        (record(FAILED.model_copy(update={"reason": "no luck"})), "C1 says 'no luck', not"),
    ],
    ids=["another file", "no finding", "status", "verdict", "owner", "reason"],
)
def test_what_is_not_expected_is_told(found: Record, said: str) -> None:
    assert said in "\n".join(differences(TRICK, record(PASSED), found))


def test_a_level_that_no_trick_names_is_as_on_the_base() -> None:
    honest = Trick(Path("x"), tries="x", why="x")
    base, changed = (record(result, where="", status="ok") for result in (PASSED, FAILED))
    assert differences(honest, base, base) == []
    assert differences(honest, base, changed) == ["C1 failed (agent): gradkit is missing"]
