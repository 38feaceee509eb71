"""What the GPU levels cost, on a host with NVIDIA GPUs and with a torch in this interpreter.

    python benchmarks/gpu.py [--repeats N]

Prints: a training loop with and without the witness, in turns, as a ratio (limit 1.03); the
canaries of one GPU after torch is imported (limit 10 s, what must be compiled apart); those of
several GPUs; the preflight; the time from the end of one lease to the start of the next, and
from the last line of a C3 stage to the first of the next on the same GPU (limits 1 s); and, on two
GPUs, two such stages side by side against one after the other (at least 1.8 times as fast).
Exits with 1 where a limit is exceeded.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from itertools import pairwise
from pathlib import Path

from researchenvbench.attempt import Verdict
from researchenvbench.evidence import OutputEvidence
from researchenvbench.gpu.inventory import inventory
from researchenvbench.gpu.leases import leased
from researchenvbench.run.found import run_as_found, subject_as_found
from researchenvbench.sandbox.host_environment import host_environment
from researchenvbench.source import snapshot_in_place
from researchenvbench.task import FolderSource, Stage, StageName, Task
from researchenvbench.verify import preflight
from researchenvbench.verify.canary import _PROBE
from researchenvbench.verify.witness.counter import compiled, counter_variables
from researchenvbench.verify.witness.watch import Watch

STEPS = """
import time, torch
model = torch.nn.Sequential(*[torch.nn.Linear(1024, 1024) for _ in range(8)]).cuda()
optimiser = torch.optim.AdamW(model.parameters())
data = torch.randn(512, 1024, device="cuda")
def step():
    optimiser.zero_grad()
    model(data).square().mean().backward()
    optimiser.step()
for _ in range(50):
    step()
torch.cuda.synchronize()
began = time.perf_counter()
for _ in range(2000):
    step()
torch.cuda.synchronize()
print(time.perf_counter() - began)
"""
#: Two programs of some 20 s, which say when they begin and end.
PROGRAMS = (
    """
import time; print("begins", time.time(), flush=True)
import torch
model = torch.nn.Sequential(*[torch.nn.Linear(2048, 2048) for _ in range(8)]).cuda()
optimiser = torch.optim.AdamW(model.parameters())
data = torch.randn(1024, 2048, device="cuda")
until = time.time() + 12
while time.time() < until:
    optimiser.zero_grad()
    model(data).square().mean().backward()
    optimiser.step()
torch.cuda.synchronize()
print("ends", time.time(), flush=True)
""",
    """
import time; print("begins", time.time(), flush=True)
import torch
image, kernel = torch.randn(32, 64, 64, 64).cuda(), torch.randn(64, 64, 3, 3).cuda()
until = time.time() + 12
while time.time() < until:
    torch.nn.functional.conv2d(image, kernel).sum().item()
