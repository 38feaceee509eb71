"""Phase 1: a task and an agent become a frozen environment and a report.

The agent works in a box with its own copy of the source. When it has ended, or its time has,
whatever it left running is ended, the state is frozen, and its report is read. Nothing is
judged here.
"""

from __future__ import annotations

import sys
import time
from contextlib import ExitStack
from dataclasses import replace
from typing import TYPE_CHECKING

from .. import __version__
from ..agents import AgentOutcome, Assignment, WorksWithModel
from ..agents.faults import owner_of
from ..agents.model import open_access
from ..agents.task_text import TASK_TEXT, VERSION
from ..agents.transcript import TRANSCRIPT, keep_layout, read_steps, with_tokens, write_steps
from ..attempt import BuildResult, Owner, now
from ..errors import HostError, LimitReachedError
from ..gpu.inventory import gpu_words, inventory
from ..network_use import NetworkUse
from ..places import disk_is_full
from ..process import seconds_in_programs
from ..relay.registries.opening import build_network
from ..sandbox.listening import listen_on_host
from .given import assignment, build_key, given_digest
from .hardware import host_facts
from .reports import read_frozen_report

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from pathlib import Path
    from types import TracebackType

    from ..agents import Agent
    from ..agents.model import ModelAccess
    from ..gpu.inventory import Gpu
    from ..relay.registries.opening import BuildNetwork
    from ..sandbox import BuildBox, HostEnvironment, Sandbox
    from ..source import Snapshot
    from ..task import Task

#: In an attempt's folder: what an agent's program kept of its own work.
_KEPT_FOLDER = "agent"


def build(
    attempt: Path,
    task: Task,
    snapshot: Snapshot,
    agent: Agent,
    sandbox: Sandbox,
    host: HostEnvironment,
    *,
    time_limit_s: float,
    build_gpus: str,
    say: Callable[..., None],
) -> BuildResult:
    """Let `agent` build an environment for `task` in the folder `attempt`, and freeze it.

    `build_gpus` is how many GPUs the build is shown: `all`, a number, or `none`.

    Raises:
        SandboxError: the sandbox could not be made.
        HostError: the disk was full when the agent ended without success.
    """
    building = Building(
        attempt,
        task,
        snapshot,
        agent,
        sandbox,
        host,
        time_limit_s=time_limit_s,
        build_gpus=build_gpus,
        say=say,
    )
    with building as given:
        building.outcome = agent.build(given)
    return building.result()


