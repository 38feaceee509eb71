"""The figures of a summary as rows of words, the same in the terminal and on the page."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from .wording import clean, duration, plural, size

if TYPE_CHECKING:
    from collections.abc import Callable

    from .rates import NamedRate, Spread, Summary

_KINDS = ("path", "version", "capability")


class Figure(NamedTuple):
    """One row: what it is, its value, and what belongs beside it."""

    name: str
    value: str
    beside: str = ""


def figures(summary: Summary) -> list[Figure]:
    """All rows, rates first; what is not known is not shown."""
    rows = [_rate(f"{level.level} {level.level.label}", level) for level in summary.levels]
    rows += [_rate("research-ready", ready) for ready in summary.research_ready]
    return [*rows, *_imports(summary), *_claims(summary), *_costs(summary), *_apart(summary)]


def tasks_of(summary: Summary) -> str:
    """What the rates are over: `9 of 44 tasks (subset proven)`, or `9 tasks`."""
    number, all_of_them, asked = summary.tasks, summary.suite_tasks, summary.subset_tasks
    if all_of_them is None or number >= all_of_them:
        return plural(number, "task")
    of = f"{number} of {plural(all_of_them, 'task')}"
    words = clean(summary.subset, 200)
    if asked is not None and number < asked < all_of_them:
        # Interrupted, or without room: the others were not begun.
        return f"{of} ({number} of the {asked} asked for{words and f': {words}'})"
    return f"{of} ({words})" if words else of


def _rate(name: str, named: NamedRate) -> Figure:
    rate, proven = named.rate, named.without_unproven
    if not rate.applicable:
        return Figure(name, "n/a", "applies to no attempt")
    # In the name, so that they are two rows where runs are compared, too.
    name += f", {named.assets}" if named.assets.endswith("stand-ins") else ""
    beside = ["with originals"] if named.assets == "originals" else []
    beside += [f"{rate.inconclusive} inconclusive"] if rate.inconclusive else []
    if proven != rate:
        unsure = f", {proven.inconclusive} inconclusive" if proven.inconclusive else ""
        beside.append(f"without the unproven {proven}{unsure}")
    return Figure(name, str(rate), "; ".join(beside))


def _imports(summary: Summary) -> list[Figure]:
    counts = summary.imports
    beside = []
    if counts.attempts_paper:
        beside.append(f"in the paper's reading {counts.missing_paper}/{counts.total_paper}")
        if counts.attempts_paper != counts.attempts:
            beside[-1] += f" of {plural(counts.attempts_paper, 'attempt')}"
    if counts.left_out:
        beside.append(f"not known for {plural(counts.left_out, 'attempt')}")
    if not counts.attempts and not beside:
        return []
    value = f"{counts.missing}/{counts.total}" if counts.attempts else "unknown"
    return [Figure("imports missing", value, "; ".join(beside))]


def _claims(summary: Summary) -> list[Figure]:
    counts = summary.claims
    if not counts.reports and not counts.no_report:
        return []
    value = (
        f"{counts.made} made: {counts.true} true, {counts.false} false, "
        f"{counts.unverifiable} unverifiable; {counts.withheld} withheld"
    )
    judged = counts.true + counts.false
    precision = f"precision {counts.true}/{judged}" if judged else "precision unknown"
    kinds = ", ".join(f"{kind} {counts.over_by_kind.get(kind, 0)}" for kind in _KINDS)
    modest = f"; {counts.under} too modest" if counts.under else ""
    missing = f"; {plural(counts.no_report, 'attempt')} without a report"
    return [
        Figure("claims", value, precision),
        Figure("over-claims", str(counts.over), kinds + modest + missing * bool(counts.no_report)),
    ]


def _costs(summary: Summary) -> list[Figure]:
    rows = [
        *_spread("build time", summary.build_s, duration, summary.counted),
        *_spread("prefix", summary.prefix_bytes, size, summary.counted),
        *_spread("cost", summary.cost_usd, lambda usd: f"{usd:.2f} USD", summary.counted),
    ]
    if summary.tokens:
        kinds = ", ".join(f"{clean(kind, 30)} {n}" for kind, n in sorted(summary.tokens.items()))
        rows.append(Figure("tokens", kinds))
    return rows


def _spread(
    name: str, spread: Spread, words: Callable[[float], str], attempts: int
) -> list[Figure]:
    if spread.total is None or spread.median is None:
        return []
    of = plural(attempts, "attempt")
    known = f", of {spread.known} of {of}" if spread.known != attempts else ""
    return [Figure(name, words(spread.total), f"median {words(spread.median)}{known}")]


def _apart(summary: Summary) -> list[Figure]:
    """What is in no rate, or passes nothing in it."""
    parts = [
        ("disqualified", summary.disqualified, "in the denominators, passing nothing"),
        ("void", summary.void, "in no rate; built again by the next run"),
        ("no record", summary.no_record, "in no rate"),
    ]
    rows = [Figure(name, str(number), what) for name, number, what in parts if number]
    if summary.stale:
        rows.append(
            Figure("older results", str(summary.stale), "of another version; see --reverify")
        )
    return rows
