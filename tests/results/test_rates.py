"""Rates: what is in a denominator, what passes nothing, and that missing data is no pass."""

import json

import pytest
from result_samples import FAILED_CPU, c0_details, record, result, results

from researchenvbench.attempt import (
    AssetUse,
    AttemptStatus,
    Audit,
    Level,
    Owner,
    Record,
    Sizes,
    Verdict,
)
from researchenvbench.results.entries import Entry, entry_of
from researchenvbench.results.figures import figures, tasks_of
from researchenvbench.results.rates import Rate, Scope, summarise


def summary(*records):
    (found,) = summarise([entry_of(r) for r in records])
    return found


def ready(found):
    (only,) = found.research_ready
    return only.rate


def rate(found, level):
    return next(x for x in found.levels if x.level is level)


def test_one_of_each_kind(entries):
    (found,) = summarise(entries, suite="sample", agent="builtin")
    assert (found.tasks, found.attempts, found.counted) == (6, 6, 4)
    assert (found.disqualified, found.void, found.no_record) == (1, 1, 1)
    assert rate(found, Level.C0).rate == Rate(passed=3, applicable=4, inconclusive=0)
    assert rate(found, Level.C1).rate == Rate(passed=1, applicable=4, inconclusive=1)
    assert rate(found, Level.C2).rate == Rate(passed=0, applicable=2, inconclusive=1)
    assert rate(found, Level.C3).rate == Rate(passed=0, applicable=4, inconclusive=3)
    assert ready(found) == Rate(passed=0, applicable=4, inconclusive=1)
    assert found.claims.over_by_kind == {"capability": 1}
    assert found.build_s.known == 3


@pytest.mark.parametrize(
    ("scope", "said"),
    [
        (None, "2 tasks"),
        (Scope("", ["a", "b"], 2), "2 tasks"),
        (Scope("", ["a", "b"], 7), "2 of 7 tasks"),
        (Scope("subset cpu", ["a", "b"], 7), "2 of 7 tasks (subset cpu)"),
        # Interrupted: those that were not begun are in no rate.
        (
            Scope("subset cpu", ["a", "b", "c"], 7),
            "2 of 7 tasks (2 of the 3 asked for: subset cpu)",
        ),
        (Scope("", ["a", "b", "c"], 7), "2 of 7 tasks (2 of the 3 asked for)"),
        (Scope("", list("abcdefg"), 7), "2 of 7 tasks"),
        # Of an earlier command in the same folder is what was not asked for now.
        (Scope("subset cpu", ["a"], 7), "2 of 7 tasks"),
    ],
)
def test_it_is_said_of_which_tasks_the_rates_are(scope, said):
    entries = [entry_of(record(name)) for name in "ab"]
    suite = entries[0].record.suite
    (found,) = summarise(entries, suite=suite, agent="builtin", scope=scope)
    assert tasks_of(found) == said


def test_what_was_asked_for_is_of_its_own_suite_alone():
    entries = [entry_of(record("a", suite="one")), entry_of(record("a", suite="two"))]
    scope = Scope("subset cpu", ["a"], 7)
    found = summarise(entries, suite="two", agent="builtin", scope=scope)
    assert [one.suite_tasks for one in found] == [None, 7]


def test_disqualified_attempts_stay_in_the_denominator_and_pass_nothing():
    good = results(C2=None, C3=None, C4=None)
    found = summary(
        record("a", results=good),
        record("b", results=good, status=AttemptStatus.DISQUALIFIED),
    )
    assert rate(found, Level.C1).rate == Rate(passed=1, applicable=2)
    assert ready(found) == Rate(passed=1, applicable=2)
    assert found.imports.attempts == 1


def test_void_attempts_are_in_no_rate():
    found = summary(record("a"), record("b", status=AttemptStatus.VOID))
    assert found.void == 1
    assert rate(found, Level.C0).rate == Rate(passed=1, applicable=1)


def test_attempts_without_a_report_count_with_what_was_found():
    failed = result(Level.C5, Verdict.FAILED, owner=Owner.AGENT, reason="no report")
    found = summary(
        record("a", status=AttemptStatus.NO_REPORT, audit=Audit(), results=results(C5=failed))
    )
    assert rate(found, Level.C5).rate == Rate(passed=0, applicable=1)
    assert ready(found).passed == 0
    assert (found.claims.no_report, found.claims.reports) == (1, 0)
    assert found.claims.precision is None


def test_a_checker_that_crashed_is_not_zero_missing():
    crashed = result(
        Level.C0, Verdict.INCONCLUSIVE, owner=Owner.HOST, reason="crashed", details=c0_details()
    )
    found = summary(record("a", results=results(C0=crashed)))
    assert (found.imports.attempts, found.imports.total, found.imports.left_out) == (0, 0, 1)


def test_imports_are_summed_and_the_paper_leaves_out_what_it_has_no_number_for():
    missing = result(
        Level.C0, Verdict.FAILED, details=c0_details(10, [("x", True), ("y", False)], 30, 1)
    )
    no_python = result(Level.C0, Verdict.FAILED, details=c0_details(5, [("a", True)] * 5, 9, None))
    found = summary(
        record("a", results=results(C0=missing)), record("b", results=results(C0=no_python))
    )
    assert (found.imports.missing, found.imports.total) == (7, 15)
    assert (found.imports.missing_paper, found.imports.total_paper) == (1, 30)
    assert (found.imports.attempts, found.imports.attempts_paper) == (2, 1)


