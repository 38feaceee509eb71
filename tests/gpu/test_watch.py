"""Whose a process is that NVML shows, as far as it can be told from outside."""

import os
import time

from gpu_driver import UUIDS

from researchenvbench.sandbox.local.adopted import adopted_box
from researchenvbench.verify.witness.watch import Watch


def watched(on_gpu, answers):
    """What is known of a program on the GPU, with these answers to whose it is, then the last."""
    program, asked = on_gpu(0), []

    def belongs(pid):
        asked.append(pid)
        return answers[min(len(asked), len(answers)) - 1]

    with Watch([UUIDS[0]], belongs) as watch:
        until = time.monotonic() + 10
        while watch.samples < 4 and time.monotonic() < until:
            time.sleep(0.05)
    assert watch.problem == ""
    return watch.processes[program.pid], asked


def test_it_is_asked_again_until_it_is_told(driver, on_gpu):
    one, asked = watched(on_gpu, [None, None, True])
    assert (one.is_stage, len(asked)) == (True, 3)


def test_what_cannot_be_told_stays_unknown(driver, on_gpu):
    one, asked = watched(on_gpu, [None])
    assert one.is_stage is None
    assert len(asked) == one.samples[UUIDS[0]]


def test_a_box_knows_its_own_and_not_who_is_gone(tmp_path, on_gpu):
    (tmp_path / "repository").mkdir()
    other = on_gpu(0)
    with adopted_box(tmp_path / "repository", None, tmp_path / "scratch", network=True) as box:
        assert box.has_process(os.getpid()) is False
        assert box.has_process(4_194_303) is None
        if box.freshness.kind == "overlay":
            assert box.has_process(other.pid) is False
