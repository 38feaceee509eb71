"""Which levels, in which order, and what is kept of each.

The flow of phase 2 on one screen: integrity, the interpreter, then C0 to C5. Every result
is handed to `keep` as soon as it is there, so that a crash loses at most the level under
way, and asked back from `kept` first, so that nothing is done twice.
"""

from __future__ import annotations

import dataclasses
import errno
import time
from typing import TYPE_CHECKING

from ..attempt import AttemptStatus, Level, LevelResult, Owner, Verdict, Want
from ..audit import AS_SHOWN, Hardware, audit
from ..errors import HostError, RebError, SandboxError, TaskError
from ..process import seconds_in_programs
from ..proofs import standing
from ..sandbox.gpu import inventory
from ..task import StageName
from .device import check_devices
from .entrypoint import LEVELS, run_stage
from .integrity import compare, start_variables, untracked
from .interpreter import ask
from .roots import static_roots
from .static import check_imports

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from ..attempt import Audit, Finding
    from .interpreter import Interpreter
    from .subject import Subject

#: The levels before C5 in the order in which they run.
MEASURED = (Level.C0, Level.C1, Level.C2, Level.C3, Level.C4)
STAGES = {level: stage for stage, level in LEVELS.items()}


@dataclasses.dataclass(frozen=True)
class Choice:
    """Which levels are run, and how."""

    levels: Sequence[Level] = tuple(Level)
    fail_fast: bool = False  #: stop at the first level that fails
    repeats: int = 1  #: of each level; a verdict that changes is marked flaky


@dataclasses.dataclass(frozen=True)
class Judgement:
    """What verification says of a subject."""

    subject: Subject  #: with the interpreter that was found
    results: dict[Level, LevelResult]
    audit: Audit
    findings: tuple[Finding, ...]
    untracked: tuple[str, ...]  #: files of the work tree that the source does not have
    seconds_in_processes: float


def verify(
    subject: Subject,
    python: str | None,
    *,
    frameworks: Sequence[str],
    hardware: Hardware = AS_SHOWN,
    choice: Choice = Choice(),
    kept: Callable[[Level], LevelResult | None] = lambda _: None,
    keep: Callable[[LevelResult], None] = lambda _: None,
) -> Judgement:
    """Judge the environment whose interpreter is `python` (None: the report names none)."""
    subject.say("comparing tracked files with the source")
    generated = subject.task.generated if subject.task else ()
    findings = compare(subject.snapshot, subject.frozen_repo, generated, judge=subject.judge_edits)
    findings += start_variables(subject.report)
    subject = with_interpreter(subject, python)
    results: dict[Level, LevelResult] = {}
    for level in MEASURED:
        if level not in choice.levels:
            continue
        result = kept(level)
        if result is None:
            result = _repeated(subject, level, frameworks, choice.repeats)
            keep(result)
        results[level] = result
        if choice.fail_fast and result.verdict is Verdict.FAILED:
            break
    reported = _reported(subject, python)
    interpreter = reported.interpreter
    honesty, result = audit(
        subject.report,
        report_error=subject.report_error,
        report_due=subject.report_due,
        python_version=interpreter.version if interpreter else None,
        python_error=reported.interpreter_error,
        framework_versions=interpreter.frameworks if interpreter else {},
        results=results,
        hardware=hardware,
        reported_judged=_same(interpreter, subject.interpreter),
    )
    if Level.C5 in choice.levels:
        results[Level.C5] = result
    return Judgement(
        subject=subject,
        results=results,
        audit=honesty,
        findings=findings,
        untracked=untracked(subject.snapshot, subject.frozen_repo),
        seconds_in_processes=sum(r.seconds_in_processes for r in results.values()),
    )


def status_of(judgement: Judgement) -> AttemptStatus:
    """What the attempt as a whole counts as."""
    subject = judgement.subject
    if any(finding.disqualifies for finding in judgement.findings):
        return AttemptStatus.DISQUALIFIED
    if subject.report is None and subject.report_due:
        return AttemptStatus.NO_REPORT
    return AttemptStatus.OK


def with_interpreter(subject: Subject, python: str | None) -> Subject:
    """The subject with its interpreter, or with the reason why there is no usable one."""
    if python is None:
        why = "the report gives no python_path" if subject.report else "there is no report"
        return dataclasses.replace(subject, interpreter_error=why)
    subject.say(f"asking {python}")
    with subject.open_box() as box:
        environment = subject.base_environment(box.layout, False)
        interpreter, why = ask(box, python, environment, subject.logs / "interpreter.log")
    return dataclasses.replace(subject, interpreter=interpreter, interpreter_error=why)


