"""How a build by a model ends: who ends it, for what, and what it comes to."""

from __future__ import annotations

import time
from dataclasses import replace
from typing import TYPE_CHECKING

from ..errors import RefusedError, SandboxError
from . import AgentOutcome
from .faults import fault_of, owner_of

if TYPE_CHECKING:
    from pathlib import Path

    from ..attempt import Fault
    from . import Assignment
    from .faults import Ended
    from .model import ModelAccess

_REPORT_BYTES = 1_000_000


def end_of(
    ended: Ended, access: ModelAccess | None, *, needs_model: bool
) -> tuple[Fault | None, str]:
    """The fault with which a program ended, or None, and a sentence about it.

    One that has ended by itself since the relay answers no more was ended by a limit.
    """
    if access is None:
        return fault_of(ended, (), needs_model=needs_model)
    relay, calls = access.relay, access.relay.calls
    if not ended.stopped_for and not (ended.well and calls and calls[-1].end == "complete"):
        why = "not_recorded" if relay.trouble else "uncounted" if relay.problem else ""
        ended = replace(ended, stopped_for=why or ("budget" if relay.exhausted else ""))
    fault, said = fault_of(ended, calls, needs_model=needs_model)
    of_relay = {
        "budget": relay.exhausted,
        "uncounted": relay.problem,
        "not_recorded": relay.trouble,
    }
    return fault, of_relay.get(fault or "", "") or said


def outcome(fault: Fault | None, why: str, exit_code: int | None) -> AgentOutcome:
    """How an agent ended, from its fault."""
    owner = owner_of(fault) if fault else None
    if fault is None:
        return AgentOutcome("finished", exit_code)
    if fault in ("time_limit", "budget"):
        return AgentOutcome(fault, None, why, fault)
    if owner == "host":
        return AgentOutcome("void", exit_code, why, fault)
    return AgentOutcome("finished", exit_code if exit_code else 1, why, fault)


def has_report(assignment: Assignment) -> bool:
    """Whether something lies where the report is to be."""
    try:
        return bool(assignment.box.read(assignment.box.layout.report, _REPORT_BYTES))
    except (RefusedError, SandboxError):
        return False


class Watch:
    """Says when a program is to be ended, and why."""

    def __init__(
        self, assignment: Assignment, access: ModelAccess | None, log: Path, quiet_s: float
    ) -> None:
        self.why = ""
        self._deadline, self._access, self._log = assignment.deadline, access, log
        self._quiet_s = quiet_s
        self._size, self._moved = -1, time.monotonic()

    def moved(self) -> None:
        """Note that something has happened just now."""
        self._moved = time.monotonic()

    def stop(self) -> bool:
        """Whether a limit is reached; asked about once a second."""
        now = time.monotonic()
        relay = self._access.relay if self._access else None
        given_back_s = relay.waited_s if relay else 0.0
        size = self._log.stat().st_size if self._log.exists() else 0
        if size != self._size:
            self._size, self._moved = size, now
        quiet_s = now - self._moved
        if relay:
            quiet_s = min(quiet_s, relay.quiet_s())
        if now >= self._deadline + given_back_s:
            self.why = "time_limit"
        elif relay and relay.trouble:
            self.why = "not_recorded"
        elif relay and relay.problem:
            self.why = "uncounted"
        elif relay and relay.exhausted:
            self.why = "budget"
        elif quiet_s >= self._quiet_s:
            self.why = "hung"
        return bool(self.why)
