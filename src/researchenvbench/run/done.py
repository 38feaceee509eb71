"""What of an attempt is done, and what is still to be done.

Asked by the plan of a run, and by the job that does the work, so that the two cannot differ.
Files that cannot be read count as not there, and are made anew.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from ..attempt import AttemptStatus
from ..errors import RecordError
from ..source import source_is

if TYPE_CHECKING:
    from ..agents import Agent
    from ..task import Task
    from .store import AttemptFolder, Setting


def build_to_do(folder: AttemptFolder, setting: Setting, task: Task, agent: Agent) -> str:
    """Why the build is to be done, in words; empty where the one that is there stands."""
    try:
        build = folder.load_build()
    except RecordError:
        return "build again: what is left of the last one cannot be read"
    if build is None:
        return "build"
    if build.outcome == "void" or build.environment is None:
        return "build again: the last one was void"
    if build.task_digest != task.digest:
        return "build again: the task has changed"
    if (build.agent, build.agent_digest) != (agent.name, agent.digest(task)):
        return "build again: the agent's configuration has changed"
    sandbox = (build.environment.sandbox, build.sandbox_options)
    if sandbox != (setting.sandbox, setting.sandbox_options):
        return "build again: the sandbox has changed"
    if not source_is(task, build.source_digest):
        return "build again: the source has changed"
    return ""


def to_do(folder: AttemptFolder, setting: Setting, task: Task, agent: Agent) -> str:
    """What is to be done for an attempt, in words; empty where nothing is."""
    if build := build_to_do(folder, setting, task, agent):
        return build
    try:
        record = folder.load_record()
    except RecordError:
        return "verify: the record cannot be read"
    if record is None or record.task_digest != task.digest:
        return "verify"
    return "verify" if record.status is AttemptStatus.VOID else ""
