"""The one way in which the built-in agent touches the world: commands and probes in a box.

Every command has a time limit that never passes the build's deadline, goes to the build's
log, and is answered with what it printed. Probes are the scripts of `probes/`; they run in
the box and answer with JSON in a file, since frameworks print what they like.
"""

from __future__ import annotations

import json
import time
from dataclasses import dataclass
from importlib.resources import files
from typing import TYPE_CHECKING, Any

from ...errors import RebError, SandboxError
from ...sandbox import Command

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path

    from .. import Assignment

_TEXT_LIMIT_BYTES = 400_000
_ANSWER_LIMIT_BYTES = 200_000_000


class OutOfTimeError(RebError):
    """The build's deadline has come."""


@dataclass(frozen=True)
class Outcome:
    """How a command ended, and the last lines that it printed."""

    ok: bool
    text: str
    timed_out: bool = False


class Workbench:
    """Runs commands and probes for one build, and says what was decided and why."""

    def __init__(self, assignment: Assignment, uv: str) -> None:
        self._assignment = assignment
        self._number = 0
        self.uv = uv
        self.box = assignment.box
        self.layout = assignment.box.layout
        self.folder: Path = self.layout.tmp / "builtin-agent"
        #: Variables of every command; steps add to it what later ones need too.
        self.environment: dict[str, str] = dict(assignment.environment)

    @property
    def python(self) -> Path:
        """The interpreter of the environment that is built."""
        return self.layout.env / "bin" / "python"

    def decide(self, line: str) -> None:
        """Say a decision and its reason: one line of the build's log."""
        self._assignment.say(line)

    def left_s(self) -> float:
        """Seconds until the deadline."""
        return self._assignment.deadline - time.monotonic()

    def run(
        self,
        argv: Sequence[str],
        *,
        limit_s: float,
        env: Mapping[str, str] | None = None,
        cwd: Path | None = None,
    ) -> Outcome:
        """Run in the box.

        Raises:
            OutOfTimeError: the build's deadline came before or while it ran.
        """
        left_s = self.left_s()
        if left_s <= 1:
            raise OutOfTimeError("the time limit of the build is used up")
        log = self._assignment.log
        start = log.stat().st_size if log.exists() else 0
        finished = self.box.run(
            Command(
                argv=list(argv),
                cwd=cwd or self.folder,
                env={**self.environment, **(env or {})},
                time_limit_s=min(limit_s, left_s),
            ),
            log,
            append=True,
        )
        if finished.timed_out and left_s <= limit_s:
            raise OutOfTimeError("the time limit of the build is used up")
        text = _printed(log, start)
        return Outcome(finished.ok, finished.start_error or text, finished.timed_out)

    def write(self, name: str, content: str) -> Path:
        """Put a file into the agent's own folder in the box."""
        path = self.folder / name
        self.box.put(path, content.encode())
        return path

    def probe(self, python: str, name: str, *arguments: str, limit_s: float = 300) -> Any:
        """The answer of a probe, or None where it gave none."""
        self._number += 1
        script = self.write(f"{name}.py", _source(name))
        answer = self.folder / f"answer-{self._number}.json"
        outcome = self.run([python, "-s", str(script), *arguments, str(answer)], limit_s=limit_s)
        if not outcome.ok:
            return None
        try:
            return json.loads(self.box.read(answer, _ANSWER_LIMIT_BYTES))
        except (SandboxError, ValueError) as error:
            self.decide(f"the probe {name} gave no answer that can be read: {error}")
            return None

    def ask(self, python: str, name: str, question: Any, limit_s: float = 300) -> Any:
        """The answer of a probe that takes a question."""
        asked = self.write(f"question-{self._number}.json", json.dumps(question))
        return self.probe(python, name, str(asked), limit_s=limit_s)

    def open(self) -> None:
        """Make the agent's own folder in the box."""
        self._make_folder(self.layout.tmp)

    def _make_folder(self, cwd: Path) -> None:
        made = self.run(["mkdir", "-p", str(self.folder)], limit_s=60, cwd=cwd)
        if not made.ok:
            raise SandboxError(f"{self.folder} cannot be made: {made.text}")

    def close(self) -> None:
        """Remove the agent's own folder, so that it is not part of what is frozen."""
        if self.left_s() > 1:
            self.run(["rm", "-rf", str(self.folder)], limit_s=120, cwd=self.layout.tmp)


def _source(probe: str) -> str:
    return (files(__package__ or "") / "probes" / f"{probe}.py").read_text(encoding="utf-8")


def _printed(log: Path, start: int) -> str:
    """What a command added to the log, the end of it where it is long."""
    with log.open("rb") as stream:
        end = stream.seek(0, 2)
        stream.seek(max(start, end - _TEXT_LIMIT_BYTES))
        return stream.read().decode(errors="replace")
