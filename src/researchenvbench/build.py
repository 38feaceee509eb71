"""Phase 1: a task and an agent become a frozen environment and a report.

The agent works in a box with its own copy of the source. When it has ended, or its time has,
whatever it left running is ended, the state is frozen, and its report is read. Nothing is
judged here.
"""

from __future__ import annotations

import hashlib
import json
import os
import platform
import shutil
import sys
import time
from collections import Counter
from contextlib import ExitStack
from dataclasses import replace
from typing import TYPE_CHECKING

from pydantic import ValidationError

from . import __version__
from .agents import AgentOutcome, Assignment, WorksWithModel
from .agents.faults import owner_of
from .agents.model import listen_here, open_access
from .agents.transcript import TRANSCRIPT, keep_layout, with_tokens, write_steps
from .attempt import BuildResult, HostFacts, Owner, Report, now
from .audit import Hardware
from .errors import (
    EnvironmentUnusableError,
    HostError,
    LimitReachedError,
    RefusedError,
)
from .gpu.inventory import gpu_words, inventory
from .network_use import NetworkUse
from .owner import this_owner
from .process import seconds_in_programs
from .relay.registries.opening import build_network
from .sandbox.host_environment import redacted_variables

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from contextlib import AbstractContextManager
    from datetime import datetime
    from pathlib import Path
    from types import TracebackType

    from .agents import Agent
    from .agents.model import ModelAccess
    from .gpu.inventory import Gpu
    from .relay.registries.opening import BuildNetwork
    from .sandbox import Box, BuildBox, HostEnvironment, Sandbox, StageBox
    from .source import Snapshot
    from .task import Task

REPORT_LIMIT_BYTES = 1_000_000
#: In an attempt's folder: what an agent's program kept of its own work.
KEPT_FOLDER = "agent"


#: A disk with less room than this is full: installs fail on it.
FULL_DISK_BYTES = 64 * 1024**2


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
            # Time that an earlier life of the harness spent on this build counts too.
            self._clock -= box.spent_s
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
            )
            return self._with_model(given, box, resumed=resumed)
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

    def _with_model(self, given: Assignment, box: BuildBox, *, resumed: bool) -> Assignment:
        """The assignment with what an agent is given that works with a language model."""
        agent, found = self._agent, inventory()
        if not isinstance(agent, WorksWithModel):
            return given
        fewer = len(self._shown) < len(found.gpus)
        given = replace(
            given,
            resumed=resumed,
            network=self._sandbox.reach.policy,
            target_gpus=tuple(gpu_words(gpu) for gpu in found.gpus) if fewer else (),
            driver=found.driver,
        )
        if agent.model is None:
            return given
        self.access = self._open.enter_context(
            open_access(
                agent.model,
                self._attempt,
                listen_here if agent.on_host else box.listen,
                resumed=resumed,
            )
        )
        return replace(given, model=self.access)

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
        if outcome.exit_code != 0 and shutil.disk_usage(attempt).free < FULL_DISK_BYTES:
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
        kept = attempt / KEPT_FOLDER if isinstance(agent, WorksWithModel) else None
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
        """The result with what a model was used for."""
        agent, attempt = self._agent, self._attempt
        if not isinstance(agent, WorksWithModel):
            return done
        kept = sorted(path for path in (attempt / KEPT_FOLDER).rglob("*") if path.is_file())
        calls = self.access.relay.calls if self.access else ()
        steps = with_tokens(agent.steps(attempt, kept), calls)
        write_steps(attempt / TRANSCRIPT, steps)
        return done.model_copy(
            update={
                "agent_version": agent.version,
                "task_text": agent.text_version,
                "model": self.access.relay.use() if self.access else None,
                "steps": len(steps),
            }
        )


def _owner(outcome: AgentOutcome) -> Owner | None:
    return owner_of(outcome.fault) if outcome.fault else None


def build_key(
    task: Task,
    snapshot: Snapshot,
    agent: Agent,
    sandbox: Sandbox,
    time_limit_s: float,
    build_gpus: str,
) -> str:
    """A digest of what a build is for: one that was interrupted is gone on with for the same."""
    facts = (
        given_digest(task, agent),
        snapshot.digest,
        agent.name,
        agent.digest(task),
        sandbox.name,
        time_limit_s,
        build_gpus,
        # What runs beside the harness ends with it: no later one can go on with its build.
        this_owner() if isinstance(agent, WorksWithModel) and agent.on_host else "",
    )
    return hashlib.sha256(repr(facts).encode()).hexdigest()


