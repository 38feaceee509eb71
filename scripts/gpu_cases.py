"""The programs of `gpu_acceptance.py`, and what each must come to."""

from __future__ import annotations

from dataclasses import dataclass

LAUNCH = ("{python}", "-m", "torch.distributed.run", "--standalone", "--nproc-per-node={nproc}")
HEAD = """
import datetime, os, sys, time
import torch
import torch.distributed as dist
rank, world = int(os.environ.get("RANK", "0")), int(os.environ.get("WORLD_SIZE", "1"))

def train(where, wrap=lambda model: model):
    torch.manual_seed(0)
    model = wrap(torch.nn.Linear(256, 256).to(where))
    optimiser = torch.optim.SGD(model.parameters(), lr=0.01)
    data = torch.randn(64, 256, device=where)
    for step in range(20):
        loss = model(data).square().mean()
        optimiser.zero_grad()
        loss.backward()
        optimiser.step()
        time.sleep(0.05)
    print("rank", rank, "loss", loss.item(), flush=True)

def begin(backend="nccl"):
    dist.init_process_group(backend, timeout=datetime.timedelta(seconds=20))
    torch.cuda.set_device(rank % torch.cuda.device_count())
    return torch.device("cuda", torch.cuda.current_device())

def ddp(model):
    return torch.nn.parallel.DistributedDataParallel(model)
"""


@dataclass(frozen=True)
class Case:
    """A program, and what it must come to."""

    name: str
    program: str
    verdict: str
    words: str = ""  #: in the reason
    owner: str | None = None
    grades: tuple[str, ...] = ()  #: of the GPUs in their order
    finding: str = ""
    limit_s: float = 120.0
    command: tuple[str, ...] = ("{python}", "{repo}/train.py")
    parallelism: str | None = None
    neighbour: bool = False  #: somebody else takes the GPU's memory while it runs


OTHER_ARCHITECTURE = """
from torch.utils import cpp_extension
os.environ["TORCH_CUDA_ARCH_LIST"] = "8.0"
source = '''
#include <torch/extension.h>
__global__ void add(float *x) { x[threadIdx.x] += 1; }
void added(torch::Tensor x) { add<<<1, 32>>>(x.data_ptr<float>()); }
'''
module = cpp_extension.load_inline(
    "other", "void added(torch::Tensor x);", source, functions=["added"],
    build_directory=os.environ["TMPDIR"] if "TMPDIR" in os.environ else "/tmp",
)
x = torch.zeros(32, device="cuda")
module.added(x)
torch.cuda.synchronize()
assert x.sum().item() == 32, f"the kernel did nothing: {x.sum().item()}"
"""
ONE = (
    Case("work on the GPU", "train('cuda')", "passed", grades=("counted",)),
    Case(
        "a fall-back to the CPU", "train('cpu')", "failed", "it ran on the CPU", "agent", ("none",)
    ),
    Case(
        "a context and no kernel",
        "torch.cuda.init(); torch.empty(9, device='cuda'); time.sleep(2); print('loss')",
        "failed",
        "no kernel was launched",
        "agent",
        ("present",),
    ),
    Case(
        "a module of the repository is missing",
        "train('cuda'); import no_such_module",
        "failed",
        "no_such_module",
        "agent",
        ("counted",),
    ),
    Case(
        "an extension built for another architecture",
        OTHER_ARCHITECTURE,
        "failed",
        "",
        "agent",
        limit_s=240.0,
    ),
    Case(
        "memory taken by a neighbour after the lease",
        "torch.zeros(9, device='cuda')\n"
        "time.sleep(25)\n"
        "much = torch.zeros(int(60e9), dtype=torch.uint8, device='cuda')\n"
        "train('cuda')",
        "inconclusive",
        "others used its GPUs while it ran",
        "host",
        neighbour=True,
    ),
)


def _two(name: str, program: str, verdict: str, *more: object, **others: object) -> Case:
    return Case(
        name,
        program,
        verdict,
        *more,
        command=(*LAUNCH, "{repo}/train.py"),
        parallelism="ddp",
        **others,
    )  # type: ignore[arg-type]


TALKS = ("counted", "counted")
TWO = (
    _two("DDP over NCCL", "train(begin(), ddp)", "passed", grades=TALKS),
    _two(
        "FSDP over NCCL",
        "from torch.distributed.fsdp import FullyShardedDataParallel as F\n"
        "train(begin(), lambda m: F(m, device_id=torch.cuda.current_device()))",
        "passed",
        grades=TALKS,
    ),
    _two(
        "gloo instead of NCCL",
        "train(begin('gloo'), ddp)",
        "failed",
        "no kernel of NCCL",
        "agent",
        TALKS,
    ),
    _two(
        "two independent processes",
        "train(torch.device('cuda', rank))",
        "failed",
        "no kernel of NCCL",
        "agent",
        TALKS,
    ),
    Case(
        "one rank only",
        "train('cuda')",
        "failed",
        "on GPU 1",
        "agent",
        ("counted", "none"),
        parallelism="ddp",
    ),
    _two(
        "ranks on the same GPU",
        "dist.init_process_group('gloo')\ntrain('cuda:0', ddp)",
        "failed",
        "on GPU 1",
        "agent",
        ("counted", "none"),
    ),
    Case(
        "a process that merely holds the second GPU",
        "if os.fork() == 0:\n"
        "    torch.empty(9, device='cuda:1')\n"
        "    time.sleep(4); os._exit(0)\n"
        "train('cuda:0')\nos.wait()",
        "failed",
        "on GPU 1",
        "agent",
        parallelism="ddp",
    ),
    _two(
        "a rank that hangs",
        "device = begin()\nif rank: time.sleep(600)\ntrain(device, ddp)",
        "failed",
        "",
        "agent",
        limit_s=90.0,
    ),
    _two(
        "a rank that ignores signals and hangs",
        "import signal\n[signal.signal(s, signal.SIG_IGN) for s in (2, 15)]\n"
        "device = begin()\ntrain(device, ddp)\ntime.sleep(600)",
        "failed",
        "time limit",
        "agent",
        TALKS,
        limit_s=60.0,
    ),
    _two(
        "a rank that dies",
        "device = begin()\nif rank: os._exit(7)\ntrain(device, ddp)",
        "failed",
        "",
        "agent",
    ),
    Case(
        "the model over both, by one process",
        "a, b = torch.nn.Linear(64, 64).to('cuda:0'), torch.nn.Linear(64, 64).to('cuda:1')\n"
        "for _ in range(40):\n"
        "    x = b(a(torch.randn(8, 64, device='cuda:0')).to('cuda:1')); time.sleep(0.05)\n"
        "print('loss', x.sum().item())",
        "passed",
        grades=TALKS,
        parallelism="device_map",
    ),
)
