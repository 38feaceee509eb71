"""What of an attempt is done, and what is still to be done.

Asked by the plan of a run, and by the job that does the work, so that the two cannot differ.
Files that cannot be read count as not there, and are made anew.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from ..attempt import AttemptStatus, Owner, Verdict, Want
from ..building import given_digest
from ..errors import RebError, RecordError
from ..sandbox import make_sandbox
from ..source import source_is
from ..verify.assets import expected
from ..verify.evidence import formats
from ..verify.readers.installed import lacking

if TYPE_CHECKING:
    from ..agents import Agent
    from ..attempt import Record
    from ..task import Task
    from .store import AttemptFolder, Setting

#: What a host lacked, in words.
_WANTED = {
    Want.READER: "a reader, which is there now",
    Want.LIBRARY: "a system library",
    Want.PROGRAM: "a program",
    Want.DISK: "room on a disk",
    Want.SHARED_MEMORY: "shared memory",
}


def build_to_do(
    folder: AttemptFolder, setting: Setting, task: Task, agent: Agent, *, needed: bool = False
) -> str:
    """Why the build is to be done, in words; empty where the one that is there stands.

    Its environment may have been removed since: then the build is to be done where nothing
    was judged yet, or the environment itself is `needed`.
    """
    try:
        build = folder.load_build()
    except RecordError:
        return "build again: what is left of the last one cannot be read"
    if build is None:
        return "build"
    if build.outcome == "void" or build.environment is None:
        return "build again: the last one was void"
    # One that failed is tried again after any change: that may be meant to help.
    given = build.given_digest if build.exit_code == 0 else ""
    if build.task_digest != task.digest and given != given_digest(task, agent):
        return "build again: the task has changed"
    if (build.agent, build.agent_digest) != (agent.name, agent.digest(task)):
        return "build again: the agent's configuration has changed"
    sandbox = (build.environment.sandbox, build.sandbox_options)
    if sandbox != (setting.sandbox, setting.sandbox_options):
        return "build again: the sandbox has changed"
    if build.network.reach != setting.network:
        return "build again: what builds reach of networks has changed"
    if not source_is(task, build.source_digest):
        return "build again: the source has changed"
    if (needed or not _is_judged(folder, task)) and is_removed(folder, setting):
        return "build again: its environment was removed"
    return ""


def is_removed(folder: AttemptFolder, setting: Setting) -> bool:
    """Whether the environment that was built is not there any more, as far as can be asked."""
    try:
        return not make_sandbox(setting.sandbox, setting.sandbox_options).holds(folder.path)
    except RebError:
        return False  # whoever wants to use it is told what is wrong


def _is_judged(folder: AttemptFolder, task: Task) -> bool:
    """Whether there is a record that stands without another look at the environment."""
    try:
        record = folder.load_record()
    except RecordError:
        return False
    if record is None or record.task_digest != task.digest:
        return False
    return record.status is not AttemptStatus.VOID and not _failed_host(record)


def to_do(folder: AttemptFolder, setting: Setting, task: Task, agent: Agent) -> str:
    """What is to be done for an attempt, in words; empty where nothing is."""
    if build := build_to_do(folder, setting, task, agent):
        return build
    try:
        record = folder.load_record()
    except RecordError:
        return "verify: the record cannot be read"
    if record is None or not _is_judged(folder, task):
        return "verify"
    return _host_may_differ(record, setting, task) or _other_assets(record, setting, task)


def _host_may_differ(record: Record, setting: Setting, task: Task) -> str:
    """Why a level is to be made anew that this host could not decide; empty where none is.

    The user was told what to install. Whether readers are there can be asked; of the rest only
    the level itself can tell. Without its environment none can be.
    """
    failed = any(result.verdict is Verdict.FAILED for result in record.results.values())
    if setting.keep == "none" or (setting.keep == "failed" and not failed):
        return ""
    readers = not lacking(formats(task))
    for level, result in record.results.items():
        want = result.want if result.verdict is Verdict.INCONCLUSIVE else None
        if want is None or want.is_hardware or (want is Want.READER and not readers):
            continue
        return f"verify: {level} was inconclusive for want of {_WANTED.get(want, want)}"
    return ""


def _other_assets(record: Record, setting: Setting, task: Task) -> str:
    """Why stages are to be run with other assets than they were; empty where they are not."""
    results = record.results.values()
    if any(x.verdict is Verdict.INCONCLUSIVE and x.owner is Owner.ASSET for x in results):
        return "verify: an asset could not be had"
    for result in results:
        for name, use in result.assets.items():
            now = expected(task, name, setting.assets) if name in task.assets else use
            if now.origin != use.origin:
                return f"verify: the asset {name} is to be {now.origin}, and was {use.origin}"
            if now.digest and use.digest and now.digest != use.digest:
                return f"verify: the asset {name} has changed"
    return ""


def _failed_host(record: Record) -> bool:
    """Whether the host failed before anything was judged."""
    results = record.results.values()
    return bool(results) and all(result.want is Want.SANDBOX for result in results)
