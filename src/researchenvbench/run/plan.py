"""Which attempts a run has, and which of them are still to be done."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from pydantic import Field

from ..agents import make_agent
from .done import is_removed, to_do
from .part import Part  # noqa: TC001  # pydantic needs it at run time
from .store import AttemptFolder, Job, RunFolder, Setting

if TYPE_CHECKING:
    from collections.abc import Sequence

    from ..task import Suite, Task


class RunPlan(Setting):
    """What `reb run` was asked for: the content of run.json."""

    suite: str
    part: Part | None = Field(None, description="Which of its tasks.")


@dataclass(frozen=True)
class PlannedAttempt:
    """One attempt and whether there is anything left to do."""

    task: Task
    number: int
    folder: AttemptFolder
    job: Job
    done: bool
    why: str = field(default="")  #: in words, what is to be done
    removed: bool = field(default=False)  #: something was, and its environment is not there

    @property
    def builds(self) -> bool:
        """Whether an environment is to be built for it."""
        return self.why.startswith("build")


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
    agent = make_agent(plan.agent, plan.agent_options, plan.model)
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
            why = to_do(place, plan, task, agent)
            if not why and reverify:
                why = "verify again"
            # Its record stands; without the environment nobody can judge it otherwise.
            removed = why.startswith("verify") and is_removed(place, plan)
            why = "" if removed else why
            planned.append(
                PlannedAttempt(task, number, place, job, done=not why, why=why, removed=removed)
            )
    return planned
