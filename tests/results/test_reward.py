"""One number for an attempt: what is nobody's doing is left out, what is not known is no pass."""

import pytest
from result_samples import FAILED_CPU, NO_GPU, record, result, results

from researchenvbench.attempt import AttemptStatus, Level, Owner, Verdict
from researchenvbench.results.reward import WEIGHTS, reward


def unsure(owner):
    return result(Level.C1, Verdict.INCONCLUSIVE, owner=owner, reason="so")


def test_all_that_counts_has_passed():
    assert reward(record("alpha")) == 1.0, "the levels that need a GPU do not count here"


def test_levels_weigh_as_they_are_said_to():
    assert reward(record("a", results=results(C1=FAILED_CPU))) == pytest.approx(2 / 4)
    failed = result(Level.C0, Verdict.FAILED, owner=Owner.AGENT)
    assert reward(record("a", results=results(C0=failed))) == pytest.approx(3 / 4)
    assert reward(record("a", results=results(C0=failed)), {Level.C0: 1, Level.C1: 3}) == 0.75
    on_gpus = results(C2=result(Level.C2), C3=result(Level.C3), C4=result(Level.C4, Verdict.FAILED))
    assert reward(record("a", results=on_gpus)) == pytest.approx(7 / 9)
    assert sum(WEIGHTS.values()) == 9


@pytest.mark.parametrize(
    ("owner", "expected"),
    [
        (Owner.HOST, 1.0),
        (Owner.ASSET, 1.0),
        (Owner.TASK, 1.0),
        (Owner.UNKNOWN, 0.5),
        (Owner.AGENT, 0.5),
    ],
)
def test_what_is_inconclusive_counts_by_whose_doing_it_is(owner, expected):
    assert reward(record("a", results=results(C1=unsure(owner)))) == expected


def test_what_does_not_apply_is_left_out():
    without = results(C1=result(Level.C1, Verdict.NOT_APPLICABLE))
    assert reward(record("a", results=without)) == 1.0


def test_cheating_is_worse_than_nothing():
    empty = {level: result(level, Verdict.FAILED, owner=Owner.AGENT) for level in Level}
    assert reward(record("a", results=empty)) == 0
    assert reward(record("a", status=AttemptStatus.DISQUALIFIED)) == -1


def test_where_nothing_can_be_said_nothing_is():
    assert reward(record("a", status=AttemptStatus.VOID)) is None
    nothing = {level: result(level, **NO_GPU) for level in Level}
    assert reward(record("a", results=nothing)) is None
    assert reward(record("a"), {Level.C3: 1.0}) is None


def test_no_weight_is_negative():
    with pytest.raises(ValueError, match="negative"):
        reward(record("a"), {Level.C0: -1})