def _reported(subject: Subject, judged: str | None) -> Subject:
    """The subject with the interpreter that the report names, which need not be the judged one."""
    path = subject.report.python_path if subject.report else None
    return subject if path in (None, judged) else with_interpreter(subject, path)


def _same(one: Interpreter | None, other: Interpreter | None) -> bool:
    """Whether both are of one environment, or neither is usable."""
    return (one.prefix if one else None) == (other.prefix if other else None)


def _repeated(
    subject: Subject, level: Level, frameworks: Sequence[str], repeats: int
) -> LevelResult:
    """Run a level as often as asked; a verdict that changes is marked flaky.

    The worst verdict stands: what works only sometimes does not work.
    """
    results = [_timed(subject, level, frameworks) for _ in range(max(1, repeats))]
    worst = [Verdict.FAILED, Verdict.INCONCLUSIVE, Verdict.PASSED, Verdict.NOT_APPLICABLE]
    chosen = min(results, key=lambda result: worst.index(result.verdict))
    if len(results) == 1:
        return chosen
    verdicts = tuple(result.verdict for result in results)
    return chosen.model_copy(update={"verdicts": verdicts, "flaky": len(set(verdicts)) > 1})


def _timed(subject: Subject, level: Level, frameworks: Sequence[str]) -> LevelResult:
    started, in_programs = time.monotonic(), seconds_in_programs()
    result = run_level(subject, level, frameworks)
    return result.model_copy(
        update={
            "seconds": time.monotonic() - started,
            "seconds_in_processes": seconds_in_programs() - in_programs,
        }
    )


def run_level(subject: Subject, level: Level, frameworks: Sequence[str]) -> LevelResult:
    """One of the measured levels, whatever stands in its way.

    What the task lacks and what the host cannot do is a verdict here, and nowhere else.
    """
    owner: Owner = Owner.HOST
    want: Want | None = Want.SANDBOX
    problem: RebError
    try:
        return _run(subject, level, frameworks)
    except TaskError as error:
        owner, want, problem = Owner.TASK, None, error
    except (SandboxError, HostError) as error:
        problem = error
    except OSError as error:
        if error.errno not in (errno.ENOSPC, errno.EDQUOT):
            raise
        want = Want.DISK
        problem = HostError(f"the disk is full: {error.filename or subject.folder}")
    return LevelResult(
        level=level,
        verdict=Verdict.INCONCLUSIVE,
        owner=owner,
        want=want,
        reason=str(problem.args[0]),
        advice=problem.advice,
    )


def _run(subject: Subject, level: Level, frameworks: Sequence[str]) -> LevelResult:
    if level is Level.C0:
        return static_level(subject)
    if level is Level.C2:
        return check_devices(subject, frameworks, inventory())
    name = STAGES[level]
    if subject.task is None:
        return LevelResult(
            level=level,
            verdict=Verdict.INCONCLUSIVE,
            owner=Owner.TASK,
            reason="no entry point is known",
        )
    if name not in subject.task.stages:
        return LevelResult(
            level=level, verdict=Verdict.NOT_APPLICABLE, reason=f"the task has no {name} stage"
        )
    gpus = inventory().gpus[: subject.task.gpus(name)]
    result = run_stage(subject, name, gpus=gpus)
    if name is not StageName.CPU:
        result = _without_witness(result)
    return result.model_copy(update={"proven": standing(subject.task, name)})


def _without_witness(result: LevelResult) -> LevelResult:
    """A GPU stage that was run, but whose GPUs nobody watched from outside.

    That kernels ran, and that ranks talked, needs a witness; until there is one the entry
    point's own end is kept in the details and decides nothing.
    """
    if result.verdict is Verdict.INCONCLUSIVE or not result.command:
        return result  # nothing was run, so there was nothing to watch
    return result.model_copy(
        update={
            "verdict": Verdict.INCONCLUSIVE,
            "owner": Owner.HOST,
            "want": Want.WITNESS,
            "reason": f"witness: the entry point {result.verdict}, and nothing watched the GPUs",
            "details": {**result.details, "entry_point": result.verdict, "why": result.reason},
        }
    )


def static_level(subject: Subject) -> LevelResult:
    """C0.

    Raises:
        SandboxError: no box could be opened.
        HostError: the checker cannot be had.
    """
    subject.say("C0: resolving imports")
    log = subject.logs / "C0.log"
    log.unlink(missing_ok=True)
    with subject.open_box() as box:
        roots = static_roots(subject.task, subject.snapshot)
        result = check_imports(subject, box, roots, log)
    return result.model_copy(update={"fresh": box.freshness})
