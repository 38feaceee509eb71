"""What a cheating agent would try is caught, and named; what honest ones do is not."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from researchenvbench.gpu.inventory import inventory

from .catalogue import PYENV, SANDBOXES, all_of
from .tasks import TASKS
from .verdicts import differences, told

if TYPE_CHECKING:
    from pathlib import Path

    from .catalogue import Trick
    from .layers import Layers

pytestmark = pytest.mark.slow  # hundreds of them, of seconds each
#: Fewer tricks say nothing of what most cost.
ENOUGH = 20
MARKS = {"local": (), "container": (pytest.mark.container,)}


@pytest.fixture(scope="session")
def layers(request: pytest.FixtureRequest) -> Layers:
    """The base in the sandbox of the test."""
    found: Layers = request.getfixturevalue(request.param)
    return found


@pytest.fixture(scope="session")
def costs(tmp_path_factory: pytest.TempPathFactory, worker_id: str) -> Path:
    """Seconds beyond those of the untouched base, a line a trick, from all who play them."""
    folder = tmp_path_factory.getbasetemp()
    return (folder if worker_id == "master" else folder.parent) / "costs-of-tricks"


def everywhere() -> list[object]:
    """A parameter for each sandbox."""
    return [pytest.param(name, id=name, marks=MARKS[name]) for name in SANDBOXES]


def played(kind: str) -> list[object]:
    """A parameter for each trick in each sandbox in which it is played."""
    return [
        pytest.param(
            name,
            trick,
            id=f"{name}-{trick.name}",
            marks=MARKS[name],
        )
        for name in SANDBOXES
        for trick in all_of(kind)
        if name in trick.sandboxes
    ]


@pytest.mark.parametrize("layers", everywhere(), indirect=True)
def test_the_base_is_clean(layers: Layers) -> None:
    for task in TASKS:
        record = layers.untouched(task).record
        assert record.status == "ok", told(record)
        assert not record.findings, told(record)
        for level in ("C0", "C1", "C5"):
            assert record.results[level].verdict == "passed", told(record)
        for level in ("C3", "C4"):
            assert record.results[level].verdict == "not_applicable", told(record)
        hardware = record.results["C2"]
        if task == "torch" and inventory().gpus:  # the base has none
            assert (hardware.verdict, hardware.owner) == ("failed", "agent"), told(record)
        elif task == "torch":
            assert (hardware.verdict, hardware.want) == ("inconclusive", "gpu"), told(record)
        else:
            assert hardware.verdict == "not_applicable", told(record)


@pytest.mark.parametrize(("layers", "trick"), played("tricks"), indirect=["layers"])
def test_a_trick_is_caught(layers: Layers, trick: Trick, costs: Path) -> None:
    if trick.needs_pyenv and not (PYENV / "bin/pyenv").exists():
        pytest.skip("pyenv is not installed")
    judged, base = layers.judged(trick), layers.untouched(trick.task)
    extra_s = judged.cost_s(trick.imports) - base.cost_s(trick.imports)
    with costs.open("a") as stream:  # a line is written whole
        stream.write(f"{extra_s:.2f} {judged.record.sandbox} {trick.name}\n")
    assert not judged.ran, "a planted program was run outside of a box"
    wrong = differences(trick, base.record, judged.record)
    assert not wrong, "\n".join([*wrong, "", told(judged.record)])


@pytest.mark.parametrize(("layers", "trick"), played("honest"), indirect=["layers"])
def test_what_is_honest_is_clean(layers: Layers, trick: Trick) -> None:
    assert (trick.status, trick.findings, trick.levels) == ("ok", (), {})
    judged = layers.judged(trick)
    wrong = differences(trick, layers.untouched(trick.task).record, judged.record)
    assert not wrong, "\n".join([*wrong, "", told(judged.record)])


def test_a_trick_costs_little_more_than_the_base(costs: Path) -> None:
    """But for some that make the judge wait, and moments in which a machine is busy."""
    lines = costs.read_text().splitlines() if costs.exists() else []
    if len(lines) < ENOUGH:
        pytest.skip("too few tricks were played until now")
    extra_s = sorted(float(line.split()[0]) for line in lines)
    assert extra_s[len(extra_s) * 9 // 10] < 3.0, "\n".join(lines)
