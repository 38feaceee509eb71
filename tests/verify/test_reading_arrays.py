"""npy, npz, safetensors, HDF5 and event files, whole and damaged."""

from __future__ import annotations

import io
import json
import math
import struct
import time

import pytest
from reading import DATA, FALLING, FINITE, archive, cut, faults

from researchenvbench.verify.readers import Wanted, open_file
from researchenvbench.verify.readers.numbers import Limits


@pytest.fixture
def npz(tmp_path):
    numpy = pytest.importorskip("numpy")
    path = tmp_path / "x.npz"
    numpy.savez_compressed(
        path,
        loss=numpy.array([3.0, 2.0, 1.0], dtype=">f8"),
        big=numpy.arange(3_000_000, dtype="int32"),
        bad=numpy.array([1.0, numpy.nan]),
        names=numpy.array(["a", "b"]),
        objects=numpy.array([{}, None], dtype=object),
    )
    return path


def test_npy(tmp_path):
    numpy = pytest.importorskip("numpy")
    path = tmp_path / "x.npy"
    numpy.save(path, numpy.arange(3_000_000, dtype="float32"))
    found = open_file(path, Wanted("npy"))
    assert found.what == "npy, float32[3000000]"
    assert faults(path, "npy", keys=("array",), numeric={"array": Limits(max=2_999_999)}) == ""
    assert "above" in faults(path, "npy", numeric={"array": Limits(max=2_999_998)})
    assert "no array 'w'" in faults(path, "npy", keys=("w",))
    assert "11999992" in faults(cut(path, tmp_path / "cut.npy", 1 - 8 / 12_000_128), "npy")
    numpy.save(path, numpy.array([1.0, numpy.nan]))
    assert "1 of 2 numbers are NaN" in faults(path, "npy", numeric={"array": FINITE})
    numpy.save(path, numpy.array([{}, None], dtype=object))
    assert "does not hold real numbers" in faults(path, "npy", numeric={"array": FINITE})
    for junk in (b"", b"junk" * 99, b"\x93NUMPY", b"\x93NUMPY\x01\x00\xff\xff{"):
        path.write_bytes(junk)
        assert "no numpy array" in faults(path, "npy")


def test_npz_arrays(npz):
    numeric = {"loss": FALLING, "big": Limits(min=0, max=2_999_999)}
    assert faults(npz, "npz", keys=("names", "objects"), numeric=numeric) == ""


def test_npz_without_what_was_wanted(npz, tmp_path):
    assert "1 of 2 numbers are NaN" in faults(npz, "npz", numeric={"bad": FINITE})
    assert "does not hold real numbers" in faults(npz, "npz", numeric={"objects": FINITE})
    assert "does not hold real numbers" in faults(npz, "npz", numeric={"names": FINITE})
    assert "no array 'w'" in faults(npz, "npz", keys=("w",))
    assert "truncated" in faults(cut(npz, tmp_path / "cut.npz", 0.9), "npz")


def test_npz_whose_array_is_shorter_than_declared(tmp_path):
    numpy = pytest.importorskip("numpy")
    buffer = io.BytesIO()
    numpy.save(buffer, numpy.zeros(1000))
    path = archive(tmp_path / "x.npz", a__npy=buffer.getvalue()[:-8])
    assert "8000 bytes, and has 7992" in faults(path, "npz")


def test_npz_that_is_none(tmp_path):
    pytest.importorskip("numpy")
    assert "without arrays" in faults(archive(tmp_path / "a.npz", b__txt=b"x"), "npz")
    assert "is no numpy array" in faults(archive(tmp_path / "b.npz", b__npy=b"junk" * 9), "npz")
    (tmp_path / "c.npz").write_bytes(b"")
    assert "it is empty" in faults(tmp_path / "c.npz", "npz")


def test_a_damaged_entry_is_found_by_its_checksum(tmp_path):
    numpy = pytest.importorskip("numpy")
    path = tmp_path / "x.npz"
    numpy.savez(path, a=numpy.zeros(1000))
    content = bytearray(path.read_bytes())
    content[4000] ^= 1
    path.write_bytes(content)
    assert "Bad CRC-32" in faults(path, "npz")


def test_a_decompression_bomb_is_refused_before_it_is_unpacked(tmp_path):
    pytest.importorskip("numpy")
    path = archive(tmp_path / "x.npz", a__npy=b"\0" * 1_000_000)
    content = path.read_bytes()
    at = content.rindex(b"PK\x01\x02")  # the directory's entry says how much it unpacks to
    size = struct.pack("<I", 0xFFFF_FFF0)
    entry = content[at : at + 24] + size + content[at + 28 : content.rindex(b"PK\x05\x06")]
    end = content[content.rindex(b"PK\x05\x06") :]
    many = 3
    end = end[:8] + struct.pack("<HHI", many, many, many * len(entry)) + end[16:]
    path.write_bytes(content[:at] + entry * many + end)
    started = time.monotonic()
    assert "more than" in faults(path, "npz")
    assert time.monotonic() - started < 5


