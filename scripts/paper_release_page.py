"""Writes docs/paper-release.md from docs/paper-release.toml, with the counts.

python scripts/paper_release_page.py           write it
python scripts/paper_release_page.py --check   exit with 1 when it is out of date
"""

from __future__ import annotations

import sys
import tomllib
from collections import Counter
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from researchenvbench.task import StageName
from researchenvbench.taskfile import load_suite

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

DOCS = Path(__file__).parent.parent / "docs"
DATA = DOCS / "paper-release.toml"
PAGE = DOCS / "paper-release.md"
SUITE = "paper44"

#: What a stage can be, with the words for it. The order is the page's.
CLASSES = {
    "broken": "no environment passes it as it stands",
    "vacuous": "an environment in which the work is not done passes it",
    "right": "it does real work, and looks at what that made",
    "not told": "it hangs on something that is not known",
}
#: By what a vacuous stage is one.
WHYS = {
    "unopened": "the exit status decides, or a sign as weak; nothing that was made is looked at",
    "bypassed": "the work, or the GPU, can be left out or is replaced, and the stage still passes",
}
HOWS = ("seen", "read")

_HEAD = """\
# What the paper's public release runs, and what we run instead

The commands of the release were held against each repository's parser and code. This page says \
of every stage that the release counts as applicable what it is. What the suite runs instead \
stands in the `notes` of each task (`reb tasks show paper44/TASK`). The page is written from \
`docs/paper-release.toml` by `scripts/paper_release_page.py`.

## Counts

"""
_HEAD_HOW = """
### How they were reached

- *Seen* means that what decides was run: the program, or the one call or line on which the \
stage ends. *Read* means that it was read, from the code or from notes on the release. No stage \
of the release was run as a whole for this page. Where the code was read at another commit than \
the paper's, the line says so.
- *Broken* comes first: a stage that would also pass too easily, were it not broken, is broken. \
A program that fails as it is shipped, and that the release changes from outside until it runs, \
can pass; it is not counted as broken, and marked *patched*. An environment that was made around \
an error of the release, with a folder where a wrong path leads, is not counted as one.
- The test of *vacuous* is what passes, not how small the work is. Most stages ask for the exit \
status alone. That shows that nothing was raised, and not that anything was made; where the \
program is known to end with 0 after a failure, or what is measured can be left out, the stage \
is one of those *bypassed*, and for the others no such environment was built here.
- *Right* does not mean strict: what else was found is below.
- Where the class hangs on something that nobody has looked at, it is *not told*.
"""
_HEAD_STAGES = """
## The stages

| repository | stage | what it is | evidence |
| --- | --- | --- | --- |
"""
_HEAD_FINDINGS = """
## What else was found

| repository | stage | what is wrong | evidence |
| --- | --- | --- | --- |
"""
_TAIL = """
Some stages of ours share a weakness of the release's: the entry points of Depth-Anything-V2, \
renderformer, F5-TTS and sapiens choose the device themselves or do not say where they computed, \
so that their output alone cannot tell a GPU from a CPU. There only the witness of GPU work \
decides; until there is one, those stages are `inconclusive`.
"""


@dataclass(frozen=True)
class Stage:
    """What one stage of the release is, and by what that is known."""

    kind: str
    how: str
    evidence: str
    why: str = ""
    patched: bool = False

    @property
    def words(self) -> str:
        """The class with its reason, for a cell of the page."""
        return ", ".join([self.kind, *[self.why] * bool(self.why), *["patched"] * self.patched])


@dataclass(frozen=True)
class Repository:
    """The stages of one repository, and what else was found there."""

    title: str
    stages: Mapping[StageName, Stage]
    findings: tuple[tuple[str, str, str], ...]


def load() -> list[Repository]:
    """The data, checked against the suite; SystemExit names what does not fit."""
    data = tomllib.loads(DATA.read_text(encoding="utf-8"))
    repositories = []
    for task in load_suite(SUITE).tasks:
        rows = data.pop(task.name, {})
        findings = tuple(_finding(task.name, one) for one in rows.pop("finding", []))
        wanted = [
            name for name in StageName if task.applicable is None or task.applicable.applies(name)
        ]
        if sorted(rows) != sorted(wanted):
            raise SystemExit(
                f"{DATA}: {task.name} has the stages {', '.join(rows) or 'none'}, and "
                f"{', '.join(wanted) or 'none'} apply: tell of these, and of no other"
            )
        stages = {name: _stage(f"{task.name}.{name}", rows[name]) for name in wanted}
        title = task.name.replace("__", "/", 1)
        repositories.append(Repository(title, stages, findings))
    if data:
        raise SystemExit(f"{DATA}: no tasks of {SUITE}: {', '.join(data)}; write a task's name")
    return repositories


