"""What the GPU levels cost, on a host with NVIDIA GPUs and with a torch in this interpreter.

    python benchmarks/gpu.py [--repeats N]

Prints: a training loop with and without the witness, in turns, as a ratio (limit 1.03); the
canaries of one GPU after torch is imported (limit 10 s, what must be compiled apart); those of
several GPUs; the preflight; and the time from the end of one lease to the start of the next
(limit 1 s). Exits with 1 where a limit is exceeded.
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
from pathlib import Path

from researchenvbench.gpu.inventory import inventory
from researchenvbench.gpu.leases import leased
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
    good = [hand_over(), canaries(1), witness(chosen.repeats)]
    if len(gpus) > 1:
        good.append(canaries(2))
    return int(not all(good))


if __name__ == "__main__":
    sys.exit(main())
