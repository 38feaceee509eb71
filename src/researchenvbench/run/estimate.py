"""What a planned run will cost, from what proofs measured and what limits allow; no guess.

Time comes as two figures: what gold took where the task was proven (`by the ledger`), and what
ends every build and stage (`by the limits`). Fetching the source, C0 and waiting for a GPU are
in neither. Disk and what is fetched come from the ledger and from the tasks; what these do not
say is named, and never taken from other tasks.
"""

from __future__ import annotations

import heapq
from dataclasses import dataclass
from typing import TYPE_CHECKING

from ..asset import FileAsset, HubAsset, UrlAsset
from ..assets import here
from ..assets.definition import key_of_original, key_of_recipe
from ..attempt import Level
from ..proofs import gold_proof, load_ledger, stage_seconds
from ..verify.assets import expected
from .assets import stages_to_run

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from ..assets import Choice
    from ..proofs import Ledger, TaskProof
    from ..task import StageName, Task
    from .plan import PlannedAttempt


@dataclass(frozen=True)
class Bytes:
    """A sum of what is known, and what it leaves out."""

    known: int = 0
    unknown: tuple[str, ...] = ()  #: of what the size is not known, in words

    def __add__(self, other: Bytes) -> Bytes:
        unknown = dict.fromkeys((*self.unknown, *other.unknown))
        return Bytes(self.known + other.known, tuple(unknown))

    @classmethod
    def of(cls, size: int | None, what: str) -> Bytes:
        """A size, or that it is not known of what."""
        return cls(unknown=(what,)) if size is None else cls(size)


@dataclass(frozen=True)
class Cost:
    """What one attempt will cost."""

    attempt: PlannedAttempt
    ledger_s: float | None  #: None: no proof says how long gold took
    limit_s: float
    busy: bool = False  #: gold took that on a host that was busy with other things
    environment: Bytes = Bytes()
    packages: Bytes = Bytes()  #: archives that the build fetches
    assets: Bytes = Bytes()  #: on the disk, of those that are not there yet
    fetched_assets: Bytes = Bytes()  #: of these, what comes over a network

    @property
    def disk(self) -> Bytes:
        """All that it takes."""
        return self.environment + self.assets

    @property
    def fetched(self) -> Bytes:
        """All that comes over a network."""
        return self.packages + self.fetched_assets


@dataclass(frozen=True)
class Estimate:
    """What a run will cost."""

    costs: tuple[Cost, ...]
    jobs: int
    keep: str

    @property
    def to_do(self) -> tuple[Cost, ...]:
        """The attempts for which there is something to do."""
        return tuple(cost for cost in self.costs if not cost.attempt.done)

    @property
    def in_ledger(self) -> tuple[Cost, ...]:
        """Those of them of which a proof says how long they take."""
        return tuple(cost for cost in self.to_do if cost.ledger_s is not None)

    @property
    def ledger_s(self) -> float:
        """From the first to the last of those that the ledger knows, some side by side."""
        return makespan([cost.ledger_s or 0.0 for cost in self.in_ledger], self.jobs)

    @property
    def limit_s(self) -> float:
        """From the first to the last where each takes all that it may."""
        return makespan([cost.limit_s for cost in self.to_do], self.jobs)

    @property
    def environments(self) -> Bytes:
        """All that are built, were they kept."""
        return _sum(cost.environment for cost in self.to_do)

    @property
    def at_a_time(self) -> Bytes:
        """Environments that are there at one time where each is removed once it is judged."""
        largest = sorted((cost.environment.known for cost in self.to_do), reverse=True)
        return Bytes(sum(largest[: self.jobs]), self.environments.unknown)

    @property
    def assets(self) -> Bytes:
        """On the disk, of those that are not there yet."""
        return _sum(cost.assets for cost in self.to_do)

    @property
    def peak_bytes(self) -> int:
        """The most that is known to be taken at one time."""
        kept = self.at_a_time if self.keep == "none" else self.environments
        return kept.known + self.assets.known

    @property
    def packages(self) -> Bytes:
        """Archives that builds fetch: each build has a cache of its own."""
        return _sum(cost.packages for cost in self.to_do)

    @property
    def fetched_assets(self) -> Bytes:
        """Originals that are not in the cache yet."""
        return _sum(cost.fetched_assets for cost in self.to_do)


