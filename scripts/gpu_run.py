"""How gpu_acceptance.py runs its cases."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
import textwrap
import threading
import time
from contextlib import ExitStack, nullcontext
from dataclasses import asdict, dataclass, field, replace
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING

from gpu_cases import EXTENSION, HANGS, HEAD, TWO, Case
from gpu_suite import installed

from researchenvbench.attempt import Level, LevelResult
from researchenvbench.evidence import OutputEvidence
from researchenvbench.gpu.inventory import GpuInventory, inventory
from researchenvbench.gpu.leases import leased
from researchenvbench.gpu.nvml import nvml
from researchenvbench.run.found import run_as_found, subject_as_found
from researchenvbench.run.verification import verify
from researchenvbench.source import snapshot_in_place
from researchenvbench.task import FolderSource, Stage, StageName, Task
from researchenvbench.verify import device
from researchenvbench.verify.probes.device import matrices

if TYPE_CHECKING:
    from collections.abc import Sequence


@dataclass
class Outcome:
    """What a case came to."""

    case: str
    as_it_must: bool
    verdict: str
    owner: str | None
    reason: str
    must: str
    seconds: float = 0.0
    grades: list[str] = field(default_factory=list)
    seen: list[dict[str, object]] = field(default_factory=list)
    advice: str = ""


def left_out(name: str, why: str) -> Outcome:
    """A case that this host cannot be asked."""
    return Outcome(name, True, "left out", None, why, "")


def search_path() -> str:
    """PATH, and where toolkits of CUDA keep their compiler: PATH need not have it."""
    home = os.environ.get("CUDA_HOME") or os.environ.get("CUDA_PATH") or "/usr/local/cuda"
    return os.pathsep.join([os.environ.get("PATH", os.defpath), f"{home}/bin"])


def lacking(case: Case) -> str:
    """What this host lacks of what a case needs, in words; empty: nothing."""
    path = search_path()
    absent = [one for one in case.needs if not (shutil.which(one, path=path) or find_spec(one))]
    return f"this host has no {', '.join(absent)}" if absent else ""


def run_case(case: Case, folder: Path, name: StageName = StageName.SINGLE_GPU) -> Outcome:
    """Judge one program, as a repository with one stage."""
    if why := lacking(case):
        return left_out(case.name, why)
    if case.shm_mb and not os.environ.get("REB_SMALL_SHM"):
        return _with_small_shm(case, folder)
    repo = folder / "repository"
    repo.mkdir(parents=True)
    (repo / "train.py").write_text(HEAD + textwrap.dedent(case.program) + "\n")
    stage = Stage(
        command=case.command,
        time_limit_s=case.limit_s,
        evidence=(OutputEvidence(kind="output", pattern="loss"),),
        parallelism=case.parallelism if name is StageName.MULTI_GPU else None,
        launcher="python",
        env=dict(case.env),
    )
    task = Task(
        schema=1,
        name="case",
        domain="tests",
        source=FolderSource(kind="folder", path=str(repo)),
        frameworks=("torch",),
        stages={name: stage},
        folder=repo,
    )
    snapshot = snapshot_in_place(repo)
    subject = subject_as_found(repo, sys.executable, task, folder / "out", snapshot)
    with ExitStack() as meanwhile:
        if case.neighbour:
            meanwhile.callback(Neighbour().end)
        waiting = Next(task.gpus(name)) if case.next_within_s else None
        result = run_as_found(subject, name, canaries=case.canaries)
        next_s = waiting.after(time.monotonic()) if waiting else None
    return held_against(case, result, next_s)


def held_against(case: Case, result: LevelResult, next_s: float | None = None) -> Outcome:
    """The result beside what it must be."""
    use = result.gpu_use
    grades = [result.gpu_grades.get(gpu, "none") for gpu in use.gpus] if use else []
    stayed = [one.what for one in result.findings if one.kind == "gpu-not-freed"]
    said = bool(re.search(case.words, result.reason)) if case.words else not result.reason
    good = (
        result.verdict == case.verdict
        and (result.owner or None) == (case.owner or None)
        and said
        and (not case.grades or tuple(grades) == case.grades)
        and (next_s is None or next_s <= case.next_within_s)
        and not (case.next_within_s and stayed)
    )
    within = f"next within {case.next_within_s:.0f} s" if case.next_within_s else ""
    owner = f"({case.owner})" if case.owner else ""
    must = " ".join(filter(None, [case.verdict, owner, case.words, within]))
    pause = "" if next_s is None else f"next after {next_s:.2f} s"
    reason = "; ".join(filter(None, [pause, *stayed, result.reason]))
    seen = [process.model_dump(mode="json") for process in use.processes] if use else []
    by = str(result.owner) if result.owner else None
    return Outcome(case.name, good, str(result.verdict), by, reason, must, result.seconds, grades,
                   seen, result.advice)  # fmt: skip


def _with_small_shm(case: Case, folder: Path) -> Outcome:
    """The case in a mount namespace of its own, whose /dev/shm is small."""
    folder.mkdir(parents=True)
    told = folder / "outcome.json"
    mount = f"mount -t tmpfs -o size={case.shm_mb}m none /dev/shm"
    own = [sys.executable, __file__, case.name, str(folder / "inner"), str(told)]
    argv = ["unshare", "--mount", "sh", "-c", f'{mount} && exec "$@"', "sh", *own]
    environment = {**os.environ, "REB_SMALL_SHM": "1"}
    done = subprocess.run(argv, env=environment, capture_output=True, text=True, check=False)
    if not told.exists():
        why = (done.stderr.strip().splitlines() or ["it ended"])[-1]
        return left_out(case.name, f"no namespace with a small /dev/shm: {why[:200]}")
    return Outcome(**json.loads(told.read_text()))


class Next:
    """Whoever waits for the GPUs of a stage that runs."""

    def __init__(self, count: int) -> None:
        self._had = 0.0
        self._failed = ""
        self._thread = threading.Thread(target=self._wait, args=(count,))
        self._thread.start()

    def _wait(self, count: int) -> None:
        time.sleep(4.0)  # the stage has them first
        choice = inventory().for_stage(count)
        with leased(count, choice, time_limit_s=600.0, whose="the next stage"):
            self._had = time.monotonic()

    def after(self, ended: float) -> float:
        """Seconds from the end of the stage's lease until it had them."""
        self._thread.join()
        return self._had - ended if self._had else float("inf")


