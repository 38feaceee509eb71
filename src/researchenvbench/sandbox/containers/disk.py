"""What builds and stages take of the disk that the engine keeps containers on."""

from __future__ import annotations

import shutil
import threading
import time
from contextlib import contextmanager
from typing import TYPE_CHECKING

from ...errors import HostError, LimitReachedError, RebError, SandboxError
from ..engines.engine import AbsentError
from ..engines.storage import storage_of

if TYPE_CHECKING:
    from collections.abc import Iterator

    from ..engines.engine import Engine

_CHECK_S = 2.0
#: Measuring walks over all that was written.
_MEASURE_EVERY_S = 20.0
#: An engine that fails is asked again after a while, and not for ever.
_AGAIN_S = 10.0
_MOST_FAILURES = 3
#: A host whose disk has less left cannot even keep what was built.
_FLOOR_BYTES = 2 << 30


class DiskWatch:
    """Looks at the disk while commands run, and stops the container before it is full."""

    def __init__(
        self, engine: Engine, container: str, limit_bytes: int, *, writer: str = "the build"
    ) -> None:
        self._engine, self._container, self._limit_bytes = engine, container, limit_bytes
        self._writer = writer
        self._measured = time.monotonic()
        self._failures = 0  #: to measure, one after another

    @contextmanager
    def watching(self) -> Iterator[None]:
        """While a command runs, or many do.

        Raises:
            LimitReachedError: they have taken more than they may.
            HostError: the disk is nearly full, and they are within the limit; or what they
                have written cannot be measured, so that the limit does not hold.
        """
        over = threading.Event()
        problems: list[RebError] = []

        def watch() -> None:
            while not over.wait(_CHECK_S):
                problem = self._look()
                if problem is not None:
                    problems.append(problem)
                    if self._stopped():
                        return

        thread = threading.Thread(target=watch, daemon=True)
        thread.start()
        try:
            yield
        except SandboxError as error:
            _end(thread, over)
            if problems:  # then the container has ended because of it
                raise problems[0] from error
            raise
        finally:
            _end(thread, over)
        if problems:
            raise problems[0]

    def _look(self) -> RebError | None:
        """What is wrong with the disk; an engine is asked again before its failure counts."""
        if self._failures and time.monotonic() - self._measured < _AGAIN_S:
            return None
        try:
            problem = self._measure()
        except (RebError, OSError) as error:
            self._failures += 1
            self._measured = time.monotonic()
            if self._failures < _MOST_FAILURES:
                return None
            why = error.args[0] if isinstance(error, RebError) else error
            return HostError(
                f"what {self._writer} takes of the disk cannot be measured: {why}",
                advice="see that the engine answers, then run the same command again",
            )
        self._failures = 0
        return problem

    def _stopped(self) -> bool:
        """Stop the container; where that fails it is tried again at the next look."""
        try:
            self._engine.call("stop", "--time", "1", self._container)
        except AbsentError:
            return True
        except RebError:
            return False
        return True

    def _measure(self) -> RebError | None:
        storage = storage_of(self._engine)
        low = storage is not None and shutil.disk_usage(storage).free < _FLOOR_BYTES
        due = self._failures or time.monotonic() - self._measured >= _MEASURE_EVERY_S
        if not low and not due:
            return None
        used_bytes = written_bytes(self._engine, self._container)
        self._measured = time.monotonic()
        if used_bytes > self._limit_bytes:
            return LimitReachedError(
                f"{self._writer} has written {used_bytes / 1e9:.1f} GB, more than the "
                f"{self._limit_bytes / 1e9:.1f} GB that it may",
                advice="--sandbox-option disk=SIZE allows more",
            )
        if low:
            return HostError(
                f"the disk that holds {storage} is nearly full; {self._writer} had "
                f"written {used_bytes / 1e9:.1f} GB",
                advice="free room on it, or let them take less (--sandbox-option disk=SIZE), "
                "then run the same command again",
            )
        return None


def _end(thread: threading.Thread, over: threading.Event) -> None:
    over.set()
    thread.join()


def written_bytes(engine: Engine, container: str) -> int:
    """What a container has written over its image; nothing where it is gone.

    Raises:
        SandboxError: the engine does not say.
        HostError: it does not answer.
    """
    try:
        said = engine.ask("container", "inspect", "--size", "--format", "{{.SizeRw}}", container)
    except AbsentError:
        return 0
    if not said.isdigit():
        raise SandboxError(f"{engine.name} does not say what a container has written: {said!r}")
    return int(said)
