"""The numbers below a table: rates of the levels, of imports and of claims, and costs.

Which attempts count:

- A rate's denominator is the attempts to which the level applies. Those where it is
  inconclusive are in it and are printed beside it, since missing data is never a pass.
- A disqualified attempt stays in the denominators and passes nothing: what it did is
  recorded and does not count, and leaving it out would reward cheating where a task is
  hard. It is left out of counts that it could have forged: imports, claims, costs.
- A void attempt, and one without a record, is counted apart and is in no rate.
- An attempt without a report is in all rates with what verification found.

A second rate leaves out verdicts of stages that nothing has proven.

Stages that read a stand-in for weights or data are in a rate of their own, and so are attempts
with such a stage: where both kinds occur there are two rates, and no sum of them.
"""

from __future__ import annotations

from statistics import median
from typing import TYPE_CHECKING, Literal, NamedTuple, TypeVar

from pydantic import BaseModel, ConfigDict, Field

from ..attempt import AttemptStatus, Level, Verdict
from .import_counts import ImportCounts
from .wording import is_unproven, kind_of_assets

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable, Sequence

    from ..attempt import LevelResult, Record
    from .entries import Entry

T = TypeVar("T")
RateKind = Literal["", "originals", "no stand-ins", "stand-ins"]


class Figures(BaseModel):
    """Base of what `--json` prints."""

    model_config = ConfigDict(frozen=True)


class Rate(Figures):
    """So many of so many, and how many of those are not known."""

    passed: int = 0
    applicable: int = 0
    inconclusive: int = 0

    def __str__(self) -> str:
        return f"{self.passed}/{self.applicable}"


class NamedRate(Figures):
    """A rate, and the same without the verdicts of unproven stages."""

    rate: Rate
    without_unproven: Rate
    assets: RateKind = Field(
        "",
        description="What the stages read. `no stand-ins` and `stand-ins` are two rates of one "
        "name; the first is over originals and what reads none.",
    )


class LevelRate(NamedRate):
    """A level's."""

    level: Level


class ImportRate(Figures):
    """Missing imported modules over all attempts whose C0 was decided."""

    missing: int = Field(0, description="Third-party modules that do not resolve.")
    total: int = Field(0, description="Third-party modules that are imported.")
    attempts: int = 0
    missing_paper: int = Field(0, description="The paper's reading of missing.")
    total_paper: int = Field(0, description="The paper's reading of what is imported.")
    attempts_paper: int = 0
    left_out: int = Field(0, description="Attempts whose number of missing ones is not known.")


class ClaimCounts(Figures):
    """The reports' claims, summed."""

    reports: int = 0
    no_report: int = Field(0, description="Attempts whose report is missing or invalid.")
    made: int = 0
    true: int = 0
    false: int = 0
    withheld: int = 0
    unverifiable: int = 0
    under: int = 0
    over: int = Field(0, description="Over-claims: hallucinations.")
    over_by_kind: dict[str, int] = Field(default_factory=dict)
    precision: float | None = Field(None, description="true / (true + false); null if none.")


class Spread(Figures):
    """A quantity over the attempts for which it is known."""

    known: int = 0
    total: float | None = None
    median: float | None = None


class Scope(NamedTuple):
    """What a run was asked for of its suite."""

    words: str  #: such as `subset proven`; empty where no subset was asked for
    tasks: Collection[str]  #: names of those that are in it
    suite_tasks: int


