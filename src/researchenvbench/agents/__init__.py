"""Who builds: the protocol that every agent speaks.

An agent is given an assignment (a box with the repository in it, the hardware that it
builds for, and a deadline) and leaves an environment and a report behind, both in the box.
What it says about itself is not believed: phase 2 judges what is there. To add an agent,
write a class with these members in a module of this package and name it in `make_agent`.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal, Protocol

from ..errors import RebError
from ..schema import suggest

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from datetime import datetime
    from pathlib import Path

    from ..sandbox import BuildBox
    from ..task import Recipe, Task


@dataclass(frozen=True)
class Assignment:
    """What an agent gets."""

    box: BuildBox
    environment: Mapping[str, str]  #: of every process in the box; includes index settings
    log: Path  #: append everything here; it is the attempt's build log
    say: Callable[[str], None]  #: one line to the log and to whoever watches
    deadline: float  #: on the clock of time.monotonic()
    gpus: tuple[str, ...] = ()  #: names of the GPUs that the build is shown
    python: str = ""  #: version specifier that the task states; empty where none
    date: datetime | None = None  #: the source's date, where known
    task: Task | None = None  #: without gold recipe and breakages
    recipe: Recipe | None = None  #: the task's gold recipe, for agents that need it


@dataclass(frozen=True)
class AgentOutcome:
    """How an agent ended. `void` is a fault of the host or the provider, never the agent's."""

    outcome: Literal["finished", "time_limit", "void"]
    exit_code: int | None = None
    reason: str = ""


class Agent(Protocol):
    """Somebody, or something, that builds environments."""

    name: str
    #: Runs only code that this project wrote: no trust is asked of the user for it.
    built_in: bool
    #: It is given the task's gold recipe, to follow it; no agent that is judged is.
    needs_recipe: bool
    #: What it does can depend on all that a task says, and not on source and recipe alone.
    sees_task: bool

    def digest(self, task: Task | None) -> str:
        """Digest of everything in its configuration that changes what it does for `task`."""
        ...

    def build(self, assignment: Assignment) -> AgentOutcome:
        """Work until done or out of time; never raises for what the repository does."""
        ...


#: Name -> the options that it takes.
AGENTS: dict[str, tuple[str, ...]] = {
    "builtin": ("index_date",),
    "gold": (),
    "script": ("recipe",),
    "replay": ("attempt",),
}


def make_agent(name: str, options: Mapping[str, str] | None = None) -> Agent:
    """The agent of that name.

    Raises:
        RebError: there is none of that name, or it does not take such options.

    `episode` is no agent that a run can have; it is known so that what an episode left can be
    looked at and judged again.
    """
    options = dict(options or {})
    if name == "episode" and not options:
        from .outside import OutsideAgent

        return OutsideAgent()
    if name not in AGENTS:
        raise RebError(
            f"there is no agent {name!r}{suggest(name, AGENTS)}",
            advice=f"agents of this version: {', '.join(AGENTS)}",
        )
    for option in options:
        if option not in AGENTS[name]:
            known = ", ".join(AGENTS[name]) or "none"
            raise RebError(f"the agent {name} has no option {option!r}", advice=f"it has: {known}")
    if name == "builtin":
        from .builtin import BuiltinAgent

        return BuiltinAgent(**options)
    if name == "replay":
        from .replay import ReplayAgent

        if "attempt" not in options:
            raise RebError(
                "the agent replay needs an attempt to do again",
                advice="--agent-option attempt=RUN/attempts/TASK--1",
            )
        return ReplayAgent(options["attempt"])
    from .script import GoldAgent, ScriptAgent

    if name == "gold":
        return GoldAgent()
    if "recipe" not in options:
        raise RebError("the agent script needs a recipe", advice="--agent-option recipe=FILE")
    return ScriptAgent.from_file(options["recipe"])
