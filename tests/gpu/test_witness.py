"""Stages on GPUs from beginning to end, on a host whose driver is ours."""

import os
import shutil
import subprocess
import sys
import textwrap
import threading

import pytest
from gpu_driver import UUIDS

from researchenvbench.attempt import Level, Owner, Verdict
from researchenvbench.evidence import OutputEvidence
from researchenvbench.gpu import leases
from researchenvbench.run.verification import verify
from researchenvbench.task import FolderSource, Stage, StageName, Task
from researchenvbench.verify.witness import counter

#: What a framework is to a program: it makes contexts and launches kernels.
FRAMEWORK = '''
"""A framework that knows nothing but the driver."""
import ctypes, os, time

cuda = ctypes.CDLL("libcuda.so.1")

def use(number):
    assert cuda.cuInit(0) == 0
    context = ctypes.c_void_p()
    assert cuda.cuDevicePrimaryCtxRetain(ctypes.byref(context), number) == 0
    cuda.cuCtxSetCurrent(context)

def launch(name="gemm", times=5):
    cuda.name_kernels(name.encode())
    function = ctypes.c_char_p()
    cuda.cuModuleGetFunction(ctypes.byref(function), None, b"")
    for _ in range(times):
        assert cuda.cuLaunchKernel(function, 1, 1, 1, 1, 1, 1, 0, None, None, None) == 0
    time.sleep(0.8)

def ranks(work):
    children = []
    for rank in range(2):
        if not (child := os.fork()):
            work(rank)
            os._exit(0)
        children.append(child)
    assert all(os.waitpid(child, 0)[1] == 0 for child in children)
'''
NCCL = "ncclDevKernel_AllReduce_Sum_f32_RING_LL(ncclDevKernelArgsStorage<4096ul>)"
PROGRAMS = {
    "computes": "fw.use(0); fw.launch()",
    "falls back to the CPU": "pass",
    "only makes a context": "fw.use(0); fw.launch(times=0)",
    "another GPU than it was shown": (
        "os.environ['CUDA_VISIBLE_DEVICES'] = '1'; fw.use(0); fw.launch()"
    ),
    "fails": "fw.use(0); fw.launch(); sys.exit(3)",
    "talks": f"fw.ranks(lambda r: (fw.use(r), fw.launch(), fw.launch({NCCL!r})))",
    "does not talk": "fw.ranks(lambda r: (fw.use(r), fw.launch()))",
    "ranks on the same GPU": f"fw.ranks(lambda r: (fw.use(0), fw.launch({NCCL!r})))",
    "one rank only": f"fw.use(0); fw.launch({NCCL!r})",
    "holds the second GPU": (
        f"fw.ranks(lambda r: (fw.use(r), fw.launch({NCCL!r}, times=0 if r else 5)))"
    ),
    "one process on both": f"[(fw.use(n), fw.launch({NCCL!r})) for n in (0, 1)]",
}


@pytest.fixture(scope="session")
def headers(tmp_path_factory):
    """The headers of CUPTI and CUDA, from NVIDIA's wheels."""
    folder = tmp_path_factory.mktemp("headers")
    wheels = ["nvidia-cuda-cupti-cu12", "nvidia-cuda-runtime-cu12"]
    subprocess.run(
        ["uv", "pip", "install", "--quiet", "--no-deps", "--target", folder, *wheels],
        check=True,
        env={**os.environ, "PATH": f"{sys.exec_prefix}/bin:/usr/bin:/bin"},
    )
    return folder / "nvidia"


@pytest.fixture(scope="session")
def python(tmp_path_factory):
    """An environment with nothing in it, which is looked at fast."""
    folder = tmp_path_factory.mktemp("environment")
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", folder], check=True)
    return folder / "bin/python"


