"""Counts what the repositories of a suite import, and holds it against what was published.

The count is that of C0 (`verify.imports`), over git's objects and without a checkout. Only
the source is looked at: no environment, nothing is executed.
"""

from __future__ import annotations

import time
from dataclasses import dataclass
from typing import TYPE_CHECKING

from ..errors import SourceError, SourceNotAvailableError
from ..mirrors import copies_of, repositories_below
from ..source import fetch_source, objects_of
from ..task import GitSource
from ..verify.imports import collect, read_folder, stdlib_names, third_party_names
from ..verify.objects import linked_modules, read_commit
from ..verify.outline import linked_modules as linked_modules_of_tree
from ..verify.tree import Tree

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence
    from pathlib import Path

    from ..task import Suite, Task


@dataclass(frozen=True)
class Count:
    """What the tracked Python files of a commit import."""

    files: int
    total_paper: int
    #: Neither of the standard library, which is that of the harness's own Python together
    #: with what it ever had, nor of the repository.
    third_party: int
    seconds: float  #: of reading and counting; the fetch is not in it

    @property
    def numbers(self) -> tuple[int, int, int]:
        """What does not depend on the host."""
        return self.files, self.total_paper, self.third_party


@dataclass(frozen=True)
class Total:
    """One task's count."""

    task: str
    published: int | None
    count: Count | None = None
    checkout: Count | None = None  #: the same over checked-out files, where asked for
    problem: str = ""  #: why there is no count, or none of a checkout
    available: bool = True  #: False where the task itself says that its commit is gone

    @property
    def equal(self) -> bool | None:
        """Whether the count is the published one; None where one of them is not known."""
        if self.count is None or self.published is None:
            return None
        return self.count.total_paper == self.published

    @property
    def differs(self) -> bool:
        """Something does not agree: with what was published, or with the checked-out files."""
        same = self.checkout is None or (
            self.count is not None and self.count.numbers == self.checkout.numbers
        )
        return self.equal is False or not same


def count_tasks(
    tasks: Sequence[Task], *, places: Iterable[Path] = (), compare_checkout: bool = False
) -> Iterator[Total]:
    """Count each task whose source is a git commit, one after the other.

    `places` are repositories of this host, or folders of them, to look into first. They need
    to hold no more of a commit than its Python files.

    Raises:
        HostError: git is not installed, or the cache cannot be written.
    """
    sources = [task.source for task in tasks if isinstance(task.source, GitSource)]
    copies = copies_of((source.commit for source in sources), repositories_below(places))
    for task in tasks:
        if not isinstance(task.source, GitSource):
            continue
        count = checkout = None
        problem, available = "", True
        try:
            count = count_commit(task, task.source.commit, copies)
            checkout = count_checkout(task) if compare_checkout else None
        except SourceError as error:
            problem = str(error.args[0])
            available = not isinstance(error, SourceNotAvailableError)
        yield Total(task.name, task.c0.total_paper, count, checkout, problem, available)


def count_commit(task: Task, commit: str, copies: Mapping[str, Path]) -> Count:
    """The count over git's objects.

    Raises:
        SourceError: the commit cannot be had.
        HostError: git is not installed, or the cache cannot be written.
    """
    folder = objects_of(task, copies=copies)
    started = time.monotonic()
    files = read_commit(folder, commit)
    imports = collect(files.python)
    tree = Tree([*files.paths, *linked_modules(files)])
    return Count(
        files=len(files.python),
        total_paper=imports.total_paper,
        third_party=len(third_party_names(imports, tree, stdlib_names(None))),
        seconds=time.monotonic() - started,
    )


def count_checkout(task: Task) -> Count:
    """The count over the files of a checkout.

    Raises:
        SourceError: the source cannot be had, or a file of it cannot be read.
        HostError: git is not installed, or the cache cannot be written.
    """
    snapshot = fetch_source(task)
    started = time.monotonic()
    paths = tuple(snapshot.tracked)
    imports = collect(read_folder(snapshot.tree, paths))
    tree = Tree([*paths, *linked_modules_of_tree(snapshot.tree, paths)])
    return Count(
        files=len(imports.files) + len(imports.unparsable),
        total_paper=imports.total_paper,
        third_party=len(third_party_names(imports, tree, stdlib_names(None))),
        seconds=time.monotonic() - started,
    )


@dataclass(frozen=True)
class Sum:
    """The counts of a suite together, and whether they are what was published."""

    counted: int
    total_paper: int
    published: int | None  #: for what was counted; None where the suite does not say
    published_of_all: int | None
    gone: tuple[str, ...]  #: tasks whose commit cannot be had any more
    missing: tuple[str, ...]  #: tasks whose commit or checkout could not be had this time

    @property
    def differs(self) -> bool:
        """Whether the sum is another than the published one."""
        return self.published is not None and self.total_paper != self.published


def sum_of(suite: Suite, totals: Sequence[Total]) -> Sum:
    """The sum over `totals`; `published` only where all tasks that it is about were counted."""
    counted = [total.count for total in totals if total.count is not None]
    gone = tuple(t.task for t in totals if not t.available)
    missing = tuple(t.task for t in totals if t.available and t.problem)
    uncounted = [t.task for t in totals if t.available and t.count is None]
    whole = len(totals) == len(suite.tasks) and not uncounted
    available = {task.name for task in suite.tasks if not task.unavailable}
    published = None
    if whole and not gone:
        published = suite.facts.c0_total
    elif whole and {t.task for t in totals if t.count is not None} == available:
        published = suite.facts.c0_total_available
    return Sum(
        counted=len(counted),
        total_paper=sum(count.total_paper for count in counted),
        published=published,
        published_of_all=suite.facts.c0_total,
        gone=gone,
        missing=missing,
    )