def _stage(at: str, row: dict[str, Any]) -> Stage:
    try:
        stage = Stage(row.pop("class"), row.pop("how"), row.pop("evidence"), **row)
    except (KeyError, TypeError) as error:
        raise SystemExit(f"{DATA}: {at}: {error}: its comment says what a stage has") from None
    allowed = WHYS if stage.kind == "vacuous" else ("",)
    if stage.kind not in CLASSES or stage.how not in HOWS or stage.why not in allowed:
        raise SystemExit(
            f"{DATA}: {at}: {stage.words} ({stage.how}) is no class; there are "
            f"{', '.join(CLASSES)}, with {' or '.join(WHYS)} for vacuous, {' or '.join(HOWS)}"
        )
    return stage


def _finding(at: str, row: dict[str, Any]) -> tuple[str, str, str]:
    """The cells of a finding: its stages, what is wrong, and the evidence."""
    if set(row) != {"stages", "what", "how", "evidence"} or row["how"] not in HOWS:
        raise SystemExit(f"{DATA}: a finding of {at}: it has stages, what, how and evidence")
    return ", ".join(row["stages"]), row["what"], f"{row['how']}: {row['evidence']}"


def page() -> str:
    """The whole page."""
    return "".join(_page(load()))


def _page(repositories: list[Repository]) -> Iterator[str]:
    yield _HEAD
    yield from _counts(repositories)
    yield _HEAD_HOW
    yield _HEAD_STAGES
    for one in repositories:
        yield from _stage_rows(one)
    yield _HEAD_FINDINGS
    for one in repositories:
        for place, cells in enumerate(one.findings):
            yield _row("" if place else one.title, *cells)
    yield _TAIL


def _counts(repositories: list[Repository]) -> Iterator[str]:
    """How many stages are what, by stage and in all."""
    found = [(name, stage) for one in repositories for name, stage in one.stages.items()]
    others = len(StageName) * len(repositories) - len(found)
    yield (
        f"{len(found)} stages of {sum(bool(one.stages) for one in repositories)} of the "
        f"{len(repositories)} repositories apply; why the other {others} do not, the tasks say.\n\n"
    )
    yield _row("", *(f"`{name}`" for name in StageName), "all", "seen", "read", "meaning")
    yield _row(*["---"] * (len(StageName) + 5))
    for kind, says in CLASSES.items():
        yield _counted(kind, says, [(name, one) for name, one in found if one.kind == kind])
        for why in WHYS if kind == "vacuous" else ():
            some = [(name, one) for name, one in found if one.why == why]
            yield _counted(f"of these {why}", WHYS[why], some)
    yield _counted("**in all**", "", found)
    patched = [(name, one) for name, one in found if one.patched]
    yield _counted("among them patched", "the release changes a program that fails", patched)


def _counted(label: str, says: str, found: list[tuple[StageName, Stage]]) -> str:
    by_stage = Counter(name for name, _ in found)
    by_how = Counter(stage.how for _, stage in found)
    numbers = [*(by_stage[name] for name in StageName), len(found), *(by_how[how] for how in HOWS)]
    return _row(label, *map(str, numbers), says)


def _stage_rows(repository: Repository) -> Iterator[str]:
    """One row for the stages of which the same is said."""
    alike: dict[Stage, list[str]] = {}
    for name, stage in repository.stages.items():
        alike.setdefault(stage, []).append(name)
    for place, (stage, names) in enumerate(alike.items()):
        title = "" if place else repository.title
        yield _row(title, ", ".join(names), stage.words, f"{stage.how}: {stage.evidence}")


def _row(*cells: str) -> str:
    flat = [" ".join(cell.split()).replace("|", "\\|") for cell in cells]
    return f"| {' | '.join(flat)} |\n".replace("|  |", "| |")


def main() -> int:
    """Write the page, or say whether it is up to date."""
    wanted = page()
    if sys.argv[1:] == ["--check"]:
        there = PAGE.read_text(encoding="utf-8") if PAGE.is_file() else ""
        if there != wanted:
            print(f"{PAGE} is out of date: python scripts/paper_release_page.py")
        return int(there != wanted)
    PAGE.write_text(wanted, encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