class Neighbour:
    """A program of somebody else's that takes most of a GPU's memory once a stage is on it."""

    def __init__(self) -> None:
        self._program: subprocess.Popen[bytes] | None = None
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._come)
        self._thread.start()

    def _come(self) -> None:
        first: dict[int, float] = {}
        gpu = inventory().gpus[0].uuid
        with nvml() as driver:
            while not self._ended.wait(0.3):
                now = time.monotonic()
                first = {pid: first.get(pid, now) for pid in driver.processes(gpu)}
                # The preflight's program is gone by then.
                if any(now - since > 4.0 for since in first.values()):
                    break
            else:
                return
        code = (
            "import torch, time\n"
            "free, _ = torch.cuda.mem_get_info(0)\n"
            "much = torch.empty(int(free * 0.9), dtype=torch.uint8, device='cuda:0')\n"
            "time.sleep(300)\n"
        )
        self._program = subprocess.Popen([sys.executable, "-c", code])

    def end(self) -> None:
        """Leave."""
        self._ended.set()
        self._thread.join()
        if self._program:
            self._program.kill()
            self._program.wait()


def recorded() -> list[Outcome]:
    """C2 on answers that no wheel here gives: a real answer, changed where the case differs."""
    card = inventory().gpus[:1]
    seed = "recorded"
    left, right = matrices(seed)
    product = [[sum(a * b for a, b in zip(row, column, strict=True))
                for column in zip(*right, strict=True)] for row in left]  # fmt: skip
    this = {"architecture": card[0].architecture, "product": product, "name": card[0].name}
    good = {"seed": seed, "version": "2", "cuda": "12.4", "devices": [this],
            "architectures": ["sm_80", card[0].architecture]}  # fmt: skip
    cases = [
        ("torch that fits (recorded)", good, ""),
        (
            "torch whose architectures lack the card",
            {**good, "architectures": ["sm_60"]},
            "not for",
        ),
        ("torch without CUDA", {**good, "cuda": None, "devices": []}, "built without CUDA"),
        ("torch for a newer CUDA", {**good, "cuda": "99.0", "devices": []}, "supports CUDA up to"),
    ]
    host = GpuInventory(card, inventory().driver, inventory().cuda)
    outcomes = []
    for name, answer, words in cases:
        read = device._Answer.model_validate(answer)
        said = device._judge(read, seed, host)
        good_one = words in said if words else not said
        verdict = "failed" if said else "passed"
        must = f"failed (agent) {words}" if words else "passed"
        owner = "agent" if said else None  # as `check_devices` makes of what is said
        outcomes.append(Outcome(f"C2: {name}", good_one, verdict, owner, said, must))
    return outcomes


