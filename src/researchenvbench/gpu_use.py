"""What was seen of a stage's work on GPUs: facts of a record, without what they mean.

`verify.witness` makes them, and `verify.witness.proof` says what they prove.
"""

from __future__ import annotations

from pydantic import Field

from .stored import Stored


class Counted(Stored):
    """What a process has launched on one GPU, as a library within it has counted."""

    gpu: str = Field(description="UUID.")
    kernels: int = 0
    nccl_kernels: int = Field(0, description="Those of them that are NCCL's, by their names.")
    graphs: int = Field(0, description="Launches of graphs, each of any number of kernels.")


class Seen(Stored):
    """What NVML showed of a process on one GPU."""

    gpu: str = Field(description="UUID.")
    memory_bytes: int = Field(0, description="The most of all samples; 0 where NVML says none.")
    percent: int = Field(0, description="The most of the time in which a kernel of it ran.")
    samples: int = 0


class GpuProcess(Stored):
    """A process of the stage that used GPUs, or would have."""

    pid: int = Field(description="On the host.")
    name: str = ""
    seen: tuple[Seen, ...] = ()
    counting: bool | None = Field(
        None, description="Whether its launches were counted; null: no counter was loaded."
    )
    why_not_counted: str = ""
    counted: tuple[Counted, ...] = ()
    libraries: tuple[str, ...] = Field((), description="Which of CUDA's libraries it has mapped.")


class Carried(Stored):
    """What the NVLinks of a GPU carried while the stage ran, for whomever."""

    gpu: str
    sent_bytes: int
    received_bytes: int


class GpuUse(Stored):
    """All that was seen of a stage on GPUs."""

    gpus: tuple[str, ...] = Field((), description="Those that the stage was shown, by UUID.")
    processes: tuple[GpuProcess, ...] = ()
    elsewhere: tuple[GpuProcess, ...] = Field((), description="On GPUs that it was not shown.")
    neighbours: tuple[GpuProcess, ...] = Field((), description="Not the stage's, on its GPUs.")
    unidentified: tuple[GpuProcess, ...] = Field(
        (), description="On its GPUs; whose they are could not be told from outside."
    )
    carried: tuple[Carried, ...] = ()
    sees_processes: bool = Field(
        False, description="Whether a process that is known to compute was seen beforehand."
    )
    counter: str = Field("", description="Why launches were not counted at all; empty: they were.")
    samples: int = 0
    seconds: float = Field(0.0, description="From the first sample to the last.")
    own_seconds: float = Field(0.0, description="Processor time that watching itself took.")
    problem: str = Field("", description="Why nothing more could be seen.")


class Canary(Stored):
    """What the framework by itself did on the GPUs; it decides no verdict."""

    name: str
    passed: bool
    said: str = ""
    seconds: float = 0.0
