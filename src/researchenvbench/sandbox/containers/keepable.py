"""Whether what a build has left can be kept as an image, and started from.

An agent may leave what an engine cannot deal with. That is the agent's doing as long as the
engine deals with a container in which nobody was.
"""

from __future__ import annotations

import os
import secrets
import shutil
import signal
import subprocess
import tarfile
import threading
import time
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING

from ... import process
from ...errors import HostError, SandboxError
from ..engines.engine import LABEL
from ..engines.storage import storage_of
from .disk import written_bytes

if TYPE_CHECKING:
    from ..engines.engine import Engine

#: Engines open these to find users and groups, whatever they are: before a program starts,
#: and, podman, before a file is copied. With a pipe there, they wait for ever, and whoever
#: asks for the list of containers waits with them.
_NAMES = ("/etc/passwd", "/etc/group")
#: A copy of one takes a tenth of a second.
_PATIENCE_S = 20.0
#: On a busy host it takes longer, for every container. One is hindered if it takes this many
#: times as long as one in which nobody was, and no less than so long.
_TIMES_SLOWER = 20
_AGAIN_S = 5.0
#: Of a host that gets busier and busier, in which whoever was in the container may have a
#: part, no more is asked in the end.
_TIMES_SLOWER_AT_LEAST = 4
_TRIES = 4
_LONGEST_S = 600.0
#: A file system takes a little more than was written, and some of it is shared.
_HOLES_BYTES = 1 << 30
#: As st_blocks counts.
_BLOCK_BYTES = 512
_SAFE_KINDS = (tarfile.REGTYPE, tarfile.AREGTYPE, tarfile.LNKTYPE, tarfile.SYMTYPE)


def names_trouble(engine: Engine, container: str, image: str) -> str:
    """Why engines cannot look up users in the container; empty where they can.

    Args:
        engine: The container's.
        container: Its id, running or not.
        image: What it was made of: the engine must be able to do the same with that.

    Raises:
        SandboxError: the engine does not answer for any container.
        HostError: it cannot be used.
    """
    for path in _NAMES:
        kind = _kind_of(engine, container, path, _PATIENCE_S)
        if kind is None:
            kind = _kind_after_all(engine, container, path, image)
        if kind is None:
            return f"{' or '.join(_NAMES)} keeps engines waiting, as a pipe does"
        if kind and kind not in _SAFE_KINDS:
            return f"{path} is not a regular file, and engines wait for what is in it"
    return ""


def size_trouble(engine: Engine, container: str, limit_bytes: int) -> str:
    """Why there cannot be room for what was written; empty where there is.

    Raises:
        SandboxError: the engine does not say what was written.
        HostError: the host has too little room for what was really written.
    """
    written = written_bytes(engine, container)
    if written > limit_bytes:
        return (
            f"the build has left {written / 1e9:.1f} GB, more than the {limit_bytes / 1e9:.1f} "
            "GB that it may"
        )
    storage = storage_of(engine)
    free = shutil.disk_usage(storage).free if storage is not None else written
    if written <= free:
        return ""
    real = _real_bytes(engine, container)
    if real is not None and real + _HOLES_BYTES < written / 2:
        return (
            f"the build has left files of {written / 1e9:.1f} GB that are holes for the most "
            f"part; an image would hold them in full, and there are {free / 1e9:.1f} GB"
        )
    raise HostError(
        f"the disk that holds {storage} has {free / 1e9:.1f} GB free, and the image of what "
        f"was built needs {written / 1e9:.1f} GB",
        advice="free room on it, or let builds take less (--sandbox-option disk=SIZE), "
        "then run the same command again",
    )


def can_commit(engine: Engine, image: str) -> bool:
    """Whether the engine makes an image of a container of `image` in which nobody was."""
    name = f"localhost/researchenvbench/probe:{secrets.token_hex(8)}"
    try:
        container = _untouched(engine, image)
        try:
            engine.call("commit", *engine.dialect.commit, container, name)
            engine.call("rmi", name)
        finally:
            engine.remove(container)
    except (SandboxError, HostError):
        return False
    return True


def _kind_after_all(engine: Engine, container: str, path: str, image: str) -> bytes | None:
    """What `_kind_of` says in the end; None only where it is this container that hinders it.

    Raises:
        SandboxError: the engine is slow with any container.
    """
    seconds = _usual_seconds(engine, image)
    for tries in range(1, _TRIES + 1):
        patience_s = max(_AGAIN_S, _TIMES_SLOWER * seconds)
        kind = _kind_of(engine, container, path, patience_s)
        if kind is not None:
            return kind
        seconds = _usual_seconds(engine, image)  # the host may have been busy meanwhile
        times = _TIMES_SLOWER if tries < _TRIES else _TIMES_SLOWER_AT_LEAST
        if times * seconds <= patience_s:
            return None
    raise SandboxError(
        f"{engine.name} cp takes {seconds:.0f} s for any container",
        advice="let other work on this host end, then run the same command again",
    )


def _usual_seconds(engine: Engine, image: str) -> float:
    """How long it takes to copy a file out of a container in which nobody was.

    Raises:
        SandboxError: it does not end.
    """
    container = _untouched(engine, image)
    try:
        started = time.monotonic()
        if _kind_of(engine, container, _NAMES[0], _LONGEST_S) is None:
            raise SandboxError(f"{engine.name} cp does not end, whatever is copied")
        return time.monotonic() - started
    finally:
        engine.remove(container)


def _untouched(engine: Engine, image: str) -> str:
    kind = ("--label", f"{LABEL}.kind=probe")
    return engine.ask("create", "--pull", "never", *kind, "--entrypoint", "", image, "/bin/true")


def _kind_of(engine: Engine, container: str, path: str, patience_s: float) -> bytes | None:
    """The type of a file by its header in an archive; empty: absent; None: nothing came."""
    late = threading.Event()
    with subprocess.Popen(
        engine.argv("cp", f"{container}:{path}", "-"),
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        start_new_session=True,
        # One that waits for ever holds the engine's lock, and `ps` waits with it.
        preexec_fn=process.die_with_parent,
    ) as copying:

        def end() -> None:
            late.set()
            _kill(copying)

        timer = threading.Timer(patience_s, end)
        timer.start()
        try:
            with tarfile.open(fileobj=copying.stdout, mode="r|") as archive:
                member = archive.next()
            found = member.type if member is not None else b""
        except tarfile.TarError:
            found = b""
        finally:
            timer.cancel()
            _kill(copying)
    return None if late.is_set() and not found else found


def _kill(process: subprocess.Popen[bytes]) -> None:
    """With what it has started, which may be what waits."""
    with suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGKILL)


def _real_bytes(engine: Engine, container: str) -> int | None:
    """What a container's own files take of the disk; None where that cannot be seen."""
    try:
        upper = Path(
            engine.ask(
                "container", "inspect", "--format", "{{.GraphDriver.Data.UpperDir}}", container
            )
        )
    except SandboxError:  # another driver, or the container has just gone
        return None
    if not os.access(upper, os.R_OK | os.X_OK):
        return None
    total = 0
    for folder, folders, files in os.walk(upper):
        for name in (*folders, *files):
            with suppress(OSError):
                total += (Path(folder) / name).lstat().st_blocks * _BLOCK_BYTES
    return total
