"""Leases: all or nothing, first come first served, gone with their holder."""

import subprocess
import sys
import threading
import time

import pytest

from researchenvbench.errors import HostError
from researchenvbench.gpu.inventory import inventory
from researchenvbench.gpu.leases import NoLeaseError, leased


@pytest.fixture
def lease(driver, tmp_path):
    def take(count, *, limit_s=20.0, whose="a test", say=lambda _: None):
        return leased(
            count,
            inventory().gpus,
            time_limit_s=limit_s,
            whose=whose,
            say=say,
            folder=tmp_path / "leases",
        )

    return take


def indices(held):
    return [gpu.index for gpu in held]


def test_each_has_gpus_of_its_own(lease):
    with lease(1) as one, lease(1) as other:
        assert indices(one) + indices(other) == [0, 1]
    with lease(2) as both:
        assert indices(both) == [0, 1]


def test_all_or_nothing_and_who_has_them(lease):
    with (
        lease(1, whose="cleanrl single_gpu"),
        pytest.raises(NoLeaseError) as failed,
        lease(2, limit_s=0.3),
    ):
        pass
    assert "no 2 GPUs at once free within 0 s: GPU 0 is leased to cleanrl single_gpu (process" in (
        str(failed.value)
    )
    with lease(2, limit_s=1.0):
        pass


def test_first_come_first_served(lease):
    order = []

    def wait(count, name):
        with lease(count, whose=name):
            order.append(name)
            time.sleep(0.1)

    with lease(1):
        waiting = []
        for count, name in ((2, "both"), (1, "later")):
            waiting.append(threading.Thread(target=wait, args=(count, name)))
            waiting[-1].start()
            time.sleep(0.8)
        assert order == []  # one is free, and whoever came first needs two
    for thread in waiting:
        thread.join(20)
    assert order == ["both", "later"]


@pytest.mark.parametrize("when", ["holds", "waits"])
def test_who_dies_frees_the_place(lease, driver, tmp_path, when):
    code = (
        "import sys, time\n"
        "from pathlib import Path\n"
        "from researchenvbench.gpu.inventory import inventory\n"
        "from researchenvbench.gpu.leases import leased\n"
        "print('starts', flush=True)\n"
        "with leased(2, inventory().gpus, time_limit_s=60, whose='it', folder=Path(sys.argv[1])):\n"
        "    print('holds', flush=True)\n"
        "    time.sleep(60)\n"
    )
    argv = [sys.executable, "-c", code, tmp_path / "leases"]

    def start():
        return subprocess.Popen(argv, stdout=subprocess.PIPE, text=True)

    if when == "holds":
        with start() as other:
            assert [other.stdout.readline(), other.stdout.readline()] == ["starts\n", "holds\n"]
            other.kill()
    else:
        with lease(1), start() as other:
            assert other.stdout.readline() == "starts\n"
            until = time.monotonic() + 20
            while not list((tmp_path / "leases").glob("*.waits")):
                assert time.monotonic() < until
                time.sleep(0.05)
            other.kill()
    with lease(2, limit_s=5.0) as held:
        assert indices(held) == [0, 1]


def test_gpus_that_others_use_are_not_given(lease, on_gpu):
    other = on_gpu(0)
    said = []
    with lease(1) as held:
        assert indices(held) == [1]
        words = rf"GPU 0 is used by python\S* \({other.pid}, 0\.5"
        with (
            pytest.raises(NoLeaseError, match=words),
            lease(1, limit_s=0.3, say=said.append),
        ):
            pass
    assert said == [f"waiting for 1 of 2 GPUs: {said[0].partition(': ')[2]}"]


def test_a_link_in_the_place_of_a_lease_is_not_followed(lease, tmp_path, driver):
    (tmp_path / "leases").mkdir()
    (tmp_path / "kept").write_text("kept")
    (tmp_path / "leases" / f"{inventory().gpus[0].uuid}.lease").symlink_to(tmp_path / "kept")
    with pytest.raises(HostError, match="cannot be leased"), lease(1):
        pass
    assert (tmp_path / "kept").read_text() == "kept"
