"""Can this host do what a GPU stage needs? It is asked with a case that is known to be good.

Before an agent is blamed, the driver alone has each GPU run a kernel and copy to the others
(`standalone.cuda`), and shared memory and a socket are tried, by which NCCL's processes talk.
The same program shows whether the witness sees who computes. Nothing of the judged environment
has a part in it.
"""

from __future__ import annotations

import functools
import json
import mmap
import os
import secrets
import socket
import tempfile
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from .. import process
from ..errors import SandboxError
from ..gpu.nvml import NvmlError, nvml
from ..standalone.tree import descends
from .witness.watch import Watch

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from ..gpu.inventory import Gpu

#: How long the program computes, so that NVML, which samples, must see it.
BUSY_S = 1.2
_TIME_LIMIT_S = 90.0
_SHARED_BYTES = 64 * 1024 * 1024
_STEPS = {
    "driver": "open the driver",
    "initialise": "initialise the driver",
    "context": "make a context on GPU {0}",
    "kernel": "run a kernel on GPU {0}",
    "copy": "copy from GPU {0} to GPU {1}",
    "busy": "keep GPU {0} busy",
}


@dataclass(frozen=True)
class Preflight:
    """What the host can do."""

    problem: str = ""  #: why no stage can be judged on these GPUs; empty: it can
    between: str = ""  #: why no stage can be judged on several of them together
    sees_processes: bool = False  #: whether NVML showed the program that is known to compute
    sees_busy: bool = False  #: and how busy it was
    facts: Mapping[str, Any] = field(default_factory=dict)  #: for the record and for people

    def cause(self, gpus: int) -> str:
        """Why a stage on so many of the GPUs cannot be judged; empty where it can."""
        return self.problem or (self.between if gpus > 1 else "")


@functools.cache
def preflight(gpus: Sequence[Gpu], variables: tuple[tuple[str, str], ...] = ()) -> Preflight:
    """Look once, and remember it as long as this process lives.

    Args:
        gpus: Those to try, as a tuple.
        variables: The declared host variables, which every process that uses GPUs must get.
    """
    return look(gpus, dict(variables))


def look(gpus: Sequence[Gpu], variables: Mapping[str, str]) -> Preflight:
    """Look now, whatever was found before.

    Raises:
        SandboxError: no program can be started.
    """
    names = {_as_cuda_says(gpu): gpu.number for gpu in gpus}
    environment = {
        **process.STAND_ALONE_ENV,
        **variables,
        "CUDA_VISIBLE_DEVICES": ",".join(gpu.uuid for gpu in gpus),
    }
    if folders := os.environ.get("LD_LIBRARY_PATH"):
        environment["LD_LIBRARY_PATH"] = folders  # some hosts have the driver's libraries there
    facts: dict[str, Any] = {"gpus": [f"{gpu.number}: {gpu.name}" for gpu in gpus]}
    with tempfile.TemporaryDirectory(prefix="reb-preflight-") as name:
        log = Path(name) / "log"
        argv = [*process.stand_alone("cuda"), str(secrets.randbelow(1 << 31)), str(BUSY_S)]
        with Watch([gpu.uuid for gpu in gpus], lambda pid: descends(pid, os.getpid())) as watch:
            finished = process.run(
                argv, cwd=Path(name), env=environment, log=log, time_limit_s=_TIME_LIMIT_S
            )
        lines = log.read_text(errors="replace").splitlines() if log.exists() else []
    steps = [step for line in lines if (step := _step(line)) is not None]
    problem, between = _problems(steps, names, timed_out=finished.timed_out)
    ended = finished.timed_out or (steps and steps[-1].get("step") == "end")
    if not problem and not ended:
        problem = f"the driver's own program ended early: {' '.join(lines[-1:])[:200]}"
    mine = [one for one in watch.processes.values() if one.is_stage]
    facts |= {"copies": _copies(steps, names), **_versions()}
    if len(gpus) > 1:
        between = between or _no_shared_memory() or _no_socket()
    return Preflight(
        problem=problem,
        between=between,
        sees_processes={gpu.uuid for gpu in gpus} <= {gpu for one in mine for gpu in one.samples},
        sees_busy=any(percent for one in mine for percent in one.percent.values()),
        facts=facts,
    )


def _as_cuda_says(gpu: Gpu) -> str:
    """The UUID as our program writes what CUDA says, which knows no kinds of them."""
    return f"GPU-{gpu.uuid.partition('-')[2]}"


def _step(line: str) -> dict[str, Any] | None:
    try:
        step = json.loads(line)
    except ValueError:
        return None
    return step if isinstance(step, dict) and isinstance(step.get("on"), list) else None


def _problems(
    steps: Sequence[dict[str, Any]], names: Mapping[str, str], *, timed_out: bool
) -> tuple[str, str]:
    """(what is wrong with a GPU, what is wrong between several of them)."""
    problem = between = ""
    for step in steps:
        if "failed" not in step:
            continue
        words = f"this host cannot {_words(step, names)}: {step['failed']}"
        if step["step"] == "copy":
            between = between or words
        else:
            problem = problem or words
    last = steps[-1] if steps else None
    if timed_out and last is not None and not {"done", "failed"} & last.keys():
        words = f"this host hangs when asked to {_words(last, names)}"
        if last["step"] == "copy":
            return problem, between or words
        problem = problem or words
    return problem, between


def _words(step: Mapping[str, Any], names: Mapping[str, str]) -> str:
    on = [names.get(str(one), str(one)) for one in step["on"]] + ["?", "?"]
    return _STEPS.get(str(step["step"]), str(step["step"])).format(*on)


def _copies(steps: Sequence[dict[str, Any]], names: Mapping[str, str]) -> dict[str, str]:
    return {
        " to ".join(names.get(str(one), str(one)) for one in step["on"]): str(step["done"])
        for step in steps
        if step["step"] == "copy" and step.get("done")
    }


def _versions() -> dict[str, Any]:
    try:
        with nvml() as driver:
            cards = driver.cards()
            return {
                "driver": driver.driver(),
                "cuda": ".".join(map(str, driver.cuda())),
                "persistence": [card.persistent for card in cards],
                "free_bytes": [card.free_bytes for card in cards],
            }
    except NvmlError as error:
        return {"nvml": str(error)}


def _no_shared_memory() -> str:
    """Why processes cannot share memory as NCCL does; empty where they can."""
    try:
        with tempfile.TemporaryFile(dir="/dev/shm") as stream:  # what is tried
            os.posix_fallocate(stream.fileno(), 0, _SHARED_BYTES)
            with mmap.mmap(stream.fileno(), _SHARED_BYTES) as memory:
                memory[-1] = 7
    except OSError as error:
        need = _SHARED_BYTES >> 20
        return f"this host's /dev/shm cannot hold the {need} MB that NCCL shares: {error.strerror}"
    return ""


def _no_socket() -> str:
    """Why processes cannot meet over a socket; empty where they can."""
    try:
        with socket.create_server(("127.0.0.1", 0)) as server:
            address = server.getsockname()
            with socket.create_connection(address, timeout=5.0):
                pass
    except OSError as error:
        return f"this host's processes cannot meet on 127.0.0.1: {error.strerror or error}"
    return ""


def told(gpus: Sequence[Gpu], variables: Mapping[str, str]) -> Preflight:
    """As `preflight`; a host on which no program can be started is a problem too."""
    try:
        return preflight(tuple(gpus), tuple(sorted(variables.items())))
    except SandboxError as error:
        return Preflight(problem=str(error.args[0]))
