"""Where the host fails while an attempt is looked at, a record says so, and it is done again."""

from contextlib import contextmanager
from dataclasses import replace

import pytest

from researchenvbench.attempt import AttemptStatus, Level, Owner, Verdict
from researchenvbench.errors import HostError, RefusedError, SandboxError
from researchenvbench.run.job import AttemptRun

from .conftest import SUITE, record_of

pytestmark = pytest.mark.slow  # each builds and verifies


@pytest.fixture
def attempt(reb, tmp_path, monkeypatch):
    """An attempt that has passed, taken up in this process."""
    for name, value in reb.environment.items():
        monkeypatch.setenv(name, value)
    done = reb("run", SUITE, "--agent", "gold", "--out", tmp_path / "run")
    assert done.returncode == 0, done.stderr
    return AttemptRun(tmp_path / "run" / "attempts" / "adder--1")


def failing(attempt, monkeypatch, error, after):
    """Have boxes fail after so many were opened."""
    make, left = attempt.subject, [after]

    def subject(*arguments):
        whole = make(*arguments)

        @contextmanager
        def open_box(**options):
            left[0] -= 1
            if left[0] < 0:
                raise error
            with whole.open_box(**options) as box:
                yield box

        return replace(whole, open_box=open_box)

    monkeypatch.setattr(attempt, "subject", subject)


@pytest.mark.parametrize(
    ("error", "after"),
    [
        (SandboxError("the stage's container has ended", advice="again"), 0),
        (HostError("no room", advice="again"), 1),
    ],
)
def test_a_failure_of_the_host_leaves_a_record(reb, tmp_path, attempt, monkeypatch, error, after):
    failing(attempt, monkeypatch, error, after)
    record = attempt.verify(reverify=True)
    assert attempt.folder.load_record() == record
    assert record.status is AttemptStatus.OK
    assert not record.findings
    for level in Level:
        result = record.results[level]
        assert (result.verdict, result.owner) == (Verdict.INCONCLUSIVE, Owner.HOST), level
        assert (result.reason, result.advice) == (error.args[0], "again")
    run = tmp_path / "run"
    plan = reb("run", SUITE, "--agent", "gold", "--out", run, "--dry-run")
    assert "verify" in plan.stdout
    assert reb("run", SUITE, "--agent", "gold", "--out", run).returncode == 0
    assert record_of(run)["results"]["C1"]["verdict"] == "passed"


def test_what_is_in_the_way_of_the_judge_is_the_agents(attempt, monkeypatch):
    failing(attempt, monkeypatch, RefusedError("a pipe is in the way"), 0)
    record = attempt.verify(reverify=True)
    assert [finding.kind for finding in record.findings] == ["environment-unusable"]
    assert record.results[Level.C1].owner is Owner.AGENT
    assert record.results[Level.C1].verdict is Verdict.FAILED
