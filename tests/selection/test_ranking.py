"""In which order the accepted are offered, and what a field is told by."""

from __future__ import annotations

from datetime import date

from researchenvbench.selection.criteria import (
    Candidate,
    Criterion,
    Facts,
    Finding,
    Standing,
)
from researchenvbench.selection.domains import OTHER, domain_of
from researchenvbench.selection.ranking import ranked
from researchenvbench.taskfile import load_suite


def candidate(name, stars, domain, *, weak=False, standing=Standing.MET):
    facts = Facts(
        id=1,
        name=name,
        address="https://example.org/x",
        pushed="",
        created=date(2024, 1, 1),
        stars=stars,
        archived=False,
        fork=False,
    )
    findings = [
        Finding(criterion=criterion, standing=Standing.MET, why="", weak=weak)
        for criterion in Criterion
        if criterion is not Criterion.GPU
    ]
    findings.append(Finding(criterion=Criterion.GPU, standing=standing, why=""))
    owner = name.partition("/")[0]
    return Candidate(name=name, owner=owner, facts=facts, domain=domain, findings=tuple(findings))


def test_fields_take_turns_and_stars_order_them():
    found = ranked(
        [
            candidate("a/1", 100, "audio"),
            candidate("b/2", 900, "audio"),
            candidate("c/3", 200, "vision"),
            candidate("d/4", 800, "audio"),
            candidate("e/5", 150, "vision"),
        ]
    )
    assert [(one.name, one.rank) for one in found] == [
        *(("b/2", 1), ("c/3", 2), ("d/4", 3), ("e/5", 4), ("a/1", 5)),
    ]


def test_an_owner_has_one_place_in_a_field_and_others_elsewhere():
    found = ranked(
        [
            candidate("Owner/1", 100, "audio"),
            candidate("owner/2", 900, "audio"),
            candidate("owner/3", 50, "vision"),
        ]
    )
    assert [(one.name, one.rank) for one in found] == [
        *(("owner/2", 1), ("owner/3", 2), ("Owner/1", None)),
    ]
    assert found[2].set_aside == "owner/2 is of the same owner and field"


def test_what_needs_a_second_look_comes_after_what_does_not():
    found = ranked([candidate("a/1", 900, "x", weak=True), candidate("b/2", 100, "x")])
    assert [one.name for one in found] == ["b/2", "a/1"]


def test_what_is_not_accepted_has_no_rank_and_the_undecided_come_first():
    refused = candidate("a/1", 900, "x", standing=Standing.NOT_MET)
    unknown = candidate("b/2", 100, "x", standing=Standing.UNKNOWN)
    assert [(one.name, one.rank) for one in ranked([refused, unknown])] == [
        *(("b/2", None), ("a/1", None)),
    ]


def test_ranking_again_gives_the_same():
    once = ranked([candidate(f"o{n % 3}/{n}", n, f"field{n % 2}") for n in range(9)])
    assert ranked(once) == once


def test_a_field_is_told_by_words_and_its_own_words_count_twice():
    assert domain_of(["voice-net", "Zero-shot TTS"]) == ("audio-speech", "tts, voice")
    readme = "Monocular depth estimation, compared with OCR."
    assert domain_of(["net", "OCR for invoices"], readme)[0] == "document-ai"
    assert domain_of(["net"], readme)[0] == "depth-estimation"
    assert domain_of(["net"])[0] == OTHER


def test_the_fields_are_those_of_the_papers_suite():
    from researchenvbench.selection.domains import _domains

    assert {name for name, _ in _domains()} == {task.domain for task in load_suite("paper44").tasks}
