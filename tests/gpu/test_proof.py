"""What a stage must have shown on GPUs."""

import pytest

from researchenvbench.attempt import Owner, Verdict
from researchenvbench.gpu_use import Carried, Counted, GpuProcess, GpuUse, Seen
from researchenvbench.verify.witness.proof import COMMUNICATING, Grade, prove

A, B = "GPU-a", "GPU-b"


def process(pid, gpu=A, *, percent=0, kernels=None, nccl=0, graphs=0, samples=5):
    """One that was seen on a GPU; `kernels` is None where nothing was counted."""
    counted = ()
    if kernels or graphs:
        counted = (Counted(gpu=gpu, kernels=kernels or 0, nccl_kernels=nccl, graphs=graphs),)
    return GpuProcess(
        pid=pid,
        seen=(Seen(gpu=gpu, percent=percent, samples=samples),) if samples else (),
        counting=None if kernels is None else True,
        counted=counted,
    )


def use(*processes, gpus=(A,), sees=True, **more):
    return GpuUse(gpus=gpus, processes=processes, sees_processes=sees, **more)


class TestOne:
    @pytest.mark.parametrize(
        ("seen", "verdict", "grade", "words"),
        [
            (use(process(1, kernels=40)), "passed", "counted", ""),
            (use(process(1, kernels=0, graphs=3)), "passed", "counted", ""),
            (use(process(1, percent=60)), "passed", "observed", ""),
            (use(process(1), process(2, percent=1)), "passed", "observed", ""),
            (use(process(1)), "inconclusive", "present", "whether it computed was not seen"),
            (use(process(1, kernels=0)), "failed", "present", "no kernel was launched"),
            (use(process(1, percent=9, kernels=0)), "failed", "present", "no kernel"),
            (use(process(1, kernels=0), process(2, kernels=9)), "passed", "counted", ""),
            (use(), "failed", "none", "it ran on the CPU"),
            (use(sees=False), "inconclusive", "none", "did not see the preflight's program"),
            (use(unidentified=(process(7),)), "inconclusive", "none", "process 7 was on the GPU"),
            (use(process(1, kernels=9), unidentified=(process(7),)), "passed", "counted", ""),
            (use(unidentified=(process(7, B),)), "failed", "none", "it ran on the CPU"),
            (use(process(1, B, kernels=9)), "failed", "none", "9 launches are claimed"),
            (use(process(1, kernels=9, samples=0)), "failed", "none", "9 launches are claimed"),
            (use(process(1, kernels=9), problem="NVML: gone"), "inconclusive", "counted", "gone"),
        ],
    )
    def test_grades(self, seen, verdict, grade, words):
        proof = prove(seen)
        assert (proof.verdict, proof.grades) == (verdict, {A: grade})
        assert words in proof.reason
        owners = {"passed": None, "failed": Owner.AGENT, "inconclusive": Owner.HOST}
        assert proof.owner == owners[verdict]


class TestSeveral:
    @pytest.mark.parametrize("parallelism", sorted(COMMUNICATING))
    def test_each_gpu_has_a_process_that_talks(self, parallelism):
        seen = use(process(1, kernels=9, nccl=2), process(2, B, kernels=9, nccl=2), gpus=(A, B))
        assert prove(seen, parallelism).verdict is Verdict.PASSED

    @pytest.mark.parametrize(
        ("processes", "words"),
        [
            ((process(1, kernels=9), process(2, B, kernels=9)), "no kernel of NCCL was launched"),
            ((process(1, kernels=9, nccl=1), process(2, B, kernels=9)), "on GPU 1 of the stage"),
            ((process(1, kernels=9, nccl=1),), "no process of the stage was on GPU 1"),
            (
                (process(1, kernels=9, nccl=1), process(2, A, kernels=9, nccl=1)),
                "no process of the stage was on GPU 1",
            ),
            ((process(1, kernels=9, nccl=1), process(2, B, kernels=0)), "no kernel was launched"),
        ],
    )
    def test_who_does_not_talk_fails(self, processes, words):
        proof = prove(use(*processes, gpus=(A, B)), "ddp")
        assert (proof.verdict, proof.owner) == (Verdict.FAILED, Owner.AGENT)
        assert words in proof.reason

    def test_one_process_on_both_is_none_each(self):
        both = GpuProcess(
            pid=1,
            seen=(Seen(gpu=A, samples=3), Seen(gpu=B, samples=3)),
            counting=True,
            counted=(
                Counted(gpu=A, kernels=5, nccl_kernels=5),
                Counted(gpu=B, kernels=5, nccl_kernels=5),
            ),
        )
        seen = use(both, gpus=(A, B))
        assert "1 process computed on 2 GPUs" in prove(seen, "ddp").reason
        assert prove(seen, "device_map").verdict is Verdict.PASSED

    def test_traffic_where_nothing_could_be_counted(self):
        pair = (process(1, percent=50), process(2, B, percent=50))
        carried = tuple(
            Carried(gpu=gpu, sent_bytes=9 << 20, received_bytes=9 << 20) for gpu in (A, B)
        )
        assert prove(use(*pair, gpus=(A, B), carried=carried), "fsdp").verdict is Verdict.PASSED
        for less in ((), carried[:1], (carried[0], Carried(gpu=B, sent_bytes=1, received_bytes=1))):
            proof = prove(use(*pair, gpus=(A, B), carried=less), "fsdp")
            assert (proof.verdict, proof.owner) == (Verdict.INCONCLUSIVE, Owner.HOST)

    def test_copies_need_every_gpu(self):
        pair = (process(1, percent=50), process(2, B, percent=50))
        assert prove(use(*pair, gpus=(A, B)), "replicas").verdict is Verdict.PASSED
        proof = prove(use(pair[0], gpus=(A, B)), "replicas")
        assert (proof.verdict, proof.grades) == (Verdict.FAILED, {A: Grade.OBSERVED, B: Grade.NONE})
