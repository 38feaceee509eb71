"""C1, C3, C4: run the repository's own entry point and look at what it made.

A stage passes when the command ended as expected *and* every evidence entry holds on what
this run made. This module brings the stage's files into a fresh box, runs its services and
its command there, and words the verdict. What the evidence kinds mean is `evidence`'s
business; whose fault a bad end is comes from `diagnose`, and is believed only where this
host confirms it.
"""

from __future__ import annotations

import os
import socket
from contextlib import nullcontext
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ..attempt import EvidenceResult, Level, LevelResult, Owner, Verdict, Want
from ..diagnose import Diagnosis, diagnose_log, last_lines
from ..gpu.inventory import inventory
from ..sandbox import Command, Finished
from ..task import Stage, StageName, fill
from . import assets, evidence
from .confirm import confirmed
from .console_script import path_problem, script_problem
from .integrity.restore import RestoreError, restore
from .readme import code_block
from .services import Services
from .subject import Subject, stage_environment
from .witness.stage import Witness

if TYPE_CHECKING:
    from collections.abc import Sequence

    from ..gpu.inventory import Gpu
    from ..sandbox import Box, StageBox
    from .interpreter import Interpreter

LEVELS = {StageName.CPU: Level.C1, StageName.SINGLE_GPU: Level.C3, StageName.MULTI_GPU: Level.C4}
_PROBES = Path(__file__).parent / "probes"


@dataclass(frozen=True)
class Prepared:
    """A stage with everything filled in for one box."""

    argv: list[str]
    cwd: Path
    environment: dict[str, str]
    values: dict[str, str] = field(default_factory=dict)

    def command(
        self, argv: Sequence[str], env: dict[str, str], time_limit_s: float = 0.0
    ) -> Command:
        """Another command in the stage's place, such as a shell."""
        return Command(argv, self.cwd, env, time_limit_s)


def run_stage(
    subject: Subject,
    name: StageName,
    *,
    gpus: Sequence[Gpu] = (),
    sees_processes: bool = False,
    counts: bool = True,
) -> LevelResult:
    """Run one stage from the frozen state, showing it `gpus`, and judge it.

    What its processes did on the GPUs is seen and kept, and not judged here.

    Args:
        subject: What is judged.
        name: Of the stage.
        gpus: Those that it is shown.
        sees_processes: Whether the witness is known to see on these GPUs who computes.
        counts: Whether launches are counted, by a library that its processes load.

    Raises:
        TaskError: the stage names something that is not there.
        SandboxError: no box could be opened.
    """
    log = subject.logs / f"{name}.log"
    log.unlink(missing_ok=True)
    assert subject.task is not None  # noqa: S101  # callers ask for stages of a task
    stage = subject.task.stages[name]
    if refusal := not_to_be_run(subject, name, len(gpus)):
        return refusal
    places = assets.shown(subject, stage).places
    uuids = [gpu.uuid for gpu in gpus]
    with subject.open_box(network=stage.network, gpus=uuids, assets=places) as box:
        witness = None
        if gpus:
            of_host = inventory().of_host
            witness = Witness(
                box,
                gpus,
                of_host,
                subject.interpreter,
                sees_processes=sees_processes,
                counts=counts,
            )
        with witness.watching() if witness else nullcontext():
            result = _run_in(subject, name, stage, box, log, gpus, witness)
        if witness:
            use = witness.use(subject.folder / "products" / f"{name}-counts")
            result = result.model_copy(update={"gpu_use": use})
    return result.model_copy(
        update={
            "fresh": box.freshness,
            "log": str(log.relative_to(subject.folder)) if log.exists() else None,
            "assets": assets.used(subject, stage),
        }
    )


def not_to_be_run(subject: Subject, name: StageName, gpus: int) -> LevelResult | None:
    """The result of a stage that is not run where so many GPUs are to be had, or None.

    The order is that of what cannot be changed: the task, then the environment, then this
    host, then the assets.
    """
    task = subject.task
    assert task is not None  # noqa: S101  # as in run_stage
    stage = task.stages[name]

    reads = assets.used(subject, stage)

    def inconclusive(owner: Owner, reason: str, **more: Any) -> LevelResult:
        return LevelResult(
            level=LEVELS[name],
            verdict=Verdict.INCONCLUSIVE,
            owner=owner,
            reason=reason,
            assets=reads,
            **more,
        )

    if stage.not_solvable:
        return inconclusive(Owner.TASK, f"not solvable at this commit: {stage.not_solvable}")
    if stage.not_distributed:
        return inconclusive(Owner.TASK, f"not distributed: {stage.not_distributed}")
    if subject.interpreter is None:
        return LevelResult(
            level=LEVELS[name],
            verdict=Verdict.FAILED,
            owner=Owner.AGENT,
            reason=f"no usable interpreter: {subject.interpreter_error}",
            assets=reads,
        )
    needed = task.gpus(name)
    if needed > gpus == 0:
        return inconclusive(Owner.HOST, "no GPU", want=Want.GPU)
    if needed > gpus:
        reason = f"{gpus} GPU, the stage asks for {needed}"
        return inconclusive(Owner.HOST, reason, want=Want.MORE_GPUS)
    if problem := assets.problem(subject, stage):
        reason, advice = problem
        return inconclusive(Owner.ASSET, reason, advice=advice)
    return None


