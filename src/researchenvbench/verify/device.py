"""C2: are the frameworks matched to the driver and the GPUs?

Each framework that the task names must see the GPUs that the driver shows, support their
architecture, and compute one product correctly on each. The product's factors come from a
number drawn at run time, so that no prepared answer fits. A framework that is a stub, or that
differs from its RECORD, fails whatever it answers, and on a host without a GPU too.
"""

from __future__ import annotations

import re
import secrets
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from pydantic import Field, StringConstraints

from ..attempt import Level, LevelResult, Owner, Verdict, Want
from ..diagnose import diagnose_log, last_lines
from ..errors import RefusedError
from ..sandbox import Command
from ..stored import Stored
from .integrity import frameworks as installed
from .integrity.prefix import look_at_prefix
from .preflight import told
from .probes.device import matrices
from .subject import Subject, stage_environment

if TYPE_CHECKING:
    from collections.abc import Sequence

    from ..gpu.inventory import GpuInventory
    from ..sandbox import StageBox

_PROBE = Path(__file__).parent / "probes" / "device.py"
_ANSWER_LIMIT_BYTES = 1_000_000
_TIME_LIMIT_S = 300.0


class _Device(Stored):
    """What a framework says of a GPU, and what it computed there."""

    name: str = ""
    architecture: Annotated[str, StringConstraints(pattern=r"^sm_[0-9]{2,3}$")] | None = None
    product: list[list[float]]
    error: Annotated[str, StringConstraints(max_length=2000)] = ""


class _Answer(Stored):
    """What a framework says; it is of the judged environment, and may say anything."""

    seed: str
    version: str
    devices: list[_Device]
    cuda: str | None = None
    architectures: tuple[str, ...] = ()
    libraries: dict[str, str | int | None] = Field(default_factory=dict)


def check_devices(
    subject: Subject, frameworks: Sequence[str], inventory: GpuInventory
) -> LevelResult:
    """The verdict of C2.

    Raises:
        SandboxError: no box could be opened.
    """
    if not frameworks:
        return LevelResult(
            level=Level.C2, verdict=Verdict.NOT_APPLICABLE, reason="needs no framework"
        )
    if subject.interpreter is None:
        return LevelResult(
            level=Level.C2,
            verdict=Verdict.FAILED,
            owner=Owner.AGENT,
            reason=f"no usable interpreter: {subject.interpreter_error}",
        )
    inventory = inventory.together()
    log = subject.logs / "C2.log"
    log.unlink(missing_ok=True)
    answers: dict[str, Any] = {}
    with subject.open_box(gpus=[gpu.uuid for gpu in inventory.gpus]) as box:
        subject.say("C2: comparing the frameworks with their RECORD")
        python = subject.interpreter.executable
        facts = look_at_prefix(box, python, subject.interpreter, named=frameworks, hooks=False)
        found = facts["frameworks"]
        problems = [f"{one.framework}: {one.what}" for one in installed.problems(found)]
        host = told(inventory.gpus, subject.host.variables) if inventory.gpus else None
        able = host is not None and not host.problem
        for framework in frameworks if able else ():
            subject.say(f"C2: {framework}")
            answer, problem = _ask(subject, box, framework, inventory, log)
            answers[framework] = answer
            if problem:
                problems.append(f"{framework}: {problem}")
    fresh = box.freshness
    if host is not None and host.problem and not problems:
        return LevelResult(
            level=Level.C2,
            verdict=Verdict.INCONCLUSIVE,
            owner=Owner.HOST,
            want=Want.GPU,
            reason=host.problem,
            fresh=fresh,
            details={"host": dict(host.facts), "installed": installed.outline(found)},
        )
    if not inventory.gpus and not problems:
        return LevelResult(
            level=Level.C2,
            verdict=Verdict.INCONCLUSIVE,
            owner=Owner.HOST,
            want=Want.GPU,
            reason="no GPU",
            fresh=fresh,
            details={"why": inventory.why_none, "installed": installed.outline(found)},
        )
    return LevelResult(
        level=Level.C2,
        verdict=Verdict.FAILED if problems else Verdict.PASSED,
        owner=Owner.AGENT if problems else None,
        reason="; ".join(problems),
        log=str(log.relative_to(subject.folder)) if log.exists() else None,
        fresh=fresh,
        details={
            "driver": inventory.driver,
            "shown": len(inventory.gpus),
            "installed": installed.outline(found),
            "frameworks": answers,
        },
    )


