"""How `reb tasks select` puts candidates: a table, reasons, sums."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ..results.wording import clean, plural
from ..selection.criteria import OF_A_TREE, Criterion, Decision, Standing

if TYPE_CHECKING:
    from collections.abc import Iterator

    from rich.table import Table

    from ..selection.criteria import Candidate, Finding, Selection

_HEADINGS = {
    Criterion.CREATED: "created",
    Criterion.STARS: "stars",
    Criterion.NOT_ARCHIVED: "in use",
    Criterion.NOT_A_FORK: "no fork",
    Criterion.PYTHON: "python",
    Criterion.PAPER: "paper",
    Criterion.GPU: "gpu",
    Criterion.DISTRIBUTED_OR_KERNELS: "distr/kernels",
}
_NAMES = {
    **_HEADINGS,
    Criterion.NOT_ARCHIVED: "not archived",
    Criterion.DISTRIBUTED_OR_KERNELS: "distributed or kernels",
}
_MARKS = {Standing.MET: "yes", Standing.NOT_MET: "NO", Standing.UNKNOWN: "?"}
_WEAK = "yes~"
_STYLES = {Decision.ACCEPTED: "green", Decision.REFUSED: "red", Decision.UNDECIDED: "yellow"}


def table(selection: Selection) -> Table:
    """A line a candidate: its rank, the answer to each criterion, its field."""
    from rich.table import Table
    from rich.text import Text

    shown = Table(box=None, pad_edge=False)
    for heading in ("rank", "repository", "", *_HEADINGS.values()):
        shown.add_column(heading, no_wrap=True)
    shown.add_column("field")
    for candidate in selection.candidates:
        decision = candidate.decision
        rank = str(candidate.rank or ("aside" if candidate.set_aside else ""))
        marks = [_mark(candidate.finding(criterion)) for criterion in _HEADINGS]
        shown.add_row(
            rank,
            Text(clean(candidate.name, 80)),
            Text(decision, style=_STYLES[decision]),
            *marks,
            Text(clean(candidate.domain, 40), no_wrap=True, overflow="ellipsis"),
        )
    return shown


def reasons(selection: Selection, *, every: bool) -> Iterator[str]:
    """Of each candidate what speaks against it, or `every` answer with its lines."""
    for candidate in selection.candidates:
        lines = list(_reasons(candidate, every=every))
        if lines:
            commit = f" at {candidate.commit[:12]}" if candidate.commit else ""
            yield f"{clean(candidate.name, 80)}{commit}:"
            yield from lines


def _reasons(candidate: Candidate, *, every: bool) -> Iterator[str]:
    if candidate.set_aside:
        yield f"  set aside: {clean(candidate.set_aside, 200)}"
    unknown: dict[str, list[str]] = {}  # several answers are not known for one reason
    for finding in candidate.findings:
        if finding.standing is Standing.UNKNOWN:
            unknown.setdefault(finding.why, []).append(_NAMES[finding.criterion])
        elif every or finding.weak or finding.standing is Standing.NOT_MET:
            name = _NAMES[finding.criterion]
            yield f"  {name}: {_mark(finding)}: {clean(finding.why, 300)}"
            yield from _evidence(finding) if every else ()
    # What refuses a candidate says enough; and what no tree shows is said of none in particular.
    undecided = candidate.decision is Decision.UNDECIDED and not candidate.commit
    for why, names in unknown.items() if every or undecided else ():
        yield f"  {', '.join(names)}: ?: {clean(why, 300)}"


def _evidence(finding: Finding) -> Iterator[str]:
    for one in finding.evidence:
        text = f": {one.text}" if one.text else ""
        yield f"    {clean(one.place, 200)}: {clean(one.says, 100)}{clean(text, 170)}"


def sums(selection: Selection) -> Iterator[str]:
    """What is to be said below: how many meet each criterion, and what the marks mean."""
    number = len(selection.candidates)
    decided = [candidate.decision for candidate in selection.candidates]
    counts = ", ".join(f"{decided.count(one)} {one}" for one in Decision if decided.count(one))
    yield f"{plural(number, 'candidate')}: {counts}" if number else "no candidate was found"
    for criterion, name in _NAMES.items():
        found = [candidate.finding(criterion) for candidate in selection.candidates]
        met = [finding for finding in found if finding.standing is Standing.MET]
        not_met = sum(finding.standing is Standing.NOT_MET for finding in found)
        if met or not_met:
            weak = sum(finding.weak for finding in met)
            hedge = f" ({weak} of them weakly)" if weak else ""
            yield f"  {name}: {len(met)} of {len(met) + not_met} meet it{hedge}"
    if selection.asked.suite:
        read = [candidate for candidate in selection.candidates if candidate.commit]
        whole = sum(
            all(one.finding(criterion).standing is Standing.MET for criterion in OF_A_TREE)
            for one in read
        )
        yield f"{whole} of {len(read)} meet all that a tree shows; ?: it does not show that"
        yield f"{_WEAK}: by the letter, and worth a look"
    else:
        yield (
            f"{_WEAK}: by the letter, and worth a look; ?: not known; aside: accepted, and another "
            "of the same owner and field comes first; the field is told by words and may be wrong"
        )
    for note in selection.notes:
        yield f"note: {clean(note, 300)}"
    if not selection.complete:
        yield "this is not all that there is: see the notes, and give the same command again"


def _mark(finding: Finding) -> str:
    return _WEAK if finding.weak and finding.standing is Standing.MET else _MARKS[finding.standing]
