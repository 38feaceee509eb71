"""What a GitHub says of a repository, held against the criteria that only it can answer."""

from __future__ import annotations

from typing import TYPE_CHECKING

from .criteria import OF_A_TREE, Criterion, Finding, answer, unknown

if TYPE_CHECKING:
    from datetime import date

    from .criteria import Facts


def judge_facts(facts: Facts, *, since: date, more_stars_than: int) -> list[Finding]:
    """The answers to the criteria that a tree does not show, and to the main language."""
    language = facts.language or "no language"
    return [
        answer(Criterion.CREATED, facts.created >= since, f"created on {facts.created}"),
        answer(Criterion.STARS, facts.stars > more_stars_than, f"{facts.stars} stars"),
        answer(
            Criterion.NOT_ARCHIVED,
            not facts.archived,
            "it is archived" if facts.archived else "not archived",
        ),
        answer(Criterion.NOT_A_FORK, not facts.fork, "it is a fork" if facts.fork else "no fork"),
        answer(
            Criterion.PYTHON,
            facts.language == "Python",
            f"GitHub counts {language} as its main language",
        ),
    ]


def without_facts(why: str) -> list[Finding]:
    """Of a tree alone: what it does not show."""
    return [unknown(criterion, why) for criterion in Criterion if criterion not in OF_A_TREE]
