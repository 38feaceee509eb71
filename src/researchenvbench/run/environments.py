"""Environments as a person keeps house with them: which there are, and which can go."""

from __future__ import annotations

import os
import pwd
import time
from contextlib import suppress
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING

from ..errors import RebError, SandboxError
from ..sandbox import make_sandbox
from ..sandbox.containers.inventory import (
    environment_image,
    environment_images,
    image_ids,
    short_id,
)
from ..sandbox.engines.engine import AbsentError
from ..sandbox.engines.finding import (
    find_engine,
    require_engine,
    tried_engines,
    usable_engines,
)
from ..taskfile import bundled_suites, load_suite
from .cleaning import Item, keeps_a_name, remove_image, why_unneeded
from .store import AttemptFolder, Job, RunFolder, is_attempt

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from ..attempt import Environment
    from ..sandbox.containers.inventory import EnvironmentImage
    from ..sandbox.engines.engine import Engine
    from ..task import Task

_DAY_S = 86400.0


@dataclass(frozen=True)
class Found:
    """An image and the engine that has it."""

    engine: Engine
    image: EnvironmentImage


def find_environment(named: str, engine_name: str | None = None) -> Found:
    """The image that is meant by an attempt's folder, or by an image's name or id.

    Raises:
        RebError: there is none of it, or it is no image.
    """
    folder = Path(named)
    if is_attempt(folder):
        build = AttemptFolder(folder.absolute()).load_build()
        environment = build.environment if build else None
        if environment is None:
            raise RebError(f"{folder}: nothing was built here", advice="reb run builds attempts")
        if environment.unusable is not None:
            raise RebError(
                f"{folder}: there is no image of its environment: {environment.unusable}"
            )
        if environment.image is None:
            raise RebError(
                f"{folder}: its environment is no image but a folder of this host (sandbox "
                f"{environment.sandbox}), and works at this place only",
                advice="build it in a container to move it: reb run SUITE --sandbox podman",
            )
        engine = find_engine(environment.sandbox)
        try:
            return Found(engine, environment_image(engine, environment.image))
        except AbsentError:
            raise RebError(
                f"{folder}: its environment {short_id(environment.image)} is not in the storage "
                f"of {engine.name} that {user_name(os.getuid())} uses here: it was removed, or is "
                "another user's or another storage's",
                advice=f"look as the user who built it{_whose(folder)}: {engine.name} image ls; "
                "else build it again: reb run with the options of its run and another --out; or "
                "reb env import, where a file of it was kept",
            ) from None
    if folder.is_dir():
        raise RebError(
            f"{folder} is no attempt of a run; they lie in RUN/attempts/",
            advice="or give an image: reb env list",
        )
    engines = [find_engine(engine_name)] if engine_name else usable_engines()
    if not engines:
        require_engine(None)
    lack, troubles = [], []
    for engine in engines:
        try:
            return Found(engine, environment_image(engine, named))
        except AbsentError:
            lack.append(engine.name)
        except SandboxError:
            raise  # it is no environment, or no name
        except RebError as error:
            troubles.append(error)
    if not lack:
        raise troubles[0]
    others = "".join(f"; {error.args[0]}" for error in troubles)
    raise RebError(
        f"{' and '.join(lack)} {'has' if len(lack) == 1 else 'have'} no environment "
        f"{named}{others}",
        advice="reb env list shows them",
    )


def all_environments(
    engine_name: str | None = None, *, say: Callable[[str], None] = lambda _: None
) -> list[Found]:
    """Those that the engines of this host keep, newest first.

    Args:
        engine_name: The one to ask; default: all.
        say: Gets why an engine of this host was not asked, or that there is none.

    Raises:
        RebError: that one does not answer, or none of those that are installed.
    """
    engines, troubles = tried_engines() if engine_name is None else ([find_engine(engine_name)], [])
    found = []
    asked = False
    for engine in engines:
        try:
            found += [Found(engine, image) for image in environment_images(engine)]
            asked = True
        except RebError as error:
            troubles.append(error)
    if troubles and not asked:
        raise troubles[0]
    for trouble in troubles:
        say(f"not shown: {trouble.args[0]}")
    if not asked:
        say("neither podman nor docker is installed, so no engine was asked")
    return sorted(found, key=lambda entry: entry.image.created, reverse=True)


