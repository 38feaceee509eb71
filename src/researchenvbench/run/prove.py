"""Proves tasks: gold passes, each breakage fails what it should, negative controls do not.

The gold environment is an ordinary attempt with the agent `gold`, kept in a run folder and
resumed like any other: it is built anew where its source or its recipe has changed (`done`).
Each breakage is applied in the box of one level's run, so it costs that level and never a build.
"""

from __future__ import annotations

import dataclasses
import os
import re
import time
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import quote

from .. import __version__
from ..agents.script import recipe_digest
from ..attempt import Level, LevelResult, Owner, Verdict, now
from ..diagnose import tail
from ..errors import HostError, SandboxError, TaskError
from ..gpu.inventory import inventory
from ..proofs import (
    BreakageProof,
    StageProof,
    TaskProof,
    ledger_file,
    load_ledger,
    proof_digest,
)
from ..sandbox.removing import remove_tree
from ..task import StageName
from ..verify.damage import damaged
from ..verify.device import check_devices
from ..verify.entrypoint import LEVELS, run_stage
from ..verify.gpu_stage import run_gpu_stage
from ..verify.pyramid import STAGES, static_level, with_interpreter
from .archives import archive_bytes
from .assets import asset_costs
from .job import AttemptRun
from .plan import RunPlan
from .store import Job, RunFolder

if TYPE_CHECKING:
    from collections.abc import Callable

    from ..assets import Choice
    from ..attempt import Record
    from ..task import Breakage, Suite, Task
    from ..verify.subject import Subject


#: Of the three averages that the system keeps.
_FIVE_MINUTES = 1


def prove_task(
    suite: Suite,
    task: Task,
    folder: RunFolder,
    say: Callable[[str], None],
    *,
    assets: Choice = "auto",
) -> TaskProof:
    """Build the gold environment of `task` below `folder`, verify it, then break it.

    Nothing is raised for what the environment does; a proof that could not be made says why
    in `problem`. `assets` says whether the stages read originals or stand-ins.
    """
    if task.gold is None:
        return _without(task, "the task has no gold recipe")
    folder.claim(RunPlan(suite=suite.name, agent="gold"))
    place = folder.attempt(task.name, 1)
    place.path.mkdir(parents=True, exist_ok=True)
    Job(
        suite=suite.name,
        task_folder=str(task.folder),
        task=task.name,
        agent="gold",
        build_time_limit_s=task.gold.time_limit_s,
        assets=assets,
    ).save(place.job_file)
    attempt = AttemptRun(place.path)

    def show(doing: str, **_: object) -> None:
        say(f"{task.name}: {doing}")

    attempt.say = show
    done = attempt.build(needed=True)
    if done.outcome != "finished" or done.exit_code != 0:
        why = done.reason or f"exit status {done.exit_code}"
        return _without(
            task, portable(f"gold was not built: {why}; see logs/build.log", place.path)
        )
    record = attempt.verify(reverify=True)
    load = os.getloadavg()[_FIVE_MINUTES]
    subject = attempt.subject(place.path / "breakages", attempt.source())
    subject = with_interpreter(subject, record.python)
    # What is left of an earlier proof could be taken for the reason of a failure.
    if (place.path / "breakages").is_dir():
        remove_tree(place.path / "breakages")
    breakages = tuple(
        break_it(
            dataclasses.replace(subject, folder=subject.folder / quote(name, safe="")),
            name,
            breakage,
            place.path,
            say,
        )
        for name, breakage in task.breakages.items()
    )
    static = record.results[Level.C0]
    say(f"{task.name}: asking the index how large its packages are")
    archives, unknown = (
        archive_bytes(subject.interpreter, subject.host.installs)
        if subject.interpreter
        else (None, subject.interpreter_error)
    )
    if archives is None:
        say(f"{task.name}: that is not known: {unknown}")
    return TaskProof(
        task=task.name,
        task_digest=task.digest,
        recipe_digest=recipe_digest(task.gold),
        proof_digest=proof_digest(task),
        date=now(),
        reb_version=__version__,
        system=record.host.system,
        python_version=record.python_version or "",
        frameworks=dict(subject.interpreter.frameworks) if subject.interpreter else {},
        gpus=tuple(gpu.name for gpu in inventory().gpus),
        driver=inventory().driver or "",
        cpus=record.host.cpus,
        load_average=round(load, 1),
        build_seconds=round(done.seconds, 1),
        size_bytes=record.sizes.build_bytes,
        archive_bytes=archives,
        stages=tuple(_stage_proof(name, record, subject, place.path) for name in task.stages),
        breakages=breakages,
        c0_missing=tuple(module["name"] for module in static.details.get("missing", ())),
        problem=portable(
            "; ".join(f"{f.kind} {f.where}" for f in record.findings if f.disqualifies),
            place.path,
        ),
    )


def save_proof(suite: Suite, proof: TaskProof) -> None:
    """Write the proof into the suite's ledger.

    Raises:
        OSError: the suite's folder cannot be written.
    """
    ledger = load_ledger(suite.folder)
    proofs = dict(sorted({**ledger.proofs, proof.task: proof}.items()))
    ledger.model_copy(update={"proofs": proofs}).save(ledger_file(suite.folder))


