"""Proves tasks: gold passes, each breakage fails what it should, negative controls do not.

The gold environment is an ordinary attempt with the agent `gold`, kept in a run folder and
resumed like any other. Each breakage is applied inside the box of one stage run, so it costs
a stage and never a build.
"""

from __future__ import annotations

import re
import time
from typing import TYPE_CHECKING

from .. import __version__
from ..agents.script import recipe_digest
from ..attempt import Level, Verdict, now
from ..diagnose import tail
from ..errors import RebError
from ..proofs import BreakageProof, Ledger, StageProof, TaskProof, ledger_file, load_ledger
from ..sandbox.gpu import inventory
from ..sandbox.host_environment import base_environment
from ..verify.damage import apply_breakage
from ..verify.device import check_devices
from ..verify.entrypoint import run_stage
from ..verify.pyramid import STAGES, static_level, with_interpreter
from .job import AttemptRun
from .store import Job, RunFolder

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from ..attempt import LevelResult, Record
    from ..sandbox import StageBox
    from ..task import Breakage, Suite, Task
    from ..verify.subject import Subject


def prove_task(
    suite: Suite, task: Task, folder: RunFolder, say: Callable[[str], None]
) -> TaskProof:
    """Build the gold environment of `task` below `folder`, verify it, then break it.

    Nothing is raised for what the environment does; a proof that could not be made says why
    in `problem`.
    """
    if task.gold is None:
        return _without(task, "the task has no gold recipe")
    place = folder.attempt(task.name, 1)
    place.path.mkdir(parents=True, exist_ok=True)
    Job(
        suite=suite.name,
        task_folder=str(task.folder),
        task=task.name,
        agent="gold",
        build_time_limit_s=task.gold.time_limit_s,
    ).save(place.job_file)
    attempt = AttemptRun(place.path)

    def show(doing: str, **_: object) -> None:
        say(f"{task.name}: {doing}")

    attempt.say = show
    done = attempt.build()
    if done.outcome != "finished" or done.exit_code != 0:
        return _without(task, f"gold was not built: {done.reason}")
    record = attempt.verify(reverify=True)
    subject = attempt.subject(place.path / "breakages", attempt.source())
    subject = with_interpreter(subject, record.python)
    breakages = tuple(
        _break(attempt, subject, name, breakage, say) for name, breakage in task.breakages.items()
    )
    static = record.results[Level.C0]
    return TaskProof(
        task=task.name,
        task_digest=task.digest,
        recipe_digest=recipe_digest(task.gold),
        date=now(),
        reb_version=__version__,
        system=record.host.system,
        python_version=record.python_version or "",
        build_seconds=round(done.seconds, 1),
        size_bytes=record.sizes.build_bytes,
        stages=tuple(_stage_proof(name, record) for name in task.stages),
        breakages=breakages,
        c0_missing=tuple(module["name"] for module in static.details.get("missing", ())),
        problem="; ".join(
            f"{finding.kind} {finding.where}" for finding in record.findings if finding.disqualifies
        ),
    )


def save_proof(suite: Suite, proof: TaskProof) -> None:
    """Write the proof into the suite's ledger.

    Raises:
        OSError: the suite's folder cannot be written.
    """
    proofs = {**load_ledger(suite.folder).proofs, proof.task: proof}
    Ledger(proofs=dict(sorted(proofs.items()))).save(ledger_file(suite.folder))


def _stage_proof(name: str, record: Record) -> StageProof:
    from ..task import StageName
    from ..verify.entrypoint import LEVELS

    stage = StageName(name)
    result = record.results[LEVELS[stage]]
    return StageProof(
        stage=stage,
        verdict=result.verdict,
        reason=result.reason,
        seconds=round(result.seconds, 1),
    )


def _break(
    attempt: AttemptRun,
    subject: Subject,
    name: str,
    breakage: Breakage,
    say: Callable[[str], None],
) -> BreakageProof:
    say(f"{attempt.task.name}: breakage {name}: {breakage.description}")
    started = time.monotonic()
    interpreter = subject.interpreter
    if interpreter is None:
        return _proof_of(name, breakage, None, "gold has no usable interpreter", started)

    def damage(box: StageBox, environment: dict[str, str], log: Path) -> None:
        settings = base_environment(box.layout, attempt.host, installs=True)
        apply_breakage(breakage, box, interpreter, {**settings, **environment}, log)

    level = Level(breakage.level)
    needs_network = bool(breakage.install)
    if level is Level.C0:
        result = static_level(subject, before=damage, network=needs_network)
    elif level is Level.C2:
        result = check_devices(subject, attempt.task.frameworks, inventory())
    else:
        stage = STAGES[level]
        gpus = inventory().gpus[: attempt.task.gpus(stage)]
        result = run_stage(subject, stage, gpus=gpus, before=damage, network=needs_network)
    return _proof_of(name, breakage, result, _seen(subject, result), started)


def _seen(subject: Subject, result: LevelResult) -> str:
    """What a breakage's `because` may match: the reason, then the end of the log."""
    log = tail(subject.folder / result.log) if result.log else ""
    return f"{result.reason}\n{log}"


def _proof_of(
    name: str, breakage: Breakage, result: LevelResult | None, seen: str, started: float
) -> BreakageProof:
    verdict = result.verdict if result else Verdict.INCONCLUSIVE
    right = verdict == breakage.expect
    reason = result.reason if result else seen
    if right and breakage.because and not re.search(breakage.because, seen):
        right = False
        reason = f"failed for another reason than /{breakage.because}/: {reason}"
    return BreakageProof(
        name=name,
        level=breakage.level,
        expected=breakage.expect,
        verdict=verdict,
        as_expected=right,
        reason=reason,
        seconds=round(time.monotonic() - started, 1),
    )


def _without(task: Task, problem: str) -> TaskProof:
    return TaskProof(
        task=task.name,
        task_digest=task.digest,
        recipe_digest=recipe_digest(task.gold),
        date=now(),
        reb_version=__version__,
        system="",
        python_version="",
        build_seconds=0.0,
        problem=problem,
    )


def problems_of(task: Task, proof: TaskProof) -> list[str]:
    """Why the proof does not hold, one line each; none where all is as it should be.

    GPU stages on a host without GPUs are no problem: they stay unproven.
    """
    problems = [proof.problem] if proof.problem else []
    for stage in proof.stages:
        if stage.stage == "cpu" and stage.verdict is not Verdict.PASSED:
            problems.append(f"gold does not pass {stage.stage}: {stage.verdict} ({stage.reason})")
    for breakage in proof.breakages:
        if breakage.as_expected or (
            breakage.level not in ("C0", "C1") and breakage.verdict is Verdict.INCONCLUSIVE
        ):
            continue
        problems.append(
            f"breakage {breakage.name}: {breakage.level} {breakage.verdict}, "
            f"expected {breakage.expected} ({breakage.reason})"
        )
    if task.gold is None:
        raise RebError(f"{task.name} has no gold recipe")
    return problems
