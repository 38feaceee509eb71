"""Does again what an earlier attempt did, without a model: its commands, files and edits.

Paths of the earlier attempt's box become those of this one. What a step comes to may differ
from what it came to then (an index has newer packages, a server is gone): that is said, and
counted, and the next step is done all the same, as the agent's program did not know better.
"""

from __future__ import annotations

import hashlib
import re
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from ..attempt import BuildResult, Report
from ..errors import RecordError, SandboxError
from . import AgentOutcome
from .transcript import LAYOUT, TRANSCRIPT, Places, Step, read_steps
from .turns import OutOfTimeError, Turns

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from ..task import Task
    from . import Assignment

#: A step that was ended at a limit then would not end now either.
_LEAST_LIMIT_S = 1.0
_LONGEST_FILE_BYTES = 16 * 1024 * 1024
#: Of a step, what is done again.
_DOES = {"kind", "command", "cwd", "exit_status", "path", "content", "replaced", "everywhere"}
#: So many numbers of steps are named in a line.
_NAMED = 8
_HUNK = re.compile(r"^@@ .*$", re.MULTILINE)


@dataclass(frozen=True)
class _Earlier:
    """What is known of the attempt that is done again."""

    steps: tuple[Step, ...]
    places: Places
    report: Report | None

    @property
    def digest(self) -> str:
        total = hashlib.sha256(self.places.model_dump_json().encode())
        for step in self.steps:
            total.update(step.model_dump_json(include=_DOES).encode() + b"\n")
        total.update(self.report.model_dump_json().encode() if self.report else b"")
        return total.hexdigest()


class ReplayAgent:
    """Follows a transcript."""

    name = "replay"
    built_in = False
    needs_recipe = False
    sees_task = False

    def __init__(self, attempt: str) -> None:
        """Replay the attempt in a folder, or of a run's folder the first attempt at each task."""
        self._folder = Path(attempt).absolute()
        self._known: dict[Path, _Earlier] = {}

    def digest(self, task: Task | None) -> str:
        """Digest of the transcript, and of the report that goes with it.

        Raises:
            RecordError: there is none, or it cannot be read.
        """
        return self._earlier(task).digest

    def build(self, assignment: Assignment) -> AgentOutcome:
        """Do all steps in their order, then see that there is a report.

        Raises:
            RecordError: there is no transcript, or it cannot be read.
        """
        earlier = self._earlier(assignment.task)
        here = mapped_to(earlier.places, assignment)
        turns = Turns(assignment, keeps_cwd=True)
        otherwise: list[int] = []
        left_out: list[int] = []
        for step in earlier.steps:
            try:
                differs = _again(step, turns, assignment, here)
            except OutOfTimeError:
                done = f"out of time before step {step.number} of {len(earlier.steps)}"
                return AgentOutcome("time_limit", None, done)
            if differs is None:
                left_out.append(step.number)
            elif differs:
                otherwise.append(step.number)
                assignment.say(f"step {step.number} ended otherwise than before: {differs}")
        report = assignment.box.layout.report
        if earlier.report is not None and not _is_there(assignment, report):
            assignment.say("the report is written as it was")
            assignment.box.put(report, here(earlier.report.model_dump_json(indent=1)).encode())
        return AgentOutcome("finished", 0, _summary(len(earlier.steps), otherwise, left_out))

    def _earlier(self, task: Task | None) -> _Earlier:
        folder = self._folder
        if task is not None and not (folder / TRANSCRIPT).is_file():
            first = folder / "attempts" / f"{task.name}--1"
            folder = first if first.is_dir() else folder
        if folder not in self._known:
            self._known[folder] = _read(folder)
        return self._known[folder]


def _read(folder: Path) -> _Earlier:
    """What an attempt's folder holds of what was done in it.

    Raises:
        RecordError: something of it is missing, or cannot be read.
    """
    if not (folder / TRANSCRIPT).is_file():
        what = f"it has no {TRANSCRIPT}" if folder.is_dir() else "there is no such folder"
        raise RecordError(
            f"{folder}: nothing can be done again: {what}",
            advice="give the folder of an attempt whose agent keeps a transcript, such as "
            "RUN/attempts/TASK--1, or the folder of such a run",
        )
    report = None
    if (folder / "build.json").is_file():
        report = BuildResult.load(folder / "build.json").report
    steps = tuple(read_steps(folder / TRANSCRIPT))
    return _Earlier(steps, Places.load(folder / LAYOUT), report)