def absent_environments(
    environments: Mapping[Path, Environment], *, say: Callable[[str], None] = lambda _: None
) -> set[Path]:
    """Those attempts whose environment this user does not have here, of these by folder."""
    local = {folder: one for folder, one in environments.items() if one.sandbox == "local"}
    absent = {folder for folder in local if not make_sandbox("local").holds(folder)}
    images = {folder: one for folder, one in environments.items() if one.image is not None}
    for name in sorted({one.sandbox for one in images.values()}):
        try:
            there = image_ids(find_engine(name))
        except RebError as error:
            say(f"whether images are still there is not known: {error.args[0]}")
            continue
        absent |= {
            folder
            for folder, one in images.items()
            if one.sandbox == name and one.image not in there
        }
    return absent


def user_name(uid: int) -> str:
    """What a user is called here; the number of one without a name."""
    try:
        return pwd.getpwuid(uid).pw_name
    except KeyError:
        return f"user {uid}"


def _whose(attempt: Path) -> str:
    """Whose an attempt's folder is, in words; empty where it is this user's or cannot be told."""
    with suppress(OSError):
        uid = attempt.stat().st_uid
        if uid != os.getuid():
            return f" ({user_name(uid)}, by the folder)"
    return ""


def task_of(image: EnvironmentImage) -> str:
    """What `--task` takes for an environment, as far as it is known; else SUITE and NAME."""
    if image.attempt is not None and is_attempt(image.attempt):
        with suppress(RebError):
            job = Job.load(AttemptFolder(image.attempt).job_file)
            bundled = job.suite in bundled_suites() and load_suite(job.suite).folder
            if bundled and Path(job.task_folder).is_relative_to(bundled):
                return f"{job.suite}/{job.task}"
            return job.task_folder
    task = image.task
    if not task:
        return "SUITE/NAME"
    for suite in bundled_suites():
        with suppress(RebError):
            if any(known.name == task for known in load_suite(suite).tasks):
                return f"{suite}/{task}"
    return f"SUITE/{task}"


def other_task(image: EnvironmentImage, task: Task) -> str:
    """For which other task an image was built, as far as it says so; empty where for `task`."""
    return "" if image.task in ("", task.name) else task_of(image).removeprefix("SUITE/")


def other_task_of_folder(folder: Path, task: Task) -> str:
    """For which other task an attempt was built that holds `folder`; empty where none is."""
    for place in folder.absolute().parents:
        if is_attempt(place):
            with suppress(RebError):
                job = Job.load(AttemptFolder(place).job_file)
                return "" if job.task == task.name else f"{job.suite}/{job.task}"
    return ""


def prune(
    found: Sequence[Found],
    *,
    run: Path | None = None,
    older_than_days: float | None = None,
    dry_run: bool = False,
) -> list[Item]:
    """Remove environments; what stays is said with the reason.

    Without `run` and `older_than_days` those go whose attempt is gone; with them those that
    are of the run, and older; of what is not of the run nothing is said. Imported ones, those
    with a name of their own, and those that a run is working on stay always.
    """
    mine = None if run is None else {folder.path.resolve() for folder in RunFolder(run).attempts()}
    items = []
    for entry in found:
        image = entry.image
        if mine is not None and (image.attempt is None or image.attempt.resolve() not in mine):
            continue
        if stays := keeps_a_name(image):
            why_not = stays
        elif older_than_days is not None and _age_days(image) <= older_than_days:
            why_not = f"it is {_age_days(image):.1f} days old"
        elif mine is None and older_than_days is None and not why_unneeded(image):
            why_not = f"it is the environment of {image.attempt}"
        else:
            why = why_unneeded(image) or f"asked for; it is {_age_days(image):.1f} days old"
            items.append(remove_image(entry.engine, image, why, dry_run=dry_run))
            continue
        items.append(
            Item(f"{image.engine} environment", image.called, "kept", why_not, image.own_bytes)
        )
    return items


def _age_days(image: EnvironmentImage) -> float:
    created = datetime.fromisoformat(image.created).timestamp()
    return max(0.0, time.time() - created) / _DAY_S
