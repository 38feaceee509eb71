"""Runs attempts as commands on this host, some side by side.

Each attempt is one `reb job` process, in a session of its own. If this process ends, however
it ends, the kernel ends the jobs with it, and their supervisors end what they started.
"""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import sys
import threading
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, Protocol

from ..process import die_with_parent

if TYPE_CHECKING:
    from collections.abc import Sequence

    from .plan import PlannedAttempt

_GRACE_S = 20.0


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
        self._processes: dict[int, subprocess.Popen[bytes]] = {}
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
        attempt.folder.path.mkdir(parents=True, exist_ok=True)
        attempt.job.save(attempt.folder.job_file)
        attempt.folder.events_file.unlink(missing_ok=True)
        watcher.started(attempt)
        command = [sys.executable, "-m", "researchenvbench", "job", str(attempt.folder.path)]
        if reverify:
            command.append("--reverify")
        with self._lock:
            if self._stopping:
                return
            process = subprocess.Popen(
                command,
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                stderr=subprocess.PIPE,
                start_new_session=True,
                preexec_fn=die_with_parent,  # one call, no locks taken in it
            )
            self._processes[process.pid] = process
        _, said = process.communicate()
        with self._lock:
            del self._processes[process.pid]
        if self._stopping:
            return
        problem = ""
        if process.returncode != 0:
            lines = said.decode(errors="replace").strip().splitlines()
            problem = " ".join(lines[-3:]) or f"the job ended with {process.returncode}"
        watcher.ended(attempt, problem)

    def _stop(self) -> None:
        with self._lock:
            self._stopping = True
            running = list(self._processes.values())
        for process in running:
            with contextlib.suppress(ProcessLookupError):
                os.kill(process.pid, signal.SIGINT)
        for process in running:
            try:
                process.wait(_GRACE_S)
            except subprocess.TimeoutExpired:
                process.kill()
