"""The flow of a selection: search, facts, trees, ranks; or the trees of a suite's commits."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import TYPE_CHECKING

from ..errors import SourceError
from ..mirrors import copies_of, repositories_below
from ..source import objects_of
from ..task import GitSource
from .criteria import (
    OF_A_TREE,
    Candidate,
    Criterion,
    Selection,
    Standing,
    unknown,
)
from .domains import domain_of
from .facts import judge_facts, without_facts
from .github import Search
from .ranking import ranked
from .tree import Tree, judge_tree

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence
    from pathlib import Path

    from ..task import Task
    from .criteria import Asked, Facts, Finding
    from .github import GitHub
    from .trees import Trees

_ORDER = {criterion: number for number, criterion in enumerate(Criterion)}


def select(
    asked: Asked,
    github: GitHub,
    trees: Trees,
    *,
    say: Callable[[str], None],
    keep: Callable[[Selection], None],
) -> Selection:
    """Search, judge and rank; `keep` is given what there is when something ends it early.

    Raises:
        SearchError: the server refuses a search, or cannot be reached.
        HostError: git is not installed.
        OSError: the cache cannot be written.
    """
    limit = asked.limit or 1000
    repositories: dict[int, Facts] = {}
    notes: list[str] = []
    complete = True
    say(f"searching {github.api}")
    for query in asked.queries:
        found = github.search(Search(query, asked.since, asked.more_stars_than), limit)
        complete = complete and found.complete
        notes += found.notes
        for facts in found.repositories:
            repositories.setdefault(facts.id, facts)
    best = sorted(repositories.values(), key=lambda facts: (-facts.stars, facts.name.lower()))
    best = best[:limit]
    candidates: list[Candidate] = []
    try:
        for number, facts in enumerate(best, start=1):
            candidate = judge_candidate(facts, asked, trees)
            candidates.append(candidate)
            say(f"{number} of {len(best)}: {candidate.name}: {candidate.decision}")
    except BaseException:
        keep(_selection(asked, notes, candidates, complete=False))
        raise
    return _selection(asked, notes, candidates, complete=complete)


def judge_candidate(facts: Facts, asked: Asked, trees: Trees) -> Candidate:
    """All that can be said of a repository; its tree is fetched where the facts refuse nothing.

    Raises:
        HostError: git is not installed.
        OSError: the cache cannot be written.
    """
    findings = judge_facts(facts, since=asked.since, more_stars_than=asked.more_stars_than)
    about = (facts.name.partition("/")[2], facts.description, *facts.topics)
    readme = commit = ""
    if any(finding.standing is Standing.NOT_MET for finding in findings):
        findings += _unread(findings, "not looked at: the facts refuse it")
    else:
        try:
            fetched = trees.fetch(facts)
            tree = Tree(fetched.folder, fetched.commit)
            commit = fetched.commit
            readme = _readme(tree)
            # Of the language the server's word counts: it knows what is vendored or generated.
            findings += [f for f in judge_tree(tree) if f.criterion is not Criterion.PYTHON]
        except SourceError as error:
            findings += _unread(findings, f"its tree cannot be had: {error.args[0]}")
    domain, why = domain_of(about, readme)
    return Candidate(
        name=facts.name,
        owner=facts.name.partition("/")[0],
        address=facts.address,
        commit=commit,
        facts=facts,
        domain=domain,
        domain_why=why,
        findings=_in_order(findings),
    )


def judge_suite(
    asked: Asked,
    tasks: Sequence[Task],
    *,
    places: Iterable[Path] = (),
    say: Callable[[str], None],
) -> Selection:
    """The tasks of a suite as candidates: what the trees of their commits show.

    `places` are repositories of this host, or folders of them, to look into first.

    Raises:
        HostError: git is not installed, or the cache cannot be written.
    """
    commits = [task.source.commit for task in tasks if isinstance(task.source, GitSource)]
    copies = copies_of(commits, repositories_below(places)) if places else {}
    candidates: list[Candidate] = []
    for task in tasks:
        say(f"{len(candidates) + 1} of {len(tasks)}: {task.name}")
        candidates.append(_judge_task(task, copies))
    return _selection(asked, [], candidates, complete=True)


def _judge_task(task: Task, copies: Mapping[str, Path]) -> Candidate:
    findings = without_facts("a tree does not show it")
    commit = address = ""
    try:
        folder = objects_of(task, copies=copies)
        if isinstance(task.source, GitSource):  # `objects_of` gives no others
            commit, address = task.source.commit, task.source.url
        findings += judge_tree(Tree(folder, commit))
    except SourceError as error:
        commit = ""
        findings += _unread(findings, f"its tree cannot be had: {error.args[0]}")
    return Candidate(
        name=task.name,
        owner=address.rstrip("/").split("/")[-2] if address.count("/") > 1 else "",
        address=address,
        commit=commit,
        domain=task.domain,
        domain_why="the task says so",
        findings=_in_order(findings),
    )


def _unread(there: Sequence[Finding], why: str) -> list[Finding]:
    answered = {finding.criterion for finding in there}
    return [unknown(criterion, why) for criterion in OF_A_TREE if criterion not in answered]


def _in_order(findings: Iterable[Finding]) -> tuple[Finding, ...]:
    return tuple(sorted(findings, key=lambda finding: _ORDER[finding.criterion]))


def _readme(tree: Tree) -> str:
    names = [e.path for e in tree.entries if e.path.lower() in ("readme.md", "readme.rst")]
    return next(iter(tree.texts(names[:1]).values()), "")


def _selection(
    asked: Asked, notes: Sequence[str], candidates: Sequence[Candidate], *, complete: bool
) -> Selection:
    return Selection(
        asked=asked,
        made=datetime.now(UTC).isoformat(timespec="seconds"),
        complete=complete,
        notes=tuple(notes),
        candidates=tuple(ranked(candidates)),
    )
