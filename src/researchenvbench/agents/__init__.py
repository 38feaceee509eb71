"""Who builds: the protocol that every agent speaks.

An agent is given an assignment (a box with the repository in it, the hardware that it
builds for, and a deadline) and leaves an environment and a report behind, both in the box.
What it says about itself is not believed: phase 2 judges what is there. To add an agent,
write a class with these members in a module of this package, and name it in `AGENTS` and in
`make_agent`; a command line is no class but a file of `definitions/`.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Literal, Protocol, runtime_checkable

from ..errors import RebError
from ..schema import suggest

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from datetime import datetime

    from ..attempt import Fault
    from ..model_use import Wire
    from ..network_use import Network
    from ..sandbox import BuildBox, Layout, Program
    from ..task import Recipe, Task
    from .definition import AgentDefinition
    from .model import ModelAccess, ModelChoice
    from .transcript import Step


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
    model: ModelAccess | None = None  #: how to reach the model, for agents that work with one
    network: Network = "full"  #: the build's
    target_gpus: tuple[str, ...] = ()  #: the host's, of which the build is shown fewer
    driver: str | None = None  #: of the host's GPUs
    resumed: bool = False  #: an earlier life of the harness began this build


@dataclass(frozen=True)
class AgentOutcome:
    """How an agent ended. `void` is a fault of the host or the provider, never the agent's."""

    outcome: Literal["finished", "time_limit", "budget", "void"]
    exit_code: int | None = None
    reason: str = ""
    fault: Fault | None = None  #: of a build by a model (`faults`)


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


@runtime_checkable
class WorksWithModel(Protocol):
    """Further members of an agent that works with a language model."""

    model: ModelChoice | None  #: None: the definition needs none
    on_host: bool  #: it runs beside the harness, and not in the box

    version: str  #: of its program; empty where that is not known

    def program(self, say: Callable[[str], None]) -> Program | None:
        """What of it is to be in the box; None: nothing."""
        ...

    def keeps(self, layout: Layout) -> tuple[str, ...]:
        """Globs of what of the frozen state is kept with the attempt."""
        ...

    def steps(self, folder: Path, kept: Sequence[Path]) -> list[Step] | None:
        """The common transcript, of an attempt's folder and the files that were kept of it.

        None where nobody can read what its program writes.
        """
        ...


#: Name -> the options that it takes. Those with definitions are named by their files.
AGENTS: dict[str, tuple[str, ...]] = {
    "builtin": ("index_date",),
    "gold": (),
    "script": ("recipe",),
    "replay": ("attempt",),
    "command": ("file",),
    "mini_swe": ("wire", "steps"),
}


def agent_names() -> list[str]:
    """All agents of this version."""
    from .definition import bundled_agents

    return [*AGENTS, *bundled_agents()]


def agent_definition(name: str, options: Mapping[str, str]) -> AgentDefinition | None:
    """What describes an agent that is a command line; None for one that is none.

    Raises:
        RebError: there is no such file, or it is no definition.
    """
    from .definition import bundled_agents, load_bundled, load_definition

    if name == "command":
        if "file" not in options:
            raise RebError(
                "the agent command needs a definition",
                advice="--agent-option file=FILE; docs/agents.md shows how to write one",
            )
        return load_definition(Path(options["file"]))
    return load_bundled(name) if name in bundled_agents() else None


def agent_wire(name: str, options: Mapping[str, str]) -> Wire | None:
    """How the agent of that name speaks to a model; None where it works with none.

    Raises:
        RebError: as `make_agent`.
    """
    if name == "mini_swe":
        from .mini_swe import wire_of

        return wire_of(options)
    definition = agent_definition(name, options)
    return definition.wire if definition else None


def check_agent(name: str, options: Mapping[str, str]) -> None:
    """See that there is such an agent, and that it takes such options.

    Raises:
        RebError: there is none of that name, or it does not take one of them.
    """
    names = agent_names()
    if name == "episode":
        raise RebError(
            "an episode is built by the program that drove it, and no run can have it as an agent",
            advice="drive one yourself (docs/episodes.md), or do its steps again: --agent replay",
        )
    if name not in names:
        raise RebError(
            f"there is no agent {name!r}{suggest(name, names)}",
            advice=f"agents of this version: {', '.join(names)} (reb agents list)",
        )
    for option in options:
        if option not in AGENTS.get(name, ()):
            known = ", ".join(AGENTS.get(name, ())) or "none"
            raise RebError(f"the agent {name} has no option {option!r}", advice=f"it has: {known}")


def make_agent(
    name: str, options: Mapping[str, str] | None = None, model: ModelChoice | None = None
) -> Agent:
    """The agent of that name.

    Raises:
        RebError: there is none of that name, or it does not take such options, or no model.

    `episode` is no agent that a run can have; it is known so that what an episode left can be
    looked at and judged again.
    """
    options = dict(options or {})
    if name == "episode" and not options and model is None:
        from .outside import OutsideAgent

        return OutsideAgent()
    check_agent(name, options)
    if definition := agent_definition(name, options):
        from .program import ProgramAgent

        return ProgramAgent(definition, model)
    if name == "mini_swe":
        from .mini_swe import MiniSweAgent

        return MiniSweAgent(model, **options)
    if model is not None:
        raise RebError(
            f"the agent {name} works without a language model, and {model.name} was named",
            advice="leave out --model, or choose another agent (reb agents list)",
        )
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