@pytest.fixture(params=["counted", "observed"])
def grade(request, driver, monkeypatch, tmp_path):
    """With the counter, and on a host that cannot compile it."""
    monkeypatch.setattr(leases, "lease_folder", lambda: tmp_path / "leases")
    monkeypatch.setenv("REB_CACHE", str(tmp_path / "cache"))
    counter._compiled.cache_clear()
    if request.param == "counted":
        monkeypatch.setenv("CUDA_HOME", str(request.getfixturevalue("headers")))
        assert counter.compiled().library, counter.compiled().why_none
    else:
        monkeypatch.setattr(counter, "_COMPILERS", ())
    yield request.param
    counter._compiled.cache_clear()


@pytest.fixture
def judge(driver, python, tmp_path):
    def run(program, name=StageName.SINGLE_GPU, parallelism=None):
        repo = tmp_path / "repository"
        repo.mkdir()
        (repo / "fw.py").write_text(FRAMEWORK)
        text = f"import os, sys\nimport fw\n{PROGRAMS.get(program, program)}\nprint('trained')\n"
        (repo / "train.py").write_text(textwrap.dedent(text))
        stage = Stage(
            command=("{python}", "{repo}/train.py"),
            time_limit_s=20,
            evidence=(OutputEvidence(kind="output", pattern="trained"),),
            env={"LD_LIBRARY_PATH": str(driver.folder)},
            parallelism=parallelism,
        )
        task = Task(
            schema=1,
            name="fw",
            domain="tests",
            source=FolderSource(kind="folder", path=str(repo)),
            stages={name: stage},
            folder=repo,
        )
        level = Level.C3 if name is StageName.SINGLE_GPU else Level.C4
        record = verify(repo, str(python), task=task, levels=(level,), out=tmp_path / "out")
        return record.results[level]

    return run


pytestmark = [pytest.mark.slow, pytest.mark.network]


class TestOneGpu:
    def test_work_on_the_gpu_passes(self, grade, judge):
        result = judge("computes")
        assert result.verdict is Verdict.PASSED, (result.reason, result.gpu_use)
        assert result.gpu_grades == {UUIDS[0]: grade}
        (process,) = result.gpu_use.processes
        assert process.seen[0].percent == 80
        assert "libcuda.so.1" in process.libraries
        if grade == "counted":
            assert [(one.gpu, one.kernels) for one in process.counted] == [(UUIDS[0], 5)]
        else:
            assert "no C compiler" in result.gpu_use.counter

    @pytest.mark.parametrize(
        ("program", "words"),
        [
            ("falls back to the CPU", "it ran on the CPU"),
            ("another GPU than it was shown", "it ran on the CPU"),
        ],
    )
    def test_what_does_not_use_it_fails(self, grade, judge, program, words):
        result = judge(program)
        assert (result.verdict, result.owner) == (Verdict.FAILED, Owner.AGENT)
        assert words in result.reason
        assert result.details["entry_point"] == Verdict.PASSED
        elsewhere = program != "falls back to the CPU"
        assert bool(result.gpu_use.elsewhere) is elsewhere
        assert [one.kind for one in result.findings] == ["other-gpu"] * elsewhere

    def test_a_context_alone(self, grade, judge):
        result = judge("only makes a context")
        verdict = {"counted": "failed", "observed": "inconclusive"}[grade]
        assert (result.verdict, result.gpu_grades) == (verdict, {UUIDS[0]: "present"})

    def test_a_failure_stays_one(self, grade, judge):
        result = judge("fails")
        assert (result.verdict, result.owner) == (Verdict.FAILED, Owner.AGENT)
        assert "exit 3" in result.reason
        assert result.gpu_grades == {UUIDS[0]: grade}


class TestTwoGpus:
    @pytest.mark.parametrize("grade", ["counted"], indirect=True)
    @pytest.mark.parametrize(
        ("program", "counted", "words"),
        [
            ("talks", "passed", ""),
            ("does not talk", "failed", "no kernel of NCCL was launched on any GPU"),
            ("ranks on the same GPU", "failed", "no process of the stage was on GPU 1"),
            ("one rank only", "failed", "no process of the stage was on GPU 1"),
            ("holds the second GPU", "failed", "no kernel was launched on GPU 1"),
            ("one process on both", "failed", "1 process computed on 2 GPUs"),
        ],
    )
    def test_ranks_must_talk(self, grade, judge, program, counted, words):
        result = judge(program, StageName.MULTI_GPU, "ddp")
        assert result.verdict == counted, result.reason
        assert words in result.reason

    @pytest.mark.parametrize("grade", ["observed"], indirect=True)
    def test_where_nobody_counts_it_is_not_known(self, grade, judge):
        result = judge("talks", StageName.MULTI_GPU, "ddp")  # this driver's links count nothing
        assert (result.verdict, result.owner) == (Verdict.INCONCLUSIVE, Owner.HOST)
        assert "could not be seen" in result.reason


