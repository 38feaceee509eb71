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
    words: str = ""  #: a pattern that the reason must match; empty: there must be none
    owner: str | None = None
    grades: tuple[str, ...] = ()  #: of the GPUs in their order; empty: whichever
    limit_s: float = 120.0
    command: tuple[str, ...] = ("{python}", "{repo}/train.py")
    parallelism: str | None = None
    neighbour: bool = False  #: somebody else takes the GPU's memory while it runs
    est_s: float = 25.0  #: what it may take, with the looks before and after
    needs: tuple[str, ...] = ()  #: programs and modules without which it is left out
    shm_mb: int = 0  #: how small /dev/shm is; 0: as it is
    canaries: bool = False  #: whether a failure is followed by the framework alone, for a minute
    next_within_s: float = 0.0  #: how soon the GPUs must be another's after it; 0: not asked
    env: tuple[tuple[str, str], ...] = ()


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
        "a fall-back to the CPU",
        "train('cpu')",
        "failed",
        "it ran on the CPU",
        "agent",
        ("none",),
        canaries=True,
        est_s=85.0,
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
        "do not support this GPU's architecture|no kernel image is available",
        "agent",
        limit_s=240.0,
        est_s=80.0,
        needs=("nvcc",),
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
        est_s=50.0,
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
        r"\(exit 1\)|^exit 1|time limit",
        "agent",
        limit_s=90.0,
        est_s=150.0,  # NCCL aborts its process, so it is run once more without the counter
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
        est_s=85.0,
    ),
    _two(
        "a rank that dies",
        "device = begin()\nif rank: os._exit(7)\ntrain(device, ddp)",
        "failed",
        r"\(exit 1\)|^exit 1",
        "agent",
        est_s=90.0,
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
    _two(
        "a tiny /dev/shm",
        "train(begin(), ddp)",
        "inconclusive",
        r"/dev/shm cannot hold the \d+ MB that NCCL shares",
        "host",
        shm_mb=1,
        needs=("unshare",),
        est_s=15.0,
    ),
)

#: It works first, so that it is on the GPU; then nothing but SIGKILL ends it.
_HANG = """
import signal
[signal.signal(s, signal.SIG_IGN) for s in (signal.SIGINT, signal.SIGTERM)]
mine = os.environ.get("LOCAL_RANK", os.environ.get("OMPI_COMM_WORLD_LOCAL_RANK", "0"))
torch.ones(9, device="cuda:%d" % (int(mine) % torch.cuda.device_count())).sum().item()
print("loss hangs", flush=True)
time.sleep(600)
"""
_LIGHTNING = """
import signal
import lightning

class Model(lightning.LightningModule):
    def __init__(self):
        super().__init__()
        self.layer = torch.nn.Linear(8, 1)
    def training_step(self, batch, number):
        [signal.signal(s, signal.SIG_IGN) for s in (signal.SIGINT, signal.SIGTERM)]
        self.layer(batch).sum().item()
        print("loss hangs", flush=True)
        time.sleep(600)
    def configure_optimizers(self):
        return torch.optim.SGD(self.parameters(), lr=0.1)

lightning.Trainer(
    accelerator="gpu", devices=torch.cuda.device_count(), strategy="ddp", max_epochs=1,
    logger=False, enable_checkpointing=False, enable_progress_bar=False,
).fit(Model(), torch.utils.data.DataLoader(torch.ones(16, 8)))
"""


def _hang(name: str, *command: str, program: str = _HANG, needs: tuple[str, ...] = (),
          **more: object) -> Case:  # fmt: skip
    return Case(
        f"{name}: all of it is ended after a hang",
        program,
        "failed",
        "still running at the time limit",
        "agent",
        command=(*command, "{repo}/train.py"),
        limit_s=40.0,
        est_s=55.0,
        needs=needs,
        next_within_s=1.0,
        **more,
    )  # type: ignore[arg-type]


#: On as many GPUs as there are, two at most.
HANGS = (
    _hang("torchrun", *LAUNCH, needs=("torch",)),
    _hang(
        "accelerate",
        *("{python}", "-m", "accelerate.commands.launch", "--num_machines", "1"),
        *("--mixed_precision", "no", "--dynamo_backend", "no", "--num_processes", "{nproc}"),
        needs=("accelerate",),
    ),
    _hang("Lightning", "{python}", program=_LIGHTNING, needs=("lightning",)),
    _hang(
        "mpirun",
        *("mpirun", "--allow-run-as-root", "--oversubscribe", "-n", "{nproc}", "{python}"),
        needs=("mpirun", "ompi_info"),  # Open MPI's, whose options these are
        env=(("OMPI_MCA_plm_rsh_agent", ""),),
    ),
    _hang(
        "deepspeed",
        *("{python}", "-m", "deepspeed.launcher.runner", "--num_gpus", "{nproc}"),
        needs=("deepspeed",),
    ),
)

#: An extension with CUDA code, built on this host from its source distribution, computes as on
#: the CPU. The folder that it was installed into is on PYTHONPATH.
EXTENSION = Case(
    "an extension built here from its source distribution",
    """
import torchsort, torchsort.isotonic_cuda
torch.manual_seed(0)
values = torch.randn(64, 128)
here = torchsort.soft_rank(values, regularization_strength=0.1)
there = torchsort.soft_rank(values.cuda(), regularization_strength=0.1).cpu()
assert torch.allclose(here, there, atol=1e-4), (here - there).abs().max().item()
print("loss", (here - there).abs().max().item())
""",
    "passed",
    grades=("counted",),
    needs=("nvcc",),
    est_s=200.0,
)