@pytest.fixture
def tensors(tmp_path):
    numpy = pytest.importorskip("numpy")
    save = pytest.importorskip("safetensors.numpy")
    path = tmp_path / "model.safetensors"
    save.save_file({"w": numpy.array([3.0, 1.0]), "bad": numpy.array([numpy.inf])}, path)
    return path


def test_safetensors(tensors, tmp_path):
    assert faults(tensors, "safetensors", keys=("w",), numeric={"w": FALLING}) == ""
    assert "infinite" in faults(tensors, "safetensors", numeric={"bad": FINITE})
    assert "no tensor 'b'; it has" in faults(tensors, "safetensors", keys=("b",))
    assert "not safetensors" in faults(cut(tensors, tmp_path / "cut", 0.9), "safetensors")
    (tmp_path / "empty").write_bytes(b"")
    assert "it is empty" in faults(tmp_path / "empty", "safetensors")
    (tmp_path / "huge").write_bytes(b"\xff" * 64)
    assert "not safetensors" in faults(tmp_path / "huge", "safetensors")


def test_safetensors_bfloat16(tmp_path):
    pytest.importorskip("safetensors")
    header = json.dumps({"h": {"dtype": "BF16", "shape": [2], "data_offsets": [0, 4]}}).encode()
    path = tmp_path / "x.safetensors"
    data = struct.pack("<HH", 0x4000, 0x3F80)  # 2.0 and 1.0
    path.write_bytes(struct.pack("<Q", len(header)) + header + data)
    assert faults(path, "safetensors", numeric={"h": Limits(min=1, max=2, falling=True)}) == ""


@pytest.fixture
def hdf5(tmp_path):
    h5py = pytest.importorskip("h5py")
    path = tmp_path / "x.h5"
    with h5py.File(path, "w") as file:
        file["train/loss"] = [3.0, 2.0]
        file["scalar"] = 1.5
        file["bad"] = [1.0, math.nan]
        file["text"] = "words"
        file["outside"] = h5py.ExternalLink("/etc/passwd", "/")
        file.create_dataset("vast", (10**7, 10**7), chunks=(1, 1000), dtype="f4")
    return path


def test_hdf5(hdf5, tmp_path):
    numeric = {"train/loss": FALLING, "/scalar": FINITE}
    assert faults(hdf5, "hdf5", keys=("train", "train/loss"), numeric=numeric) == ""
    assert "NaN" in faults(hdf5, "hdf5", numeric={"bad": FINITE})
    assert "real numbers" in faults(hdf5, "hdf5", numeric={"text": FINITE})
    assert "elements, more than" in faults(hdf5, "hdf5", numeric={"vast": FINITE})
    assert "no object 'outside'" in faults(hdf5, "hdf5", keys=("outside",))
    assert "not sound HDF5" in faults(cut(hdf5, tmp_path / "cut", 0.5), "hdf5")
    (tmp_path / "empty").write_bytes(b"")
    assert "it is empty" in faults(tmp_path / "empty", "hdf5")


def test_hdf5_without_datasets(tmp_path):
    h5py = pytest.importorskip("h5py")
    with h5py.File(tmp_path / "x.h5", "w") as file:
        file.create_group("only/groups")
    assert "without datasets; its groups: only" in faults(tmp_path / "x.h5", "hdf5")


EVENTS = DATA / "events.out.tfevents.training"


def test_event_files():
    numeric = {"loss/train": FALLING, "loss/tensor": FALLING}
    assert faults(EVENTS, "tfevents", keys=("weights",), numeric=numeric) == ""
    assert "NaN" in faults(EVENTS, "tfevents", numeric={"accuracy": FINITE})
    assert "no numbers at all" in faults(EVENTS, "tfevents", numeric={"weights": FINITE})
    assert "no tag 'loss'; it has loss/train" in faults(EVENTS, "tfevents", keys=("loss",))
    assert "is above 1" in faults(EVENTS, "tfevents", numeric={"loss/train": Limits(max=1)})


def test_both_kinds_of_scalar_have_the_same_values():
    numeric = {"loss/train": FINITE, "loss/tensor": FINITE}
    what = open_file(EVENTS, Wanted(format="tfevents", numeric=numeric)).what
    plain, tensor = what.split("; loss/train ")[1].split("; loss/tensor ")
    assert plain == tensor
    assert plain.startswith("5 numbers, first 3.82478, last 2.26798")


def test_damaged_event_files(tmp_path):
    path = tmp_path / "events"
    assert "truncated in record" in faults(cut(EVENTS, path, 0.7), "tfevents")
    content = bytearray(EVENTS.read_bytes())
    content[100] ^= 1
    path.write_bytes(content)
    assert "checksum is wrong" in faults(path, "tfevents")
    path.write_bytes(b"")
    assert "it is empty" in faults(path, "tfevents")
    path.write_bytes(b"step,loss\n1,2\n3,4\n")
    assert "no TensorBoard event file" in faults(path, "tfevents")
    first = EVENTS.read_bytes()
    length = struct.unpack("<Q", first[:8])[0]
    path.write_bytes(first[: 12 + length + 4])
    assert "nothing was logged" in faults(path, "tfevents")
