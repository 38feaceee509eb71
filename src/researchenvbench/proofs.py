"""What proves a task: the ledger of a suite, `proofs.json` in its folder.

A stage is proven when the gold recipe passed it and at least one breakage failed it for the
reason that matters: for the task, the recipe and the breakages as they are now, by digest.
This module reads and writes the ledger; making proofs is `run.prove`'s business.
"""

from __future__ import annotations

import hashlib
import json
from typing import TYPE_CHECKING, Literal

from pydantic import ConfigDict, Field

from .attempt import RECORD_SCHEMA, AssetUse, Verdict, Want
from .gpu_use import GpuUse  # noqa: TC001  # its model is checked by it
from .stored import Stored
from .task import StageName

if TYPE_CHECKING:
    from collections.abc import Iterable
    from pathlib import Path

    from .task import Breakage, Task

Standing = Literal["proven", "unproven", "not_solvable", "not_distributed"]

#: Processes a core beyond which a host is busy with others: gold alone is one a core.
_BUSY = 2.0
_LEVELS = {StageName.CPU: "C1", StageName.SINGLE_GPU: "C3", StageName.MULTI_GPU: "C4"}


class BreakageProof(Stored):
    """What a breakage did."""

    name: str
    level: str
    expected: Literal["failed", "passed"]
    verdict: Verdict
    as_expected: bool
    want: Want | None = Field(None, description="What the host lacks, where that is why.")
    reason: str = ""
    seconds: float = 0.0


class StageProof(Stored):
    """What the gold environment did in one stage."""

    stage: StageName
    verdict: Verdict
    reason: str = ""
    seconds: float = 0.0
    assets: dict[str, AssetUse] = Field(default_factory=dict, description="What it read.")
    asset_bytes: dict[str, int] | None = Field(
        None, description="What each asset takes in the cache; null: nobody has looked."
    )
    fetched_bytes: int | None = Field(
        None,
        description="Of originals among its assets, as hubs and servers gave them; null: unknown.",
    )


class TaskProof(Stored):
    """One task's proof."""

    task: str
    task_digest: str
    recipe_digest: str
    proof_digest: str = Field(
        "", description="Of the recipe and the breakages; without it nothing is proven."
    )
    date: str
    reb_version: str
    system: str
    python_version: str
    frameworks: dict[str, str] = Field(
        default_factory=dict, description="By name, the versions that were judged."
    )
    gpus: tuple[str, ...] = Field((), description="Names of those that the host had.")
    driver: str = Field("", description="Of the GPUs.")
    cpus: int | None = Field(None, description="Cores of the host.")
    load_average: float | None = Field(
        None,
        description="Processes that ran or were ready to, on average over the five minutes until "
        "gold was judged.",
    )
    build_seconds: float
    size_bytes: int | None = Field(None, description="Of the environment, each file once.")
    archive_bytes: int | None = Field(
        None,
        description="Of the archives that its packages come in, as the index lists them; null "
        "where it does not list them all.",
    )
    stages: tuple[StageProof, ...] = ()
    breakages: tuple[BreakageProof, ...] = ()
    c0_missing: tuple[str, ...] = Field((), description="Imports that gold leaves unresolved.")
    problem: str = Field("", description="Why there is no proof; empty where there is one.")

    @property
    def was_busy(self) -> bool:
        """Whether others kept the host from work, so that its seconds are more than it takes."""
        if self.load_average is None or self.cpus is None:
            return False
        return self.load_average > _BUSY * self.cpus

    def holds_for(self, task: Task) -> bool:
        """Whether it was made with the task, the recipe and the breakages as they are now."""
        return self.task_digest == task.digest and self.proof_digest == proof_digest(task)

    def standing(self, stage: StageName) -> Standing:
        """Whether this proof makes the stage proven, for what it was made with."""
        if self.problem:
            return "unproven"
        level = _LEVELS[stage]
        passed = any(s.stage is stage and s.verdict is Verdict.PASSED for s in self.stages)
        mine = [proof for proof in self.breakages if proof.level == level]
        failing = any(proof.expected == "failed" and proof.as_expected for proof in mine)
        all_right = all(proof.as_expected for proof in mine)
        return "proven" if passed and failing and all_right else "unproven"


class GpuProof(Stored):
    """One stage on GPUs, in an environment as it was found on a host that has some.

    Such hosts have no network, so no recipe builds gold there: the packages of the host and
    what was carried there take its place, and are listed.
    """

    task: str
    stage: StageProof
    task_digest: str
    damage_digest: str = Field(description="Of the breakages of the stage's level.")
    date: str
    reb_version: str
    system: str
    python_version: str
    gpus: tuple[str, ...]
    driver: str
    packages: dict[str, str] = Field(
        default_factory=dict, description="By name, the versions of the frameworks as found."
    )
    carried: tuple[str, ...] = Field((), description="Wheels that were put beside them.")
    breakages: tuple[BreakageProof, ...] = ()
    gpu_use: GpuUse | None = Field(None, description="What the witness saw.")
    gpu_grades: dict[str, str] = Field(default_factory=dict, description="By UUID of the GPU.")

    def holds_for(self, task: Task) -> bool:
        """Whether it was made with the task and the breakages as they are now."""
        name = self.stage.stage
        return self.task_digest == task.digest and self.damage_digest == damage_digest(task, name)

    def standing(self, task: Task) -> Standing:
        """As of a proof by gold: every breakage of the level was tried, and did as it should."""
        tried = {proof.name: proof for proof in self.breakages}
        level = _LEVELS[self.stage.stage]
        due = [name for name, breakage in task.breakages.items() if breakage.level == level]
        failing = any(proof.expected == "failed" for proof in self.breakages)
        all_right = all(name in tried and tried[name].as_expected for name in due)
        passed = self.stage.verdict is Verdict.PASSED
        return "proven" if passed and failing and all_right else "unproven"


