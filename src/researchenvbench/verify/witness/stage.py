"""The witness of one stage: it counts within, watches from outside, and says what was seen."""

from __future__ import annotations

from contextlib import contextmanager
from dataclasses import replace
from typing import TYPE_CHECKING

from ...errors import SandboxError
from ...gpu_use import Counted, GpuProcess, GpuUse
from .counter import Compiled, compiled, counter_variables
from .counts import SIZE_BYTES, read_counts
from .watch import Watch

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence
    from pathlib import Path

    from ...gpu.inventory import Gpu
    from ...sandbox import StageBox
    from ..interpreter import Interpreter
    from .counts import Counts
    from .watch import Watched


class Witness:
    """Of a stage that runs in `box` and is shown `gpus`."""

    def __init__(
        self,
        box: StageBox,
        gpus: Sequence[Gpu],
        of_host: Sequence[str],
        interpreter: Interpreter | None,
        *,
        sees_processes: bool,
        counts: bool = True,
    ) -> None:
        self._box, self._gpus, self._sees = box, gpus, sees_processes
        self._place = box.layout.tools / "gpu"
        self._counts = self._place / "counts"
        self._watch = Watch(of_host, box.has_process)
        built = compiled() if counts else Compiled(None, "it was left out")
        self._why_not_counted = built.why_none
        self.variables: Mapping[str, str] = {}  #: what nothing in the stage overrides
        if built.library is not None:
            inside = self._place / "counter.so"
            box.put(inside, built.library.read_bytes(), mode=0o755)
            box.put(self._counts / "none", b"")  # so that the folder is there
            self.variables = counter_variables(inside, self._counts, interpreter)

    @contextmanager
    def watching(self) -> Iterator[None]:
        """Watch as long as the context is open."""
        with self._watch:
            yield

    def use(self, into: Path) -> GpuUse:
        """What was seen; call it before the box is closed.

        Args:
            into: A folder of this host for the files of counts.
        """
        watch = self._watch
        found: list[Counts] = []
        trouble = self._why_not_counted
        if self.variables:
            try:
                found = self._collected(into)
            except SandboxError as error:
                trouble = f"the counts cannot be read: {error.args[0]}"
        shown = tuple(gpu.uuid for gpu in self._gpus)
        stage = [one for one in watch.processes.values() if one.is_stage]
        others = [one for one in watch.processes.values() if one.is_stage is False]
        unknown = [one for one in watch.processes.values() if one.is_stage is None]
        found = [_named_as_shown(counts, shown) for counts in found]
        by_pid = {counts.pid: counts for counts in found}
        processes = [_process(one, _counts_of(one, by_pid)) for one in stage]
        known = {one.inner_pids[-1] if one.inner_pids else one.pid for one in stage}
        processes += [_unseen(counts) for counts in found if counts.pid not in known]
        return GpuUse(
            gpus=shown,
            processes=tuple(processes),
            elsewhere=tuple(
                _process(one, None) for one in stage if any(gpu not in shown for gpu in one.samples)
            ),
            neighbours=tuple(
                _process(one, None) for one in others if any(gpu in shown for gpu in one.samples)
            ),
            unidentified=tuple(
                _process(one, None) for one in unknown if any(gpu in shown for gpu in one.samples)
            ),
            carried=tuple(one for one in watch.carried if one.gpu in shown),
            sees_processes=self._sees,
            counter=trouble,
            samples=watch.samples,
            seconds=watch.seconds,
            own_seconds=watch.own_seconds,
            problem=watch.problem,
        )

    def _collected(self, into: Path) -> list[Counts]:
        into.mkdir(parents=True, exist_ok=True)
        found = []
        for file in self._box.collect(str(self._counts / "*.counts"), into):
            if file.size_bytes == SIZE_BYTES:
                counts = read_counts(file.copy.read_bytes())
                found += [counts] if counts else []
            file.copy.unlink()
        return found


def _named_as_shown(counts: Counts, shown: Sequence[str]) -> Counts:
    """With the UUIDs of slices as NVML writes them: the counter has the number alone."""
    slices = {f"GPU-{uuid.partition('-')[2]}": uuid for uuid in shown if uuid.startswith("MIG-")}
    devices = tuple(replace(one, gpu=slices.get(one.gpu, one.gpu)) for one in counts.devices)
    return replace(counts, devices=devices)


def _counts_of(one: Watched, by_pid: Mapping[int, Counts]) -> Counts | None:
    return by_pid.get(one.inner_pids[-1] if one.inner_pids else one.pid)


def _process(one: Watched, counts: Counts | None) -> GpuProcess:
    return GpuProcess(
        pid=one.pid,
        name=one.name,
        seen=one.seen(),
        counting=None if counts is None else counts.counting,
        why_not_counted="" if counts is None or counts.counting else counts.words,
        counted=() if counts is None else _counted(counts),
        libraries=tuple(sorted(one.libraries)),
    )


def _unseen(counts: Counts) -> GpuProcess:
    """A process that says that it launched kernels, and that NVML did not show."""
    return GpuProcess(
        pid=counts.pid,
        counting=counts.counting,
        why_not_counted="" if counts.counting else counts.words,
        counted=_counted(counts),
    )


def _counted(counts: Counts) -> tuple[Counted, ...]:
    return tuple(
        Counted(gpu=one.gpu, kernels=one.kernels, nccl_kernels=one.nccl_kernels, graphs=one.graphs)
        for one in counts.devices
    )