def _stage_proof(stage: StageName, record: Record, subject: Subject, attempt: Path) -> StageProof:
    result = record.results[LEVELS[stage]]
    taken, fetched = asset_costs(subject, stage)
    return StageProof(
        stage=stage,
        verdict=result.verdict,
        reason=portable(result.reason, attempt),
        seconds=round(result.seconds, 1),
        assets=result.assets,
        asset_bytes=taken,
        fetched_bytes=fetched,
    )


def break_it(
    subject: Subject,
    name: str,
    breakage: Breakage,
    place: Path,
    say: Callable[[str], None],
) -> BreakageProof:
    """What one breakage did to its level.

    Args:
        subject: What is damaged, with a folder of its own for logs; its task has the breakage.
        name: Of the breakage.
        breakage: What is done.
        place: A folder of this host, which is left out of reasons.
        say: Told what is done.
    """
    assert subject.task is not None  # noqa: S101  # breakages are a task's
    say(f"{subject.task.name}: breakage {name}: {breakage.description}")
    started = time.monotonic()
    result = _level_of_damaged(subject, breakage)
    right = result.verdict == breakage.expect
    reason = result.reason
    if right and breakage.because and not re.search(breakage.because, _seen(subject, result)):
        right = False
        reason = f"{result.verdict} for another reason than /{breakage.because}/: {reason}"
    return BreakageProof(
        name=name,
        level=breakage.level,
        expected=breakage.expect,
        verdict=result.verdict,
        as_expected=right,
        want=result.want,
        reason=portable(reason, place),
        seconds=round(time.monotonic() - started, 1),
    )


def _level_of_damaged(subject: Subject, breakage: Breakage) -> LevelResult:
    """What the breakage's level says of the damaged environment."""
    level = Level(breakage.level)
    task = subject.task
    assert task is not None  # noqa: S101  # as above

    def none(owner: Owner, reason: str) -> LevelResult:
        return LevelResult(level=level, verdict=Verdict.INCONCLUSIVE, owner=owner, reason=reason)

    if subject.interpreter is None:
        return none(Owner.TASK, f"gold has no usable interpreter: {subject.interpreter_error}")
    subject = damaged(subject, breakage, subject.interpreter, subject.host)
    try:
        if level is Level.C0:
            return static_level(subject)
        if level is Level.C2:
            return check_devices(subject, task.frameworks, inventory())
        stage = STAGES[level]
        if stage not in task.stages:
            return none(Owner.TASK, f"the task has no {stage} stage")
        if stage is StageName.CPU:
            return run_stage(subject, stage)
        return run_gpu_stage(subject, stage, inventory(), canaries=False)
    except TaskError as error:
        return none(Owner.TASK, str(error.args[0]))
    except (SandboxError, HostError) as error:
        return none(Owner.HOST, str(error.args[0]))


def _seen(subject: Subject, result: LevelResult) -> str:
    """What a breakage's `because` may match: the reason, then the ends of the logs."""
    stem = STAGES.get(result.level, result.level)
    # A service's is there without the stage's own, where it did not come up.
    logs = [subject.logs / f"{stem}.log", *sorted(subject.logs.glob(f"{stem}-*.log"))]
    return "\n".join([result.reason, *map(tail, logs)])


def portable(text: str, attempt: Path) -> str:
    """The text without the places of this host: a ledger is read on others."""
    places = {str(attempt.resolve()): "ATTEMPT", str(attempt): "ATTEMPT"}
    places |= {str(Path.home().resolve()): "~", str(Path.home()): "~"}
    for place, name in places.items():
        # A home of `/` would match everywhere, and tells nothing.
        if len(place) > 1:
            text = re.sub(rf"(?<![\w.-]){re.escape(place)}(?![\w-])", name, text)
    return text


def _without(task: Task, problem: str) -> TaskProof:
    return TaskProof(
        task=task.name,
        task_digest=task.digest,
        recipe_digest=recipe_digest(task.gold),
        proof_digest=proof_digest(task),
        date=now(),
        reb_version=__version__,
        system="",
        python_version="",
        build_seconds=0.0,
        problem=problem,
    )


def problems_of(task: Task, proof: TaskProof) -> list[str]:
    """Why the proof does not hold, one line each; none where all is as it should be.

    What only a host with GPUs can show is no problem on one without: it stays unproven.
    """
    problems = [proof.problem] if proof.problem else []
    for stage in proof.stages:
        if stage.stage is not StageName.CPU or task.stages[stage.stage].not_solvable:
            continue
        if stage.verdict is not Verdict.PASSED:
            problems.append(f"gold does not pass {stage.stage}: {stage.verdict} ({stage.reason})")
        if not any(b.level == Level.C1 and b.expected == "failed" for b in proof.breakages):
            problems.append(f"no breakage is there that must fail {stage.stage}")
    for breakage in proof.breakages:
        if breakage.as_expected or (breakage.want is not None and breakage.want.is_hardware):
            continue
        problems.append(
            f"breakage {breakage.name}: {breakage.level} {breakage.verdict}, "
            f"expected {breakage.expected}" + (f" ({breakage.reason})" if breakage.reason else "")
        )
    return problems
