"""A build's container becomes an image. It can be interrupted anywhere, and done again."""

from __future__ import annotations

from contextlib import suppress
from typing import TYPE_CHECKING

from ...errors import SandboxError
from ..engines.engine import LABEL, AbsentError
from ..engines.known import known_image
from .clock import now
from .following import COMMANDS, IDLE
from .given import ATTEMPT_KEY
from .keepable import can_commit, names_trouble, size_trouble

if TYPE_CHECKING:
    from ..engines.engine import Engine
    from .journal import Journal

#: Which container an image was made of.
_CONTAINER = f"{LABEL}.container"
_CLEANING_S = 20.0
#: By five gigabytes a minute, of what may be hundreds.
_COMMIT_S = 7200.0


def freeze(engine: Engine, journal: Journal, name: str, disk_limit_bytes: int) -> str | None:
    """Stop a build's container and keep its state as the image `name`.

    What was still running in it is noted in the journal.

    Returns:
        Why there is no image, where that is the doing of what the build has left; else None.

    Raises:
        SandboxError: the container is gone, or the engine fails.
        HostError: there is no room for the image.
    """
    container = journal.container
    state = engine.state(container)
    if state.paused:
        engine.call("unpause", container)
    again = bool(journal.freezing)
    if not again:
        runs = state.running or state.paused
        journal.left = _processes(engine, container) if runs else []
        journal.freezing = now()
        journal.save()
    if state.running or state.paused:
        if not names_trouble(engine, container, journal.image):
            with suppress(SandboxError):  # the agent's own shell and tools do it, or do not
                engine.call(
                    *("exec", container, "/bin/rm", "-rf", COMMANDS), time_limit_s=_CLEANING_S
                )
        engine.call("stop", "--time", "0", container)
    if trouble := names_trouble(engine, container, journal.image):
        return f"no container starts from what the build left: {trouble}"
    if again and _made_of(engine, name) == container:
        return None
    if trouble := size_trouble(engine, container, disk_limit_bytes):
        return trouble
    changes = (
        f"LABEL {LABEL}.kind=environment",
        f"LABEL {_CONTAINER}={container}",
        f"LABEL {ATTEMPT_KEY}=",
    )
    flags = [part for change in changes for part in ("--change", change)]
    arguments = ("commit", *engine.dialect.commit, *flags, container, name)
    try:
        engine.call(*arguments, time_limit_s=_COMMIT_S)
    except AbsentError:
        raise
    except SandboxError as error:
        if not can_commit(engine, journal.image):
            raise
        return f"no image can be made of what the build left: {error.args[0]}"
    return None


def _made_of(engine: Engine, name: str) -> str:
    """The container that the image was made of; empty where there is no such image."""
    try:
        return known_image(engine, name).labels.get(_CONTAINER, "")
    except AbsentError:
        return ""


def _processes(engine: Engine, container: str) -> list[str]:
    """What the build has left running: "pid name", by the container's own counting.

    Where the engine cannot list it, that is what is noted: it must not look like nothing.
    """
    try:
        rows = engine.ask("top", container, *engine.dialect.processes).splitlines()[1:]
    except SandboxError as error:
        return [f"? cannot be listed: {str(error.args[0])[:200]}"]
    found = [row.strip().split(maxsplit=1) for row in rows if row.strip()]
    # The first is the one that the container was started with; zombies have no arguments.
    return [f"{row[0]} {row[1][:100]}" for row in found[1:] if len(row) > 1 and row[1] != IDLE]