def _ask(
    subject: Subject, box: StageBox, framework: str, inventory: GpuInventory, log: Path
) -> tuple[dict[str, Any], str]:
    """(what the framework answered, what is wrong with it)."""
    assert subject.interpreter is not None  # noqa: S101  # checked by the caller
    seed = secrets.token_hex(8)
    probe, answer_path = box.layout.tools / "device.py", box.layout.tools / f"{seed}.json"
    box.put(probe, _PROBE.read_bytes())
    finished = box.run(
        Command(
            argv=[subject.interpreter.executable, str(probe), framework, seed, str(answer_path)],
            cwd=box.layout.work,
            env=stage_environment(
                subject,
                box,
                network=False,
                task={"XLA_PYTHON_CLIENT_PREALLOCATE": "false"},  # others may use the GPU
                gpus=inventory.gpus,
            ),
            time_limit_s=_TIME_LIMIT_S,
        ),
        log,
        append=True,
    )
    if not finished.ok:
        cause = diagnose_log(log)
        why = "timed out" if finished.timed_out else cause.cause if cause else last_lines(log, 1)
        return {}, f"the probe failed: {why}"
    try:
        answer = _Answer.model_validate_json(box.read(answer_path, _ANSWER_LIMIT_BYTES))
    except (RefusedError, ValueError) as error:
        words = f"{error}".splitlines()[0]
        return {}, f"the probe left no usable answer: {words}"
    if answer.seed != seed:
        return {}, "the probe's answer is not to this question"
    return answer.model_dump(exclude_unset=True), _judge(answer, seed, inventory)


def _judge(answer: _Answer, seed: str, inventory: GpuInventory) -> str:
    """What is wrong with an answer; empty where nothing is."""
    shown, seen = len(inventory.gpus), len(answer.devices)
    if seen != shown:
        return (
            f"sees {seen} of the {shown} GPUs that the driver shows{_why_fewer(answer, inventory)}"
        )
    left, right = matrices(seed)
    expected = [
        [
            sum(a * b for a, b in zip(row, column, strict=True))
            for column in zip(*right, strict=True)
        ]
        for row in left
    ]
    for number, device in enumerate(answer.devices):
        card, built_for = device.architecture, answer.architectures
        if card and built_for and not _supported(card, built_for):
            return f"is built for {', '.join(built_for)}, not for GPU {number}, which is {card}"
        if device.error:
            return f"cannot compute on GPU {number}: {device.error}"
        if device.product != expected:
            return f"computes a wrong product on GPU {number}"
    return ""


def _why_fewer(answer: _Answer, inventory: GpuInventory) -> str:
    """What explains that a framework sees too few GPUs, as the end of a sentence."""
    if "cuda" not in answer.model_fields_set:
        return ""
    built = re.match(r"(\d+)\.(\d+)", answer.cuda or "")
    if not built:
        return "; it was built without CUDA"
    # Of one major version an older driver serves newer builds too.
    if inventory.cuda and int(built[1]) > inventory.cuda[0]:
        newest = ".".join(map(str, inventory.cuda))
        return (
            f"; it was built for CUDA {answer.cuda}, and driver {inventory.driver} supports CUDA "
            f"up to {newest}"
        )
    return ""


def _supported(architecture: str, built_for: Sequence[str]) -> bool:
    """Binary code runs on its own major version from its minor on; PTX on all later ones."""
    major, minor = int(architecture[3:-1]), int(architecture[-1])
    for name in built_for:
        kind, _, digits = name.rstrip("af").partition("_")
        if not re.fullmatch(r"[0-9]{2,3}", digits):
            continue
        built_major, built_minor = int(digits[:-1]), int(digits[-1])
        if kind == "sm" and built_major == major and built_minor <= minor:
            return True
        if kind == "compute" and (built_major, built_minor) <= (major, minor):
            return True
    return False
