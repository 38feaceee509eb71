"""What the driver says, by NVML."""

import os

import pytest
from gpu_driver import UUIDS

from researchenvbench.gpu.inventory import inventory
from researchenvbench.gpu.nvml import NvmlError, nvml


def test_cards_in_the_order_of_the_bus(driver):
    with nvml() as host:
        cards = host.cards()
        assert (host.driver(), host.cuda()) == ("580.1", (13, 0))
        assert host.linked(*UUIDS[:2]) == "NVLink"
    assert [card.uuid for card in cards] == list(UUIDS[:2])
    assert [card.architecture for card in cards] == ["sm_90", "sm_90"]
    assert (cards[0].persistent, cards[0].sliced) == (True, False)


def test_who_is_there_and_how_busy(driver, on_gpu):
    busy, idle = on_gpu(1), on_gpu(1, launches=0)
    with nvml() as host:
        assert host.processes(UUIDS[0]) == {}
        assert host.busy(UUIDS[0], 0) == []
        assert set(host.processes(UUIDS[1])) == {busy.pid, idle.pid}
        assert {one.pid: one.percent for one in host.busy(UUIDS[1], 0)} == {
            busy.pid: 80,
            idle.pid: 0,
        }
        assert host.traffic(UUIDS[0]) is None


def test_a_refusal_names_the_query(driver):
    driver.fail(nvmlDeviceGetComputeRunningProcesses_v3=3)
    with nvml() as host, pytest.raises(NvmlError, match="nvmlDeviceGetComputeRunningProcesses"):
        host.processes(UUIDS[0])


def test_no_driver(driver):
    driver.fail(nvmlInitWithFlags=9, nvmlInit_v2=9)
    assert not inventory().gpus
    assert inventory().why_none.startswith("NVML: ")


@pytest.mark.parametrize(
    ("variables", "left"),
    [
        ({}, [0, 1, 2]),
        ({"CUDA_VISIBLE_DEVICES": "2,0"}, [0, 2]),
        ({"CUDA_VISIBLE_DEVICES": UUIDS[1]}, [1]),
        ({"CUDA_VISIBLE_DEVICES": "1,2", "REB_GPUS": "0,1"}, [1]),
        ({"REB_GPUS": "none"}, []),
        ({"CUDA_VISIBLE_DEVICES": ""}, []),
    ],
)
def test_what_is_hidden_is_not_used(driver, variables, left):
    driver.show(3)
    found = inventory({**os.environ, **variables})
    assert [gpu.index for gpu in found.gpus] == left
    assert found.of_host == UUIDS[:3]
    assert bool(found.why_none) == (not left)


@pytest.mark.parametrize(
    ("value", "words"),
    [
        ({"memory_errors": 3}, "3 memory errors that were not corrected"),
        ({"pending": 1}, "replaced at its next reset"),
        ({"broken": 1}, "could not be replaced"),
        ({"compute_mode": 2}, "allows no program"),
        ({"compute_mode": 3}, "one process at a time"),
    ],
)
def test_a_card_in_an_error_state_says_so(driver, value, words):
    driver.say(**value)
    with nvml() as host:
        (said,) = host.cards()[1].amiss
    assert words in said
