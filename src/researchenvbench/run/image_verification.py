"""`verify` for an environment that is an image: later, and on another host."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ..attempt import AttemptStatus, Environment, Level, Sizes, now
from ..building import compare_hardware, read_report
from ..gpu.inventory import gpu_words, inventory
from ..sandbox import NO_ASSETS
from ..sandbox.containers.in_use import using_image
from ..sandbox.containers.sandbox import ContainerSandbox
from ..sandbox.host_environment import host_environment
from ..source import fetch_source
from ..verify.pyramid import Choice
from ..verify.pyramid import verify as judge
from ..verify.subject import Subject
from .assets import stages_to_run, with_assets
from .environments import find_environment, other_task
from .records import judged, new_record
from .verification import ChosenPython, choose_python, new_results_folder, report_of

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from contextlib import AbstractContextManager
    from pathlib import Path

    from ..assets import Choice as Assets
    from ..attempt import Record
    from ..sandbox import StageBox
    from ..sandbox.containers.inventory import EnvironmentImage
    from ..task import Task


def verify_image(
    name: str,
    task: Task,
    *,
    engine: str | None = None,
    options: Mapping[str, object] | None = None,
    report: str | Path | None = None,
    python: str | None = None,
    levels: Sequence[Level] = tuple(Level),
    fail_fast: bool = False,
    repeats: int = 1,
    out: Path | None = None,
    assets: Assets = "auto",
    say: Callable[..., None] = lambda *_, **__: None,
    chosen: Callable[[ChosenPython], None] = lambda _: None,
    warn: Callable[[str], None] = lambda _: None,
) -> Record:
    """Judge the environment in an image by a task, and return its record.

    The report is the one that the agent left in the image, unless `report` names another.
    `engine` is podman or docker; without it the first that has the image. `assets` says
    whether the stages read originals or stand-ins. `warn` is told of an image that was built
    for another task.

    Raises:
        RebError: there is no such environment, or it cannot be judged here.
    """
    found = find_environment(name, engine)
    image = found.image
    if other := other_task(image, task):
        warn(f"this image was built for {other}, and is judged by {task.name}")
    results = (out or new_results_folder(None)).absolute()
    results.mkdir(parents=True, exist_ok=True)
    sandbox = ContainerSandbox(found.engine.name, options)
    started, host = now(), host_environment()
    snapshot = fetch_source(task, installs=host.installs)

    def open_box(
        *,
        network: bool = False,
        gpus: Sequence[str] = (),
        assets: Mapping[str, Path] = NO_ASSETS,
    ) -> AbstractContextManager[StageBox]:
        return sandbox.image_box(image.id, results, network=network, gpus=gpus, assets=assets)

    with using_image(image.id):
        if report is None:
            with open_box() as box:
                said, report_error = read_report(box)
        else:
            said, report_error = report_of(report)
        reported = said.python_path if said else None
        picked = choose_python(results, python, reported, {}) if python or reported else None
        if picked is not None:
            chosen(picked)
        subject = Subject(
            folder=results,
            open_box=open_box,
            host=host,
            snapshot=snapshot,
            task=task,
            report=said,
            report_error=report_error,
            say=say,
        )
        if picked is not None:
            subject = with_assets(subject, stages_to_run(task, levels), assets)
        judgement = judge(
            subject,
            picked.path if picked else None,
            frameworks=task.frameworks,
            hardware=compare_hardware(
                image.shown_gpus, [gpu_words(gpu) for gpu in inventory().gpus]
            ),
            choice=Choice(levels, fail_fast, repeats),
        )
    sizes = Sizes(build_bytes=image.own_bytes, prefix_bytes=judgement.prefix_bytes)
    record = new_record(
        task,
        host,
        source_digest=snapshot.digest,
        agent="",
        sandbox=found.engine.name,
        status=AttemptStatus.OK,
        started=started,
        results={},
        environment=_environment(image),
    )
    record = judged(record, judgement, sizes)
    record.save(results / "record.json")
    return record


def _environment(image: EnvironmentImage) -> Environment:
    """What its labels say of its base holds wherever it was moved to."""
    return Environment(
        sandbox=image.engine,
        digest=image.id,
        files=None,
        size_bytes=image.own_bytes,
        digest_s=0.0,
        image=image.id,
        image_digest=image.digest,
        content_digest=image.content,
        base_image=image.base_name,
        base_image_id=image.base_id,
        base_image_digest=image.base_digest,
    )
