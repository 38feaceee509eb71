"""Runs attempts on this host, some side by side, each in a process of its own.

What such a process does is what `reb job FOLDER` does. If this process ends, however it
ends, the kernel ends the jobs with it, and their supervisors end what they started.
"""

from __future__ import annotations

import contextlib
import sys
import threading
import traceback
from concurrent.futures import Future, ThreadPoolExecutor, wait
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

from ..errors import RebError
from .forks import ForkServer
from .job import run_job

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Sequence

    from .plan import PlannedAttempt

_GRACE_S = 20.0
#: How often an attempt that waits for room looks whether the run is to end.
_LOOK_S = 0.5


def _always(_attempt: str, _beside: Collection[str]) -> str:
    return ""


class Watcher(Protocol):
    """Is told what happens, from the pool's threads."""

    def started(self, attempt: PlannedAttempt) -> None:
        """Work on the attempt begins."""
        ...

    def ended(self, attempt: PlannedAttempt, problem: str) -> None:
        """It ended; `problem` says why there is no record, and is empty where there is."""
        ...


class LocalPool:
    """Up to `workers` attempts at a time. To be made while this process has one thread."""

    def __init__(self, workers: int, room: Callable[[str, Collection[str]], str] = _always) -> None:
        """With `workers` at a time.

        `room` is given the name of an attempt and of those under way, and says why its build may
        not begin, if so.
        """
        self._workers, self._room = workers, room
        self._server = ForkServer(work)
        self._stopping = False
        self._running: set[str] = set()
        self._ended = threading.Condition()

    def run(
        self, attempts: Sequence[PlannedAttempt], watcher: Watcher, *, reverify: bool = False
    ) -> None:
        """Do all that is not done. On KeyboardInterrupt the jobs are ended, then it is raised.

        They have a grace to end what they started; a second KeyboardInterrupt ends them at once.
        """
        futures: list[Future[None]] = []
        with ThreadPoolExecutor(self._workers, thread_name_prefix="attempt") as threads:
            try:
                for attempt in attempts:
                    if not attempt.done:
                        futures.append(threads.submit(self._one, attempt, watcher, reverify))
                for future in futures:
                    future.result()
            except BaseException:
                self._stopping = True
                for future in futures:
                    future.cancel()
                self._server.interrupt()
                wait(futures, _GRACE_S)
                raise
            finally:
                self._server.close()

    def _one(self, attempt: PlannedAttempt, watcher: Watcher, reverify: bool) -> None:
        if problem := self._begin(attempt):
            # Nothing is begun, so that nothing is void: the same command goes on later.
            watcher.ended(attempt, problem)
            return
        try:
            if not self._stopping:
                self._work(attempt, watcher, reverify)
        finally:
            with self._ended:
                self._running.discard(attempt.folder.name)
                self._ended.notify_all()

    def _begin(self, attempt: PlannedAttempt) -> str:
        """Wait until there is room, while others may give some back; why there is none then."""
        name = attempt.folder.name
        with self._ended:
            while attempt.builds and not self._stopping:
                problem = self._room(name, self._running)
                if problem and not self._running:
                    return problem
                if not problem:
                    break
                self._ended.wait(_LOOK_S)
            self._running.add(name)
        return ""

    def _work(self, attempt: PlannedAttempt, watcher: Watcher, reverify: bool) -> None:
        folder = attempt.folder
        folder.path.mkdir(parents=True, exist_ok=True)
        attempt.job.save(folder.job_file)
        folder.events_file.unlink(missing_ok=True)
        problem_file = folder.path.parent / f".{folder.name}.problem"
        problem_file.unlink(missing_ok=True)
        watcher.started(attempt)
        status = self._server.run(str(folder.path), str(problem_file), reverify)
        if self._stopping:
            return
        problem = ""
        if status != 0:
            problem = f"the job ended with {status}"
            with contextlib.suppress(FileNotFoundError):
                problem = problem_file.read_text(encoding="utf-8").strip() or problem
        problem_file.unlink(missing_ok=True)
        watcher.ended(attempt, problem)


def work(folder: str, problem_file: str, reverify: bool) -> None:
    """What a job's process does: both phases of the attempt, and a note of what went wrong."""
    try:
        run_job(Path(folder), "all", reverify=reverify)
    except KeyboardInterrupt:
        raise  # the user's, and no fault
    except (RebError, OSError) as error:
        Path(problem_file).write_text(str(error), encoding="utf-8")
        sys.exit(1)
    except BaseException:
        # A fault of ours: the whole of it is what a bug report needs.
        Path(problem_file).write_text(traceback.format_exc(), encoding="utf-8")
        raise