def test_details_that_are_no_counts_are_unknown_and_not_zero():
    odd = result(Level.C0, details={"missing": "none"})
    found = summary(record("a", results=results(C0=odd)))
    assert (found.imports.attempts, found.imports.left_out) == (0, 1)


def test_rates_without_the_unproven():
    unproven = FAILED_CPU.model_copy(update={"verdict": Verdict.PASSED, "proven": "unproven"})
    found = summary(record("a"), record("b", results=results(C1=unproven)))
    assert rate(found, Level.C1).rate == Rate(passed=2, applicable=2)
    assert rate(found, Level.C1).without_unproven == Rate(passed=1, applicable=1)


def test_a_stage_that_is_not_distributed_keeps_its_place():
    reason = "not distributed: one process"
    alone = result(Level.C4, Verdict.INCONCLUSIVE, owner=Owner.TASK, reason=reason)
    found = rate(summary(record("a", results=results(C4=alone))), Level.C4)
    assert found.rate == found.without_unproven == Rate(applicable=1, inconclusive=1)


def test_research_ready_needs_every_applicable_level():
    there = results(
        C2=result(Level.C2, Verdict.NOT_APPLICABLE),
        C3=result(Level.C3, Verdict.NOT_APPLICABLE),
        C4=result(Level.C4, Verdict.NOT_APPLICABLE),
    )
    assert ready(summary(record("a", results=there))) == Rate(passed=1, applicable=1)
    assert ready(summary(record("a"))) == Rate(applicable=1, inconclusive=1)
    failed = results(C1=FAILED_CPU)
    assert ready(summary(record("a", results=failed))) == Rate(applicable=1)


def test_what_is_not_known_is_left_out_of_costs():
    found = summary(record("a"), record("b", sizes=Sizes(), build=None))
    assert (found.prefix_bytes.known, found.prefix_bytes.total) == (1, 312_000_000)
    assert found.cost_usd.total is None
    assert found.tokens is None


def test_suites_and_agents_are_apart():
    entries = [
        entry_of(record("a", suite="one")),
        entry_of(record("a", suite="two")),
        entry_of(record("a", suite="two", agent="other")),
        Entry("lost", problem="x"),
    ]
    found = summarise(entries, suite="two", agent="builtin")
    assert [(s.suite, s.agent, s.attempts) for s in found] == [
        ("one", "builtin", 1), ("two", "builtin", 2), ("two", "other", 1),
    ]  # fmt: skip


def test_no_attempt_gives_no_rate():
    assert summarise([]) == []


def with_assets(*origins, **more):
    """A good C1 whose stage reads assets of those origins."""
    uses = {f"a{n}": AssetUse(origin=o, digest=f"{n}" * 64) for n, o in enumerate(origins)}
    fields = {"proven": "proven", "assets": uses} | more
    return results(C1=result(Level.C1, **fields), C2=None, C3=None, C4=None)


def levels(found, level):
    return [(x.assets, str(x.rate)) for x in found.levels if x.level is level]


def test_stages_with_stand_ins_are_never_added_to_others():
    failed = {"verdict": Verdict.FAILED, "owner": Owner.AGENT}
    found = summary(
        record("a", results=with_assets("real")),
        record("b", results=with_assets("stand-in", "real")),
        record("c", results=with_assets("stand-in", **failed)),
        record("d", results=with_assets()),
        record("e", results=with_assets("made")),
    )
    assert levels(found, Level.C1) == [("no stand-ins", "3/3"), ("stand-ins", "1/2")]
    assert levels(found, Level.C0) == [("", "5/5")], "no level but a stage's reads assets"
    assert [(x.assets, str(x.rate)) for x in found.research_ready] == [
        ("no stand-ins", "3/3"),
        ("stand-ins", "1/2"),
    ]
    names = [figure.name for figure in figures(found)]
    assert names[:3] == ["C0 imports", "C1 CPU run, no stand-ins", "C1 CPU run, stand-ins"]


def test_where_one_kind_occurs_the_rate_says_which():
    only = {
        ("stand-in",): ("stand-ins", "C1 CPU run, stand-ins", ""),
        ("real",): ("originals", "C1 CPU run", "with originals"),
        ("made",): ("", "C1 CPU run", ""),
        (): ("", "C1 CPU run", ""),
    }
    for origins, (kind, name, beside) in only.items():
        not_there = result(Level.C1, Verdict.NOT_APPLICABLE)
        found = summary(
            record("a", results=with_assets(*origins)),
            record("b", results=results(C1=not_there, C2=None, C3=None, C4=None)),
        )
        assert levels(found, Level.C1) == [(kind, "1/1")]
        assert (figures(found)[1].name, figures(found)[1].beside) == (name, beside)


def test_a_record_of_before_there_were_assets_reads_as_it_did(tmp_path):
    old = record("a").model_dump(mode="json", by_alias=True)
    for of_level in old["results"].values():
        del of_level["assets"]
    (tmp_path / "record.json").write_text(json.dumps(old))
    assert Record.load(tmp_path / "record.json") == record("a")
