"""Which levels, in which order, and what is kept of each.

The flow of phase 2 on one screen: integrity, the interpreter, then C0 to C5. Every result
is handed to `keep` as soon as it is there, so that a crash loses at most the level under
way, and asked back from `kept` first, so that nothing is done twice.
"""

from __future__ import annotations

import dataclasses
import errno
import time
from contextlib import nullcontext
from typing import TYPE_CHECKING

from ..attempt import AttemptStatus, Audit, Finding, Level, LevelResult, Owner, Verdict, Want
from ..audit import AS_SHOWN, Hardware, audit
from ..errors import (
    EnvironmentUnusableError,
    HostError,
    RebError,
    RefusedError,
    SandboxError,
    TaskError,
)
from ..gpu.inventory import inventory
from ..process import seconds_in_programs
from ..proofs import standing
from ..task import StageName
from .device import check_devices
from .entrypoint import LEVELS, run_stage
from .gpu_stage import run_gpu_stage, with_canary
from .integrity.prefix import environment_findings, prefix_size
from .integrity.shadows import start_folders
from .integrity.variables import search_path, start_variables
from .integrity.worktree import compare
from .interpreter import ask
from .roots import static_roots
from .static import check_imports

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from ..sandbox import StageBox
    from ..task import Task
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
    untracked: tuple[str, ...]  #: files that the source does not have, the first of them
    seconds_in_processes: float
    prefix_bytes: int | None = None  #: of the interpreter's prefix, where it could be looked at


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
    looked = _Looked(subject)
    try:
        _look_at(looked, python)
    except (EnvironmentUnusableError, RefusedError) as error:
        _unusable(looked, str(error.args[0]))
    except (SandboxError, HostError) as error:
        return _not_looked_at(looked, error, choice)
    subject = looked.subject
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
    try:
        reported = _reported(subject, python)
    except RefusedError as error:
        reported = dataclasses.replace(
            subject, interpreter=None, interpreter_error=str(error.args[0])
        )
    except (SandboxError, HostError) as error:
        return _without_honesty(looked, error, choice, results)
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
        findings=looked.findings,
        untracked=looked.untracked,
        seconds_in_processes=sum(r.seconds_in_processes for r in results.values()),
        prefix_bytes=looked.prefix_bytes,
    )


def _not_looked_at(looked: _Looked, error: RebError, choice: Choice) -> Judgement:
    """What is said where the host failed before anything could be judged.

    What had been found by then stands.
    """
    why = str(error.args[0])
    subject = dataclasses.replace(looked.subject, interpreter=None, interpreter_error=why)
    results = {level: _host_failed(level, error) for level in Level if level in choice.levels}
    return Judgement(subject, results, Audit(), looked.findings, looked.untracked, 0.0)


def _without_honesty(
    looked: _Looked, error: RebError, choice: Choice, results: dict[Level, LevelResult]
) -> Judgement:
    """What is said where the host failed when the reported interpreter was to be asked."""
    seconds = sum(result.seconds_in_processes for result in results.values())
    if Level.C5 in choice.levels:
        results = {**results, Level.C5: _host_failed(Level.C5, error)}
    return Judgement(
        looked.subject,
        results,
        Audit(),
        looked.findings,
        looked.untracked,
        seconds,
        looked.prefix_bytes,
    )


def _host_failed(level: Level, error: RebError) -> LevelResult:
    return LevelResult(
        level=level,
        verdict=Verdict.INCONCLUSIVE,
        owner=Owner.HOST,
        want=Want.SANDBOX,
        reason=str(error.args[0]),
        advice=error.advice,
    )


@dataclasses.dataclass
class _Looked:
    """What is known before any level is judged: more with each look, so that none loses others'."""

    subject: Subject  #: with its interpreter, once it was asked
    findings: tuple[Finding, ...] = ()
    untracked: tuple[str, ...] = ()
    prefix_bytes: int | None = None


def _look_at(looked: _Looked, python: str | None) -> None:
    """Integrity, and the interpreter.

    Two boxes, since the interpreter is the first program of the agent's that runs: it is asked
    last in one, and what is looked at afterwards is looked at in a fresh one.

    Raises:
        EnvironmentUnusableError, RefusedError: what was left is in the way of a look.
        SandboxError, HostError: the host failed.
    """
    subject = looked.subject
    looked.findings = start_variables(subject.report)
    generated = subject.task.generated if subject.task else ()
    with subject.open_box() as box:
        repo = box.layout.repo
        starts = start_folders(subject.task, subject.report, subject.snapshot, repo)
        compared = compare(
            subject.snapshot,
            box,
            generated,
            judge=subject.judge_edits,
            starts=starts,
            python=python,
        )
        looked.findings = compared.findings + looked.findings
        looked.untracked = compared.untracked
        subject = looked.subject = with_interpreter(subject, python, box)
    if python is not None:
        subject.say("looking for start-up hooks")
        with subject.open_box() as box:
            looked.findings += environment_findings(subject, box, python)
            looked.findings += search_path(subject, box)
            looked.prefix_bytes = prefix_size(subject, box)
    changed = {name for finding in looked.findings for name in finding.files}
    looked.subject = dataclasses.replace(subject, changed=frozenset(changed))


