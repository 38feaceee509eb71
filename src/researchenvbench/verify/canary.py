"""Canaries: does the framework compute by itself where an entry point failed?

They never decide a verdict. They say whose part the failure is: the repository's own
dependencies where the framework computes as it should, the framework or the driver where it
does not.
"""

from __future__ import annotations

import json
import secrets
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ..diagnose import last_lines
from ..errors import RebError
from ..gpu_use import Canary
from ..sandbox import Command
from .subject import stage_environment

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from ..gpu.inventory import Gpu
    from .subject import Subject

_PROBES = Path(__file__).parent / "probes"
_PROBE = _PROBES / "canaries.py"
#: By framework, in the order in which one is looked for.
_BY_FRAMEWORK = {"torch": _PROBE, "jax": _PROBES / "jax_canaries.py"}
_ANSWER_LIMIT_BYTES = 1_000_000
_TIME_LIMIT_S = 300.0


def framework_of(subject: Subject) -> str:
    """Which framework's canaries say something of a failure; empty where there are none of it.

    The one that the task names and the environment has; torch where it names none of them.
    """
    named = subject.task.frameworks if subject.task else ()
    there = subject.interpreter.frameworks if subject.interpreter else {}
    wanted = [one for one in _BY_FRAMEWORK if one in named] or ["torch"]
    return next((one for one in wanted if one in there), "")


def run_canaries(
    subject: Subject, gpus: Sequence[Gpu], framework: str | None = None
) -> tuple[Canary, ...]:
    """What a framework by itself does on these GPUs; none where the environment has it not.

    One that could not be run at all is one that failed, with the reason.

    Args:
        subject: Whose environment.
        gpus: Those that it is shown.
        framework: Whose canaries; default: of the framework that the task names.
    """
    interpreter = subject.interpreter
    framework = framework_of(subject) if framework is None else framework
    if interpreter is None or framework not in interpreter.frameworks:
        return ()
    program = _BY_FRAMEWORK[framework]
    log = subject.logs / f"canaries-{len(gpus)}.log"
    log.unlink(missing_ok=True)
    seed = secrets.randbelow(1 << 31)
    try:
        with subject.open_box(gpus=[gpu.uuid for gpu in gpus]) as box:
            probe = box.layout.tools / program.name
            answer = box.layout.tools / f"{secrets.token_hex(8)}.jsonl"
            box.put(probe, program.read_bytes())
            subject.say(f"canaries: {framework} by itself on {len(gpus)} GPU")
            finished = box.run(
                Command(
                    argv=[
                        interpreter.executable,
                        *(str(probe), str(seed), str(len(gpus)), str(answer)),
                    ],
                    cwd=box.layout.work,
                    env=stage_environment(subject, box, network=False, task={}, gpus=gpus),
                    time_limit_s=_TIME_LIMIT_S,
                ),
                log,
            )
            try:
                text = box.read(answer, _ANSWER_LIMIT_BYTES).decode(errors="replace")
            except RebError:
                text = ""
    except RebError as error:
        return (Canary(name="start", passed=False, said=str(error.args[0])),)
    ended = "timed out" if finished.timed_out else last_lines(log, 1) or "it ended early"
    return tuple(_read(text.splitlines(), ended))


def _read(lines: Iterable[str], ended: str) -> Iterable[Canary]:
    """The canaries of an answer; one that was begun and did not end failed."""
    begun: dict[str, Canary] = {}
    whole = False
    for line in lines:
        try:
            facts: Any = json.loads(line)
            name = str(facts["name"])[:80]
            whole = whole or name == "end"
            if name != "end":
                begun[name] = Canary(
                    name=name,
                    passed=facts.get("passed") is True,
                    said=str(facts.get("said", ended))[:300],
                    seconds=float(facts.get("seconds", 0.0)),
                )
        except (ValueError, TypeError, KeyError, AttributeError):
            continue  # the environment's own; anything may be in it
    yield from begun.values()
    if not whole and all(one.passed for one in begun.values()):
        yield Canary(name="end" if begun else "start", passed=False, said=ended)


def canary_words(canaries: Sequence[Canary]) -> str:
    """What the canaries mean for a failure, in a sentence; empty where none was run."""
    if not canaries:
        return ""
    failed = [one for one in canaries if not one.passed]
    if not failed:
        return (
            f"the framework by itself computes as it should ({len(canaries)} canaries): "
            "look at the repository's own dependencies"
        )
    names = ", ".join(one.name for one in failed)
    return f"the framework by itself fails too ({names}: {failed[0].said}): look at it first"
