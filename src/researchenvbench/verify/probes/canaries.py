"""Does torch compute by itself? Small known-good cases, beside an entry point that failed.

Stand-alone, Python 3.8 and newer: `canaries.py SEED PROCESSES ANSWER`. With one process the
canaries of one GPU, else those of several over NCCL, a process a GPU. Inputs are drawn from
SEED, answers are computed on the CPU in float64 and compared by relative norm; NaN never
passes. ANSWER gets a JSON object a line as each ends, so that one that crashes is the last that
was begun. They never decide a verdict.
"""

from __future__ import annotations

import copy
import functools
import json
import os
import socket
import sys
import tempfile
import time
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable

#: How far an answer may be off, as a part of its norm: float32 may be computed in TF32.
FLOAT32, BFLOAT16 = 5e-3, 3e-2
TIME_LIMIT_S = 60


def say(path: str, **facts: Any) -> None:
    """Add a line to the answer."""
    with open(path, "a") as stream:  # noqa: PTH123
        stream.write(json.dumps(facts) + "\n")


def off(torch: Any, found: Any, expected: Any) -> float:
    """The relative norm of the difference; infinite where anything is not finite."""
    found, expected = found.detach().double().cpu(), expected.detach().double().cpu()
    if found.shape != expected.shape or not bool(torch.isfinite(found).all()):
        return float("inf")
    return float((found - expected).norm() / expected.norm().clamp_min(1e-12))


def drawn(torch: Any, seed: int, *shape: int) -> Any:
    """Numbers of a normal distribution in float64, on the CPU."""
    return torch.randn(*shape, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)


def matrix_product(torch: Any, device: Any, seed: int, kind: Any) -> float:
    """A product of two matrices: cuBLAS."""
    left, right = drawn(torch, seed, 384, 512), drawn(torch, seed + 1, 512, 256)
    left, right = left.to(kind).double(), right.to(kind).double()
    return off(torch, left.to(device, kind) @ right.to(device, kind), left @ right)


def convolution(torch: Any, device: Any, seed: int, kind: Any) -> float:
    """A convolution: cuDNN."""
    image, weight = drawn(torch, seed, 2, 8, 32, 32), drawn(torch, seed + 1, 16, 8, 3, 3)
    image, weight = image.to(kind).double(), weight.to(kind).double()
    conv = torch.nn.functional.conv2d
    return off(torch, conv(image.to(device, kind), weight.to(device, kind)), conv(image, weight))


def attention(torch: Any, device: Any, seed: int, kind: Any) -> float:
    """Scaled dot-product attention, against its definition."""
    query, key, value = (
        drawn(torch, seed + number, 2, 4, 64, 64).to(kind).double() for number in range(3)
    )
    weights = torch.softmax(query @ key.transpose(-1, -2) / 8.0, dim=-1)
    found = torch.nn.functional.scaled_dot_product_attention(
        query.to(device, kind), key.to(device, kind), value.to(device, kind)
    )
    return off(torch, found, weights @ value)


TRITON = """
import triton
import triton.language as tl


@triton.jit
def scale(source, target, factor, SIZE: tl.constexpr):
    place = tl.program_id(0) * SIZE + tl.arange(0, SIZE)
    tl.store(target + place, tl.load(source + place) * factor)
"""


def triton_kernel(torch: Any, device: Any, seed: int, kind: Any) -> float:  # noqa: ARG001
    """A kernel that triton compiles; its source must be a file."""
    folder = tempfile.mkdtemp()
    with open(os.path.join(folder, "canary_kernel.py"), "w") as stream:  # noqa: PTH118, PTH123
        stream.write(TRITON)
    sys.path.insert(0, folder)
    import importlib

    kernel = importlib.import_module("canary_kernel").scale

    source = drawn(torch, seed, 1024).float()
    target = torch.empty(1024, device=device)
    kernel[(4,)](source.to(device), target, 3.0, SIZE=256)
    return off(torch, target, source * 3.0)


CUDA = """
#include <torch/extension.h>
__global__ void scale(const float *source, float *target, float factor, int count) {
    int place = blockIdx.x * blockDim.x + threadIdx.x;
    if (place < count) target[place] = source[place] * factor;
}
torch::Tensor scaled(torch::Tensor source, double factor) {
    auto target = torch::empty_like(source);
    int count = source.numel();
    scale<<<(count + 127) / 128, 128>>>(source.data_ptr<float>(), target.data_ptr<float>(),
                                        (float)factor, count);
    return target;
}
"""


def tool_chain(torch: Any, device: Any, seed: int, kind: Any) -> float:  # noqa: ARG001
    """An extension that nvcc compiles against torch."""
    from torch.utils import cpp_extension

    module = cpp_extension.load_inline(
        name="canary",
        cpp_sources="torch::Tensor scaled(torch::Tensor source, double factor);",
        cuda_sources=CUDA,
        functions=["scaled"],
        build_directory=tempfile.mkdtemp(),
    )
    source = drawn(torch, seed, 1000).float()
    return off(torch, module.scaled(source.to(device), 3.0), source * 3.0)