def _unusable(looked: _Looked, why: str) -> None:
    """Whatever stands in the way of a look stands in the way of every level, too."""
    nothing = "nothing can be run in it, and nothing more can be looked at"
    finding = Finding(kind="environment-unusable", what=why, where="/", why=nothing)
    looked.findings += (finding,)
    looked.subject = dataclasses.replace(looked.subject, interpreter=None, interpreter_error=why)


def status_of(judgement: Judgement) -> AttemptStatus:
    """What the attempt as a whole counts as."""
    subject = judgement.subject
    if any(finding.disqualifies for finding in judgement.findings):
        return AttemptStatus.DISQUALIFIED
    if subject.report is None and subject.report_due:
        return AttemptStatus.NO_REPORT
    return AttemptStatus.OK


def with_interpreter(subject: Subject, python: str | None, box: StageBox | None = None) -> Subject:
    """The subject with its interpreter, or with the reason why there is no usable one.

    It is asked in `box`, or in one of its own.
    """
    if python is None:
        why = "the report gives no python_path" if subject.report else "there is no report"
        return dataclasses.replace(subject, interpreter_error=why)
    subject.say(f"asking {python}")
    with nullcontext(box) if box else subject.open_box() as place:
        environment = place.variables(subject.host, installs=False)
        interpreter, why = ask(place, python, environment, subject.logs / "interpreter.log")
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
    except RefusedError as error:
        # What the environment's own programs have put in the way of the judge.
        return LevelResult(
            level=level, verdict=Verdict.FAILED, owner=Owner.AGENT, reason=str(error.args[0])
        )
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
        return _nothing_to_run(level, name)
    if name not in subject.task.stages:
        result = absent_stage(subject.task, name)
        return with_canary(subject, result, inventory()) if level is Level.C4 else result
    if name is StageName.CPU:
        result = run_stage(subject, name)
    else:
        result = run_gpu_stage(subject, name, inventory())
    if level is Level.C4:
        result = with_canary(subject, result, inventory())
    return result.model_copy(update={"proven": standing(subject.task, name)})


def _nothing_to_run(level: Level, name: StageName) -> LevelResult:
    """The level of a stage where there is no task: nobody's fault, and for the user to give."""
    return LevelResult(
        level=level,
        verdict=Verdict.INCONCLUSIVE,
        reason="no entry point was given: --entry COMMAND"
        if name is StageName.CPU
        else f"no {name} stage was given: --task SUITE/NAME or FOLDER",
    )


def absent_stage(task: Task, name: StageName) -> LevelResult:
    """The level of a stage that the task does not have."""
    level = LEVELS[name]
    if not task.is_unwritten(name):
        why = task.why_not_applicable(name)
        return LevelResult(level=level, verdict=Verdict.NOT_APPLICABLE, reason=why)
    return LevelResult(
        level=level,
        verdict=Verdict.INCONCLUSIVE,
        owner=Owner.TASK,
        reason=f"not written: the {name} stage applies, and the task does not have it yet",
    )


def without_source(task: Task, why: str) -> dict[Level, LevelResult]:
    """Every level of a task whose source cannot be had: those that apply stay open."""
    results = {}
    for level in Level:
        stage = STAGES.get(level)
        if stage and stage not in task.stages and not task.is_unwritten(stage):
            results[level] = absent_stage(task, stage)
        elif level is Level.C2 and not task.frameworks:
            results[level] = LevelResult(
                level=level,
                verdict=Verdict.NOT_APPLICABLE,
                reason="the task names no framework",
            )
        else:
            results[level] = LevelResult(
                level=level, verdict=Verdict.INCONCLUSIVE, owner=Owner.TASK, reason=why
            )
    return results


def static_level(subject: Subject) -> LevelResult:
    """C0.

    Raises:
        SandboxError: no box could be opened.
        HostError: the checker cannot be had.
    """
    subject.say("C0: resolving imports")
    log = subject.logs / "C0.log"
    log.unlink(missing_ok=True)
    roots = static_roots(subject.task, subject.snapshot)
    if subject.interpreter is None:
        return check_imports(subject, None, roots, log)  # nothing is run for that
    with subject.open_box() as box:
        result = check_imports(subject, box, roots, log)
    return result.model_copy(update={"fresh": box.freshness})