class Summary(Figures):
    """All figures of one agent on one suite."""

    suite: str
    agent: str
    tasks: int = Field(description="With an attempt: what all rates are over.")
    suite_tasks: int | None = Field(None, description="That the suite has, where known.")
    subset: str = Field("", description="Which of them, where the run was asked for a part.")
    subset_tasks: int | None = Field(None, description="That this part has, begun or not.")
    attempts: int
    counted: int = Field(description="Attempts with verdicts, the disqualified among them.")
    disqualified: int = 0
    no_report: int = 0
    void: int = 0
    no_record: int = 0
    stale: int = Field(0, description="Attempts with results of another version.")
    levels: tuple[LevelRate, ...] = ()
    research_ready: tuple[NamedRate, ...] = ()
    imports: ImportRate = ImportRate()
    claims: ClaimCounts = ClaimCounts()
    build_s: Spread = Spread()
    prefix_bytes: Spread = Spread()
    build_bytes: Spread = Spread()
    cost_usd: Spread = Spread()
    tokens: dict[str, int] | None = Field(None, description="As the provider reported them.")


def summarise(
    entries: Sequence[Entry], *, suite: str = "", agent: str = "", scope: Scope | None = None
) -> list[Summary]:
    """The figures for each suite and agent that the records name, by name.

    `suite` and `agent` are those of attempts without a record, `scope` is that of the suite.
    """
    groups: dict[tuple[str, str], list[Entry]] = {}
    for entry in entries:
        record = entry.record
        key = (record.suite, record.builder) if record else (suite, agent)
        groups.setdefault(key, []).append(entry)
    return [
        _summary(*key, members, scope if key[0] == suite else None)
        for key, members in sorted(groups.items())
    ]


def _summary(suite: str, agent: str, entries: Sequence[Entry], scope: Scope | None) -> Summary:
    records = [e.record for e in entries if e.record is not None]
    counted = [r for r in records if r.status is not AttemptStatus.VOID]
    honest = [r for r in counted if r.status is not AttemptStatus.DISQUALIFIED]
    tasks = {entry.task for entry in entries}
    # A folder may hold attempts of an earlier command, which asked for other tasks.
    as_asked = scope is not None and tasks <= set(scope.tasks)
    return Summary(
        suite=suite,
        agent=agent,
        tasks=len(tasks),
        suite_tasks=scope.suite_tasks if scope else None,
        subset=scope.words if scope and as_asked else "",
        subset_tasks=len(scope.tasks) if scope and as_asked else None,
        attempts=len(entries),
        counted=len(counted),
        disqualified=len(counted) - len(honest),
        no_report=sum(r.status is AttemptStatus.NO_REPORT for r in counted),
        void=len(records) - len(counted),
        no_record=len(entries) - len(records),
        stale=sum(entry.older for entry in entries),
        levels=tuple(rate for level in Level for rate in _level_rates(level, counted)),
        research_ready=tuple(
            NamedRate(
                rate=_ready_rate(records),
                without_unproven=_ready_rate(
                    [r for r in records if not any(is_unproven(x) for x in r.results.values())]
                ),
                assets=assets,
            )
            for assets, records in _by_assets(counted, lambda r: r.results.values())
        ),
        imports=_imports(honest),
        claims=_claims(honest),
        build_s=_spread(honest, lambda r: r.build.seconds if r.build else None),
        prefix_bytes=_spread(honest, lambda r: r.sizes.prefix_bytes),
        build_bytes=_spread(honest, lambda r: r.sizes.build_bytes),
        cost_usd=_spread(
            honest, lambda r: r.build.model.cost_usd if r.build and r.build.model else None
        ),
        tokens=_tokens(honest),
    )


def _level_rates(level: Level, records: Iterable[Record]) -> list[LevelRate]:
    found = [(r, r.results[level]) for r in records if level in r.results]
    return [
        LevelRate(
            level=level,
            rate=_rate(pairs),
            without_unproven=_rate([pair for pair in pairs if not is_unproven(pair[1])]),
            assets=assets,
        )
        for assets, pairs in _by_assets(found, lambda pair: (pair[1],))
    ]


