"""One attempt, driven step by step by a program: command in, output and exit status out.

The environments of reinforcement learning and scripted policies use it. An episode is an
attempt of a run like any other: the same box, the same freeze, the same judge, the same files,
in a folder of its own or in one that is kept. Only who decides what to do next is outside.
"""

from __future__ import annotations

import json
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, Self

from ..agents import AgentOutcome
from ..agents.task_text import TASK_TEXT, task_text
from ..agents.turns import Turns
from ..attempt import Report
from ..errors import LimitReachedError, RebError
from ..network_use import Reach
from ..owner import own_folder
from ..sandbox.removing import remove_tree
from ..taskfile import find_task
from .job import AttemptRun, working_on
from .plan import RunPlan
from .store import Job, RunFolder, Setting

if TYPE_CHECKING:
    from collections.abc import Mapping

    from ..agents import Assignment
    from ..assets import Choice
    from ..attempt import Record
    from ..building import Building
    from ..network_use import Network
    from ..task import Task

#: Where an episode stands.
_Stage = Literal["new", "open", "finished", "closed"]


@dataclass(frozen=True)
class Observation:
    """What whoever builds knows at the beginning."""

    text: str  #: the task, in words
    repo: str  #: the repository's path in the box, where commands begin
    report: str  #: where a report is expected, a path in the box
    left_s: float  #: seconds in which to build


@dataclass(frozen=True)
class StepResult:
    """How a command ended, and what is left."""

    output: str  #: what it printed, both streams; the head and the tail of much
    exit_status: int | None  #: as a shell has it; None where it was ended at its limit
    left_s: float  #: seconds in which to build
    timed_out: bool = False
    seconds: float = 0.0


