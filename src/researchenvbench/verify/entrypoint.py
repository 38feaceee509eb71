"""C1, C3, C4: run the repository's own entry point and look at what it made.

A stage passes when the command ended as expected *and* every evidence entry holds on what
this run made. This module brings the stage's files into a fresh box, runs its services and
its command there, and words the verdict. What the evidence kinds mean is `evidence`'s
business; whose fault a bad end is comes from `diagnose`, and is believed only where this
host confirms it.
"""

from __future__ import annotations

import hashlib
import os
import shutil
import socket
import subprocess
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from ..attempt import EvidenceResult, Level, LevelResult, Owner, Verdict
from ..diagnose import Diagnosis, diagnose_log, last_lines
from ..errors import SandboxError, TaskError
from ..sandbox import Command, Finished
from ..task import Stage, StageName, fill
from . import evidence
from .integrity import is_generated
from .readme import code_block
from .services import Services
from .subject import Subject, stage_environment

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from ..sandbox import Box, StageBox
    from ..sandbox.gpu import Gpu

LEVELS = {StageName.CPU: Level.C1, StageName.SINGLE_GPU: Level.C3, StageName.MULTI_GPU: Level.C4}
_FULL_DISK_BYTES = 64 * 1024**2
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
    before: Callable[[StageBox, dict[str, str], Path], None] | None = None,
    network: bool = False,
) -> LevelResult:
    """Run one stage from the frozen state and judge it.

    `gpus` are those that the stage may see. `before` runs in the stage's box first, which
    is how a breakage damages the environment for this one run; `network` gives the box one
    that the stage itself does not ask for.
    """
    level = LEVELS[name]
    log = subject.logs / f"{name}.log"
    log.unlink(missing_ok=True)
    assert subject.task is not None  # noqa: S101  # callers ask for stages of a task
    stage = subject.task.stages[name]
    if refusal := _not_to_be_run(subject, name, stage, len(gpus)):
        return refusal
    try:
        with subject.open_box(
            network=stage.network or network, gpus=[gpu.uuid for gpu in gpus]
        ) as box:
            result = _run_in(subject, name, stage, box, log, gpus, before)
        result = result.model_copy(update={"fresh": box.freshness})
    except TaskError as error:
        result = LevelResult(
            level=level,
            verdict=Verdict.INCONCLUSIVE,
            owner=Owner.TASK,
            reason=str(error.args[0]),
            advice=error.advice,
        )
    except SandboxError as error:
        result = LevelResult(
            level=level,
            verdict=Verdict.INCONCLUSIVE,
            owner=Owner.HOST,
            reason=str(error.args[0]),
            advice=error.advice,
        )
    return result.model_copy(
        update={
            "log": str(log.relative_to(subject.folder)) if log.exists() else None,
        }
    )


def _not_to_be_run(
    subject: Subject, name: StageName, stage: Stage, gpus: int
) -> LevelResult | None:
    """The result of a stage that cannot give a verdict here, or None."""
    task = subject.task
    assert task is not None  # noqa: S101  # as in run_stage
    owner, reason, advice = Owner.TASK, "", ""
    if stage.not_solvable:
        reason = f"not solvable at this commit: {stage.not_solvable}"
    elif stage.not_distributed:
        reason = f"not distributed: {stage.not_distributed}"
    elif task.gpus(name) > gpus:
        owner = Owner.HOST
        reason = "no GPU" if gpus == 0 else f"{gpus} GPU, the stage asks for {task.gpus(name)}"
    elif subject.interpreter is None:
        return LevelResult(
            level=LEVELS[name],
            verdict=Verdict.FAILED,
            owner=Owner.AGENT,
            reason=f"no usable interpreter: {subject.interpreter_error}",
        )
    else:
        for asset in stage.assets:
            path = task.folder / task.assets[asset].path
            if not path.is_file():
                owner, reason = Owner.ASSET, f"asset {asset}: {path} is missing"
            elif hashlib.sha256(path.read_bytes()).hexdigest() != task.assets[asset].sha256:
                owner, reason = Owner.ASSET, f"asset {asset}: the content of {path} has changed"
        if reason:
            advice = "restore the task's folder from the suite"
    if not reason:
        return None
    return LevelResult(
        level=LEVELS[name],
        verdict=Verdict.INCONCLUSIVE,
        owner=owner,
        reason=reason,
        advice=advice,
    )


def _run_in(
    subject: Subject,
    name: StageName,
    stage: Stage,
    box: StageBox,
    log: Path,
    gpus: Sequence[Gpu],
    before: Callable[[StageBox, dict[str, str], Path], None] | None,
) -> LevelResult:
    prepared = prepare(subject, stage, box, gpus)
    if before is not None:
        before(box, prepared.environment, log)
    problem = _console_script_problem(stage, prepared, subject, box)
    if problem:
        return LevelResult(
            level=LEVELS[name], verdict=Verdict.FAILED, owner=Owner.AGENT, reason=problem
        )
    subject.say(f"{name}: {' '.join(prepared.argv)[:200]}")
    with ExitStack() as stack:
        services = stack.enter_context(
            Services(stage, box, prepared.values, prepared.environment, subject.logs, str(name))
        )
        problem = services.wait_until_ready()
        if problem:
            verdict = LevelResult(
                level=LEVELS[name],
                verdict=Verdict.FAILED,
                owner=Owner.AGENT,
                reason=problem,
                command=tuple(prepared.argv),
            )
            cause = diagnose_log(services.last_log) if services.last_log else None
            return _blame(verdict, cause, subject)
        finished = box.run(
            Command(prepared.argv, prepared.cwd, prepared.environment, stage.time_limit_s),
            log,
            append=before is not None,
        )
        judged = evidence.judge(
            stage,
            finished,
            box,
            services.logs(log),
            prepared.values,
            subject.folder / "products" / name,
        )
    return _verdict(subject, name, prepared, finished, judged)


