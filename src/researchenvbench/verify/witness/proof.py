"""What was seen of a stage on GPUs, held against what its parallelism must show.

A pure function of the record: it can be asked again without a GPU. The grades are those of
`docs/protocol.md`.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING

from ...attempt import Owner, Verdict, Want

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from ...gpu_use import GpuProcess, GpuUse

#: Those whose processes talk to each other over NCCL.
COMMUNICATING = frozenset({"ddp", "fsdp", "tensor", "pipeline"})
#: Less than this between two GPUs is no step of a model: the driver's own, or a handshake.
_TRAFFIC_BYTES = 1 << 20


class Grade(StrEnum):
    """How well it is known that a stage computed on a GPU, from the best on."""

    COUNTED = "counted"  #: its launches were counted, and it was seen there from outside
    OBSERVED = "observed"  #: NVML saw kernels of it run
    PRESENT = "present"  #: it had a context there, and nothing more was seen
    NONE = "none"  #: nothing of it was seen there


@dataclass(frozen=True)
class Proof:
    """What the stage has shown, and what follows from it."""

    verdict: Verdict
    grades: Mapping[str, Grade]  #: by UUID of each GPU that the stage was shown
    reason: str = ""
    owner: Owner | None = None
    want: Want | None = None


def prove(use: GpuUse, parallelism: str | None = None) -> Proof:
    """Whether a stage has computed on each GPU that it was shown, as its parallelism must.

    Args:
        use: What was seen.
        parallelism: Of a stage on several GPUs; None for one on a single GPU.
    """
    grades = {gpu: _best(use, gpu) for gpu in use.gpus}
    if use.problem:
        return _unseen(grades, use.problem)
    for gpu in use.gpus:
        if short := _short_of_computing(use, gpu, grades):
            return short
    if parallelism in COMMUNICATING:
        return _talked(use, grades)
    return Proof(Verdict.PASSED, grades)


def _short_of_computing(use: GpuUse, gpu: str, grades: Mapping[str, Grade]) -> Proof | None:
    """What follows where nothing shows that the stage computed on a GPU; None where it did."""
    number = f"GPU {use.gpus.index(gpu)} of the stage" if len(use.gpus) > 1 else "the GPU"
    there = list(_on(use, gpu))
    counting = [process for process, _ in there if process.counting]
    if grades[gpu] is Grade.COUNTED:
        return None
    if there and len(counting) == len(there):
        why = f"no kernel was launched on {number}: the processes there counted 0"
        return Proof(Verdict.FAILED, grades, why, Owner.AGENT)
    if grades[gpu] is Grade.OBSERVED:
        return None
    if grades[gpu] is Grade.NONE and (whose := _unidentified(use, gpu)):
        return _unseen(grades, f"{whose} on {number}, and whose it is cannot be told: {_WHY}")
    if grades[gpu] is Grade.NONE and use.sees_processes:
        claimed = sum(one.kernels for process in use.processes for one in process.counted)
        forged = f", and {claimed} launches are claimed" if claimed else ""
        why = f"no process of the stage was on {number}: it ran on the CPU{forged}"
        if any(grade is not Grade.NONE for grade in grades.values()):
            why = f"no process of the stage was on {number}{forged}"
        return Proof(Verdict.FAILED, grades, why, Owner.AGENT)
    if grades[gpu] is Grade.PRESENT:
        return _unseen(grades, f"a process was on {number}, and whether it computed was not seen")
    why = f"nothing was seen on {number}, by a witness that did not see the preflight's program"
    return _unseen(grades, f"{why} either: {_WHY}")


def _talked(use: GpuUse, grades: Mapping[str, Grade]) -> Proof:
    """Whether a different process on each GPU took part in NCCL's communication."""
    computing = {gpu: {p.pid for p, grade in _graded(use, gpu) if grade in _WORK} for gpu in grades}
    if not _distinct([computing[gpu] for gpu in grades]):
        count = len(set().union(*computing.values()))
        why = f"{count} process computed on {len(grades)} GPUs: each needs one of its own"
        return Proof(Verdict.FAILED, grades, why, Owner.AGENT)
    talking = {
        gpu: {
            process.pid
            for process, grade in _graded(use, gpu)
            if grade is Grade.COUNTED
            and any(one.gpu == gpu and one.nccl_kernels for one in process.counted)
        }
        for gpu in grades
    }
    if _distinct([talking[gpu] for gpu in grades]):
        return Proof(Verdict.PASSED, grades)
    if all(grade is Grade.COUNTED for grade in grades.values()):
        silent = [str(number) for number, gpu in enumerate(use.gpus) if not talking[gpu]]
        where = "any GPU" if len(silent) == len(grades) else f"GPU {', '.join(silent)} of the stage"
        why = f"no kernel of NCCL was launched on {where}: the processes did not talk over it"
        return Proof(Verdict.FAILED, grades, why, Owner.AGENT)
    carried = {one.gpu: min(one.sent_bytes, one.received_bytes) for one in use.carried}
    if all(carried.get(gpu, 0) >= _TRAFFIC_BYTES for gpu in grades):
        return Proof(Verdict.PASSED, grades)
    return _unseen(grades, "whether the processes talked over NCCL could not be seen")


def _unidentified(use: GpuUse, gpu: str) -> str:
    """Who was on a GPU of whom nobody knows whose it is, in words; empty where there is none."""
    pids = [one.pid for one in use.unidentified if any(seen.gpu == gpu for seen in one.seen)]
    return f"process {', '.join(map(str, pids))} was" if pids else ""


#: What such a host lacks.
_WHY = (
    "reb must share the process namespace that the driver counts in, as on the host itself or in "
    "a container with --pid=host, and /proc must show others' processes"
)
_WORK = (Grade.COUNTED, Grade.OBSERVED)


def _unseen(grades: Mapping[str, Grade], why: str) -> Proof:
    return Proof(Verdict.INCONCLUSIVE, grades, f"witness: {why}", Owner.HOST, Want.WITNESS)


def _on(use: GpuUse, gpu: str) -> Iterator[tuple[GpuProcess, int]]:
    """The stage's processes that NVML showed on a GPU, and how busy each was."""
    for process in use.processes:
        for one in process.seen:
            if one.gpu == gpu and one.samples:
                yield process, one.percent


def _graded(use: GpuUse, gpu: str) -> Iterator[tuple[GpuProcess, Grade]]:
    for process, percent in _on(use, gpu):
        launches = sum(one.kernels + one.graphs for one in process.counted if one.gpu == gpu)
        if process.counting and launches:
            yield process, Grade.COUNTED
        elif process.counting:
            yield process, Grade.PRESENT  # it counted, and there was nothing
        else:
            yield process, Grade.OBSERVED if percent else Grade.PRESENT


def _best(use: GpuUse, gpu: str) -> Grade:
    order = list(Grade)
    return min((grade for _, grade in _graded(use, gpu)), key=order.index, default=Grade.NONE)


def _distinct(choices: list[set[int]], taken: frozenset[int] = frozenset()) -> bool:
    """Whether each can have one of its choices that no other has."""
    if not choices:
        return True
    return any(_distinct(choices[1:], taken | {one}) for one in choices[0] - taken)
