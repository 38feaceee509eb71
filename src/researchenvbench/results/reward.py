"""One number for an attempt, made of its record alone: for learning from it.

Tables do without it: a level that cannot be judged here is no pass there and no failure, and a
sum of levels hides which. For a policy that is to get better one number is needed; this is
ours, and whoever wants another has the record.
"""

from __future__ import annotations

from types import MappingProxyType
from typing import TYPE_CHECKING

from ..attempt import AttemptStatus, Level, Owner, Verdict

if TYPE_CHECKING:
    from collections.abc import Mapping

    from ..attempt import LevelResult, Record

#: Code that runs weighs twice what a fact about the environment or the report does.
WEIGHTS: Mapping[Level, float] = MappingProxyType(
    {Level.C0: 1.0, Level.C1: 2.0, Level.C2: 1.0, Level.C3: 2.0, Level.C4: 2.0, Level.C5: 1.0}
)
#: What cheating gives: less than an empty environment.
DISQUALIFIED = -1.0
#: Whose fault keeps a level out of the sum: nothing that was built could have changed it.
_OTHERS = (Owner.HOST, Owner.ASSET, Owner.TASK)


def reward(record: Record, weights: Mapping[Level, float] = WEIGHTS) -> float | None:
    """How good an attempt was, from 0 to 1; -1 where it was disqualified.

    The weights of the levels that passed, over those of the levels that count. A level does
    not count where it is not applicable, or is inconclusive by the host, an asset or the task;
    one that is inconclusive for another reason counts and is not passed.

    Args:
        record: Of an attempt or a verification.
        weights: Of the levels, none negative; one that is absent weighs nothing.

    Returns:
        None where nothing can be said: the attempt is void, or no level counts.

    Raises:
        ValueError: a weight is negative.
    """
    if any(weight < 0 for weight in weights.values()):
        raise ValueError("a weight is negative")
    if record.status is AttemptStatus.VOID:
        return None
    if record.status is AttemptStatus.DISQUALIFIED:
        return DISQUALIFIED
    counted = {
        level: weights.get(level, 0.0)
        for level, result in record.results.items()
        if _counts(result)
    }
    whole = sum(counted.values())
    if whole == 0:
        return None
    passed = (
        weight
        for level, weight in counted.items()
        if record.results[level].verdict is Verdict.PASSED
    )
    return sum(passed) / whole


def _counts(result: LevelResult) -> bool:
    if result.verdict is Verdict.INCONCLUSIVE:
        return result.owner not in _OTHERS
    return result.verdict is not Verdict.NOT_APPLICABLE
