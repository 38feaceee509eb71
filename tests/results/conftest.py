"""Sample attempts: good, bad, void, unfinished, and hostile ones."""

from __future__ import annotations

import pytest
from result_samples import FAILED_CPU, HOSTILE, NO_GPU, build, c0_details, record, result, results

from researchenvbench.attempt import (
    AttemptStatus,
    Audit,
    ClaimResult,
    EvidenceResult,
    Finding,
    Level,
    Owner,
    Sizes,
    Verdict,
)
from researchenvbench.results.entries import Entry


@pytest.fixture
def folder(tmp_path):
    return tmp_path / "runs" / "sample-builtin"


@pytest.fixture
def entries(folder):
    """One of each kind."""
    records = [
        record("alpha"),
        record("beta-long-name-of-a-task", results=results(C1=FAILED_CPU, C2=None)),
        record(
            "gamma",
            status=AttemptStatus.DISQUALIFIED,
            findings=(
                Finding(
                    kind="tracked-file-changed",
                    what="a tracked file was changed",
                    where="src/train.py",
                    why="what was judged is not the commit",
                    disqualifies=True,
                ),
            ),
        ),
        record(
            "delta",
            results=results(
                C1=result(
                    Level.C1,
                    Verdict.INCONCLUSIVE,
                    owner=Owner.HOST,
                    reason="the library libGL.so.1 is missing",
                    advice="install the system package",
                    system_packages=("libgl1", "libegl1; rm -rf /"),
                ),
                C2=result(Level.C2, Verdict.NOT_APPLICABLE, reason="needs no framework"),
                C5=result(Level.C5, Verdict.FAILED, owner=Owner.AGENT, reason="gpu_count 2"),
            ),
            audit=Audit(
                made=3, true=1, false=1, over=1, unverifiable=1, withheld=4,
                by_kind={"capability": 1}, precision=0.5,
                claims=(
                    ClaimResult(
                        claim="gpu_count", kind="capability", value=2, found=0,
                        outcome="false", direction="over",
                    ),
                ),
            ),
        ),
        record(
            "epsilon",
            status=AttemptStatus.VOID,
            build=build(outcome="void", owner=Owner.HOST, reason="the index answers with HTML"),
            results={level: result(level, **NO_GPU) for level in Level},
            sizes=Sizes(),
        ),
    ]  # fmt: skip
    known = [Entry(r.task, 1, r, folder / "attempts" / f"{r.task}--1") for r in records]
    lost = Entry("zeta", 1, None, folder / "attempts" / "zeta--1", "the job ended with -9")
    return [*known, lost]


@pytest.fixture
def hostile(folder):
    """An attempt all of whose texts try to do harm."""
    levels = {
        Level.C0: result(Level.C0, Verdict.FAILED, owner=Owner.AGENT, reason=HOSTILE,
                         details=c0_details(missing=[(HOSTILE, True)], missing_paper=1)),
        Level.C1: result(Level.C1, Verdict.FAILED, owner=Owner.AGENT, reason=HOSTILE,
                         advice=HOSTILE, command=(HOSTILE,), log="../../../../etc/passwd",
                         evidence=(EvidenceResult(entry=HOSTILE, verdict=Verdict.FAILED,
                                                  seen=HOSTILE),)),
        Level.C2: result(Level.C2, Verdict.INCONCLUSIVE, owner=Owner.HOST, reason=HOSTILE),
    }  # fmt: skip
    finding = Finding(kind="start-up-hook", what=HOSTILE, where=HOSTILE, why=HOSTILE,
                      disqualifies=True)  # fmt: skip
    claim = ClaimResult(claim=HOSTILE, kind="path", value=HOSTILE, found=[HOSTILE],
                        outcome="false", direction="over", why=HOSTILE)  # fmt: skip
    found = record(
        HOSTILE, suite=HOSTILE, agent=HOSTILE, results=levels, findings=(finding,),
        status=AttemptStatus.DISQUALIFIED, python=HOSTILE, audit=Audit(claims=(claim,), made=1),
    )  # fmt: skip
    return Entry(found.task, 1, found, folder / "attempts" / "hostile--1")
