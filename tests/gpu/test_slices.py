"""MIG slices are GPUs of their own: leased, shown, asked and counted by their UUIDs."""

import os
import subprocess
import sys

import pytest
from gpu_driver import SLICES, UUIDS

from researchenvbench.gpu.inventory import inventory
from researchenvbench.gpu.leases import NoLeaseError, leased
from researchenvbench.gpu.nvml import nvml
from researchenvbench.sandbox.containers.gpus import cdi_names, devices, in_container
from researchenvbench.sandbox.engines.engine import Engine
from researchenvbench.verify import preflight
from researchenvbench.verify.witness.counts import Counts, DeviceCounts
from researchenvbench.verify.witness.stage import _named_as_shown

PODMAN, DOCKER = Engine("podman", "/bin/podman", "4"), Engine("docker", "/bin/docker", "25")
FIRST, SECOND = SLICES.values()


@pytest.fixture
def cut(driver):
    driver.cut()
    return driver


def test_slices_stand_in_the_place_of_their_card(cut):
    found = inventory()
    assert [gpu.uuid for gpu in found.gpus] == [FIRST, SECOND, UUIDS[1]]
    assert [gpu.number for gpu in found.gpus] == ["0:1", "0:4", "1"]
    assert UUIDS[0] not in found.of_host
    # Where there are slices, CUDA counts otherwise than NVML: nothing is named by number.
    assert [gpu.shown_as for gpu in found.gpus] == [FIRST, SECOND, UUIDS[1]]
    assert found.gpus[0].architecture == "sm_90"
    assert found.gpus[0].memory_bytes < found.gpus[2].memory_bytes


def test_several_together_are_whole_cards(cut):
    found = inventory()
    assert [gpu.number for gpu in found.for_stage(1)] == ["0:1", "0:4", "1"]
    assert [gpu.number for gpu in found.for_stage(2)] == ["1"]
    cut.show(1)
    inventory.__globals__["_all_gpus"].cache_clear()
    assert [gpu.number for gpu in inventory().together().gpus] == ["0:1"]


def test_a_card_that_is_to_be_cut_and_is_not_is_none(driver):
    driver.show(1)
    driver.say(mig=1)
    found = inventory()
    assert found.gpus == ()
    assert found.why_none == "GPU 0 is to be cut into MIG slices and has none"


@pytest.mark.parametrize(
    ("visible", "left"),
    [
        (FIRST, ["0:1"]),
        (FIRST[:12], ["0:1"]),
        ("0", ["0:1", "0:4"]),
        ("0:4", ["0:4"]),
        ("1,-1,0", ["1"]),
    ],
)
def test_they_are_chosen_by_name(cut, visible, left):
    found = inventory({**os.environ, "CUDA_VISIBLE_DEVICES": visible})
    assert [gpu.number for gpu in found.gpus] == left


def test_each_is_leased_by_itself(cut, tmp_path):
    def lease(count=1, limit_s=5.0):
        choice = inventory().for_stage(count)
        return leased(count, choice, time_limit_s=limit_s, whose="x", folder=tmp_path / "leases")

    with lease() as one, lease() as other, lease() as card:
        assert [gpu.uuid for held in (one, other, card) for gpu in held] == [
            FIRST,
            SECOND,
            UUIDS[1],
        ]
        with pytest.raises(NoLeaseError, match="GPU 0:4 is leased to x"), lease(limit_s=0.1):
            pass


def test_the_host_is_asked_on_a_slice(cut):
    host = preflight.look(inventory().gpus[1:2], {})
    assert (host.problem, host.sees_processes) == ("", True)
    assert host.facts["gpus"] == ["0:4: H200-MIG-1g.18gb"]
    assert not host.sees_busy  # of slices the driver does not say how busy a process is


def test_who_is_on_a_slice_is_not_on_its_neighbour(cut):
    code = (
        "import ctypes, sys\n"
        "cuda = ctypes.CDLL('libcuda.so.1'); context = ctypes.c_void_p()\n"
        "assert cuda.cuInit(0) == 0\n"
        "assert cuda.cuDevicePrimaryCtxRetain(ctypes.byref(context), 0) == 0\n"
        "print('there', flush=True); sys.stdin.read()\n"
    )
    environment = {
        **os.environ,
        "LD_LIBRARY_PATH": str(cut.folder),
        "CUDA_VISIBLE_DEVICES": inventory().gpus[1].shown_as,
    }
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE}
    with (
        subprocess.Popen([sys.executable, "-c", code], env=environment, **pipes) as program,
        nvml() as host,
    ):
        assert program.stdout.readline() == b"there\n"
        assert {uuid: set(host.processes(uuid)) for uuid in (FIRST, SECOND, UUIDS[1])} == {
            FIRST: set(),
            SECOND: {program.pid},
            UUIDS[1]: set(),
        }
        program.stdin.close()


def test_counts_of_a_slice_are_its_own():
    counted = DeviceCounts(f"GPU-{SECOND.removeprefix('MIG-')}", 7, 0, 0)
    whole = DeviceCounts(UUIDS[1], 3, 0, 0)
    counts = _named_as_shown(Counts(1, True, "", (counted, whole)), [SECOND, UUIDS[1]])
    assert [one.gpu for one in counts.devices] == [SECOND, UUIDS[1]]


YAML = """\
cdiVersion: 0.5.0
kind: nvidia.com/gpu
devices:
- name: "0:1"
  containerEdits:
    deviceNodes:
    - path: /dev/nvidia0
- containerEdits: {}
  name: all
"""


def test_engines_are_asked_for_slices(cut, tmp_path):
    gpus = [SECOND]
    assert devices(DOCKER, gpus, [tmp_path]) == ["--gpus", f'"device={SECOND}"']
    (tmp_path / "nvidia.yaml").write_text(YAML)
    assert cdi_names([tmp_path]) == {"0:1", "all"}
    assert devices(PODMAN, gpus, [tmp_path]) == ["--device=nvidia.com/gpu=0:4"]
    assert devices(PODMAN, [UUIDS[1]], [tmp_path]) == ["--device=nvidia.com/gpu=1"]
    # A file that knows the UUID cannot mean another by it.
    (tmp_path / "more.json").write_text(
        f'{{"kind": "nvidia.com/gpu", "devices": [{{"name": "{SECOND}"}}]}}'
    )
    assert devices(PODMAN, gpus, [tmp_path]) == [f"--device=nvidia.com/gpu={SECOND}"]
    assert in_container(inventory().gpus[1:]) == [SECOND, "1"]
