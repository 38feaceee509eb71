"""Watching GPUs while a stage runs: who is on them, and how busy, in samples of NVML.

The samples are taken in a thread of the harness, outside of the stage's processes, which
cannot change what the driver says of them. Whose a process is, is asked when it is first seen:
afterwards it may be gone.
"""

from __future__ import annotations

import re
import threading
import time
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Self

from ...gpu.nvml import Nvml, NvmlError, Traffic, nvml
from ...gpu_use import Carried, Seen

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from contextlib import AbstractContextManager
    from types import TracebackType

#: Seconds between two looks at who is on the GPUs, and at how busy they are.
EVERY_S, BUSY_EVERY_S = 0.1, 0.5
_LIBRARIES = re.compile(r"/((?:libcuda|libcudart|libnccl|libtorch_cuda|libcupti)\b[^/\s]*)$")


@dataclass
class Watched:
    """A process that was seen on a GPU."""

    pid: int
    name: str
    inner_pids: tuple[int, ...]  #: its ids in the process namespaces below ours
    is_stage: bool | None  #: None: it could not be told
    libraries: set[str] = field(default_factory=set)
    memory: dict[str, int] = field(default_factory=dict)
    percent: dict[str, int] = field(default_factory=dict)
    samples: dict[str, int] = field(default_factory=dict)

    def seen(self) -> tuple[Seen, ...]:
        """What was seen of it, by GPU."""
        return tuple(
            Seen(
                gpu=gpu,
                memory_bytes=self.memory.get(gpu, 0),
                percent=self.percent.get(gpu, 0),
                samples=self.samples[gpu],
            )
            for gpu in sorted(self.samples)
        )


class Watch:
    """Samples all the host's GPUs from entry to exit; what was seen is there afterwards.

    Args:
        gpus: UUIDs of the GPUs to look at: all of the host, so that use of others is seen.
        belongs: Whether a process is the stage's, asked while it lives until it can be told;
            None: it cannot.
        connect: Opens NVML.
    """

    def __init__(
        self,
        gpus: Sequence[str],
        belongs: Callable[[int], bool | None],
        *,
        connect: Callable[[], AbstractContextManager[Nvml]] = nvml,
    ) -> None:
        self.processes: dict[int, Watched] = {}
        self.carried: tuple[Carried, ...] = ()
        self.problem = ""
        self.samples = 0
        self.seconds = self.own_seconds = 0.0
        self._gpus, self._belongs, self._connect = tuple(gpus), belongs, connect
        self._ended = threading.Event()
        self._began = threading.Event()
        self._thread = threading.Thread(target=self._run, name="gpu-witness", daemon=True)
        self._newest_us: dict[str, int] = {}

    def __enter__(self) -> Self:
        self._thread.start()
        self._began.wait(10.0)
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._ended.set()
        self._thread.join(30.0)
        if self._thread.is_alive():
            self.problem = self.problem or "NVML does not answer"

    def _run(self) -> None:
        started, own = time.monotonic(), time.thread_time()
        try:
            with self._connect() as driver:
                before = {gpu: driver.traffic(gpu) for gpu in self._gpus}
                self._newest_us = {gpu: self._now_us(driver, gpu) for gpu in self._gpus}
                self._began.set()
                next_busy = 0.0
                while True:
                    last = self._ended.is_set()
                    self._look(driver)
                    if last or time.monotonic() >= next_busy:
                        self._look_how_busy(driver)
                        next_busy = time.monotonic() + BUSY_EVERY_S
                    self.samples += 1
                    if last:
                        break
                    self._ended.wait(EVERY_S)
                self.carried = _carried(before, {gpu: driver.traffic(gpu) for gpu in self._gpus})
        except NvmlError as error:
            self.problem = str(error)
        finally:
            self._began.set()
            self.seconds = time.monotonic() - started
            self.own_seconds = time.thread_time() - own

    @staticmethod
    def _now_us(driver: Nvml, gpu: str) -> int:
        """The time of the newest sample so far: what is older is not the stage's."""
        with suppress(NvmlError):
            return max((one.at_us for one in driver.busy(gpu, 0)), default=0)
        return 0

    def _look(self, driver: Nvml) -> None:
        for gpu in self._gpus:
            for pid, memory_bytes in driver.processes(gpu).items():
                one = self._known(pid)
                one.memory[gpu] = max(one.memory.get(gpu, 0), memory_bytes)
                one.samples[gpu] = one.samples.get(gpu, 0) + 1
                one.libraries |= mapped(pid)

    def _look_how_busy(self, driver: Nvml) -> None:
        for gpu in self._gpus:
            try:
                found = driver.busy(gpu, self._newest_us[gpu])
            except NvmlError:
                continue  # this driver does not say; who is there is seen all the same
            for one in found:
                self._newest_us[gpu] = max(self._newest_us[gpu], one.at_us)
                watched = self.processes.get(one.pid)
                if watched:
                    watched.percent[gpu] = max(watched.percent.get(gpu, 0), one.percent)

    def _known(self, pid: int) -> Watched:
        one = self.processes.get(pid)
        if one is None:
            name, inner = _identity(pid)
            one = self.processes[pid] = Watched(pid, name, inner, self._belongs(pid))
        elif one.is_stage is None:
            one.is_stage = self._belongs(pid)
            one.name, one.inner_pids = _identity(pid)
        return one


def _identity(pid: int) -> tuple[str, tuple[int, ...]]:
    """A process's name, and its ids in the namespaces below ours, the innermost last."""
    try:
        text = Path(f"/proc/{pid}/status").read_text(errors="replace")
    except OSError:
        return "", ()
    facts = dict(line.split(":\t", 1) for line in text.splitlines() if ":\t" in line)
    inner = tuple(int(number) for number in facts.get("NSpid", "").split())
    return facts.get("Name", ""), inner


def mapped(pid: int) -> set[str]:
    """Which of CUDA's libraries a process has mapped, by name."""
    try:
        text = Path(f"/proc/{pid}/maps").read_text(errors="replace")
    except OSError:
        return set()
    found = (_LIBRARIES.search(line) for line in text.splitlines())
    return {one.group(1) for one in found if one}


def _carried(
    before: dict[str, Traffic | None], after: dict[str, Traffic | None]
) -> tuple[Carried, ...]:
    """What was carried in between, where the driver counts it."""
    found = []
    for gpu, first in before.items():
        last = after[gpu]
        if first and last:
            sent = last.sent_bytes - first.sent_bytes
            received = last.received_bytes - first.received_bytes
            found.append(Carried(gpu=gpu, sent_bytes=sent, received_bytes=received))
    return tuple(found)