def given_digest(task: Task, agent: Agent) -> str:
    """A digest of what of `task` a build by `agent` can depend on.

    That is all that can change a verdict, but for an agent that follows the task's recipe: for
    it, the source alone. The recipe itself is in the agent's own digest.
    """
    if agent.sees_task:
        return task.digest
    source = task.source.model_dump_json(exclude={"also_at", "unavailable"})
    return hashlib.sha256(source.encode()).hexdigest()


def assignment(
    box: BuildBox,
    host: HostEnvironment,
    *,
    gpus: Sequence[Gpu],
    log: Path,
    say: Callable[[str], None],
    deadline: float,
    date: datetime | None,
    task: Task | None = None,
    with_recipe: bool = False,
) -> Assignment:
    """What an agent is given to build for `task`, or for a repository without one.

    Of the task it is not told how it is solved: neither the gold recipe, unless it is asked
    to follow it, nor the breakages.
    """
    environment = box.variables(host, installs=True)
    environment["CUDA_VISIBLE_DEVICES"] = ",".join(map(str, box.gpu_indices(gpus)))
    environment.update(host.variables)
    return Assignment(
        box=box,
        environment=environment,
        log=log,
        say=say,
        deadline=deadline,
        gpus=tuple(gpu.name for gpu in gpus),
        python=task.python if task else "",
        date=date,
        task=task.model_copy(update={"gold": None, "breakages": {}}) if task else None,
        recipe=task.gold if task and with_recipe else None,
    )


def read_frozen_report(
    open_box: Callable[[], AbstractContextManager[StageBox]],
    keep: Sequence[str] = (),
    into: Path | None = None,
) -> tuple[Report | None, str | None]:
    """The report in a frozen environment; one that no box can be opened from has none.

    Files that match the globs `keep` are copied to the folder `into`.
    """
    try:
        with open_box() as box:
            if into is not None and keep:
                into.mkdir(parents=True, exist_ok=True)
                for pattern in keep:
                    box.collect(pattern, into)
            return read_report(box)
    except EnvironmentUnusableError as error:
        return None, str(error.args[0])


def read_report(box: Box) -> tuple[Report | None, str | None]:
    """The report that the agent left, or None and why there is no usable one."""
    try:
        text = box.read(box.layout.report, REPORT_LIMIT_BYTES)
    except RefusedError as error:
        return None, str(error.args[0])
    return parse_report(text)


def parse_report(text: bytes) -> tuple[Report | None, str | None]:
    """A report from its bytes, or None and what is wrong with them."""
    try:
        data = json.loads(text)
    except (ValueError, RecursionError) as error:
        return None, f"the report is not JSON: {error}"
    if not isinstance(data, dict):
        return None, f"the report is a {type(data).__name__}, not an object with the fields"
    try:
        return Report.model_validate(data), None
    except ValidationError as error:
        faults = [
            f"{'.'.join(str(part) for part in fault['loc'])}: {fault['msg']}"
            for fault in error.errors()
        ]
        return None, f"the report is not valid: {'; '.join(faults[:5])}"


def host_facts(host: HostEnvironment) -> HostFacts:
    """This machine, as records hold it."""
    found = inventory()
    return HostFacts(
        system=f"{platform.system()} {platform.release()} {platform.machine()}",
        cpus=os.cpu_count() or 1,
        memory_bytes=os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES"),
        gpus=tuple(f"{gpu.name} ({gpu.architecture}) {gpu.uuid}" for gpu in found.gpus),
        driver=found.driver,
        variables=redacted_variables(host.variables),
    )


def hardware_shown(done: BuildResult) -> Hardware:
    """What the build was shown, compared with what verification sees now."""
    return compare_hardware(done.shown_gpus, [gpu_words(gpu) for gpu in inventory().gpus])


def compare_hardware(build_shown: Sequence[str], seen_now: Sequence[str]) -> Hardware:
    """Whether the GPUs are of the same kinds, and at least as many as the build was shown.

    More of the same kind are the same hardware: what a framework can do with one does not
    depend on how many others there are.
    """
    shown, seen = Counter(build_shown), Counter(seen_now)
    same = shown.keys() == seen.keys() and shown <= seen
    return Hardware(same=same, shown=len(build_shown))


def _shown_gpus(build_gpus: str) -> Sequence[Gpu]:
    """The GPUs that a build is shown."""
    gpus = inventory().gpus
    if build_gpus == "all":
        return gpus
    return gpus[: 0 if build_gpus == "none" else int(build_gpus)]
