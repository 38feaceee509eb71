"""What an agent is given, and the digests of it by which a build is known."""

from __future__ import annotations

import hashlib
from typing import TYPE_CHECKING

from ..agents import Assignment, WorksWithModel
from ..gpu.inventory import gpu_words, inventory
from ..owner import this_owner

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from datetime import datetime
    from pathlib import Path

    from ..agents import Agent
    from ..gpu.inventory import Gpu
    from ..network_use import Network
    from ..sandbox import BuildBox, HostEnvironment, Sandbox
    from ..source import Snapshot
    from ..task import Task


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
    network: Network = "full",
    resumed: bool = False,
) -> Assignment:
    """What an agent is given to build for `task`, or for a repository without one.

    Of the task it is not told how it is solved: neither the gold recipe, unless it is asked
    to follow it, nor the breakages.
    """
    found = inventory()
    fewer = len(gpus) < len(found.gpus)
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
        network=network,
        target_gpus=tuple(gpu_words(gpu) for gpu in found.gpus) if fewer else (),
        driver=found.driver,
        resumed=resumed,
    )