def _by_assets(
    items: Sequence[T], results: Callable[[T], Iterable[LevelResult]]
) -> list[tuple[RateKind, Sequence[T]]]:
    """The items in one group, or in two where some have stand-ins and others have none."""
    kinds = [{kind_of_assets(result) for result in results(item)} for item in items]
    pairs = list(zip(items, kinds, strict=True))
    replaced = [item for item, kind in pairs if "stand-ins" in kind]
    others = [item for item, kind in pairs if "stand-ins" not in kind]
    if not replaced:
        return [("originals" if any("originals" in kind for kind in kinds) else "", others)]
    if not any(_applies(result) for item in others for result in results(item)):
        return [("stand-ins", items)]
    return [("no stand-ins", others), ("stand-ins", replaced)]


def _applies(result: LevelResult) -> bool:
    return result.verdict is not Verdict.NOT_APPLICABLE


def _rate(results: Iterable[tuple[Record, LevelResult]]) -> Rate:
    applicable = [(r, x) for r, x in results if x.verdict is not Verdict.NOT_APPLICABLE]
    counting = [x for r, x in applicable if r.status is not AttemptStatus.DISQUALIFIED]
    return Rate(
        passed=sum(x.verdict is Verdict.PASSED for x in counting),
        applicable=len(applicable),
        inconclusive=sum(x.verdict is Verdict.INCONCLUSIVE for x in counting),
    )


def _ready_rate(records: Sequence[Record]) -> Rate:
    """Research-ready attempts; inconclusive are those that nothing failed and that may be."""
    return Rate(
        passed=sum(record.research_ready for record in records),
        applicable=len(records),
        inconclusive=sum(_may_be_ready(record) for record in records),
    )


def _may_be_ready(record: Record) -> bool:
    verdicts = {result.verdict for result in record.results.values()}
    return (
        record.status is AttemptStatus.OK
        and Verdict.INCONCLUSIVE in verdicts
        and Verdict.FAILED not in verdicts
    )


def _imports(records: Iterable[Record]) -> ImportRate:
    results = [r.results[Level.C0] for r in records if Level.C0 in r.results]
    known = [counts for result in results if (counts := ImportCounts.of(result))]
    paper = [c for c in known if c.missing_paper is not None]
    applicable = sum(result.verdict is not Verdict.NOT_APPLICABLE for result in results)
    return ImportRate(
        missing=sum(len(counts.missing) for counts in known),
        total=sum(counts.third_party for counts in known),
        attempts=len(known),
        missing_paper=sum(counts.missing_paper or 0 for counts in paper),
        total_paper=sum(counts.total_paper for counts in paper),
        attempts_paper=len(paper),
        left_out=applicable - len(known),
    )


def _claims(records: Sequence[Record]) -> ClaimCounts:
    audits = [r.audit for r in records if r.audit.claims]
    kinds: dict[str, int] = {}
    for audit in audits:
        for kind, number in audit.by_kind.items():
            kinds[kind] = kinds.get(kind, 0) + number
    true, false = sum(a.true for a in audits), sum(a.false for a in audits)
    return ClaimCounts(
        reports=len(audits),
        no_report=sum(r.status is AttemptStatus.NO_REPORT for r in records),
        made=sum(a.made for a in audits),
        true=true,
        false=false,
        withheld=sum(a.withheld for a in audits),
        unverifiable=sum(a.unverifiable for a in audits),
        under=sum(a.under for a in audits),
        over=sum(a.over for a in audits),
        over_by_kind=kinds,
        precision=true / (true + false) if true + false else None,
    )


def _spread(records: Iterable[Record], value: Callable[[Record], float | None]) -> Spread:
    known = [number for record in records if (number := value(record)) is not None]
    if not known:
        return Spread()
    return Spread(known=len(known), total=sum(known), median=median(known))


def _cost(record: Record) -> float | None:
    return record.build.model.cost_usd if record.build and record.build.model else None


def _tokens(records: Iterable[Record]) -> dict[str, int] | None:
    total: dict[str, int] | None = None
    for record in records:
        if record.build is None or record.build.model is None:
            continue
        total = total or {}
        for kind, number in record.build.model.tokens.model_dump().items():
            total[kind] = total.get(kind, 0) + number
    return total
