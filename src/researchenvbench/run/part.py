"""Which tasks of a suite are meant: by name, by domain, or by what a rule says of their stages.

A subset is such a rule. A task is in it by a stage, and in several subsets by one and the same
stage: `cpu` with `proven` is a proven stage on the CPU.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal

from ..errors import TaskError
from ..proofs import Ledger, gold_proof, load_ledger, stage_seconds, standing
from ..schema import suggest
from ..stored import Stored
from ..task import StageName, Suite, Task

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

Subset = Literal["cpu", "offline", "small", "proven"]

#: What is small: the environment of gold on the disk, and its build with the stage.
SMALL_BYTES, SMALL_S = 2_000_000_000, 600.0


class Part(Stored):
    """What was asked for, and the tasks that it came to."""

    only: tuple[str, ...] = ()
    subsets: tuple[Subset, ...] = ()
    domains: tuple[str, ...] = ()
    tasks: tuple[str, ...] = ()
    suite_tasks: int = 0

    @property
    def words(self) -> str:
        """Such as `subset cpu and proven, domain audio-speech`; empty where nothing was asked."""
        parts = [f"subset {' and '.join(self.subsets)}"] if self.subsets else []
        parts += [f"domain {' or '.join(self.domains)}"] if self.domains else []
        parts += ["named tasks"] if self.only else []
        return ", ".join(parts)


def choose(
    suite: Suite,
    *,
    only: Sequence[str] = (),
    subsets: Sequence[Subset] = (),
    domains: Sequence[str] = (),
    default: Callable[[Suite], Sequence[Task]] = lambda suite: suite.tasks,
) -> tuple[list[Task], Part]:
    """The tasks that are in all of it, and what was asked for.

    Args:
        suite: Of which; its order is kept.
        only: Names, in whose order they come; without any, every task.
        subsets: In all of these, by one stage.
        domains: In one of these; without any, whatever the domain.
        default: What is meant where nothing is asked for.

    Raises:
        TaskError: there is no such task or domain, or no task is in all of it.
    """
    known = sorted({task.domain for task in suite.tasks})
    for domain in domains:
        if domain not in known:
            raise TaskError(
                f"suite {suite.name} has no domain {domain!r}{suggest(domain, known)}",
                advice=f"its domains: {', '.join(known)}",
            )
    subsets = tuple(dict.fromkeys(subsets))
    only, domains = tuple(dict.fromkeys(only)), tuple(dict.fromkeys(domains))
    named = [suite.task(name) for name in only]
    chosen = named or list(suite.tasks if subsets or domains else default(suite))
    if domains:
        chosen = [task for task in chosen if task.domain in domains]
    if subsets:
        ledger = load_ledger(suite.folder)
        chosen = [task for task in chosen if stages_in(task, subsets, ledger)]
    part = Part(
        only=only,
        subsets=subsets,
        domains=domains,
        tasks=tuple(task.name for task in chosen),
        suite_tasks=len(suite.tasks),
    )
    if not chosen and part.words:
        raise TaskError(
            f"no task of {suite.name} is in all of: {part.words}",
            advice=f"reb tasks list {suite.name} shows domains, and which stages are proven",
        )
    return chosen, part


def stages_in(task: Task, subsets: Sequence[Subset], ledger: Ledger) -> list[StageName]:
    """The stages by which a task is in all of the subsets."""
    return [
        name for name in runnable(task) if all(_RULES[one](task, name, ledger) for one in subsets)
    ]


def runnable(task: Task) -> list[StageName]:
    """The stages of a task that some host can run; none where the source cannot be had."""
    return [
        name
        for name, stage in task.stages.items()
        if not (stage.not_solvable or stage.not_distributed or task.unavailable)
    ]


def _is_cpu(_task: Task, stage: StageName, _ledger: Ledger) -> bool:
    return stage is StageName.CPU


def _is_proven(task: Task, stage: StageName, ledger: Ledger) -> bool:
    return standing(task, stage, ledger) == "proven"


def _is_offline(task: Task, _stage: StageName, _ledger: Ledger) -> bool:
    """Whichever of its stages a host runs, none reads what only a hub or a server has."""
    stages = [task.stages[name] for name in runnable(task)]
    return not any(
        stage.network or any(_has_to_be_fetched(task, asset) for asset in stage.assets)
        for stage in stages
    )


def _has_to_be_fetched(task: Task, name: str) -> bool:
    asset = task.assets[name]
    return asset.kind in ("hub", "url") and asset.recipe is None


def _is_small(task: Task, stage: StageName, ledger: Ledger) -> bool:
    proof, took_s = gold_proof(task, ledger), stage_seconds(task, stage, ledger)
    if proof is None or took_s is None or proof.size_bytes is None:
        return False
    return proof.size_bytes <= SMALL_BYTES and proof.build_seconds + took_s <= SMALL_S


_RULES: dict[Subset, Callable[[Task, StageName, Ledger], bool]] = {
    "cpu": _is_cpu,
    "offline": _is_offline,
    "small": _is_small,
    "proven": _is_proven,
}
