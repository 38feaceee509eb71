"""Evidence that numbers changed: two files of a run must differ in what was trained."""

from __future__ import annotations

import os
import sys

import pytest
from pydantic import TypeAdapter, ValidationError

from researchenvbench.attempt import Verdict
from researchenvbench.evidence import ChangeEvidence
from researchenvbench.sandbox import Command
from researchenvbench.sandbox.local.sandbox import LocalSandbox
from researchenvbench.task import Stage, Task
from researchenvbench.verify import evidence
from researchenvbench.verify.evidence_words import describe

pytest.importorskip("safetensors")

ENTRY = {
    "kind": "change",
    "since": "{out}/1.safetensors",
    "pattern": "{out}/[23].safetensors",
    "format": "safetensors",
    "arrays": ["weight"],
}
#: Called in the box as save(NUMBER, VALUES, TYPE).
SAVE = """
import json, struct
def save(number, values, kind="F32"):
    data = struct.pack("<%d%s" % (len(values), "e" if kind == "F16" else "f"), *values)
    entry = {"dtype": kind, "shape": [len(values)], "data_offsets": [0, len(data)]}
    header = json.dumps({"weight": entry}).encode()
    with open("%d.safetensors" % number, "wb") as stream:
        stream.write(struct.pack("<Q", len(header)) + header + data)
"""


@pytest.fixture(scope="module")
def attempt(tmp_path_factory):
    folder = tmp_path_factory.mktemp("attempt")
    source = folder / "source"
    source.mkdir()
    (source / "1.safetensors").write_bytes(b"of the build")
    with LocalSandbox().build_box(folder, source):
        pass
    LocalSandbox().freeze(folder)
    return folder


@pytest.fixture
def judged(attempt, tmp_path):
    """Runs Python in the box's folder for output and judges the entry."""

    def judge(code: str, **entry):
        stage = Stage(command=("x",), evidence=(ENTRY | entry,))
        with LocalSandbox().stage_box(attempt, network=False, gpus=[]) as box:
            argv = [sys.executable, "-c", SAVE + code]
            command = Command(argv, box.layout.out, {"PATH": os.environ["PATH"]}, 60)
            finished = box.run(command, tmp_path / "log")
            assert finished.ok, (tmp_path / "log").read_text()
            values = {key: str(getattr(box.layout, key)) for key in ("work", "repo", "out")}
            return evidence.judge(stage, finished, box, {}, values, tmp_path / "products")[-1]

    return judge


@pytest.mark.parametrize("later", ["[1, 3]", "[2, 1]", "[1, 2.0000002]"])
def test_numbers_that_changed(judged, later):
    result = judged(f"save(1, [1, 2]); save(2, {later})")
    assert result.verdict is Verdict.PASSED
    assert result.seen.startswith("2.safetensors: safetensors, 1 tensor")


@pytest.mark.parametrize(
    ("code", "seen"),
    [
        ("save(1, [1, 2]); save(2, [1, 2])", "array 'weight' did not change"),
        ("save(1, [0, 2]); save(2, [-0.0, 2])", "array 'weight' did not change"),
        # Each later file: one that is a copy shows that something was saved too late.
        ("save(1, [1]); save(2, [2]); save(3, [1])", "3.safetensors and 1.safetensors: array"),
        ("save(1, [1, 2]); save(2, [1])", "1 numbers as F32, before 2 numbers as F32"),
        # Saved with less precision, numbers differ that nobody trained.
        ("save(1, [0.1]); save(2, [0.1], 'F16')", "1 numbers as F16, before 1 numbers as F32"),
        ("save(1, [1]); save(2, [float('nan')])", "1 of 1 numbers are NaN"),
        ("save(1, [1])", "no file matches"),
        ("save(2, [1])", "no file matches"),
        ("save(1, [1]); open('2.safetensors', 'w').write('x')", "not safetensors"),
    ],
)
def test_numbers_that_did_not(judged, code, seen):
    result = judged(code)
    assert (result.verdict, result.owner) == (Verdict.FAILED, None)
    assert seen in result.seen


def test_a_name_that_is_not_there(judged):
    result = judged("save(1, [1]); save(2, [2])", arrays=["bias"])
    assert result.verdict is Verdict.FAILED
    assert "no tensor 'bias'" in result.seen


def test_a_file_of_the_build_is_no_earlier_state(judged):
    result = judged("save(2, [2])", since="{repo}/1.safetensors")
    assert result.verdict is Verdict.FAILED
    assert "was there before this run" in result.seen


def test_it_is_told_and_its_patterns_may_hold_placeholders():
    entry = TypeAdapter(ChangeEvidence).validate_python(ENTRY)
    assert describe(entry) == (
        "weight of this run's safetensors file {out}/[23].safetensors differ from those of "
        "{out}/1.safetensors"
    )
    stage = Stage(command=("x", "{out}"), evidence=(entry,))
    assert ("evidence.0.since", "{out}/1.safetensors") in stage.argument_texts()
    source = {"kind": "folder", "path": "."}
    task = Task(schema=1, name="x", domain="x", source=source, stages={"cpu": stage})
    assert evidence.formats(task) == ["safetensors"]


def test_it_names_at_least_one_array():
    with pytest.raises(ValidationError, match="arrays"):
        ChangeEvidence.model_validate(ENTRY | {"arrays": []})
