"""Environments as they are found: stages judged, and proven, where no recipe can build gold.

A host with GPUs often has no network. There the packages of the host and what was carried
there stand in the place of gold, and a proof lists them.
"""

from __future__ import annotations

import dataclasses
import platform
import time
from glob import escape
from importlib import metadata
from typing import TYPE_CHECKING
from urllib.parse import quote

from .. import __version__
from ..attempt import now
from ..gpu.inventory import inventory
from ..proofs import GpuProof, StageProof, damage_digest
from ..sandbox.host_environment import host_environment
from ..verify.entrypoint import LEVELS
from ..verify.gpu_stage import run_gpu_stage
from ..verify.pyramid import with_interpreter
from .assets import asset_costs, with_assets
from .prove import break_it, portable
from .verification import adopted_subject

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from pathlib import Path

    from ..assets import Choice
    from ..attempt import LevelResult
    from ..source import Snapshot
    from ..task import Breakage, StageName, Task
    from ..verify.interpreter import Interpreter
    from ..verify.subject import Subject


def subject_as_found(
    folder: Path,
    python: str,
    task: Task,
    results: Path,
    snapshot: Snapshot,
    *,
    assets: Choice = "stand-in",
    say: Callable[..., None] = lambda *_, **__: None,
) -> Subject:
    """A folder and an interpreter of this host as what is judged, with the task's stages.

    Args:
        folder: The repository; it is not changed where this host allows layers.
        python: The interpreter.
        task: Whose stages are to be run.
        results: A folder for logs, and for the boxes' scratch.
        snapshot: The source as it should be.
        assets: Whether the stages read originals or stand-ins.
        say: Told what is done.

    Raises:
        RebError: the folder or the environment cannot be judged.
    """
    results.mkdir(parents=True, exist_ok=True)
    subject = adopted_subject(
        folder,
        python,
        results,
        host_environment(),
        snapshot,
        task=task,
        report_due=False,
        judge_edits=False,
        say=say,
    )
    return with_assets(with_interpreter(subject, python), tuple(task.stages), assets)


def prove_as_found(
    subject: Subject,
    name: StageName,
    result: LevelResult,
    *,
    carried: Sequence[str] = (),
    damages: bool = True,
    say: Callable[[str], None] = lambda _: None,
) -> GpuProof:
    """A stage's result on GPUs as a proof, after the breakages of its level.

    Args:
        subject: What was judged.
        name: Of the stage.
        result: What it came to.
        carried: Names of the wheels that were put beside the host's packages.
        damages: Whether the breakages are tried; without them nothing is proven. They never are
            on a Python of the system, of which stages get no layer.
        say: Told what is done.
    """
    task, interpreter = subject.task, subject.interpreter
    assert task is not None and interpreter is not None  # noqa: S101, PT018  # it was judged
    found = inventory()
    # A Python of the system is in no layer: the damage would be the host's.
    damages = damages and interpreter.kind != "system"
    broken = tuple(
        break_it(
            dataclasses.replace(
                subject, folder=subject.folder / "breakages" / quote(called, safe="")
            ),
            called,
            without_installer(breakage, interpreter),
            subject.folder,
            say,
        )
        for called, breakage in task.breakages.items()
        if breakage.level == LEVELS[name] and damages
    )
    taken, fetched = asset_costs(subject, name)
    return GpuProof(
        task=task.name,
        stage=StageProof(
            stage=name,
            verdict=result.verdict,
            reason=portable(result.reason, subject.folder),
            seconds=round(result.seconds, 1),
            assets=result.assets,
            asset_bytes=taken,
            fetched_bytes=fetched,
        ),
        task_digest=task.digest,
        damage_digest=damage_digest(task, name),
        date=now(),
        reb_version=__version__,
        system=platform.platform(),
        python_version=interpreter.version,
        gpus=tuple(gpu.name for gpu in found.gpus),
        driver=found.driver or "",
        packages=dict(interpreter.frameworks),
        carried=tuple(carried),
        breakages=broken,
        gpu_use=result.gpu_use,
        gpu_grades=result.gpu_grades,
    )


def run_as_found(subject: Subject, name: StageName, *, canaries: bool = False) -> LevelResult:
    """Run a stage on the GPUs of this host, as every other is run.

    Raises:
        TaskError: the stage names something that is not there.
        SandboxError: no box could be opened.
        HostError: the folder of the leases cannot be used.
    """
    started = time.monotonic()
    result = run_gpu_stage(subject, name, inventory(), canaries=canaries)
    return result.model_copy(update={"seconds": time.monotonic() - started})


def without_installer(breakage: Breakage, interpreter: Interpreter) -> Breakage:
    """The breakage with what it uninstalls removed file by file: such a host may lack uv.

    What shares its top folder with another distribution takes that with it.
    """
    if not breakage.uninstall:
        return breakage
    patterns = list(breakage.remove)
    places = sorted({interpreter.purelib, interpreter.platlib})
    for name in breakage.uninstall:
        for found in metadata.distributions(name=name, path=places):
            tops = {file.parts[0] for file in found.files or () if file.parts[0] != ".."}
            patterns += [escape(top) for top in sorted(tops - {"__pycache__"})]
    if len(patterns) == len(breakage.remove):
        return breakage  # it is not installed, which is said where it is applied
    return breakage.model_copy(update={"uninstall": (), "remove": tuple(patterns)})