class Episode:
    """A task to build an environment for, one command at a time.

    A context manager; it holds a box, and perhaps a container, until it is closed. One process
    has one open at a time: side by side they run in processes.
    """

    def __init__(
        self,
        task: Task | str,
        sandbox: str = "local",
        *,
        sandbox_options: Mapping[str, Any] | None = None,
        folder: Path | str | None = None,
        time_limit_s: float = 3600.0,
        step_limit_s: float | None = None,
        keeps_cwd: bool = True,
        build_gpus: str = "none",
        network: Network = "full",
        assets: Choice = "auto",
    ) -> None:
        """Prepare; nothing is made before `reset`.

        Args:
            task: Or its name, `SUITE/TASK`, or its folder.
            sandbox: `local`, which isolates nothing, `podman` or `docker`.
            sandbox_options: As `reb run --sandbox-option` takes them.
            folder: A run's folder, in which each episode is kept as an attempt; by default
                one that `close` removes.
            time_limit_s: To build in, from `reset` on, the policy's own time included.
            step_limit_s: When a single command is ended; by default with the time to build.
            keeps_cwd: Whether a command starts in the folder in which the last one ended.
            build_gpus: How many GPUs the build is shown: `all`, a number, or `none`.
            network: What commands reach: `full`, `registries` or `none`, the latter two in
                containers only.
            assets: Whether stages read originals, stand-ins, or what is at hand.

        Raises:
            TaskError: there is no such task.
        """
        self.task = find_task(task) if isinstance(task, str) else task
        self._setting = Setting(
            agent="episode",
            sandbox=sandbox,
            sandbox_options=dict(sandbox_options or {}),
            build_time_limit_s=time_limit_s,
            build_gpus=build_gpus,
            network=Reach(policy=network),
            assets=assets,
        )
        self._keep_in = None if folder is None else RunFolder(Path(folder).absolute())
        self._step_limit_s, self._keeps_cwd = step_limit_s, keeps_cwd
        self._stage: _Stage = "new"
        self._open = ExitStack()  #: what the attempt that is under way holds
        self._attempt: AttemptRun | None = None
        self._building: Building | None = None
        self._turns: Turns | None = None
        self._given: Assignment | None = None
        self._limit: LimitReachedError | None = None
        self.record: Record | None = None  #: once it is finished

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    @property
    def folder(self) -> Path:
        """The attempt's folder: logs, transcript, results.

        Raises:
            RebError: there is none before `reset`.
        """
        if self._attempt is None:
            raise RebError("the episode has no folder yet", advice="call reset() first")
        return self._attempt.folder.path

    def reset(self) -> Observation:
        """Begin: a new box with the repository in it. One that was under way is given up.

        Raises:
            SourceError: the source cannot be had.
            RebError: the sandbox cannot be used here, or the folder is no run's.
        """
        if self._stage == "closed":
            raise RebError("the episode is closed", advice="make a new Episode")
        self._end()
        with ExitStack() as opened:
            run = self._keep_in
            if run is None:
                run = RunFolder(opened.enter_context(own_folder("episode", remove=remove_tree)))
            place = self._claim(run)
            opened.enter_context(working_on(place))
            self._attempt = attempt = AttemptRun(place)
            opened.callback(self._drop, attempt)
            attempt.sandbox.check()
            self._building = attempt.building()
            self._given = given = opened.enter_context(self._building)
            self._turns = Turns(given, keeps_cwd=self._keeps_cwd)
            self._open = opened.pop_all()
        self._stage, self.record, self._limit = "open", None, None
        layout, text = given.box.layout, task_text(given)
        (attempt.folder.path / TASK_TEXT).write_text(text, encoding="utf-8")
        return Observation(
            text=text,
            repo=str(layout.repo),
            report=str(layout.report),
            left_s=self._turns.left_s,
        )

    def step(self, command: str, *, time_limit_s: float | None = None) -> StepResult:
        """Run a command in the box, to its end or its limit.

        Raises:
            OutOfTimeError: there is no time left; `finish` has what is there judged.
            LimitReachedError: the build has taken more of the host than it may; likewise.
            RebError: no episode is under way.
        """
        turns = self._under_way("step")
        if self._limit is not None:
            raise self._limit
        try:
            turn = turns.step(command, time_limit_s=time_limit_s or self._step_limit_s)
        except LimitReachedError as reached:
            if turns.left_s > 0:
                self._limit = reached
            raise
        return StepResult(
            output=turn.output,
            exit_status=turn.exit_status,
            left_s=turns.left_s,
            timed_out=turn.timed_out,
            seconds=turn.seconds,
        )

    def finish(self, report: Mapping[str, Any] | Report | None = None) -> Record:
        """End the build, freeze what is there, judge it.

        Args:
            report: Written where a report is expected, as it is; None leaves what is there.

        Raises:
            RebError: no episode is under way, or what is there cannot be judged on this host.
        """
        turns = self._under_way("finish")
        assert self._attempt is not None  # noqa: S101 - reset has made them
        assert self._building is not None  # noqa: S101
        assert self._given is not None  # noqa: S101
        outcome = AgentOutcome("finished", 0)
        if self._limit is not None:
            outcome = AgentOutcome("finished", 1, str(self._limit.args[0]))
        elif turns.left_s <= 0:
            outcome = AgentOutcome("time_limit", None, "out of time before the end was said")
        if report is not None and self._limit is None:
            text = (
                report.model_dump_json(indent=1)
                if isinstance(report, Report)
                else json.dumps(dict(report), indent=1)
            )
            self._given.box.put(self._given.box.layout.report, text.encode())
        self._building.outcome = outcome
        attempt = self._attempt
        self._stage = "finished"
        # The box is closed here, the lock on the attempt at the end.
        self._building.close()
        attempt.keep(self._building.result())
        self.record = attempt.verify()
        attempt.say("done")
        return self.record

    def close(self) -> None:
        """End what is under way and remove what is not kept. May be called again."""
        try:
            self._end()
        finally:
            self._stage = "closed"

    def _end(self) -> None:
        """Let go of the attempt, whether it was finished or is given up."""
        try:
            self._open.close()
        finally:
            self._stage = "new"

    def _drop(self, attempt: AttemptRun) -> None:
        """Remove an attempt that is not kept: nobody asked for it, or it was not judged."""
        if self._keep_in is not None and self._stage == "finished":
            return
        try:
            attempt.sandbox.discard(attempt.folder.path)
        finally:
            remove_tree(attempt.folder.path)

    def _claim(self, run: RunFolder) -> Path:
        """Make the folder of a new attempt, with what it is about."""
        task, number = self.task, 1
        settings = {name: getattr(self._setting, name) for name in Setting.model_fields}
        settings.pop("schema_version")
        run.claim(RunPlan(suite=task.folder.parent.name, **settings))
        while True:
            place = run.attempt(task.name, number).path
            place.parent.mkdir(exist_ok=True)
            try:
                place.mkdir()
                break
            except FileExistsError:  # an earlier episode's, or one of another process
                number += 1
        Job(
            suite=task.folder.parent.name,
            task_folder=str(task.folder),
            task=task.name,
            attempt=number,
            **settings,
        ).save(place / "job.json")
        return place

    def _under_way(self, what: str) -> Turns:
        if self._stage == "open" and self._turns is not None:
            return self._turns
        why = {
            "new": "no episode was begun",
            "finished": "the episode has been finished and judged",
            "closed": "the episode is closed",
        }[self._stage]
        advice = "make a new Episode" if self._stage == "closed" else "call reset() first"
        raise RebError(f"{what}: {why}", advice=advice)
