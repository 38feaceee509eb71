"""C3 and C4: GPUs of its own, a host that can, an entry point, and proof of what it did there.

The order is that of blame: the task and the environment first, then whether GPUs can be had,
then whether this host can do a case that is known to be good. Only then is the entry point run,
and what was seen of it on the GPUs decides as much as its end.
"""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any

from ..attempt import Finding, LevelResult, Owner, Verdict, Want
from ..audit import needs_canary
from ..diagnose import last_lines
from ..gpu.leases import NoLeaseError, leased
from ..gpu.nvml import NvmlError, nvml
from ..task import StageName
from .canary import canary_words, run_canaries
from .entrypoint import LEVELS, not_to_be_run, run_stage
from .preflight import Preflight, look, told
from .witness.proof import prove

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from ..gpu.inventory import Gpu, GpuInventory
    from ..gpu_use import GpuUse
    from .subject import Subject

#: How many GPUs it takes for processes to talk.
_SEVERAL = 2
_CANARY_WAIT_S = 600.0
#: How a process ends of a fault in native code.
_CRASHES = ("SIGSEGV", "SIGBUS", "SIGILL", "SIGABRT")


def run_gpu_stage(
    subject: Subject, name: StageName, inventory: GpuInventory, *, canaries: bool = True
) -> LevelResult:
    """Run a stage on GPUs that nobody else uses, and judge what it did there.

    Args:
        subject: What is judged.
        name: Of the stage.
        inventory: The GPUs that may be leased.
        canaries: Whether a failure is followed by the framework alone on the same GPUs, which
            takes about a minute and decides nothing.

    Raises:
        TaskError: the stage names something that is not there.
        SandboxError: no box could be opened.
        HostError: the folder of the leases cannot be used.
    """
    task = subject.task
    assert task is not None  # noqa: S101  # callers ask for stages of a task
    stage, count = task.stages[name], task.gpus(name)
    choice = inventory.for_stage(count)
    if refusal := not_to_be_run(subject, name, len(choice)):
        return refusal
    try:
        with leased(
            count,
            choice,
            time_limit_s=stage.time_limit_s,
            whose=f"{task.name} {name} ({subject.folder})",
            say=subject.say,
        ) as gpus:
            return _run_on(subject, name, gpus, canaries)
    except NoLeaseError as error:
        return _host(name, Want.GPU, str(error.args[0]), advice=error.advice)


def with_canary(subject: Subject, result: LevelResult, inventory: GpuInventory) -> LevelResult:
    """C4 of a task without such a run, with what the framework by itself does on two GPUs.

    Only where the report claims something of it, and this host can say.
    """
    claimed = subject.report is not None and subject.report.ddp_expected_ok is not None
    choice = inventory.for_stage(_SEVERAL)
    if not claimed or not needs_canary(result) or len(choice) < _SEVERAL:
        return result
    try:
        with leased(
            _SEVERAL,
            choice,
            time_limit_s=_CANARY_WAIT_S,
            whose=f"canaries ({subject.folder})",
            say=subject.say,
        ) as gpus:
            if told(gpus, subject.host.variables).cause(_SEVERAL):
                return result
            return result.model_copy(update={"canaries": run_canaries(subject, gpus, "torch")})
    except NoLeaseError:
        return result


def _run_on(subject: Subject, name: StageName, gpus: Sequence[Gpu], canaries: bool) -> LevelResult:
    variables = subject.host.variables
    subject.say(f"{name}: whether this host's GPUs can compute")
    host = told(gpus, variables)
    if cause := host.cause(len(gpus)):
        return _host(name, Want.GPU, cause, details={"host": dict(host.facts)})
    result = run_stage(subject, name, gpus=gpus, sees_processes=host.sees_processes)
    if _crashed(subject, result):
        # The counter is a guest in processes that are not its own: what dies of it is no failure.
        subject.say(f"{name}: it crashed; once more, with nothing that counts in its processes")
        result = run_stage(
            subject, name, gpus=gpus, sees_processes=host.sees_processes, counts=False
        )
    result = _judged(subject, name, result)
    if left := still_there(result.gpu_use):
        result = result.model_copy(update={"findings": (*result.findings, left)})
    if result.verdict is not Verdict.FAILED or result.owner is not Owner.AGENT:
        return result
    result = _not_the_hosts(result, gpus, look(gpus, variables))
    if result.verdict is not Verdict.FAILED or not canaries:
        return result
    found = run_canaries(subject, gpus)
    advice = "; ".join(one for one in (result.advice, canary_words(found)) if one)
    return result.model_copy(update={"canaries": found, "advice": advice})


