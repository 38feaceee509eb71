"""Whoever drives a build from outside: a program that uses `Episode`.

A run cannot have it, since it has nobody to ask. It stands for what built, where an attempt
that an episode made is looked at, judged again or removed.
"""

from __future__ import annotations

import hashlib
from typing import TYPE_CHECKING

from . import AgentOutcome

if TYPE_CHECKING:
    from ..task import Task
    from . import Assignment


class OutsideAgent:
    """Builds nothing itself."""

    name = "episode"
    built_in = False
    needs_recipe = False
    sees_task = True

    def digest(self, task: Task | None) -> str:  # noqa: ARG002  # the same for every task
        """The same for all: nobody here knows what decides."""
        return hashlib.sha256(self.name.encode()).hexdigest()

    def build(self, assignment: Assignment) -> AgentOutcome:  # noqa: ARG002  # nobody takes it
        """Void: an episode's build cannot be made again by a run."""
        return AgentOutcome(
            "void", None, "what an episode built can only be built by the program that drove it"
        )