def one_gpu(seed: int, path: str, device_name: str = "cuda") -> None:
    """All that one GPU is for."""
    import importlib.util
    import shutil

    import torch

    device = torch.device(device_name)
    single, half = torch.float32, torch.bfloat16
    cases: list[tuple[str, Callable[..., float], Any, float]] = [
        ("matrix product, float32", matrix_product, single, FLOAT32),
        ("matrix product, bfloat16", matrix_product, half, BFLOAT16),
        ("convolution, float32", convolution, single, FLOAT32),
        ("convolution, bfloat16", convolution, half, BFLOAT16),
        ("attention, float32", attention, single, FLOAT32),
        ("attention, bfloat16", attention, half, BFLOAT16),
    ]
    if device.type == "cuda" and importlib.util.find_spec("triton") is not None:
        cases.append(("triton kernel", triton_kernel, single, FLOAT32))
    if device.type == "cuda" and shutil.which("nvcc"):
        cases.append(("compiled extension", tool_chain, single, FLOAT32))
    for number, (name, one, kind, tolerance) in enumerate(cases):
        case = functools.partial(one, torch, device, seed + 9 * number, kind)
        attempt(path, name, tolerance, case)


def attempt(path: str, name: str, tolerance: float, case: Callable[[], float]) -> None:
    """Run a case and write how it went."""
    say(path, name=name, begun=True)
    began = time.time()
    try:
        error = case()
    except Exception as problem:  # noqa: BLE001  # whatever it is, is the answer
        words = f"{type(problem).__name__}: {problem}".strip().splitlines()[0][:300]
        say(path, name=name, passed=False, said=words, seconds=time.time() - began)
        return
    said = "" if error <= tolerance else f"wrong by {error:.3g} of its norm"
    say(path, name=name, passed=error <= tolerance, said=said, seconds=time.time() - began)


def rank(number: int, count: int, seed: int, port: int, path: str, backend: str) -> None:
    """One of several processes; the first writes."""
    import datetime

    import torch
    import torch.distributed as dist

    os.environ.update(MASTER_ADDR="127.0.0.1", MASTER_PORT=str(port))
    cuda = backend == "nccl"
    device = torch.device("cuda", number) if cuda else torch.device("cpu")
    if cuda:
        torch.cuda.set_device(device)
    limit = datetime.timedelta(seconds=TIME_LIMIT_S)
    dist.init_process_group(backend, rank=number, world_size=count, timeout=limit)
    every = [drawn(torch, seed + one, 4096) for one in range(count)]

    def all_reduce() -> float:
        mine = every[number].float().to(device)
        dist.all_reduce(mine)
        return off(torch, mine, sum(every[1:], every[0]))

    def broadcast() -> float:
        mine = every[number].float().to(device)
        dist.broadcast(mine, src=count - 1)
        return off(torch, mine, every[count - 1])

    def trained(wrap: Callable[[Any], Any]) -> float:
        """One step, each process on data of its own; against a step on all of it."""
        torch.manual_seed(seed % (1 << 31))
        model = torch.nn.Linear(64, 64)
        reference = copy.deepcopy(model).double()
        data = [drawn(torch, seed + 100 + one, 16, 64) for one in range(count)]
        wrapped = wrap(model.to(device))
        optimiser = torch.optim.SGD(wrapped.parameters(), lr=0.5)
        wrapped(data[number].float().to(device)).square().mean().backward()
        optimiser.step()
        sum(reference(one).square().mean() for one in data).div(count).backward()
        torch.optim.SGD(reference.parameters(), lr=0.5).step()
        asked = drawn(torch, seed + 99, 16, 64)
        return off(torch, wrapped(asked.float().to(device)), reference(asked))

    def data_parallel() -> float:
        return trained(
            lambda model: torch.nn.parallel.DistributedDataParallel(
                model, device_ids=[number] if cuda else None
            )
        )

    def fully_sharded() -> float:
        from torch.distributed.fsdp import FullyShardedDataParallel

        return trained(lambda model: FullyShardedDataParallel(model, device_id=device))

    cases = [
        ("all-reduce", all_reduce),
        ("broadcast", broadcast),
        ("step of DistributedDataParallel", data_parallel),
    ]
    if cuda:
        cases.append(("step of FullyShardedDataParallel", fully_sharded))
    for name, case in cases:
        if number == 0:
            attempt(path, name, FLOAT32, case)
        else:
            case()
    dist.destroy_process_group()


def several(seed: int, count: int, path: str, backend: str) -> None:
    """A process a GPU, which talk."""
    import torch.multiprocessing as mp

    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        port = listener.getsockname()[1]
    mp.spawn(rank, args=(count, seed, port, path, backend), nprocs=count)


def main(seed: int, count: int, path: str, device: str = "cuda") -> None:
    """All canaries of that many GPUs, or of `cpu`, which shows that they themselves are right."""
    if count > 1:
        several(seed, count, path, "nccl" if device == "cuda" else "gloo")
    else:
        one_gpu(seed, path, device)
    say(path, name="end")


if __name__ == "__main__":
    main(int(sys.argv[1]), int(sys.argv[2]), *sys.argv[3:])
