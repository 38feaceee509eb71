"""What a framework of a judged environment says may be anything, and is a verdict."""

from __future__ import annotations

import json
from typing import Any

import pytest
from pydantic import ValidationError

from researchenvbench.gpu.inventory import Gpu, GpuInventory
from researchenvbench.verify.device import _Answer, _judge
from researchenvbench.verify.probes.device import matrices

SEED = "0123456789abcdef"
CARD = Gpu(0, "GPU-0", "NVIDIA H200", "sm_90", 1)


def right_product() -> list[list[float]]:
    left, right = matrices(SEED)
    columns = list(zip(*right, strict=True))
    return [
        [sum(a * b for a, b in zip(row, column, strict=True)) for column in columns] for row in left
    ]


def answer(**changes: Any) -> dict[str, Any]:
    device = {"name": "H200", "architecture": "sm_90", "product": right_product()}
    good = {"seed": SEED, "version": "2.9", "cuda": "12.8", "devices": [device]}
    return {**good, "architectures": ["sm_80", "sm_90"], "libraries": {"cudnn": 91}, **changes}


def judged(said: dict[str, Any]) -> str:
    read = _Answer.model_validate_json(json.dumps(said))
    return _judge(read, SEED, GpuInventory((CARD,), "550.54", (12, 4)))


def test_a_right_answer_is_right() -> None:
    assert judged(answer()) == ""


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"devices": []}, "sees 0 of the 1 GPUs that the driver shows"),
        ({"devices": [], "cuda": None}, "it was built without CUDA"),
        (
            {"devices": [], "cuda": "13.0"},
            "it was built for CUDA 13.0, and driver 550.54 supports CUDA up to 12.4",
        ),
        (
            {
                "architectures": ["sm_70"],
                "devices": [{"architecture": "sm_90", "product": [], "error": "no kernel image"}],
            },
            "is built for sm_70, not for GPU 0, which is sm_90",
        ),
        (
            {"devices": [{"architecture": "sm_90", "product": [], "error": "out of memory"}]},
            "cannot compute on GPU 0: out of memory",
        ),
        ({"architectures": ["sm_70", "compute_100"]}, "is built for sm_70, compute_100, not for"),
        (
            {"architectures": ["nonsense", "sm_", "sm_9", "sm_x0", "sm_²²"]},
            "not for GPU 0, which is sm_90",
        ),
        ({"devices": [{"product": [[0.0]]}]}, "computes a wrong product on GPU 0"),
        ({"devices": [{"product": []}]}, "computes a wrong product on GPU 0"),
    ],
)
def test_a_wrong_answer_is_named(changes: dict[str, Any], words: str) -> None:
    assert words in judged(answer(**changes))


@pytest.mark.parametrize(
    "said",
    [
        "[" * 200_000,
        "[]",
        "null",
        "",
        json.dumps(answer(architectures=[1])),
        json.dumps(answer(devices=[{"product": "x"}])),
        json.dumps(answer(devices=[{"product": right_product(), "architecture": "sm_9x"}])),
        json.dumps(answer(seed=7)),
    ],
)
def test_what_is_no_answer_is_refused(said: str) -> None:
    with pytest.raises(ValidationError):
        _Answer.model_validate_json(said)