def prepare(subject: Subject, stage: Stage, box: Box, gpus: Sequence[Gpu]) -> Prepared:
    """Bring the stage's files into the box and fill in its placeholders.

    Raises:
        TaskError: the README block that the task names is not there.
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
    for asset in stage.assets:
        source = task.folder / task.assets[asset].path
        inside = layout.tools / "assets" / source.name
        box.put(inside, source.read_bytes())
        values[f"assets.{asset}"] = str(inside)
    values["task"] = str(layout.tools / "task")
    for driver in task.driver_files():
        inside = layout.tools / "task" / driver.relative_to(task.folder)
        box.put(inside, driver.read_bytes())
    for path in subject.snapshot.tracked:
        if is_generated(path, task.generated):
            box.put(layout.repo / path, (subject.snapshot.tree / path).read_bytes())
    extra = {
        # An empty value hides every GPU; indices, since launchers parse integers.
        "CUDA_VISIBLE_DEVICES": ",".join(str(gpu.index) for gpu in gpus),
        "CUDA_DEVICE_ORDER": "PCI_BUS_ID",
        **{key: fill(text, values) for key, text in stage.env.items()},
    }
    return Prepared(
        argv=_argv(subject, stage, box, values),
        cwd=Path(fill(stage.folder, values)),
        environment=stage_environment(subject, layout, network=stage.network, extra=extra),
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


def _console_script_problem(
    stage: Stage, prepared: Prepared, subject: Subject, box: Box
) -> str | None:
    """Why the script that the command names is not one of this environment, or None."""
    if stage.readme_block or stage.launcher == "python":
        return None
    script = Path(prepared.argv[0])
    try:
        start = box.read(script, 64 * 1024**2)[:1024].decode(errors="replace")
    except SandboxError as error:
        return f"the console script {script.name} is not in the environment: {error.args[0]}"
    if not start.startswith("#!"):
        return None  # a compiled launcher
    assert subject.interpreter is not None  # noqa: S101  # as above
    # The first line names the interpreter, or /bin/sh with the interpreter on the second
    # (pip's and uv's form for long paths).
    binaries = str(Path(subject.interpreter.executable).parent)
    if f"{binaries}/python" not in start:
        return (
            f"the console script {script.name} runs another interpreter than the reported one: "
            f"{start.splitlines()[0][:200]}"
        )
    return None


def _verdict(
    subject: Subject,
    name: StageName,
    prepared: Prepared,
    finished: Finished,
    judged: list[EvidenceResult],
) -> LevelResult:
    refused = [entry for entry in judged if entry.verdict is Verdict.FAILED]
    unsure = [entry for entry in judged if entry.verdict is Verdict.INCONCLUSIVE]
    verdict, owner, reason = Verdict.PASSED, None, ""
    cause: Diagnosis | None = None
    if finished.start_error:
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
    result = LevelResult(
        level=LEVELS[name],
        verdict=verdict,
        owner=owner,
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
        return result.model_copy(update={"reason": f"out of memory: {reason}"})
    return _blame(result, cause, subject) if verdict is Verdict.FAILED else result


def _expected(subject: Subject, name: StageName) -> int:
    return subject.task.stages[name].expected_exit if subject.task else 0


def _blame(result: LevelResult, cause: Diagnosis | None, subject: Subject) -> LevelResult:
    """Move a failure to the host where the log says so *and* the host confirms it."""
    update: dict[str, object] = {}
    if cause is not None:
        update["advice"] = cause.advice
        if cause.owner is Owner.HOST and _confirmed(cause, subject):
            update |= {
                "verdict": Verdict.INCONCLUSIVE,
                "owner": Owner.HOST,
                "reason": cause.cause,
                "system_packages": cause.system_packages,
            }
    return result.model_copy(update=update)


def _confirmed(cause: Diagnosis, subject: Subject) -> bool:
    """Whether this host really lacks what the log complains of."""
    if cause.rule == "disk-full":
        return shutil.disk_usage(subject.folder).free < _FULL_DISK_BYTES
    if cause.rule == "missing-program":
        return shutil.which(cause.cause.split()[2], path=subject.host.path) is None
    library = cause.cause.split()[3]
    try:
        known = subprocess.run(
            ["ldconfig", "-p"],
            env={"PATH": "/usr/sbin:/sbin:/usr/bin"},
            capture_output=True,
            text=True,
            check=True,
        ).stdout
    except (OSError, subprocess.CalledProcessError):
        return True  # nothing to ask: believe the loader, whose message it was
    return f"\t{library} " not in known


def _free_port() -> int:
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        return int(listener.getsockname()[1])


def _shown(environment: dict[str, str]) -> dict[str, str]:
    """The variables as a record may hold them: no credentials in index addresses."""
    from ..sandbox.host_environment import redacted_variables

    return redacted_variables(environment)
