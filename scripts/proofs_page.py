"""Writes docs/proofs.md from the ledgers of the suites that come with the package.

python scripts/proofs_page.py           write it
python scripts/proofs_page.py --check   exit with 1 when it is out of date
"""

from __future__ import annotations

import sys
from collections import Counter
from pathlib import Path
from statistics import median
from typing import TYPE_CHECKING

from researchenvbench.proofs import Ledger, gold_proof, gpu_key, load_ledger, standing
from researchenvbench.task import StageName
from researchenvbench.taskfile import bundled_suites, load_suite

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from researchenvbench.proofs import BreakageProof, StageProof, TaskProof
    from researchenvbench.task import Suite, Task

PAGE = Path(__file__).parent.parent / "docs" / "proofs.md"
_HEAD = """\
# Proofs

A stage is *proven* when a recipe builds an environment that passes it (gold: the stage can be \
passed) and a deliberate damage to that environment fails it for the reason that matters (it \
tells a good environment from a bad one). All damages of its level must have done what was \
expected of them, controls that must not fail among them. Every other stage gives its verdict \
marked *unproven*. `reb tasks prove SUITE` makes the proofs anew; this page is written from \
the ledgers by `scripts/proofs_page.py`.

*What it costs* is of gold, for each stage that it proves: seconds of the build, downloads \
among them, and of the stage, on the host that proved; what the environment, and what the stage \
reads, take on the disk; what the archives of the packages, and originals of assets, weigh on \
their way. `reb run --dry-run` reckons with these. Seconds in *italics* are of a host that was \
busy with other things: more than it takes, and in no median and no worst. Where `packages` is \
empty the host's load was not noted either: such seconds may be of a busy one. What nobody has \
measured is left open, and behind a median or a worst it says of how many stages that is.
"""

_HEAD_COSTS = """
### What it costs

| task | stage | build, s | stage, s | environment, GB | assets, GB | packages, GB | originals, GB |
| --- | --- | --- | --- | --- | --- | --- | --- |
"""

_HEAD_ON_GPUS = """
### On GPUs, with what a host had

No recipe builds gold on a host without a network: there the host's packages and the wheels that
were carried there stand in its place. What was uninstalled by a damage was removed file by file.

| task | stage | standing | came to | seconds | GPUs | damages | carried | made on |
| --- | --- | --- | --- | --- | --- | --- | --- | --- |
"""


_SECONDS_COLUMNS = 2


def page() -> str:
    """The whole page."""
    return "".join(_page())


def _page() -> Iterator[str]:
    yield _HEAD
    for name in bundled_suites():
        suite = load_suite(name)
        ledger = load_ledger(suite.folder)
        yield f"\n## {suite.facts.title or name} (`{name}`)\n\n"
        yield f"{_counted(suite, ledger)}\n"
        if proven := [task for task in suite.tasks if task.name in ledger.proofs]:
            yield "\n| task | stage | standing | gold | seconds | read | made on |\n"
            yield "| --- | --- | --- | --- | --- | --- | --- |\n"
            for task in proven:
                yield from _stages(task, ledger)
            yield from _costs(proven, ledger)
            yield "\n### What the damages did\n\n"
            yield "| task | damage | level | expected | what was seen |\n"
            yield "| --- | --- | --- | --- | --- |\n"
            for task in proven:
                yield from _breakages(ledger.proofs[task.name])
        yield from _on_gpus(suite, ledger)


def _counted(suite: Suite, ledger: Ledger) -> str:
    counts: Counter[str] = Counter()
    for task in suite.tasks:
        for stage in StageName:
            if stage in task.stages:
                counts[f"{standing(task, stage)} {stage}"] += 1
            elif task.is_unwritten(stage):
                counts[f"{task.word_for_unwritten()} {stage}"] += 1
    stages = []
    for stage in StageName:
        words = ("proven", "unproven", "not_solvable", "not_distributed")
        words += ("not written", "no source")
        parts = [f"{n} {w.replace('_', ' ')}" for w in words if (n := counts[f"{w} {stage}"])]
        stages.append(f"`{stage}`: {', '.join(parts) or 'none'}")
    return f"{len(suite.tasks)} tasks, {len(ledger.proofs)} in the ledger. {'; '.join(stages)}."


def _stages(task: Task, ledger: Ledger) -> Iterator[str]:
    proof = ledger.proofs[task.name]
    versions = [f"{name} {version}" for name, version in sorted(proof.frameworks.items())]
    versions += [f"Python {proof.python_version}", f"reb {proof.reb_version}"]
    made = ", ".join([proof.date[:10], *versions, *proof.gpus])
    if proof.problem:
        yield _row(task.name, "", "unproven", proof.problem, "", "", made)
    for stage in proof.stages:
        if stage.stage not in task.stages:
            continue
        gold = str(stage.verdict) + (f": {stage.reason}" if stage.reason else "")
        if gpu_key(task.name, stage.stage) in ledger.on_gpus:
            gold = "with what a host with GPUs had: below"
        yield _row(
            task.name,
            f"`{stage.stage}`",
            standing(task, stage.stage).replace("_", " "),
            gold,
            f"{stage.seconds:.0f}" if stage.seconds else "",
            _read(stage),
            made,
        )


