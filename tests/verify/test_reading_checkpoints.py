"""Checkpoints that torch made are read without torch, and nothing in them is run."""

from __future__ import annotations

import os
import pickle
from pathlib import Path

import pytest
from reading import DATA, FINITE, archive, cut, faults, rewritten

from researchenvbench.verify.readers import Wanted, open_file
from researchenvbench.verify.readers.numbers import Limits


@pytest.mark.parametrize("name", ["checkpoint.pt", "checkpoint-legacy.pt"])
def test_torch_checkpoints_are_read_without_torch(name):
    pytest.importorskip("numpy")
    numeric = {
        "view": Limits(min=3, max=8),
        "half": Limits(min=-1.5, max=0.5),
        "bits": Limits(max=65535),
        "model.first.weight": FINITE,
    }
    keys = ("epoch", "optimizer", "model.norm.running_mean", "optimizer.state.0.exp_avg")
    assert faults(DATA / name, "torch", keys=keys, numeric=numeric) == ""
    assert "1 of 2 numbers are NaN" in faults(DATA / name, "torch", numeric={"broken": FINITE})
    assert "no name 'scheduler'" in faults(DATA / name, "torch", keys=("scheduler",))
    assert "not read here" in faults(DATA / name, "torch", numeric={"transposed": FINITE})


@pytest.mark.parametrize("name", ["module.pt", "scripted.pt"])
def test_whole_modules_are_read_without_their_classes(name):
    found = open_file(DATA / name, Wanted(format="torch", keys=("first.weight",)))
    assert found.faults == []
    assert "of the classes" in found.what
    assert "Net" in found.what


@pytest.mark.parametrize("share", [0.05, 0.5, 0.99])
@pytest.mark.parametrize("name", ["checkpoint.pt", "checkpoint-legacy.pt"])
def test_a_truncated_checkpoint(tmp_path, name, share):
    said = faults(cut(DATA / name, tmp_path / "cut.pt", share), "torch")
    assert "truncated" in said or "damaged" in said


def test_a_checkpoint_with_a_block_of_numbers_missing_or_short(tmp_path):
    missing = rewritten(tmp_path / "a.pt", lambda n, c: None if n.endswith("data/0") else c)
    assert "data/0 are not in the archive" in faults(missing, "torch")
    short = rewritten(tmp_path / "b.pt", lambda n, c: c[:-4] if n.endswith("data/0") else c)
    assert "data/0 should have 48 bytes (12 of FloatStorage) and has 44" in faults(short, "torch")


class Payload:
    def __init__(self, marker):
        self.marker = marker

    def __reduce__(self):
        return os.system, (f"touch {self.marker}",)


class Caller:
    def __init__(self, marker):
        self.marker = marker

    def __reduce__(self):
        return Path.touch, (Path(self.marker),)


def test_a_checkpoint_runs_nothing(tmp_path):
    marker = tmp_path / "marker"
    harmful = pickle.dumps({"model": Payload(marker)})
    path = rewritten(tmp_path / "a.pt", lambda n, c: harmful if n.endswith("data.pkl") else c)
    assert "would run code" in faults(path, "torch")
    sly = pickle.dumps({"model": Caller(marker)})
    path = rewritten(tmp_path / "b.pt", lambda n, c: sly if n.endswith("data.pkl") else c)
    assert "without tensors" in faults(path, "torch")
    assert not marker.exists()


@pytest.mark.parametrize(
    ("content", "said"),
    [
        (b"", "it is empty"),
        (pickle.dumps({"a": 1}), "no torch checkpoint"),
        (b"\x80\x04" + b"(" * 100, "damaged pickle"),
        (b"\x89PNG\r\n\x1a\n", "a PNG image"),
        (b"version https://git-lfs.github.com/spec/v1", "a Git LFS pointer"),
    ],
)
def test_a_file_that_is_no_checkpoint(tmp_path, content, said):
    (tmp_path / "x.pt").write_bytes(content)
    assert said in faults(tmp_path / "x.pt", "torch")
    other = archive(tmp_path / "y.pt", a__txt=b"x")
    assert "no torch checkpoint: a.txt" in faults(other, "torch")


@pytest.mark.parametrize("name", ["checkpoint.pt", "checkpoint-legacy.pt"])
def test_a_checkpoint_says_by_a_fingerprint_which_numbers_it_holds(tmp_path, name):
    pytest.importorskip("numpy")

    def fingerprint(path, tensor):
        found = open_file(path, Wanted(format="torch", numeric={tensor: FINITE}))
        return found.fingerprints[tensor]

    weight = fingerprint(DATA / name, "model.first.weight")
    assert weight[0] == "12 numbers as FloatStorage"
    assert weight == fingerprint(DATA / "checkpoint.pt", "model.first.weight")
    assert weight[1] != fingerprint(DATA / name, "view")[1]