def stubbed(folder: Path) -> Outcome:
    """C2 of an environment whose torch is an empty package."""
    prefix = folder / "stub"
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", prefix], check=True)
    (site,) = prefix.glob("lib/python*/site-packages")
    (site / "torch").mkdir()
    (site / "torch/__init__.py").write_text("__version__ = '2.11.0'\n")
    python = str(prefix / "bin/python")
    return c2("C2: a stub called torch", python, folder, "failed", "agent", "it is a stub")


def c2(
    name: str, python: str, folder: Path, verdict: str, owner: str | None = None, words: str = ""
) -> Outcome:
    """C2 of an environment, held against what it must be."""
    repo = folder / "empty"
    repo.mkdir(parents=True, exist_ok=True)
    task = Task(schema=1, name="c2", domain="tests", frameworks=("torch",), stages={},
                source=FolderSource(kind="folder", path=str(repo)), folder=repo)  # fmt: skip
    out = folder / f"out-{verdict}"
    result = verify(repo, python, task=task, levels=(Level.C2,), out=out).results[Level.C2]
    return held_against(Case(name, "", verdict, words, owner), result)


def hang(case: Case, folder: Path) -> Outcome:
    """A launcher whose program hangs, on two GPUs where they are there."""
    count = min(2, len(inventory().for_stage(2)))
    name = StageName.MULTI_GPU if count > 1 else StageName.SINGLE_GPU
    # What never came to its hang shows nothing: it has computed on each GPU before.
    case = replace(case, parallelism="ddp", grades=("counted",) * count)
    hides = "lightning" in case.needs and not lacking(case)
    with installed([], None) if hides else nullcontext():
        return run_case(case, folder, name)


def extension(source: Path, folder: Path) -> list[Outcome]:
    """Build an extension by this host's nvcc, without a network, and run its kernel."""
    if why := lacking(EXTENSION):
        return [left_out(EXTENSION.name, why)]
    if not source.is_dir():
        return [left_out(EXTENSION.name, f"{source} is not there: gpu_wheels.py puts it together")]
    target = folder / "installed"
    major, minor = inventory().gpus[0].architecture[3:-1], inventory().gpus[0].architecture[-1]
    environment = {**os.environ, "PATH": search_path(), "TORCH_CUDA_ARCH_LIST": f"{major}.{minor}",
                   "MAX_JOBS": str(min(16, os.cpu_count() or 1))}  # fmt: skip
    copy = folder / "source"
    shutil.copytree(source, copy)
    pip = [
        sys.executable,
        "-m",
        "pip",
        "install",
        "--no-index",
        "--no-deps",
        "--no-build-isolation",
    ]
    began = time.monotonic()
    done = subprocess.run([*pip, "--target", target, copy], env=environment, capture_output=True,
                          text=True, check=False, timeout=400)  # fmt: skip
    seconds = time.monotonic() - began
    built = sorted(one.name for one in target.rglob("*cuda*.so")) if target.is_dir() else []
    said = f"{', '.join(built)} for sm_{major}{minor}" if built else done.stderr[-400:]
    good = done.returncode == 0 and bool(built) and seconds < 240
    outcome = Outcome("an extension is built by nvcc in less than 4 min", good,
                      "built" if built else "not built", None, said, "built", seconds)  # fmt: skip
    if not built:
        return [outcome]
    case = replace(EXTENSION, env=(("PYTHONPATH", str(target)),))
    return [outcome, run_case(case, folder / "case")]


def main(arguments: Sequence[str]) -> None:
    """One case of those on two GPUs, in this process: NAME FOLDER OUTCOME."""
    name, folder, told = arguments
    (case,) = [one for one in (*TWO, *HANGS) if one.name == name]
    outcome = run_case(case, Path(folder), StageName.MULTI_GPU)
    Path(told).write_text(json.dumps(asdict(outcome)))


if __name__ == "__main__":
    main(sys.argv[1:])