def _costs(tasks: list[Task], ledger: Ledger) -> Iterator[str]:
    """What each stage that gold proves took, with the middle and the worst of what is known."""
    rows = [
        (task.name, stage.stage, gold.was_busy, _cost(gold, stage))
        for task in tasks
        if (gold := gold_proof(task, ledger)) is not None
        for stage in gold.stages
        if gold.standing(stage.stage) == "proven"
    ]
    if not rows:
        return
    yield _HEAD_COSTS
    for name, stage_name, busy, cost in rows:
        seconds = [f"*{cell}*" if busy else cell for cell in map(_seconds, cost[:2])]
        yield _row(name, f"`{stage_name}`", *seconds, *map(_gigabytes, cost[2:]))
    quiet = [_only_sizes(cost) if busy else cost for *_, busy, cost in rows]
    columns = list(zip(*quiet, strict=True))
    yield _row("**median**", "", *_over(columns, median))
    yield _row("**worst**", "", *_over(columns, max))


def _over(
    columns: Sequence[Sequence[float | None]], of: Callable[[list[float]], float]
) -> Iterator[str]:
    """A cell for each column, with the number of stages that it is of where some lack."""
    for place, column in enumerate(columns):
        known = [one for one in column if one is not None]
        some = f" (of {len(known)})" if 0 < len(known) < len(column) else ""
        words = _seconds if place < _SECONDS_COLUMNS else _gigabytes
        yield words(of(known) if known else None) + some


def _cost(gold: TaskProof, stage: StageProof) -> list[float | None]:
    """Seconds and bytes, in the order of the table's columns."""
    assets = None if stage.asset_bytes is None else sum(stage.asset_bytes.values())
    sizes = (gold.size_bytes, assets, gold.archive_bytes, stage.fetched_bytes)
    return [gold.build_seconds, stage.seconds, *sizes]


def _only_sizes(cost: list[float | None]) -> list[float | None]:
    return [*([None] * _SECONDS_COLUMNS), *cost[_SECONDS_COLUMNS:]]


def _seconds(seconds: float | None) -> str:
    return "" if seconds is None else f"{seconds:.0f}"


def _gigabytes(size_bytes: float | None) -> str:
    """With three digits behind the point where there would be none before it."""
    if not size_bytes:
        return "" if size_bytes is None else "0"
    return f"{size_bytes / 1e9:.1f}" if size_bytes >= 1e8 else f"{size_bytes / 1e9:.3f}"


def _read(stage: StageProof) -> str:
    """Whether the stage read originals or stand-ins, with the start of their digests."""
    uses = sorted(stage.assets.items())
    return ", ".join(f"{name} ({use.origin} {use.digest[:8]})" for name, use in uses)


def _on_gpus(suite: Suite, ledger: Ledger) -> Iterator[str]:
    found = [(task, ledger.on_gpus[key]) for task in suite.tasks for stage in StageName
             if (key := gpu_key(task.name, stage)) in ledger.on_gpus]  # fmt: skip
    if not found:
        return
    yield _HEAD_ON_GPUS
    for task, proof in found:
        stage = proof.stage
        seen = str(stage.verdict) + (f": {stage.reason}" if stage.reason else "")
        grades = Counter(proof.gpu_grades.values())
        versions = [f"{name} {version}" for name, version in sorted(proof.packages.items())]
        kept = standing(task, stage.stage).replace("_", " ")
        made = ", ".join([proof.date[:10], *proof.gpus, f"driver {proof.driver}",
                          f"Python {proof.python_version}", *versions])  # fmt: skip
        yield _row(
            task.name, f"`{stage.stage}`", kept, seen, f"{stage.seconds:.0f}",
            ", ".join(f"{n} {grade}" for grade, n in sorted(grades.items())),
            ", ".join(f"`{one.name}` {_seen(one)}" for one in proof.breakages) or "not tried",
            ", ".join(proof.carried), made,
        )  # fmt: skip


def _breakages(proof: TaskProof) -> Iterator[str]:
    for damage in proof.breakages:
        yield _row(proof.task, f"`{damage.name}`", damage.level, damage.expected, _seen(damage))


def _seen(damage: BreakageProof) -> str:
    if damage.want is not None and damage.want.is_hardware:
        return f"not run: {damage.reason}"
    seen = str(damage.verdict) + (f": {damage.reason}" if damage.reason else "")
    return seen if damage.as_expected else f"**not as expected**: {seen}"


def _row(*cells: str) -> str:
    flat = [" ".join(cell.split()).replace("|", "\\|") for cell in cells]
    return f"| {' | '.join(flat)} |\n"


def main() -> int:
    """Write the page, or say whether it is up to date."""
    wanted = page()
    if sys.argv[1:] == ["--check"]:
        there = PAGE.read_text(encoding="utf-8") if PAGE.is_file() else ""
        if there != wanted:
            print(f"{PAGE} is out of date: python scripts/proofs_page.py")
        return int(there != wanted)
    PAGE.write_text(wanted, encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
