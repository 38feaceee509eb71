"""What an agent with a model is told: all that it must know, in one text."""

from __future__ import annotations

import hashlib
import time
from pathlib import Path
from types import SimpleNamespace

import pytest

from researchenvbench.agents import task_text as module
from researchenvbench.agents.task_text import task_text
from researchenvbench.attempt import Report

LAYOUT = SimpleNamespace(
    repo=Path("/workspace/repo"), env=Path("/workspace/env"), report=Path("/workspace/report.json")
)


#: A host's GPUs, of which the build is shown none.
UNSEEN = {"target_gpus": ("H200 sm_90", "H200 sm_90"), "driver": "570.1"}


def assignment(**facts):
    given = {
        "box": SimpleNamespace(layout=LAYOUT),
        "deadline": time.monotonic() + 3600,
        "task": None,
        "gpus": (),
        "target_gpus": (),
        "driver": None,
        "network": "full",
        "python": "",
        "date": None,
    }
    return SimpleNamespace(**{**given, **facts})


def test_whoever_changes_the_text_raises_its_version():
    digest = hashlib.sha256(module._TEXT.read_bytes()).hexdigest()[:16]
    assert (module.VERSION, digest) == (1, "9911be04216e6a95"), (
        "the text has changed: raise VERSION, and write the new digest here"
    )


def test_places_rules_and_limits_are_named():
    text = task_text(assignment(), budget=("Tokens of the model: 5.",))
    for words in ("/workspace/repo", "/workspace/env", "/workspace/report.json"):
        assert words in text
    assert "60 minutes" in text
    assert "Tokens of the model: 5." in text
    assert "{{" not in text
    assert "{%" not in text


def test_the_contract_names_every_field_of_a_report():
    text = task_text(assignment())
    for field in Report.model_fields:
        assert f'"{field}"' in text


def test_every_level_and_no_probe():
    text = task_text(assignment())
    assert all(f"- C{number}:" in text for number in range(6))
    assert "pyright" not in text


@pytest.mark.parametrize(
    ("facts", "said"),
    [
        ({}, "No GPU: what needs one cannot be tried"),
        ({"gpus": ("H200", "H200")}, "GPUs that you see: H200, H200"),
        ({"gpus": ("H200",), "driver": "570.1"}, "NVIDIA driver: 570.1"),
        (UNSEEN, "You see no GPU here. The environment will be used"),
        (UNSEEN, "install for them: H200 sm_90, H200 sm_90"),
        (UNSEEN, "NVIDIA driver: 570.1"),
        ({**UNSEEN, "gpus": ("H200",)}, "GPUs that you see: H200\n"),
        ({**UNSEEN, "gpus": ("H200",)}, "You see these alone. The environment will be used"),
        ({"python": ">=3.9"}, "The repository asks for Python >=3.9."),
    ],
)
def test_the_machine_is_described(facts, said):
    assert said in task_text(assignment(**facts))


def test_a_driver_without_a_gpu_is_no_hardware():
    assert "NVIDIA driver" not in task_text(assignment(driver="570.1"))


@pytest.mark.parametrize(
    ("network", "said"),
    [("full", "as this machine has it"), ("registries", "package indexes"), ("none", "none;")],
)
def test_the_network_is_described(network, said):
    assert f"- Network: {said}" in task_text(assignment(network=network))
