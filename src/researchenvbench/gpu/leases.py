"""GPUs for one stage at a time: all that it asks for or none, first come, first served.

A lease is a lock on one file a GPU, in a folder that all users of this host share; the kernel
frees it when its holder ends, in whatever way. Who waits stands in a queue of such locks, and
only the first of it looks for free GPUs, so that nobody is overtaken. GPUs on which programs of
others run are not given: who they are is said while it waits.
"""

from __future__ import annotations

import fcntl
import json
import os
import tempfile
import time
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import IO, TYPE_CHECKING

from ..errors import HostError
from .nvml import NvmlError, nvml

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence
    from contextlib import AbstractContextManager

    from .inventory import Gpu
    from .nvml import Nvml

_LOOK_S = 0.2
_SAY_S = 30.0


class NoLeaseError(HostError):
    """The GPUs did not become free in time; the text says who holds them."""


def lease_folder() -> Path:
    """Where the locks of this host are: the same folder for all its users."""
    system = Path("/run/lock")
    parent = system if os.access(system, os.W_OK) else Path(tempfile.gettempdir())
    return parent / "researchenvbench-gpus"


@contextmanager
def leased(
    count: int,
    choose_from: Sequence[Gpu],
    *,
    time_limit_s: float,
    whose: str,
    say: Callable[[str], None] = lambda _: None,
    folder: Path | None = None,
    connect: Callable[[], AbstractContextManager[Nvml]] = nvml,
) -> Iterator[tuple[Gpu, ...]]:
    """Hold `count` of the GPUs, which are nobody else's as long as the context is open.

    Args:
        count: How many.
        choose_from: Those that this process may use; the first that are free are taken.
        time_limit_s: How long to wait for them.
        whose: In words, for others who wait.
        say: Told now and then what is waited for.
        folder: Where the locks are; default: the host's.
        connect: Opens NVML.

    Raises:
        NoLeaseError: they were not free in time.
        HostError: the folder of the locks cannot be used.
    """
    place = folder or lease_folder()
    started = time.monotonic()
    with ExitStack() as held:
        try:
            _share(place)
            waiting = held.enter_context(_ticket(place, whose))
            said_at = -_SAY_S
            while True:
                why = "others came first"
                if waiting.is_first():
                    taken, why = _take(place, count, choose_from, whose, connect)
                    if taken is not None:
                        held.enter_context(taken[1])
                        break
                waited_s = time.monotonic() - started
                if waited_s >= time_limit_s:
                    names = "GPU" if count == 1 else f"{count} GPUs at once"
                    raise NoLeaseError(
                        f"no {names} free within {time_limit_s:.0f} s: {why}",
                        advice="run again when they are free, or choose others: --gpus",
                    )
                if waited_s - said_at >= _SAY_S:
                    said_at = waited_s
                    say(f"waiting for {count} of {len(choose_from)} GPUs: {why}")
                time.sleep(min(_LOOK_S, max(0.01, time_limit_s - waited_s)))
            waiting.leave()
        except OSError as error:
            raise HostError(
                f"GPUs cannot be leased: {place}: {error.strerror or error}",
                advice="the folder must be one that every user of the host may write in",
            ) from error
        yield taken[0]


def _take(
    place: Path,
    count: int,
    choose_from: Sequence[Gpu],
    whose: str,
    connect: Callable[[], AbstractContextManager[Nvml]],
) -> tuple[tuple[tuple[Gpu, ...], ExitStack] | None, str]:
    """(the GPUs with their locks, or None; who has the others)."""
    chosen: list[Gpu] = []
    reasons: list[str] = []
    with ExitStack() as locks:
        for gpu in choose_from:
            stream = locks.enter_context(_open(place / f"{gpu.uuid}.lease"))
            if not _locked(stream):
                reasons.append(f"GPU {gpu.number} is leased to {_words(stream)}")
                continue
            if others := _programs(gpu, connect):
                fcntl.flock(stream, fcntl.LOCK_UN)
                reasons.append(f"GPU {gpu.number} is used by {others}")
                continue
            _write(stream, whose)
            chosen.append(gpu)
            if len(chosen) == count:
                return (tuple(chosen), locks.pop_all()), ""
    return None, "; ".join(reasons) or f"there are {len(choose_from)}"


def _programs(gpu: Gpu, connect: Callable[[], AbstractContextManager[Nvml]]) -> str:
    """Who computes on a GPU that nobody has leased, in words; empty where nobody does."""
    try:
        with connect() as driver:
            found = driver.processes(gpu.uuid)
    except NvmlError:
        return ""  # who is there cannot be seen; the preflight says that it cannot
    words = []
    for pid, memory_bytes in sorted(found.items()):
        name = "a program"
        with suppress(OSError):
            name = Path(f"/proc/{pid}/comm").read_text(errors="replace").strip()
        words.append(f"{name} ({pid}, {memory_bytes / 1e9:.1f} GB)")
    return ", ".join(words)


@dataclass
class _Ticket:
    """A place in the queue."""

    path: Path
    stream: IO[str]

    def is_first(self) -> bool:
        """Whether nobody who still waits came before."""
        for path in sorted(self.path.parent.glob("*.waits")):
            if path == self.path:
                return True
            with suppress(FileNotFoundError), _open(path, make=False) as stream:
                if not _locked(stream):
                    return False
                with suppress(OSError):
                    path.unlink()  # whoever waited has ended
        return True

    def leave(self) -> None:
        """Let the next look."""
        with suppress(OSError):
            self.path.unlink()
        self.stream.close()


@contextmanager
def _ticket(place: Path, whose: str) -> Iterator[_Ticket]:
    """The last place in the queue, as long as the context is open or until it is left."""
    with _open(place / "queue.lock") as queue:
        fcntl.flock(queue, fcntl.LOCK_EX)
        path = place / f"{time.time_ns():020d}-{os.getpid()}.waits"
        stream = _open(path)
        fcntl.flock(stream, fcntl.LOCK_EX)
        _write(stream, whose)
    ticket = _Ticket(path, stream)
    try:
        yield ticket
    finally:
        ticket.leave()


def _share(place: Path) -> None:
    """Make the folder, in which each user of the host may make files and none removes others'."""
    with suppress(FileExistsError):
        place.mkdir()
        place.chmod(0o1777)


def _open(path: Path, *, make: bool = True) -> IO[str]:
    flags = os.O_RDWR | os.O_NOFOLLOW | os.O_CLOEXEC
    if make and not path.exists():
        # A umask must not keep others from locking it.
        with suppress(FileExistsError):
            handle = os.open(path, flags | os.O_CREAT | os.O_EXCL, 0o666)
            with suppress(OSError):
                os.fchmod(handle, 0o666)
            return os.fdopen(handle, "r+")
    return os.fdopen(os.open(path, flags), "r+")


def _locked(stream: IO[str]) -> bool:
    try:
        fcntl.flock(stream, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


def _write(stream: IO[str], whose: str) -> None:
    stream.seek(0)
    stream.truncate()
    json.dump({"pid": os.getpid(), "whose": whose, "since": time.time()}, stream)
    stream.flush()


def _words(stream: IO[str]) -> str:
    """Who holds a lock, as its file says."""
    try:
        facts = json.loads(stream.read(4096))
        minutes = (time.time() - float(facts["since"])) / 60
        return f"{facts['whose']} (process {int(facts['pid'])}, for {minutes:.0f} min)"
    except (ValueError, KeyError, TypeError):
        return "somebody"
