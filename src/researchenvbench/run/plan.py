"""Which attempts a run has, and which of them are still to be done."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from ..agents import make_agent
from ..attempt import AttemptStatus
from ..errors import RecordError
from ..source import source_is
from .store import AttemptFolder, Job, RunFolder, Setting

if TYPE_CHECKING:
    from collections.abc import Sequence

    from ..task import Suite, Task


class RunPlan(Setting):
    """What `reb run` was asked for: the content of run.json."""

    suite: str


@dataclass(frozen=True)
class PlannedAttempt:
    """One attempt and whether there is anything left to do."""

    task: Task
    number: int
    folder: AttemptFolder
    job: Job
    done: bool
    why: str = field(default="")  #: in words, what is to be done


def plan_attempts(
    plan: RunPlan,
    suite: Suite,
    tasks: Sequence[Task],
    attempts: int,
    folder: RunFolder,
    *,
    reverify: bool = False,
) -> list[PlannedAttempt]:
    """The attempts at `tasks`, in their order, each compared with what is on disk."""
    agent = make_agent(plan.agent, plan.agent_options)
    planned = []
    for task in tasks:
        for number in range(1, attempts + 1):
            place = folder.attempt(task.name, number)
            job = Job(
                suite=suite.name,
                task_folder=str(task.folder),
                task=task.name,
                attempt=number,
                **plan.model_dump(include=set(Setting.model_fields)),
            )
            why = _unfinished(place, task, agent.name, agent.digest(task), plan.sandbox)
            if not why and reverify:
                why = "verify again"
            planned.append(PlannedAttempt(task, number, place, job, done=not why, why=why))
    return planned


def _unfinished(place: AttemptFolder, task: Task, agent: str, digest: str, sandbox: str) -> str:
    """What is to be done for an attempt, in words; empty where nothing is."""
    try:
        build = place.load_build()
        record = place.load_record()
    except RecordError:
        return "build: what is on disk cannot be read"
    if build is None:
        return "build"
    if build.outcome == "void":
        return "build again: the last one was void"
    if build.task_digest != task.digest:
        return "build again: the task has changed"
    if (build.agent, build.agent_digest) != (agent, digest):
        return "build again: the agent's configuration has changed"
    if build.environment is None or build.environment.sandbox != sandbox:
        return "build again: the sandbox has changed"
    if not source_is(task, build.source_digest):
        return "build again: the source has changed"
    if record is None or record.task_digest != task.digest:
        return "verify"
    if record.status is AttemptStatus.VOID:
        return "verify"
    return ""
