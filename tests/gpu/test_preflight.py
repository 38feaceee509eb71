"""The host is asked first, with a case that is known to be good."""

import pytest
from gpu_driver import UUIDS

from researchenvbench.gpu.inventory import inventory
from researchenvbench.gpu_use import GpuProcess, GpuUse
from researchenvbench.verify import preflight
from researchenvbench.verify.gpu_stage import still_there


def look():
    return preflight.look(inventory().gpus, {})


def test_a_host_that_can(driver):
    host = look()
    assert (host.cause(1), host.cause(2)) == ("", "")
    assert (host.sees_processes, host.sees_busy) == (True, True)
    assert host.facts["driver"] == "580.1"
    assert set(host.facts["copies"]) == {"0 to 1", "1 to 0"}
    assert "directly" in host.facts["copies"]["0 to 1"]


@pytest.mark.parametrize(
    ("faults", "words", "of_one"),
    [
        ({"cuInit": 999}, "cannot initialise the driver: cuInit: code 999", True),
        ({"cuDevicePrimaryCtxRetain": 2}, "cannot make a context on GPU 0", True),
        ({"cuLaunchKernel": 700}, "cannot run a kernel on GPU 0: cuLaunchKernel: code 700", True),
        ({"cuMemcpyPeer": 4}, "cannot copy from GPU 0 to GPU 1: cuMemcpyPeer", False),
    ],
)
def test_what_fails_is_named(driver, faults, words, of_one):
    driver.fail(**faults)
    host = look()
    assert words in host.cause(2)
    assert bool(host.cause(1)) is of_one


@pytest.mark.parametrize(
    ("function", "words", "of_one"),
    [
        ("cuMemcpyPeer", "hangs when asked to copy from GPU 0 to GPU 1", False),
        ("cuInit", "hangs when asked to initialise the driver", True),
    ],
)
def test_what_hangs_is_ended_and_named(driver, monkeypatch, function, words, of_one):
    monkeypatch.setattr(preflight, "_TIME_LIMIT_S", 2.0)
    driver.fail(**{function: "hang"})
    host = look()
    assert words in host.cause(2)
    assert bool(host.cause(1)) is of_one


def test_a_witness_that_sees_nobody_is_known(driver):
    driver.fail(nvmlDeviceGetComputeRunningProcesses_v3=3)
    host = look()
    assert (host.cause(2), host.sees_processes) == ("", False)


def test_remembered_and_looked_at_again(driver):
    gpus = inventory().gpus
    assert preflight.told(gpus, {}).problem == ""
    driver.fail(cuLaunchKernel=700)
    assert preflight.told(gpus, {}).problem == ""
    assert "cannot run a kernel" in look().problem
    assert UUIDS[0] not in look().problem  # people know their GPUs by number


def test_a_process_that_stays_on_a_gpu_is_a_finding(driver, on_gpu):
    other = on_gpu(0)
    use = GpuUse(gpus=UUIDS[:1], processes=(GpuProcess(pid=other.pid),))
    found = still_there(use, wait_s=0.5)
    assert (found.kind, str(other.pid) in found.what) == ("gpu-not-freed", True)
    other.kill()
    other.wait()
    assert still_there(use, wait_s=5.0) is None
    assert still_there(GpuUse(gpus=UUIDS[:1]), wait_s=0.0) is None
