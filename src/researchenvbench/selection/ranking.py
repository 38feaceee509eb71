"""In which order the accepted are offered: fields take turns, one of an owner in a field.

Within a field those that a person need not look at twice come first (no answer is `weak`), then
those with more stars. The order proposes and decides nothing.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from .criteria import Decision

if TYPE_CHECKING:
    from collections.abc import Iterable

    from .criteria import Candidate


def ranked(candidates: Iterable[Candidate]) -> list[Candidate]:
    """The candidates with their ranks: those first, then what was set aside, then the rest.

    The first of every field that has one, the second of every field, and so on.
    """
    accepted: list[Candidate] = []
    rest: list[Candidate] = []
    for candidate in candidates:
        whole = candidate.decision is Decision.ACCEPTED
        (accepted if whole else rest).append(candidate)
    fields: dict[str, list[Candidate]] = {}
    set_aside = []
    first_of: dict[tuple[str, str], str] = {}
    for candidate in sorted(accepted, key=_goodness):
        key = candidate.owner.lower(), candidate.domain
        if key in first_of:
            why = f"{first_of[key]} is of the same owner and field"
            set_aside.append(candidate.model_copy(update={"rank": None, "set_aside": why}))
        else:
            first_of[key] = candidate.name
            fields.setdefault(candidate.domain, []).append(candidate)
    turns = [
        (turn, _goodness(candidate), candidate)
        for field in fields.values()
        for turn, candidate in enumerate(field)
    ]
    turns.sort(key=lambda entry: entry[:2])
    chosen = [
        candidate.model_copy(update={"rank": rank, "set_aside": ""})
        for rank, (_, _, candidate) in enumerate(turns, start=1)
    ]
    rest.sort(key=lambda candidate: (candidate.decision is Decision.REFUSED, *_goodness(candidate)))
    return [*chosen, *set_aside, *rest]


def _goodness(candidate: Candidate) -> tuple[int, int, str]:
    weak = sum(finding.weak for finding in candidate.findings)
    stars = candidate.facts.stars if candidate.facts else 0
    return weak, -stars, candidate.name.lower()