class Building:
    """A build under way: a context in which an agent works, and what it comes to.

    Whoever drives a build from outside opens it, works on the assignment for as long as it
    likes, says how that ended, closes it and asks for the result.
    """

    def __init__(
        self,
        attempt: Path,
        task: Task,
        snapshot: Snapshot,
        agent: Agent,
        sandbox: Sandbox,
        host: HostEnvironment,
        *,
        time_limit_s: float,
        build_gpus: str,
        say: Callable[..., None],
    ) -> None:
        self.outcome = AgentOutcome("finished", 1, "")  #: how the agent ended
        self.log = attempt / "logs" / "build.log"
        self._attempt, self._task, self._snapshot = attempt, task, snapshot
        self._agent, self._sandbox, self._host = agent, sandbox, host
        self._time_limit_s, self._build_gpus, self._say = time_limit_s, build_gpus, say
        self._shown = _shown_gpus(build_gpus)
        self._started, self._clock = now(), time.monotonic()
        self._in_programs = seconds_in_programs()
        self._open = ExitStack()
        self._network: BuildNetwork | None = None
        self.access: ModelAccess | None = None  #: of an agent that works with a model

    def __enter__(self) -> Assignment:
        """Open the box; returns what the agent is given."""
        self.log.parent.mkdir(parents=True, exist_ok=True)
        self._say("copying the source", log=self.log)
        key = build_key(
            self._task,
            self._snapshot,
            self._agent,
            self._sandbox,
            self._time_limit_s,
            self._build_gpus,
        )
        resumed = self._sandbox.resumes(self._attempt, key)
        agent = self._agent
        program = agent.program(self.note) if isinstance(agent, WorksWithModel) else None
        box = self._open.enter_context(
            self._sandbox.build_box(
                self._attempt,
                self._snapshot.tree,
                key=key,
                gpus=[gpu.uuid for gpu in self._shown],
                program=program,
            )
        )
        try:
            # Fetching an agent's program is no time of its own; what an earlier life of the
            # harness spent on this build is.
            self._clock = time.monotonic() - box.spent_s
            keep_layout(self._attempt, box.layout)
            self._network = self._open.enter_context(
                build_network(self._sandbox.reach, box, self._attempt, self._host)
            )
            given = assignment(
                box,
                self._network.host,
                gpus=self._shown,
                log=self.log,
                say=self.note,
                deadline=self._clock + self._time_limit_s,
                date=self._snapshot.date,
                task=self._task,
                with_recipe=self._agent.needs_recipe,
                network=self._sandbox.reach.policy,
                resumed=resumed,
            )
            return self._with_model(given, box)
        except BaseException:
            self._open.__exit__(*sys.exc_info())
            raise

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> bool:
        """Close the box; a build that took more than it may ends there, as it is."""
        if isinstance(error, LimitReachedError):
            self.outcome = AgentOutcome("finished", 1, str(error.args[0]))
            self._open.close()
            return True
        self._open.__exit__(kind, error, trace)
        return False

    def _with_model(self, given: Assignment, box: BuildBox) -> Assignment:
        """The assignment, with a way to its model for an agent that has one."""
        agent = self._agent
        if not isinstance(agent, WorksWithModel) or agent.model is None:
            return given
        self.access = self._open.enter_context(
            open_access(
                agent.model,
                self._attempt,
                listen_on_host if agent.on_host else box.listen,
                resumed=given.resumed,
            )
        )
        return replace(given, model=self.access)

    def close(self) -> None:
        """Close the box; what is in it is frozen by `result`."""
        self._open.close()

    def note(self, line: str) -> None:
        """Say a line to the log and to whoever watches."""
        with self.log.open("a", encoding="utf-8") as stream:
            stream.write(f"# {line}\n")
        self._say(line, log=self.log)

    def result(self) -> BuildResult:
        """Freeze what is there when the box has been closed, and read its report.

        Raises:
            SandboxError: it could not be frozen.
            HostError: the disk was full when the agent ended without success.
        """
        outcome, attempt, sandbox = self.outcome, self._attempt, self._sandbox
        if outcome.exit_code != 0 and disk_is_full(attempt):
            # Whatever it ended with, it is not the agent's doing that there was no room.
            raise HostError(
                f"the disk that holds {attempt} is full",
                advice="free room on it, then run the same command again",
            )
        if outcome.reason:
            self.note(outcome.reason)
        seconds = time.monotonic() - self._clock
        self._say("freezing", log=self.log)
        frozen = sandbox.freeze(attempt)
        agent = self._agent
        kept = attempt / _KEPT_FOLDER if isinstance(agent, WorksWithModel) else None
        globs = agent.keeps(sandbox.layout(attempt)) if isinstance(agent, WorksWithModel) else ()
        report, report_error = read_frozen_report(
            lambda: sandbox.stage_box(attempt, network=False, gpus=()), globs, kept
        )
        done = BuildResult(
            reb_version=__version__,
            outcome=outcome.outcome,
            owner=Owner.HOST if outcome.outcome == "void" else _owner(outcome),
            fault=outcome.fault,
            reason=outcome.reason,
            started=self._started,
            seconds=seconds,
            seconds_in_processes=seconds_in_programs() - self._in_programs,
            task_digest=self._task.digest,
            given_digest=given_digest(self._task, self._agent),
            source_digest=self._snapshot.digest,
            agent=self._agent.name,
            agent_digest=self._agent.digest(self._task),
            exit_code=outcome.exit_code,
            report=report,
            report_error=report_error,
            environment=frozen,
            build_gpus=self._build_gpus,
            shown_gpus=tuple(gpu_words(gpu) for gpu in self._shown),
            network=self._network.use if self._network else NetworkUse(),
            host=host_facts(self._host),
        )
        return self._with_use(done)

    def _with_use(self, done: BuildResult) -> BuildResult:
        """The result with what the agent was given, did, and used of a model."""
        agent, attempt = self._agent, self._attempt
        kept = sorted(path for path in (attempt / _KEPT_FOLDER).rglob("*") if path.is_file())
        steps = None
        if isinstance(agent, WorksWithModel):
            calls = self.access.relay.calls if self.access else ()
            steps = agent.steps(attempt, kept)
            if steps is not None:
                steps = with_tokens(steps, calls)
                write_steps(attempt / TRANSCRIPT, steps)
        elif (attempt / TRANSCRIPT).is_file():  # written as it went
            steps = read_steps(attempt / TRANSCRIPT)
        given = _read_text(attempt / TASK_TEXT)
        return done.model_copy(
            update={
                "agent_version": agent.version if isinstance(agent, WorksWithModel) else None,
                "task_text": VERSION if given else None,
                "task_given": given,
                "model": self.access.relay.use() if self.access else None,
                "steps": None if steps is None else len(steps),
            }
        )


def _read_text(path: Path) -> str | None:
    return path.read_text(encoding="utf-8") if path.is_file() else None


def _owner(outcome: AgentOutcome) -> Owner | None:
    return owner_of(outcome.fault) if outcome.fault else None


def _shown_gpus(build_gpus: str) -> Sequence[Gpu]:
    """The GPUs that a build is shown."""
    gpus = inventory().gpus
    if build_gpus == "all":
        return gpus
    return gpus[: 0 if build_gpus == "none" else int(build_gpus)]
