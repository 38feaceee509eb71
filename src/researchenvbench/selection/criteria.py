"""The vocabulary of a selection: criteria, what was found of each, candidates, a selection.

The criteria are those of the paper's section on how its repositories were chosen: created
from 2024 on, written in Python, with a paper's identifier, dependent on GPUs, with distributed
primitives or custom kernels, more than 100 stars, neither archived nor a fork.
"""

from __future__ import annotations

from datetime import date  # noqa: TC003  # pydantic needs it at run time
from enum import StrEnum

from pydantic import ConfigDict, Field, computed_field

from ..stored import Stored


class Criterion(StrEnum):
    """What is asked of a repository, in the order in which it is told."""

    CREATED = "created"
    STARS = "stars"
    NOT_ARCHIVED = "not_archived"
    NOT_A_FORK = "not_a_fork"
    PYTHON = "python"
    PAPER = "paper"
    GPU = "gpu"
    DISTRIBUTED_OR_KERNELS = "distributed_or_kernels"


#: Those that a tree shows. The others are facts of the place where the repository lies.
OF_A_TREE = (
    Criterion.PYTHON,
    Criterion.PAPER,
    Criterion.GPU,
    Criterion.DISTRIBUTED_OR_KERNELS,
)


class Standing(StrEnum):
    """The answer to a criterion."""

    MET = "met"
    NOT_MET = "not_met"
    UNKNOWN = "unknown"


class Decision(StrEnum):
    """What the answers to all criteria come to."""

    ACCEPTED = "accepted"
    REFUSED = "refused"
    UNDECIDED = "undecided"  #: nothing refuses it, and not everything is known


class Evidence(Stored):
    """Where a criterion was seen."""

    file: str = Field(description="Path within the repository.")
    line: int = Field(description="Counted from 1; 0 where the file as a whole is meant.")
    text: str = Field(description="The line, shortened.")
    says: str = Field(description="What it shows.")

    @property
    def place(self) -> str:
        """The file and the line, as editors take them."""
        return f"{self.file}:{self.line}" if self.line else self.file


class Finding(Stored):
    """The answer to one criterion, with its reason."""

    criterion: Criterion
    standing: Standing
    why: str
    evidence: tuple[Evidence, ...] = ()
    weak: bool = Field(False, description="Met by its letter, and worth a look of a person.")


class Facts(Stored):
    """What a GitHub says of a repository."""

    id: int
    name: str = Field(description="OWNER/NAME of today.")
    address: str = Field(description="What git is given.")
    created: date
    pushed: str = Field(description="When something was last pushed, as the server writes it.")
    stars: int
    archived: bool
    fork: bool
    language: str | None = Field(None, description="The main one, as GitHub counts.")
    description: str = ""
    topics: tuple[str, ...] = ()


class Candidate(Stored):
    """A repository with all that was found of it."""

    name: str = Field(description="OWNER/NAME, or a task's.")
    owner: str
    address: str = ""
    commit: str = Field("", description="Of which the tree was judged; empty where none was.")
    facts: Facts | None = None
    domain: str = ""
    domain_why: str = ""
    findings: tuple[Finding, ...] = ()
    rank: int | None = Field(None, description="Of an accepted one, from 1.")
    set_aside: str = Field("", description="Why an accepted one has no rank.")

    @computed_field  # type: ignore[prop-decorator]  # so that the file says it too
    @property
    def decision(self) -> Decision:
        """What the findings come to."""
        standings = {finding.standing for finding in self.findings}
        if Standing.NOT_MET in standings:
            return Decision.REFUSED
        return Decision.UNDECIDED if Standing.UNKNOWN in standings else Decision.ACCEPTED

    def finding(self, criterion: Criterion) -> Finding:
        """What was found of a criterion."""
        for finding in self.findings:
            if finding.criterion is criterion:
                return finding
        return Finding(criterion=criterion, standing=Standing.UNKNOWN, why="it was not looked at")


class Asked(Stored):
    """What a selection was made by."""

    queries: tuple[str, ...] = ()
    api: str = ""
    suite: str = ""
    since: date
    more_stars_than: int
    limit: int | None = None


class Selection(Stored):
    """A file of candidates."""

    schema_version: int = Field(1, alias="schema")
    asked: Asked
    made: str = Field(description="When, in UTC.")
    complete: bool = Field(description="False where it was cut off, or a server gave up.")
    notes: tuple[str, ...] = ()
    candidates: tuple[Candidate, ...] = ()

    model_config = ConfigDict(extra="ignore", frozen=True, populate_by_name=True)


def unknown(criterion: Criterion, why: str) -> Finding:
    """An answer that cannot be had."""
    return Finding(criterion=criterion, standing=Standing.UNKNOWN, why=why)


def answer(criterion: Criterion, met: bool, why: str) -> Finding:
    """An answer that rests on a fact, and on no line of a file."""
    return Finding(criterion=criterion, standing=Standing.MET if met else Standing.NOT_MET, why=why)
