"""C2, and the running of the GPU stages, on a host that has GPUs and a torch that uses them.

Run by `make test-gpu`, or with the interpreter whose torch is to be used:
`python -m pytest -m gpu tests/verify/test_gpu.py`.
"""

import importlib.util
import subprocess
import sys
from pathlib import Path

import pytest

from researchenvbench.attempt import Level, Owner, Verdict
from researchenvbench.evidence import OutputEvidence
from researchenvbench.gpu.inventory import inventory
from researchenvbench.run.verification import verify
from researchenvbench.task import FolderSource, Stage, StageName, Task

pytestmark = pytest.mark.gpu

TRAIN = """
import os
import torch

rank = int(os.environ.get("RANK", "0"))
if "RANK" in os.environ:
    torch.distributed.init_process_group("nccl")
device = torch.device("cuda", rank)
torch.cuda.set_device(device)
model = torch.nn.Linear(64, 1).to(device)
if "RANK" in os.environ:
    model = torch.nn.parallel.DistributedDataParallel(model, device_ids=[rank])
optimiser = torch.optim.SGD(model.parameters(), lr=0.05)
inputs = torch.randn(256, 64, device=device)
for step in range(3):
    loss = (model(inputs) - 1).square().mean()
    optimiser.zero_grad()
    loss.backward()
    optimiser.step()
    print("rank", rank, "of", os.environ.get("WORLD_SIZE", "1"), "loss", loss.item(), flush=True)
if "RANK" in os.environ:
    torch.distributed.destroy_process_group()
"""


@pytest.fixture
def needs_torch():
    if not inventory().gpus:
        pytest.skip(f"no GPU: {inventory().why_none}")
    if importlib.util.find_spec("torch") is None:
        pytest.skip(f"{sys.executable} has no torch")


@pytest.fixture
def repo(tmp_path):
    folder = tmp_path / "repository"
    folder.mkdir()
    (folder / "train.py").write_text(TRAIN)
    return folder


def stage(*command, **more):
    return Stage(
        command=command,
        time_limit_s=240,
        evidence=(OutputEvidence(kind="output", pattern=r"loss (?P<loss>\S+)", at_least=3),),
        **more,
    )


def task(repo, **stages):
    return Task(
        schema=1,
        name="linear",
        domain="tests",
        source=FolderSource(kind="folder", path=str(repo)),
        frameworks=("torch",),
        stages=stages,
        folder=repo,
    )


def test_torch_sees_and_computes_on_every_gpu(needs_torch, repo, tmp_path):
    record = verify(repo, sys.executable, levels=(Level.C2,), out=tmp_path / "results")
    result = record.results[Level.C2]
    assert result.verdict is Verdict.PASSED, result.reason
    answer = result.details["frameworks"]["torch"]
    assert len(answer["devices"]) == len(inventory().gpus)
    assert answer["cuda"]
    assert result.details["driver"] == inventory().driver


def test_a_torch_that_is_an_empty_package_fails(needs_torch, repo, tmp_path):
    prefix = tmp_path / "stubbed"
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", prefix], check=True)
    (site,) = prefix.glob("lib/python*/site-packages")
    (site / "torch").mkdir()
    (site / "torch" / "__init__.py").write_text("")
    python = str(prefix / "bin" / "python")
    record = verify(repo, python, levels=(Level.C2,), out=tmp_path / "results")
    result = record.results[Level.C2]
    assert (result.verdict, result.owner) == (Verdict.FAILED, Owner.AGENT)
    assert "torch" in result.reason


@pytest.mark.parametrize(
    ("name", "gpus", "command"),
    [
        (StageName.SINGLE_GPU, 1, ("{python}", "{repo}/train.py")),
        (
            StageName.MULTI_GPU,
            2,
            ("{python}", "-m", "torch.distributed.run", "--standalone", "--nproc-per-node",
             "{nproc}", "{repo}/train.py"),
        ),
    ],
)  # fmt: skip
def test_a_gpu_stage_is_run_and_proven(needs_torch, repo, tmp_path, name, gpus, command):
    if len(inventory().gpus) < gpus:
        pytest.skip(f"needs {gpus} GPUs")
    more = {"parallelism": "ddp"} if gpus > 1 else {}
    level = Level.C3 if gpus == 1 else Level.C4
    record = verify(
        repo,
        sys.executable,
        task=task(repo, **{name: stage(*command, **more)}),
        levels=(level,),
        out=tmp_path / "results",
    )
    result = record.results[level]
    log = Path(tmp_path / "results" / result.log).read_text()
    assert result.verdict is Verdict.PASSED, (result.reason, log)
    assert f"of {gpus} loss" in log
    assert set(result.gpu_grades.values()) <= {"counted", "observed"}
    assert len(result.gpu_grades) == gpus


def test_a_fall_back_to_the_cpu_fails(needs_torch, repo, tmp_path):
    (repo / "train.py").write_text(
        "import torch\nfor n in range(3):\n    print('loss', torch.ones(9).sum().item())\n"
    )
    one = {StageName.SINGLE_GPU: stage("{python}", "{repo}/train.py")}
    record = verify(
        repo, sys.executable, task=task(repo, **one), levels=(Level.C3,), out=tmp_path / "results"
    )
    result = record.results[Level.C3]
    assert (result.verdict, result.owner) == (Verdict.FAILED, Owner.AGENT)
    assert "ran on the CPU" in result.reason
