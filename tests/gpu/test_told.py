"""What people are told of GPUs: by `reb doctor --gpu`, and beside a verdict."""

import pytest
from gpu_driver import UUIDS

from researchenvbench.attempt import Level, LevelResult, Owner, Verdict
from researchenvbench.gpu import inventory as inventories
from researchenvbench.gpu.inventory import inventory
from researchenvbench.gpu_use import Counted, GpuProcess, GpuUse, Seen
from researchenvbench.results.wording import gpu_words
from researchenvbench.run.doctor_engines import gpu_lines
from researchenvbench.run.doctor_gpus import examine_gpus
from researchenvbench.sandbox.engines.engine import Engine
from researchenvbench.verify.gpu_stage import _not_the_hosts
from researchenvbench.verify.preflight import Preflight


def lines():
    return {line.what: line for line in examine_gpus()}


def test_a_host_that_can(driver):
    told = lines()
    assert {line.state for what, line in told.items() if what != "launches are counted"} == {"good"}
    assert told["GPU 0"].found == (
        f"H200 (sm_90), {UUIDS[0]}: computes; 150 GB free, persistence on"
    )
    assert told["driver"].found == "580.1, for CUDA up to 13.0"
    assert "directly" in told["GPU 0 to 1"].found
    assert told["GPU 0 to 1"].found.endswith("linked by NVLink")


@pytest.mark.parametrize(
    ("faults", "what", "state", "words"),
    [
        ({"cuLaunchKernel": 700}, "GPU 1", "missing", "cannot run a kernel on GPU 1"),
        ({"cuMemcpyPeer": 4}, "several GPUs", "missing", "cannot copy from GPU 0 to GPU 1"),
        (
            {"nvmlDeviceGetComputeRunningProcesses_v3": 3},
            "GPU 0 is watched",
            "note",
            "C3 and C4 stay inconclusive",
        ),
        ({"nvmlDeviceGetProcessUtilization": 3}, "GPU 0 is watched", "note", "how busy"),
    ],
)
def test_what_it_cannot_is_said(driver, faults, what, state, words):
    driver.fail(**faults)
    line = lines()[what]
    assert line.state == state
    assert words in line.advice


def test_a_host_whose_gpus_are_hidden(driver, monkeypatch):
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "1")
    monkeypatch.setenv("CUDA_DEVICE_ORDER", "FASTEST_FIRST")
    line = lines()["GPUs are hidden"]
    assert line.found == (
        "CUDA_VISIBLE_DEVICES=1 leaves 1 of 2; FASTEST_FIRST is not heeded: numbers are the bus's"
    )
    assert {what for what in lines() if what.startswith("GPU ")} == {"GPU 1"}


def test_all_hidden_is_said_with_the_variable(driver, monkeypatch):
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "")
    (line,) = examine_gpus()
    assert (line.state, line.advice) == ("missing", "CUDA_VISIBLE_DEVICES= hides them")


def test_slices_are_said_to_be_slices(driver):
    driver.cut()
    told = lines()
    assert told["GPU 0:1"].found.endswith("computes; a MIG slice")
    assert "counted within" in told["GPU 0:4 is watched"].advice
    assert "GPU 0" not in told
    driver.show(1)
    inventories._all_gpus.cache_clear()
    assert "C4 stays inconclusive" in lines()["several GPUs"].advice


def test_no_driver_says_what_to_install(driver):
    driver.fail(nvmlInitWithFlags=9, nvmlInit_v2=9)
    (line,) = examine_gpus()
    assert line.advice.startswith("NVML: ")
    assert "install NVIDIA's driver" in line.advice


def test_a_card_that_is_lost_does_not_hide_the_other(driver):
    driver.say(lost=1, memory_errors=2)
    told = lines()
    assert told["GPU 1 is not sound"].state == "note"
    assert told["a GPU in error"].state == "missing"
    assert told["a GPU in error"].found.startswith("GPU 0 does not answer: ")
    assert "computes" in told["GPU 1"].found


@pytest.mark.parametrize(("name", "state"), [("1", "good"), ("0:9", "missing"), (UUIDS[1], "good")])
def test_a_cdi_file_must_name_the_gpus(driver, tmp_path, monkeypatch, name, state):
    monkeypatch.setenv("REB_GPUS", "1")
    (tmp_path / "nvidia.yaml").write_text(f"kind: nvidia.com/gpu\ndevices:\n- name: '{name}'\n")
    (line,) = gpu_lines([Engine("podman", "/bin/podman", "4")], [tmp_path])
    assert (line.state, str(tmp_path) in line.found) == (state, True)
    assert ("do not name GPU 1" in line.advice) is (state == "missing")


def test_no_gpu(driver):
    driver.show(0)
    assert [(line.state, line.advice) for line in examine_gpus()] == [
        ("missing", "the driver shows none")
    ]


USE = GpuUse(
    gpus=UUIDS[:2],
    processes=(
        GpuProcess(pid=1, counted=(Counted(gpu=UUIDS[0], kernels=7, nccl_kernels=2, graphs=1),)),
    ),
)
GRADES = {UUIDS[0]: "counted", UUIDS[1]: "none"}


def test_beside_a_verdict():
    result = LevelResult(level=Level.C4, verdict=Verdict.PASSED, gpu_use=USE, gpu_grades=GRADES)
    assert gpu_words(result) == "GPU 0 counted (7 kernels, 2 of NCCL, 1 graphs); GPU 1 none"
    assert gpu_words(LevelResult(level=Level.C1, verdict=Verdict.PASSED)) == ""


@pytest.mark.parametrize(("samples", "excused"), [(1, False), (9, True)])
def test_who_stays_and_is_not_known_excuses_a_failure(driver, samples, excused):
    other = GpuProcess(pid=77, seen=(Seen(gpu=UUIDS[0], samples=samples),))
    failed = LevelResult(
        level=Level.C3,
        verdict=Verdict.FAILED,
        owner=Owner.AGENT,
        reason="exit 1",
        gpu_use=GpuUse(gpus=UUIDS[:1], unidentified=(other,)),
    )
    result = _not_the_hosts(failed, inventory().gpus[:1], Preflight())
    assert (result.verdict is Verdict.INCONCLUSIVE) is excused
    assert ("process 77 was on its GPUs" in result.reason) is excused


@pytest.mark.parametrize("ended", [Verdict.PASSED, None])
def test_an_excuse_keeps_how_the_entry_point_ended(driver, ended):
    failed = LevelResult(
        level=Level.C3,
        verdict=Verdict.FAILED,
        owner=Owner.AGENT,
        reason="it ran on the CPU",
        gpu_use=GpuUse(gpus=UUIDS[:1], neighbours=(GpuProcess(pid=77, name="other"),)),
        details={"entry_point": ended} if ended else {},
    )
    excused = _not_the_hosts(failed, inventory().gpus[:1], Preflight())
    assert (excused.verdict, excused.owner) == (Verdict.INCONCLUSIVE, Owner.HOST)
    assert "other (77)" in excused.reason
    assert excused.details == {
        "entry_point": ended or Verdict.FAILED,
        "why": "it ran on the CPU",
    }