def estimate(planned: Sequence[PlannedAttempt], *, jobs: int, keep: str) -> Estimate:
    """What is left to do of the planned attempts will cost, `jobs` of them at a time.

    `keep` says which environments stay once they are judged, as `reb run` takes it.
    """
    costs = []
    ledgers: dict[object, Ledger] = {}
    counted: set[str] = set()  # an asset is had once, whoever reads it
    for attempt in planned:
        folder = attempt.task.folder.parent
        if folder not in ledgers:
            ledgers[folder] = load_ledger(folder)
        costs.append(_cost(attempt, ledgers[folder], counted))
    return Estimate(tuple(costs), jobs, keep)


def makespan(seconds: Iterable[float], jobs: int) -> float:
    """How long attempts take that are begun in their order, `jobs` at a time."""
    ends = [0.0] * jobs
    for each_s in seconds:
        heapq.heapreplace(ends, ends[0] + each_s)
    return max(ends)


def _cost(attempt: PlannedAttempt, ledger: Ledger, counted: set[str]) -> Cost:
    if attempt.done:
        return Cost(attempt, 0.0, 0.0)
    task = attempt.task
    stages = stages_to_run(task, tuple(Level))
    limit_s = sum(_limit_s(task, name) for name in stages)
    took = [stage_seconds(task, name, ledger) for name in stages]
    known = [seconds for seconds in took if seconds is not None]
    ledger_s = sum(known) if len(known) == len(stages) else None
    assets, fetched = _assets(task, stages, ledger, attempt.job.assets, counted)
    proof = gold_proof(task, ledger)
    busy = proof is not None and proof.was_busy
    if not attempt.builds:
        return Cost(attempt, ledger_s, limit_s, busy, assets=assets, fetched_assets=fetched)
    if ledger_s is not None:
        ledger_s = ledger_s + proof.build_seconds if proof else None
    return Cost(
        attempt,
        ledger_s,
        limit_s + attempt.job.build_time_limit_s,
        busy,
        environment=Bytes.of(proof.size_bytes if proof else None, task.name),
        packages=Bytes.of(proof.archive_bytes if proof else None, task.name),
        assets=assets,
        fetched_assets=fetched,
    )


def _limit_s(task: Task, name: StageName) -> float:
    stage = task.stages[name]
    return stage.time_limit_s + sum(service.ready_within_s for service in stage.services)


def _assets(
    task: Task, stages: Sequence[StageName], ledger: Ledger, choice: Choice, counted: set[str]
) -> tuple[Bytes, Bytes]:
    """What the assets of these stages, as far as they are not there, take and fetch."""
    taken, fetched = Bytes(), Bytes()
    for name in dict.fromkeys(name for stage in stages for name in task.stages[stage].assets):
        real = expected(task, name, choice).origin == "real"
        there = here(task, name)
        key = (key_of_original if real else key_of_recipe)(task, name) or f"{task.name}/{name}"
        if key in counted or (there.original if real else there.stand_in) is not None:
            continue
        counted.add(key)
        asset, what = task.assets[name], f"{task.name}/{name}"
        listed = _in_ledger(gold_proof(task, ledger), name, real=real)
        if real and isinstance(asset, FileAsset):
            listed = (task.folder / asset.path).stat().st_size
        size = asset.size_bytes if real and asset.size_bytes is not None else listed
        taken += Bytes.of(size, what)
        if real and isinstance(asset, HubAsset | UrlAsset):
            fetched += Bytes.of(size, what)
        elif not real and asset.recipe is not None and asset.recipe.requirements:
            fetched += Bytes.of(None, f"{what} (what its recipe installs)")
    return taken, fetched


def _in_ledger(proof: TaskProof | None, name: str, *, real: bool) -> int | None:
    """What an asset took in the cache where the task was proven with the same kind of it."""
    for stage in proof.stages if proof else ():
        use = stage.assets.get(name)
        if use is not None and (use.origin == "real") == real:
            return (stage.asset_bytes or {}).get(name)
    return None


def _sum(sizes: Iterable[Bytes]) -> Bytes:
    return sum(sizes, Bytes())