@pytest.mark.parametrize("grade", ["counted"], indirect=True)
class TestHost:
    def test_one_that_cannot_is_not_the_agents_fault(self, grade, judge, driver):
        driver.fail(cuMemcpyPeer=4)
        result = judge("talks", StageName.MULTI_GPU, "ddp")
        assert (result.verdict, result.owner) == (Verdict.INCONCLUSIVE, Owner.HOST)
        assert "cannot copy from GPU 0 to GPU 1" in result.reason
        assert not result.command

    def test_one_that_breaks_while_it_runs(self, grade, judge, driver):
        faults = driver.state / "faults"
        program = (
            f"fw.use(0); fw.launch(); open({str(faults)!r}, 'w').write('cuInit 999'); sys.exit(1)"
        )
        result = judge(program)
        assert (result.verdict, result.owner) == (Verdict.INCONCLUSIVE, Owner.HOST)
        assert "cannot initialise the driver" in result.reason
        assert result.details["entry_point"] == Verdict.FAILED

    def test_what_crashes_of_the_counter_is_run_without_it(self, grade, judge):
        crash = "if os.environ.get('CUDA_INJECTION64_PATH'): os.kill(os.getpid(), 11)"
        result = judge(f"fw.use(0)\n{crash}\nfw.launch()")
        assert (result.verdict, result.gpu_grades) == (Verdict.PASSED, {UUIDS[0]: "observed"})
        assert result.gpu_use.counter == "it was left out"

    def test_what_crashes_anyway_failed(self, grade, judge):
        result = judge("fw.use(0); fw.launch(); os.kill(os.getpid(), 11)")
        assert (result.verdict, result.signal) == (Verdict.FAILED, "SIGSEGV")

    def test_neighbours_excuse_a_failure(self, grade, judge, driver, on_gpu):
        code = "fw.use(0); fw.launch(); fw.time.sleep(3); sys.exit(1)"
        other = None

        def come():
            nonlocal other
            other = on_gpu(0)

        timer = threading.Timer(3.0, come)
        timer.start()
        result = judge(code)
        timer.join()
        assert (result.verdict, result.owner) == (Verdict.INCONCLUSIVE, Owner.HOST)
        assert f"({other.pid})" in result.reason


def test_a_killed_process_keeps_its_counts(headers, driver, tmp_path):
    from researchenvbench.verify.witness.counts import read_counts

    library = tmp_path / "counter.so"
    found = counter.find_headers([str(headers)])
    assert counter.compile_counter(shutil.which("cc"), found, library) == ""
    (tmp_path / "counts").mkdir()
    variables = {
        "LD_LIBRARY_PATH": str(driver.folder),
        **counter.counter_variables(library, tmp_path / "counts", None),
    }
    (tmp_path / "fw.py").write_text(FRAMEWORK)
    code = (
        "import fw, os\n"
        "fw.use(1); fw.launch('gemm'); fw.launch('ncclKernel_X')\n"
        "os.kill(os.getpid(), 9)"
    )
    done = subprocess.run([sys.executable, "-c", code], env=variables, cwd=tmp_path, check=False)
    assert done.returncode == -9
    (file,) = (tmp_path / "counts").glob("*.counts")
    counts = read_counts(file.read_bytes())
    assert counts.counting
    assert [(one.gpu, one.kernels, one.nccl_kernels) for one in counts.devices] == [
        (UUIDS[1], 10, 5)
    ]
    assert read_counts(b"REBCNT1\0") is None