def _run_in(
    subject: Subject,
    name: StageName,
    stage: Stage,
    box: StageBox,
    log: Path,
    gpus: Sequence[Gpu],
    witness: Witness | None,
) -> LevelResult:
    try:
        prepared = prepare(subject, stage, box, gpus)
    except RestoreError as error:
        return LevelResult(
            level=LEVELS[name],
            verdict=Verdict.FAILED,
            owner=Owner.AGENT,
            reason=str(error.args[0]),
            advice=error.advice,
        )
    if witness:
        prepared.environment.update(witness.variables)  # nothing overrides them
    interpreter = subject.interpreter
    assert interpreter is not None  # noqa: S101  # checked before
    if problem := _other_python(stage, prepared, interpreter, subject, box):
        return LevelResult(
            level=LEVELS[name], verdict=Verdict.FAILED, owner=Owner.AGENT, reason=problem
        )
    subject.say(f"{name}: {' '.join(prepared.argv)[:200]}")
    with Services(
        stage, box, prepared.values, prepared.environment, subject.logs, str(name)
    ) as services:
        if problem := services.wait_until_ready():
            verdict = LevelResult(
                level=LEVELS[name],
                verdict=Verdict.FAILED,
                owner=Owner.AGENT,
                reason=problem,
                command=tuple(prepared.argv),
            )
            cause = diagnose_log(services.last_log) if services.last_log else None
            return _blame(verdict, cause, subject, box)
        finished = box.run(
            Command(prepared.argv, prepared.cwd, prepared.environment, stage.time_limit_s), log
        )
        judged = evidence.judge(
            stage,
            finished,
            box,
            services.logs(log),
            prepared.values,
            subject.folder / "products" / name,
        )
    return _verdict(subject, name, prepared, finished, judged, box)


def prepare(subject: Subject, stage: Stage, box: StageBox, gpus: Sequence[Gpu]) -> Prepared:
    """Bring the stage's files into the box and fill in its placeholders.

    Raises:
        TaskError: the README block that the task names is not there.
        RestoreError: something in the work tree is in the way.
    """
    task, interpreter, layout = subject.task, subject.interpreter, box.layout
    assert task is not None and interpreter is not None  # noqa: S101, PT018  # checked before
    values = {
        "python": interpreter.executable,
        "prefix": interpreter.prefix,
        "repo": str(layout.repo),
        "work": str(layout.work),
        "out": str(layout.out),
        "nproc": str(len(gpus) or os.cpu_count() or 1),
        "port": str(_free_port()),
    }
    shown = assets.shown(subject, stage)
    values |= shown.values(layout)
    values["task"] = str(layout.tools / "task")
    for driver in task.driver_files():
        inside = layout.tools / "task" / driver.relative_to(task.folder)
        box.put(inside, driver.read_bytes())
    restore(subject, box)
    return Prepared(
        argv=_argv(subject, stage, box, values),
        cwd=Path(fill(stage.folder, values)),
        environment=stage_environment(
            subject,
            box,
            network=stage.network,
            task={
                **shown.variables(layout),
                **{key: fill(text, values) for key, text in stage.env.items()},
            },
            gpus=gpus,
        ),
        values=values,
    )


def _argv(subject: Subject, stage: Stage, box: Box, values: dict[str, str]) -> list[str]:
    block = stage.readme_block
    if block is None:
        argv = [fill(argument, values) for argument in stage.command]
        if stage.launcher != "python" and "/" not in argv[0]:
            # Launchers are programs of the environment, never whatever PATH would find.
            argv[0] = str(Path(values["python"]).parent / argv[0])
        return argv
    inside = box.layout.tools / ("block.py" if block.language == "python" else "block.sh")
    box.put(inside, code_block(subject.snapshot.tree, block).encode())
    if block.language != "python":
        return ["bash", "-e", str(inside)]
    if not block.echo:
        return [values["python"], str(inside)]
    runner = box.layout.tools / "echo_block.py"
    box.put(runner, (_PROBES / "echo_block.py").read_bytes())
    return [values["python"], str(runner), str(inside)]


