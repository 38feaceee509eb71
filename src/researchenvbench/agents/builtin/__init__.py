"""The built-in agent: makes an environment without a language model, by rules with reasons.

Its steps are those of `build_steps.build`, in their order: look at the repository and the host;
choose a Python; the framework for this host; then everything else in one resolution, the
repository included; then import what the code imports and mend what fails; then measure and
report. It knows packages in general (`import_names.toml`, `conda_names.toml`), never the
repository that it is given.
"""

from __future__ import annotations

import hashlib
import time
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import TYPE_CHECKING

from ...errors import RebError, SandboxError
from .. import AgentOutcome
from ..measure import measure
from . import build_steps
from .workbench import OutOfTimeError, Workbench

if TYPE_CHECKING:
    from ...task import Task
    from .. import Assignment


@dataclass(frozen=True)
class BuiltinAgent:
    """Builds by rules. `index_date`: `commit`, `none`, or a day such as `2023-05-01`."""

    index_date: str = "commit"
    uv: str = ""  #: the uv that the box has; empty: the harness's own

    name = "builtin"
    built_in = True
    needs_recipe = False
    sees_task = True

    def __post_init__(self) -> None:
        """Refuse an index date that is none.

        Raises:
            RebError: neither a word that is known nor a day.
        """
        if self.index_date not in ("none", "commit"):
            _day(self.index_date)

    def digest(self, task: Task | None) -> str:  # noqa: ARG002  # the same for every task
        """Digest of its options. A newer version of its code does not undo older builds."""
        return hashlib.sha256(f"index_date={self.index_date}".encode()).hexdigest()

    def build(self, assignment: Assignment) -> AgentOutcome:
        """Build, and report what came of it whether or not all of it worked."""
        bench = Workbench(assignment, self.uv or assignment.box.uv)
        try:
            bench.open()
            missing = build_steps.build(bench, assignment, self._date(assignment))
            out_of_time = bool(missing) and time.monotonic() >= assignment.deadline
        except OutOfTimeError as error:
            missing, out_of_time = str(error), True
        except SandboxError as error:
            return AgentOutcome("void", None, str(error))
        self._report(bench, assignment, missing)
        if out_of_time:
            return AgentOutcome("time_limit", None, missing)
        return AgentOutcome("finished", 1 if missing else 0, missing)

    def _report(self, bench: Workbench, assignment: Assignment, reason: str) -> None:
        """Measure and report; with what is true also when the build did not end well."""
        report = measure(
            bench.box,
            bench.python,
            build_steps.activated(bench),
            assignment.log,
            tool="uv",
            notes=reason or "all imports that the repository needs work",
            deadline=assignment.deadline,
        )
        bench.box.put(bench.layout.report, report.model_dump_json(indent=1).encode())
        try:
            bench.close()
        except OutOfTimeError:
            bench.decide("no time was left to remove the agent's own files")

    def _date(self, assignment: Assignment) -> datetime | None:
        """The date as of which the index is read."""
        if self.index_date == "none":
            return None
        return assignment.date if self.index_date == "commit" else _day(self.index_date)


def _day(text: str) -> datetime:
    try:
        return datetime.fromisoformat(text).replace(tzinfo=UTC)
    except ValueError as error:
        raise RebError(
            f"index date {text!r} is neither `commit`, `none` nor a day",
            advice="write it as 2023-05-01",
        ) from error


__all__ = ["BuiltinAgent"]
