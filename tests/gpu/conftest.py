"""A driver for hosts without a GPU (driver.c), compiled once, and what it is told to show."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys

import pytest
from gpu_driver import Driver

from researchenvbench.gpu import inventory as inventories
from researchenvbench.verify import preflight


@pytest.fixture(scope="session")
def compiled_driver(tmp_path_factory) -> Driver:
    """The library."""
    if shutil.which("cc") is None:
        pytest.skip("no C compiler")
    return Driver(tmp_path_factory.mktemp("driver"))


@pytest.fixture
def driver(compiled_driver, monkeypatch) -> Driver:
    """The driver of a host with two GPUs on which nothing runs."""
    compiled_driver.forget()
    compiled_driver.show(2)
    monkeypatch.setenv("LD_LIBRARY_PATH", str(compiled_driver.folder))
    for variable in ("CUDA_VISIBLE_DEVICES", "REB_GPUS"):
        monkeypatch.delenv(variable, raising=False)
    inventories._all_gpus.cache_clear()
    preflight.preflight.cache_clear()
    yield compiled_driver
    # It stays loaded in this process, where other tests must find a host without a GPU.
    compiled_driver.fail(nvmlInitWithFlags=9, nvmlInit_v2=9)
    inventories._all_gpus.cache_clear()
    preflight.preflight.cache_clear()


@pytest.fixture
def on_gpu(driver):
    """Starts a program that makes a context on a GPU, launches kernels, and waits."""
    started = []

    def start(number: int, *, launches: int = 3, seconds: float = 60) -> subprocess.Popen:
        code = (
            "import ctypes, time\n"
            "cuda = ctypes.CDLL('libcuda.so.1')\n"
            "assert cuda.cuInit(0) == 0\n"
            "context = ctypes.c_void_p()\n"
            f"assert cuda.cuDevicePrimaryCtxRetain(ctypes.byref(context), {number}) == 0\n"
            "cuda.cuCtxSetCurrent(context)\n"
            f"for _ in range({launches}):\n"
            "    cuda.cuLaunchKernel(b'k', 1, 1, 1, 1, 1, 1, 0, None, None, None)\n"
            "print('there', flush=True)\n"
            f"time.sleep({seconds})\n"
        )
        program = subprocess.Popen(
            [sys.executable, "-c", code],
            env={**os.environ, "LD_LIBRARY_PATH": str(driver.folder)},
            stdout=subprocess.PIPE,
            text=True,
        )
        started.append(program)
        assert program.stdout.readline() == "there\n"
        return program

    yield start
    for program in started:
        program.kill()
        program.wait()
        program.stdout.close()
