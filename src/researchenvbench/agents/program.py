"""Agents that are command lines of others, run in the box as their makers intend.

One class runs every definition (`definition.py`). The program gets the task as text, speaks to
its model through the relay, and is ended at a limit; what it printed is kept whole, beside the
sessions that it keeps itself, and both are read into the common transcript.
"""

from __future__ import annotations

import hashlib
import shlex
import time
from typing import TYPE_CHECKING

from ..errors import RebError
from ..sandbox import Command, Program
from ..task import fill
from .ending import Watch, end_of, has_report, outcome
from .faults import Ended
from .packages import download_of, install, package_digest
from .task_text import TASK_TEXT, VERSION, task_text
from .transcripts import read_transcript

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from pathlib import Path

    from ..process import Finished
    from ..sandbox import Layout
    from ..task import Task
    from . import AgentOutcome, Assignment
    from .definition import AgentDefinition
    from .model import ModelAccess, ModelChoice
    from .transcript import Step

#: Among an attempt's logs: what the program printed.
OUTPUT_LOG = "agent.log"
VERSION_LOG = "agent-version.log"
#: What a call that fails and is tried again may add to the time limit of a build, in s. The
#: relay gives back what it waits; the limit itself is kept by `Watch`.
_WAIT_S = 3600.0
_VERSION_S = 60.0
_NOT_THERE, _NOT_RUN = 127, 126


class ProgramAgent:
    """An agent that a definition describes."""

    built_in = False
    needs_recipe = False
    sees_task = True
    on_host = False

    def __init__(
        self,
        definition: AgentDefinition,
        model: ModelChoice | None,
    ) -> None:
        """An agent as `definition` says, with the model that was chosen.

        Raises:
            RebError: the definition works with a model, and none was chosen.
        """
        if definition.wire is not None and model is None:
            raise RebError(
                f"the agent {definition.name} works with a language model, and none is named",
                advice="name one: --model NAME, or --preset (reb agents list shows them)",
            )
        self.definition = definition
        self.name = definition.name
        self.version = definition.version
        self.model = model
        self._budget = model.limits if model else ()

    def digest(self, task: Task | None) -> str:  # noqa: ARG002  # the same for every task
        """Digest of the definition, the model, its address and the text."""
        model = self.model
        words = (
            self.definition.model_dump_json(),
            model.decides if model else None,
            VERSION,
        )
        return hashlib.sha256(repr(words).encode()).hexdigest()

    def program(self, say: Callable[[str], None]) -> Program | None:
        """What is to be in the box, fetched where it is not there yet; None where nothing is.

        Raises:
            RebError: it cannot be had.
        """
        download = download_of(self.definition)
        if download is None:
            return None
        folder = install(self.definition, download, say)
        return Program(
            self.definition.name, self.definition.version, package_digest(download), folder
        )

    def keeps(self, layout: Layout) -> tuple[str, ...]:
        """Globs of what of the frozen state is kept with the attempt."""
        return tuple(f"{self._config(layout)}/{pattern}" for pattern in self.definition.keep)

    def steps(self, folder: Path, kept: Sequence[Path]) -> list[Step] | None:
        """The common transcript, of what the program printed and what it kept; None: unread."""
        if self.definition.transcript == "none":
            return None
        return read_transcript(self.definition.transcript, folder / "logs" / OUTPUT_LOG, kept)

    def build(self, assignment: Assignment) -> AgentOutcome:
        """Run the program until it ends, hangs, or a limit is reached."""
        run, layout = self.definition.run, assignment.box.layout
        access = assignment.model
        folder = assignment.log.parent.parent
        text = self._text(assignment, folder / TASK_TEXT)
        values = self._values(assignment, text)
        config = self._config(layout)
        files = {
            config / name: fill(content, values).encode() for name, content in run.files.items()
        }
        assignment.box.put_all({layout.home / ".agent-task.md": text.encode(), **files})
        argv = [fill(argument, values) for argument in run.argv]
        environment = {
            **assignment.environment,
            **{key: fill(value, values) for key, value in run.env.items()},
        }
        if not self.version:
            self.version = self._asked_version(assignment, environment, values)
        shown = [argument if argument != text else "TASK" for argument in argv]
        assignment.say(f"{self.definition.title}: {shlex.join(shown)[:300]}")
        log = assignment.log.parent / OUTPUT_LOG
        watch = Watch(assignment, access, log, run.quiet_minutes * 60)
        finished = assignment.box.run(
            Command(
                argv=argv,
                cwd=layout.repo,
                env=environment,
                time_limit_s=max(1.0, assignment.deadline - time.monotonic()) + _WAIT_S,
            ),
            log,
            append=False,
            stop=watch.stop,
        )
        return self._outcome(finished, watch, access, has_report(assignment))

    def _asked_version(
        self, assignment: Assignment, environment: dict[str, str], values: dict[str, str]
    ) -> str:
        """What a program that the box has says of its version; empty where it says nothing."""
        if not self.definition.version_argv:
            return ""
        log = assignment.log.parent / VERSION_LOG
        argv = [fill(word, values) for word in self.definition.version_argv]
        finished = assignment.box.run(
            Command(argv, assignment.box.layout.repo, environment, _VERSION_S), log
        )
        said = log.read_text(encoding="utf-8", errors="replace").split("\n")
        return said[0].strip()[:100] if finished.ok else ""

    def _text(self, assignment: Assignment, kept: Path) -> str:
        """The task in words; of a build that is gone on with as it was given then."""
        if assignment.resumed and kept.is_file():
            return kept.read_text(encoding="utf-8")
        text = task_text(assignment, budget=self._budget)
        kept.write_text(text, encoding="utf-8")
        return text

    def _outcome(
        self, finished: Finished, watch: Watch, access: ModelAccess | None, report: bool
    ) -> AgentOutcome:
        ended = Ended(
            exit_code=finished.exit_code,
            signal=finished.signal,
            well=not finished.stopped
            and not finished.timed_out
            and finished.exit_code in self.definition.run.success,
            start_error=self._start_error(finished, bool(access and access.relay.calls)),
            out_of_memory=finished.out_of_memory,
            report=report,
            stopped_for="time_limit" if finished.timed_out else watch.why,
        )
        fault, why = end_of(ended, access, needs_model=self.definition.wire is not None)
        return outcome(fault, why, finished.exit_code)

    def _start_error(self, finished: Finished, called: bool) -> str:
        """Why the program could not be started; empty where it ran."""
        definition = self.definition
        advice = (
            f"; install {definition.title} into the image, so that {definition.program} is on "
            "its PATH"
            if not definition.downloads
            else ""
        )
        if finished.start_error:
            return f"{finished.start_error}{advice}"
        if finished.exit_code in (_NOT_THERE, _NOT_RUN) and not called:
            return f"{definition.program} cannot be run in the box{advice}"
        return ""

    def _values(self, assignment: Assignment, text: str) -> dict[str, str]:
        layout, access, place = assignment.box.layout, assignment.model, assignment.box.program
        return {
            "program": str(place / self.definition.program) if place else self.definition.program,
            "prompt": text,
            "prompt_file": str(layout.home / ".agent-task.md"),
            "model": access.name if access else "",
            "address": access.address if access else "",
            "token": access.token if access else "",
            "config": str(self._config(layout)),
            "repo": str(layout.repo),
            "report": str(layout.report),
            "env": str(layout.env),
            "home": str(layout.home),
        }

    def _config(self, layout: Layout) -> Path:
        return layout.home / f".{self.definition.name}"