def mapped_to(places: Places, assignment: Assignment) -> Callable[[str], str]:
    """Puts this box's paths in place of those of the box that `places` were of."""
    layout = assignment.box.layout
    pairs = {
        old: str(getattr(layout, name))
        for name, old in places.model_dump().items()
        if old != "/"  # a container's: all that is known below it is named
    }
    longest_first = sorted(pairs, key=len, reverse=True)
    # A path begins and ends where no other name does; an address of a file begins with one.
    pattern = re.compile(
        r"(?:(?<![\w./~)}*-])|(?<=file://))"
        rf"(?:{'|'.join(map(re.escape, longest_first))})"
        r"(?![\w-]|\.\w)"
    )
    return lambda text: pattern.sub(lambda found: pairs[found[0]], text)


def _again(
    step: Step, turns: Turns, assignment: Assignment, here: Callable[[str], str]
) -> str | None:
    """Do a step; how it ended otherwise than before, in words, or None where it cannot be done."""
    if step.kind == "command":
        return _run(step, turns, here)
    if step.kind == "other" and not (step.command == "apply_patch" and step.content):
        return None
    if turns.left_s <= 0:
        raise OutOfTimeError("the time in which to build is over")
    path = assignment.box.layout.repo / here(step.path)
    if step.failed:
        trouble = ""  # it changed nothing then
    elif step.kind == "write":
        assignment.say(f"step {step.number}: write {path}")
        trouble = _written(turns, path, here(step.content))
    else:
        assignment.say(f"step {step.number}: edit {path}")
        trouble = _edited(step, turns, assignment, path, here)
    turns.keep(
        step.model_copy(
            update={
                "number": len(turns.steps) + 1,
                "path": str(path),
                "content": here(step.content),
                "replaced": here(step.replaced),
                "failed": step.failed or bool(trouble),
                "output": trouble,
                "began": None,
                "seconds": None,
                "tokens": None,
            }
        )
    )
    return trouble


def _run(step: Step, turns: Turns, here: Callable[[str], str]) -> str:
    ended = step.exit_status is None and step.failed and step.seconds is not None
    limit_s = max(_LEAST_LIMIT_S, step.seconds or 0.0) if ended else None
    turn = turns.step(
        here(step.command),
        time_limit_s=limit_s,
        cwd=Path(here(step.cwd)) if step.cwd else None,
        said=step.said,
    )
    if step.exit_status is None:  # then it is only known whether it worked
        if step.failed == (turn.exit_status != 0):
            return ""
        before = "did not work" if step.failed else "worked"
        return f"it {before}, and now {_ended(turn.exit_status)}"
    if turn.exit_status == step.exit_status:
        return ""
    return f"it {_ended(step.exit_status)}, and now {_ended(turn.exit_status)}"


def _ended(status: int | None) -> str:
    return "was ended at a limit" if status is None else f"exited with {status}"


def _written(turns: Turns, path: Path, content: str) -> str:
    turn = turns.write(path, content)
    return "" if turn.exit_status == 0 else turn.output.strip() or "it could not be written"


def _edited(
    step: Step, turns: Turns, assignment: Assignment, path: Path, here: Callable[[str], str]
) -> str:
    """Replace texts in a file; why that could not be done."""
    try:
        text = assignment.box.read(path, _LONGEST_FILE_BYTES).decode()
    except (SandboxError, UnicodeDecodeError) as error:
        return str(error.args[0])
    pairs = [(step.replaced, step.content)]
    if step.kind == "other":
        pairs = list(_hunks(step.content))
    for old, new in pairs:
        old, new = here(old), here(new)
        times = text.count(old) if old else 0
        if times == 0 or (times > 1 and not step.everywhere):
            return f"{path} has the text that is to be replaced {times} times"
        text = text.replace(old, new)
    return _written(turns, path, text)


def _hunks(diff: str) -> Iterator[tuple[str, str]]:
    """Old and new text of each part of a unified diff."""
    for part in _HUNK.split(diff)[1:]:
        lines = [line for line in part.splitlines(keepends=True)[1:] if line[:1] in " +-"]
        old = "".join(line[1:] for line in lines if line[0] != "+")
        new = "".join(line[1:] for line in lines if line[0] != "-")
        yield old, new


def _is_there(assignment: Assignment, path: Path) -> bool:
    try:
        assignment.box.read(path, _LONGEST_FILE_BYTES)
    except SandboxError:
        return False
    return True


def _summary(steps: int, otherwise: list[int], left_out: list[int]) -> str:
    words = []
    if otherwise:
        words.append(f"{len(otherwise)} of {steps} steps ended otherwise: {_named(otherwise)}")
    if left_out:
        words.append(f"{len(left_out)} could not be done again: {_named(left_out)}")
    return "; ".join(words)


def _named(numbers: list[int]) -> str:
    named = ", ".join(map(str, numbers[:_NAMED]))
    return named + (f" and {len(numbers) - _NAMED} more" if len(numbers) > _NAMED else "")