print("ends", time.time(), flush=True)
""",
)
COMPILED = ("triton kernel", "compiled extension")


def steps(environment: dict[str, str]) -> float:
    """Seconds of the loop, without start and import."""
    argv = [sys.executable, "-c", STEPS]
    done = subprocess.run(argv, env=environment, check=True, capture_output=True, text=True)
    return float(done.stdout.split()[-1])


def witness(repeats: int) -> bool:
    """Whether the loop with the witness takes no more than the limit."""
    built = compiled()
    if built.library is None:
        print(f"witness: launches are not counted: {built.why_none}")
    without, with_it = [], []
    for _ in range(repeats):
        without.append(steps(dict(os.environ)))
        with tempfile.TemporaryDirectory() as counts:
            more = counter_variables(built.library, Path(counts), None) if built.library else {}
            gpus = [gpu.uuid for gpu in inventory().gpus]
            with Watch(gpus, lambda _: True) as watch:
                with_it.append(steps({**os.environ, **more}))
    ratio = statistics.median(with_it) / statistics.median(without)
    print(
        f"witness: 2000 steps {statistics.median(without):.2f} s without, "
        f"{statistics.median(with_it):.2f} s with: ratio {ratio:.3f} (limit 1.03); "
        f"its own thread {100 * watch.own_seconds / watch.seconds:.1f} % of a core"
    )
    return ratio <= 1.03


def canaries(count: int) -> bool:
    """Whether those of one GPU take no more than the limit."""
    with tempfile.TemporaryDirectory() as folder:
        answer = Path(folder) / "answer"
        began = time.perf_counter()
        argv = [sys.executable, str(_PROBE), "5", str(count), str(answer)]
        subprocess.run(argv, check=True, capture_output=True)
        wall_s = time.perf_counter() - began
        found = [json.loads(line) for line in answer.read_text().splitlines()]
    ended = [one for one in found if "passed" in one]
    for one in ended:
        state = "passed" if one["passed"] else f"FAILED: {one['said']}"
        print(f"  {one['name']:<34} {one['seconds']:6.2f} s  {state}")
    plain_s = sum(one["seconds"] for one in ended if one["name"] not in COMPILED)
    limit = " (limit 10 s)" if count == 1 else ""
    print(f"canaries of {count} GPU: {plain_s:.2f} s without what is compiled{limit}; "
          f"{wall_s:.1f} s with the import of torch")  # fmt: skip
    return all(one["passed"] for one in ended) and (count > 1 or plain_s <= 10)


def hand_over() -> bool:
    """Whether who waits has a GPU within a second of its being freed."""
    gpus = inventory().gpus[:1]
    had: list[float] = []
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)

        def wait() -> None:
            with leased(1, gpus, time_limit_s=60, whose="next", folder=folder):
                had.append(time.perf_counter())

        thread = threading.Thread(target=wait)
        with leased(1, gpus, time_limit_s=60, whose="first", folder=folder):
            thread.start()
            time.sleep(2)
        freed = time.perf_counter()
        thread.join()
    seconds = had[0] - freed
    print(f"lease: the next has it after {seconds:.2f} s (limit 1 s)")
    return seconds <= 1


def stage(program: str, folder: Path, env: dict[str, str]) -> tuple[float, float]:
    """(when a C3 stage's program began, when it ended), of a stage that passes.

    Raises:
        RuntimeError: it does not pass.
    """
    repo = folder / "repository"
    repo.mkdir(parents=True)
    (repo / "train.py").write_text(program)
    one = Stage(command=("{python}", "{repo}/train.py"), time_limit_s=120, env=env,
                evidence=(OutputEvidence(kind="output", pattern="ends"),))  # fmt: skip
    task = Task(schema=1, name=folder.name, domain="benchmarks", frameworks=("torch",),
                source=FolderSource(kind="folder", path=str(repo)), folder=repo,
                stages={StageName.SINGLE_GPU: one})  # fmt: skip
    subject = subject_as_found(repo, sys.executable, task, folder / "out", snapshot_in_place(repo))
    result = run_as_found(subject, StageName.SINGLE_GPU)
    if result.verdict is not Verdict.PASSED:
        raise RuntimeError(f"{folder.name}: {result.verdict}: {result.reason}")
    said = (subject.logs / f"{StageName.SINGLE_GPU}.log").read_text().splitlines()
    times = {
        line.split()[0]: float(line.split()[1]) for line in said if line.startswith(("b", "e"))
    }
    return times["begins"], times["ends"]


def stages(programs: tuple[str, ...], env: dict[str, str]) -> tuple[float, float]:
    """(seconds that the stages of the programs took, the longest pause between two of them)."""
    with tempfile.TemporaryDirectory(prefix="reb-benchmark-") as name:
        places = [Path(name) / f"task-{number}" for number in range(len(programs))]
        began = time.perf_counter()
        with ThreadPoolExecutor(len(programs)) as pool:
            spans = sorted(pool.map(stage, programs, places, [env] * len(programs)))
        seconds = time.perf_counter() - began
    return seconds, max(later[0] - earlier[1] for earlier, later in pairwise(spans))


def side_by_side(programs: tuple[str, ...] = PROGRAMS, env: dict[str, str] | None = None) -> bool:
    """Whether stages that wait for a GPU start at once, and two GPUs do twice the work of one."""
    gpus = inventory().gpus
    for gpu in gpus:
        preflight.told([gpu], host_environment().variables)  # once a job; it is measured apart
    hidden = os.environ.get("REB_GPUS")
    os.environ["REB_GPUS"] = gpus[0].uuid
    try:
        one_s, pause_s = stages(programs, env or {})  # they wait for one another's GPU
    finally:
        os.environ.pop("REB_GPUS") if hidden is None else os.environ.update(REB_GPUS=hidden)
    print(f"two C3 stages on one GPU: {one_s:.1f} s, {pause_s:.2f} s between them (limit 1 s)")
    if len(gpus) == 1:
        return pause_s <= 1
    both_s, _ = stages(programs, env or {})
    print(f"on two GPUs: {both_s:.1f} s, {one_s / both_s:.2f} times as fast (at least 1.8)")
    return pause_s <= 1 and one_s / both_s >= 1.8


def main() -> int:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--repeats", type=int, default=3)
    chosen = parser.parse_args()
    gpus = inventory().gpus
    if not gpus:
        print(f"no GPU: {inventory().why_none}")
        return 0
    print(f"{len(gpus)} GPUs: {', '.join(gpu.name for gpu in gpus)}; driver {inventory().driver}")
    began = time.perf_counter()
    host = preflight.look(gpus, {})
    print(f"preflight: {time.perf_counter() - began:.1f} s, {host.cause(len(gpus)) or 'can'}")
    good = [hand_over(), side_by_side(), canaries(1), witness(chosen.repeats)]
    if len(gpus) > 1:
        good.append(canaries(2))
    return int(not all(good))


if __name__ == "__main__":
    sys.exit(main())