def _other_python(
    stage: Stage, prepared: Prepared, interpreter: Interpreter, subject: Subject, box: StageBox
) -> str | None:
    """Why the stage would be run by another Python than the judged one, or None."""
    if not stage.readme_block and stage.launcher != "python":
        script = Path(prepared.argv[0])
        if problem := script_problem(script, interpreter, subject.changed, box):
            return problem
    return path_problem(interpreter, box)


def _verdict(
    subject: Subject,
    name: StageName,
    prepared: Prepared,
    finished: Finished,
    judged: list[EvidenceResult],
    box: StageBox,
) -> LevelResult:
    refused = [entry for entry in judged if entry.verdict is Verdict.FAILED]
    unsure = [entry for entry in judged if entry.verdict is Verdict.INCONCLUSIVE]
    verdict, owner, reason = Verdict.PASSED, None, ""
    cause: Diagnosis | None = None
    want: Want | None = None
    if finished.log_error:
        # What it printed could not be kept, so nothing can be said of it.
        verdict, owner, want = Verdict.INCONCLUSIVE, Owner.HOST, Want.DISK
        reason = f"the log could not be written: {finished.log_error}"
    elif finished.start_error:
        verdict, owner, reason = Verdict.FAILED, Owner.AGENT, finished.start_error
    elif finished.timed_out:
        limit_s = subject.task.stages[name].time_limit_s if subject.task else 0.0
        verdict, owner = Verdict.FAILED, Owner.AGENT
        reason = f"still running at the time limit of {limit_s:.0f} s; {last_lines(finished.log)}"
    elif refused:
        verdict, owner = Verdict.FAILED, Owner.AGENT
        bad_exit = finished.signal or finished.exit_code != _expected(subject, name)
        cause = diagnose_log(finished.log) if bad_exit else None
        ended = f"signal {finished.signal}" if finished.signal else f"exit {finished.exit_code}"
        if cause:
            reason = f"{cause.cause} ({ended})"
        elif bad_exit:
            reason = f"{ended}: {last_lines(finished.log, 1) or 'it printed nothing'}"
        else:
            reason = f"{refused[0].entry}: {refused[0].seen}"
    elif unsure:
        verdict, owner = Verdict.INCONCLUSIVE, unsure[0].owner
        reason = f"{unsure[0].entry}: {unsure[0].seen}"
        want = Want.READER if owner is Owner.HOST else None
    result = LevelResult(
        level=LEVELS[name],
        verdict=verdict,
        owner=owner,
        want=want,
        reason=reason,
        command=tuple(prepared.argv),
        exit_code=finished.exit_code,
        signal=finished.signal,
        timed_out=finished.timed_out,
        leftover_processes=finished.leftovers,
        log_bytes_dropped=finished.log_bytes_dropped,
        evidence=tuple(judged),
        stage_env=_shown(prepared.environment),
    )
    if verdict is Verdict.FAILED and finished.out_of_memory:
        return result.model_copy(
            update={
                "reason": f"out of memory: {reason}",
                "advice": "run fewer attempts at a time, or on a host with more memory",
            }
        )
    if cause is not None and cause.want is Want.LIBRARY and finished.signal:
        cause = None  # who lacks a library is told so and ends; a crash has another cause
    return _blame(result, cause, subject, box) if verdict is Verdict.FAILED else result


def _expected(subject: Subject, name: StageName) -> int:
    return subject.task.stages[name].expected_exit if subject.task else 0


def _blame(
    result: LevelResult, cause: Diagnosis | None, subject: Subject, box: StageBox
) -> LevelResult:
    """Move a failure to the host where the log says so *and* the host confirms it."""
    update: dict[str, object] = {}
    if cause is not None:
        update["advice"] = cause.advice
        if cause.owner is Owner.HOST and confirmed(cause, subject, box):
            update |= {
                "verdict": Verdict.INCONCLUSIVE,
                "owner": Owner.HOST,
                "want": cause.want,
                "reason": cause.cause,
                "system_packages": cause.system_packages,
            }
    return result.model_copy(update=update)


def _free_port() -> int:
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        return int(listener.getsockname()[1])


def _shown(environment: dict[str, str]) -> dict[str, str]:
    """The variables as a record may hold them: no credentials in index addresses."""
    from ..sandbox.host_environment import redacted_variables

    return redacted_variables(environment)
