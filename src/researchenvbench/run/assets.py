"""What the stages of a verification read: fetched or made before the first of them is run."""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING

from ..assets import Ready, cached_bytes, fetched_bytes, prepare
from ..gpu.inventory import inventory
from ..verify.pyramid import STAGES

if TYPE_CHECKING:
    from collections.abc import Sequence

    from ..assets import Choice
    from ..attempt import Level
    from ..task import StageName, Task
    from ..verify.subject import Subject


def stages_to_run(task: Task, levels: Sequence[Level]) -> list[StageName]:
    """The stages of those levels that this host can run: nothing is fetched for others."""
    there = len(inventory().gpus)
    return [
        name
        for level, name in STAGES.items()
        if level in levels
        and name in task.stages
        and not task.stages[name].not_solvable
        and not task.stages[name].not_distributed
        and task.gpus(name) <= there
    ]


def with_assets(subject: Subject, stages: Sequence[StageName], choice: Choice) -> Subject:
    """The subject with what those stages of its task read: there, or why not."""
    assert subject.task is not None  # noqa: S101  # whoever has stages has a task
    found = prepare(
        subject.task,
        stages,
        choice,
        snapshot=subject.snapshot,
        host=subject.host,
        say=subject.say,
    )
    return dataclasses.replace(subject, assets=found, asset_choice=choice)


def asset_costs(subject: Subject, stage: StageName) -> tuple[dict[str, int] | None, int | None]:
    """What each asset of a stage takes in the cache, and what came over a network for them.

    Bytes; None where an asset is not there, or nobody can tell.
    """
    assert subject.task is not None  # noqa: S101  # as above
    names = subject.task.stages[stage].assets
    there = [asset for name in names if isinstance(asset := subject.assets.get(name), Ready)]
    taken = {asset.name: size for asset in there if (size := cached_bytes(asset)) is not None}
    if len(taken) < len(names):
        return None, None
    came = [size for asset in there if (size := fetched_bytes(asset)) is not None]
    return taken, sum(came) if len(came) == len(names) else None