def _crashed(subject: Subject, result: LevelResult) -> bool:
    """Whether a process died as one does of a fault in native code, and the counter was there."""
    if result.verdict is not Verdict.FAILED or result.gpu_use is None or result.gpu_use.counter:
        return False
    if result.signal in _CRASHES:
        return True
    log = subject.folder / result.log if result.log else None
    said = last_lines(log, 60) if log is not None and log.exists() else ""
    return any(name in said for name in _CRASHES)


def _judged(subject: Subject, name: StageName, result: LevelResult) -> LevelResult:
    """With what was seen on the GPUs, which can only take a pass away."""
    assert subject.task is not None  # noqa: S101  # as above
    use = result.gpu_use
    if use is None or not result.command:
        return result  # nothing was run, so there was nothing to see
    parallelism = subject.task.stages[name].parallelism if name is StageName.MULTI_GPU else None
    proof = prove(use, parallelism)
    update: dict[str, Any] = {
        "gpu_grades": {gpu: str(one) for gpu, one in proof.grades.items()},
        "findings": result.findings + tuple(_elsewhere(use)),
    }
    if result.verdict is Verdict.PASSED and proof.verdict is not Verdict.PASSED:
        update |= {
            "verdict": proof.verdict,
            "owner": proof.owner,
            "want": proof.want,
            "reason": proof.reason,
            "details": {**result.details, "entry_point": Verdict.PASSED},
        }
    return result.model_copy(update=update)


def _elsewhere(use: GpuUse) -> Iterator[Finding]:
    for one in use.elsewhere:
        others = [seen.gpu for seen in one.seen if seen.gpu not in use.gpus]
        yield Finding(
            kind="other-gpu",
            what=f"{one.name or 'a process'} ({one.pid}) of the stage was on a GPU that is not its",
            where=", ".join(others),
            why="others may have leased it, and what a stage does there proves nothing",
        )


def still_there(use: GpuUse | None, *, wait_s: float = 10.0) -> Finding | None:
    """A finding where processes of an ended stage are still on GPUs, and stay there.

    Args:
        use: What was seen of the stage.
        wait_s: How long the driver may take to let go of a process that has ended.
    """
    if use is None:
        return None
    mine = {process.pid for process in (*use.processes, *use.elsewhere)}
    until = time.monotonic() + wait_s
    while True:
        try:
            with nvml() as driver:
                found = {pid for gpu in use.gpus for pid in driver.processes(gpu)} & mine
        except NvmlError:
            return None
        if not found:
            return None
        if time.monotonic() >= until:
            break
        time.sleep(0.2)
    return Finding(
        kind="gpu-not-freed",
        what=f"processes of the stage are still on its GPUs: {', '.join(map(str, sorted(found)))}",
        why="they take memory and time from the next stage, which waits until they are gone",
    )


def _not_the_hosts(result: LevelResult, gpus: Sequence[Gpu], host: Preflight) -> LevelResult:
    """A failure, unless the host cannot any more, or somebody else was on the GPUs."""
    if cause := host.cause(len(gpus)):
        return _excused(result, cause)
    neighbours = result.gpu_use.neighbours if result.gpu_use else ()
    if neighbours:
        names = ", ".join(f"{one.name or 'a program'} ({one.pid})" for one in neighbours)
        return _excused(result, f"others used its GPUs while it ran: {names}")
    unknown = result.gpu_use.unidentified if result.gpu_use else ()
    if lasting := [one for one in unknown if any(seen.samples > 1 for seen in one.seen)]:
        pids = ", ".join(str(one.pid) for one in lasting)
        why = f"witness: process {pids} was on its GPUs, and whose it is could not be told"
        return _excused(result, why, Want.WITNESS)
    return result


def _excused(result: LevelResult, cause: str, want: Want = Want.GPU) -> LevelResult:
    return result.model_copy(
        update={
            "verdict": Verdict.INCONCLUSIVE,
            "owner": Owner.HOST,
            "want": want,
            "reason": cause,
            # Where the proof alone was missing, the entry point itself had passed.
            "details": {"entry_point": Verdict.FAILED, **result.details, "why": result.reason},
        }
    )


def _host(name: StageName, want: Want, reason: str, **more: Any) -> LevelResult:
    return LevelResult(
        level=LEVELS[name],
        verdict=Verdict.INCONCLUSIVE,
        owner=Owner.HOST,
        want=want,
        reason=reason,
        **more,
    )