class Ledger(Stored):
    """The proofs of a suite."""

    schema_version: int = Field(RECORD_SCHEMA, alias="schema")
    proofs: dict[str, TaskProof] = Field(default_factory=dict)
    on_gpus: dict[str, GpuProof] = Field(
        default_factory=dict, description="By task and stage, such as `NAME/single_gpu`."
    )

    model_config = ConfigDict(extra="ignore", frozen=True, populate_by_name=True)


def proof_digest(task: Task) -> str:
    """Digest of what proves a task: the gold recipe, its files, and what each breakage does.

    `Task.digest` leaves these out, since they change no verdict.
    """
    gold = task.gold
    proof = {
        "gold": gold.model_dump(mode="json") if gold else None,
        "breakages": {
            name: breakage.model_dump(mode="json", exclude=_not_digested(breakage))
            for name, breakage in task.breakages.items()
        },
    }
    total = hashlib.sha256(json.dumps(proof, sort_keys=True).encode())
    if gold is not None:
        texts = [text for step in gold.steps for text in step] + list(gold.env.values())
        names = {text.removeprefix("{task}/") for text in texts if text.startswith("{task}/")}
        for name in sorted(names):
            if (path := task.folder / name).is_file():
                total.update(name.encode() + path.read_bytes())
    return total.hexdigest()


def damage_digest(task: Task, stage: StageName) -> str:
    """Digest of what the breakages of a stage's level do."""
    damages = {
        name: breakage.model_dump(mode="json", exclude=_not_digested(breakage))
        for name, breakage in task.breakages.items()
        if breakage.level == _LEVELS[stage]
    }
    return hashlib.sha256(json.dumps(damages, sort_keys=True).encode()).hexdigest()


def gpu_key(task: str, stage: StageName) -> str:
    """Under which a ledger keeps a stage's proof on GPUs."""
    return f"{task}/{stage}"


def keep_gpu_proofs(suite_folder: Path, proofs: Iterable[GpuProof]) -> None:
    """Write proofs into the suite's ledger, in the place of older ones of the same stages.

    Raises:
        OSError: the suite's folder cannot be written.
    """
    ledger = load_ledger(suite_folder)
    new = {gpu_key(proof.task, proof.stage.stage): proof for proof in proofs}
    kept = dict(sorted({**ledger.on_gpus, **new}.items()))
    ledger.model_copy(update={"on_gpus": kept}).save(ledger_file(suite_folder))


def _not_digested(breakage: Breakage) -> set[str]:
    """Keys without an effect; one that came later and is not used leaves older proofs as good."""
    return {"description"} if breakage.append else {"description", "append"}


def ledger_file(suite_folder: Path) -> Path:
    """Where a suite keeps its proofs."""
    return suite_folder / "proofs.json"


def load_ledger(suite_folder: Path) -> Ledger:
    """The suite's ledger; an empty one where nothing was proven yet."""
    path = ledger_file(suite_folder)
    return Ledger.load(path) if path.is_file() else Ledger()


def standing(task: Task, stage: StageName, ledger: Ledger | None = None) -> Standing:
    """How far a stage of `task` is to be trusted, by the ledger beside it or the one given."""
    if task.stages[stage].not_solvable:
        return "not_solvable"
    if task.stages[stage].not_distributed:
        return "not_distributed"
    ledger = load_ledger(task.folder.parent) if ledger is None else ledger
    if (gold := gold_proof(task, ledger)) and gold.standing(stage) == "proven":
        return "proven"
    on_gpus = ledger.on_gpus.get(gpu_key(task.name, stage))
    if on_gpus is not None and on_gpus.holds_for(task):
        return on_gpus.standing(task)
    return "unproven"


def gold_proof(task: Task, ledger: Ledger) -> TaskProof | None:
    """The proof by gold that holds for the task as it is now; None where there is none."""
    proof = ledger.proofs.get(task.name)
    return proof if proof is not None and proof.holds_for(task) and not proof.problem else None


def stage_seconds(task: Task, stage: StageName, ledger: Ledger) -> float | None:
    """How long the stage took where it passed, by a proof that holds; None where none says so."""
    gold, on_gpus = gold_proof(task, ledger), ledger.on_gpus.get(gpu_key(task.name, stage))
    proofs = list(gold.stages) if gold else []
    proofs += [on_gpus.stage] if on_gpus is not None and on_gpus.holds_for(task) else []
    took = [p.seconds for p in proofs if p.stage is stage and p.verdict is Verdict.PASSED]
    return took[0] if took else None
