"""Runs attempts on this host, some side by side, each in a process and session of its own.

The processes are forked from one that has loaded the package once, so that they share its
memory (the standard library's fork server). What they do is what `reb job FOLDER` does. If
this process ends, however it ends, the kernel ends the jobs with it, and their supervisors
end what they started.
"""

from __future__ import annotations

import contextlib
import multiprocessing
import os
import signal
import sys
import threading
import traceback
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, Protocol

from ..errors import RebError
from ..process import die_with_parent

if TYPE_CHECKING:
    from collections.abc import Sequence
    from multiprocessing.context import ForkServerProcess
    from pathlib import Path

    from .plan import PlannedAttempt

_GRACE_S = 20.0
_INTERRUPTED = 130


class Watcher(Protocol):
    """Is told what happens, from the pool's threads."""

    def started(self, attempt: PlannedAttempt) -> None:
        """Work on the attempt begins."""
        ...

    def ended(self, attempt: PlannedAttempt, problem: str) -> None:
        """It ended; `problem` says why there is no record, and is empty where there is."""
        ...


class LocalPool:
    """Up to `workers` attempts at a time."""

    def __init__(self, workers: int) -> None:
        self._workers = workers
        self._context = multiprocessing.get_context("forkserver")
        self._context.set_forkserver_preload(["researchenvbench.run.preloaded"])
        self._processes: dict[str, ForkServerProcess] = {}
        self._lock = threading.Lock()
        self._stopping = False

    def run(
        self, attempts: Sequence[PlannedAttempt], watcher: Watcher, *, reverify: bool = False
    ) -> None:
        """Do all that is not done. On KeyboardInterrupt the jobs are ended, then it is raised."""
        with ThreadPoolExecutor(self._workers, thread_name_prefix="attempt") as threads:
            futures = [
                threads.submit(self._one, attempt, watcher, reverify)
                for attempt in attempts
                if not attempt.done
            ]
            try:
                for future in futures:
                    future.result()
            except BaseException:
                self._stop()
                for future in futures:
                    future.cancel()
                raise

    def _one(self, attempt: PlannedAttempt, watcher: Watcher, reverify: bool) -> None:
        if self._stopping:
            return
        folder = attempt.folder
        folder.path.mkdir(parents=True, exist_ok=True)
        attempt.job.save(folder.job_file)
        folder.events_file.unlink(missing_ok=True)
        problem_file = folder.path.parent / f".{folder.name}.problem"
        problem_file.unlink(missing_ok=True)
        watcher.started(attempt)
        with self._lock:
            if self._stopping:
                return
            process = self._context.Process(
                target=work, args=(folder.path, problem_file, reverify), daemon=True
            )
            process.start()
            self._processes[folder.name] = process
        process.join()
        with self._lock:
            del self._processes[folder.name]
        if self._stopping:
            return
        problem = ""
        if process.exitcode != 0:
            problem = f"the job ended with {process.exitcode}"
            with contextlib.suppress(FileNotFoundError):
                problem = problem_file.read_text(encoding="utf-8").strip() or problem
        problem_file.unlink(missing_ok=True)
        watcher.ended(attempt, problem)

    def _stop(self) -> None:
        with self._lock:
            self._stopping = True
            running = list(self._processes.values())
        for process in running:
            if process.pid is not None:
                with contextlib.suppress(ProcessLookupError):
                    os.kill(process.pid, signal.SIGINT)
        for process in running:
            process.join(_GRACE_S)
            if process.is_alive():
                process.kill()


def work(folder: Path, problem_file: Path, reverify: bool) -> None:
    """What a job's process does: both phases of the attempt, and a note of what went wrong."""
    os.setsid()  # the terminal's Ctrl-C is for `reb run`, which stops its jobs in order
    die_with_parent()
    signal.signal(signal.SIGINT, signal.default_int_handler)
    nothing = os.open(os.devnull, os.O_RDWR)
    for stream in (0, 1, 2):
        os.dup2(nothing, stream)
    from .job import run_job

    try:
        run_job(folder, "all", reverify=reverify)
    except KeyboardInterrupt:
        sys.exit(_INTERRUPTED)
    except (RebError, OSError) as error:
        problem_file.write_text(str(error), encoding="utf-8")
        sys.exit(1)
    except BaseException:
        # A fault of ours: the whole of it is what a bug report needs.
        problem_file.write_text(traceback.format_exc(), encoding="utf-8")
        raise
