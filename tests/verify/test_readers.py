"""The readers as a whole: their words, their numbers, and the process that contains them."""

from __future__ import annotations

import dataclasses
import math
import os
import shutil
import time

import pytest
from reading import DATA, FALLING, faults, rewritten

from researchenvbench.evidence import Bounds, FileEvidence
from researchenvbench.verify.readers import ReaderMissing, Wanted, contained, open_file
from researchenvbench.verify.readers.numbers import Limits, Numbers, parse_number


def test_readers_know_every_field_that_a_task_can_ask_for():
    ours = {field.name for field in dataclasses.fields(Wanted)}
    assert ours == set(FileEvidence.model_fields) - {"kind", "pattern", "at_least", "min_bytes"}
    limits = {field.name: field.default for field in dataclasses.fields(Limits)}
    assert limits == Bounds().model_dump()


@pytest.mark.parametrize(
    ("text", "number"),
    [("12", 12), ("1e-3", 0.001), ("-0.5", -0.5), (" 7 ", 7), ("inf", math.inf), ("+3.", 3)],
)
def test_numbers_are_parsed(text, number):
    assert parse_number(text) == number


@pytest.mark.parametrize("text", ["1,024", "1_024", "", "twelve", "0x10", "\uff11", "0.5\x1b[0m"])
def test_what_is_no_number_is_not_parsed(text):
    assert parse_number(text) is None


def series(*values: float) -> Numbers:
    numbers = Numbers()
    for value in values:
        numbers.add(value)
    return numbers


@pytest.mark.parametrize(
    "limits",
    [
        Limits(),
        Limits(min=0),
        Limits(max=9),
        Limits(finite=False, min=0),
        Limits(finite=False, max=9),
        Limits(finite=False, falling=True),
    ],
)
def test_nan_keeps_no_limit(limits):
    assert series(3, math.nan).faults(limits)
    assert series(math.nan, math.nan).faults(limits)


def test_nan_is_allowed_only_where_nothing_is_asked_of_the_numbers():
    assert series(3, math.nan).faults(Limits(finite=False)) == []


def test_infinity_is_not_finite_but_can_be_at_least_something():
    assert series(1, math.inf).faults(Limits()) == ["1 of 2 numbers are infinite"]
    assert series(1, math.inf).faults(Limits(finite=False, min=0)) == []


def test_bounds_hold_for_every_number():
    assert series(1, 5, 2).faults(Limits(min=1, max=5)) == []
    assert series(1, 5, 2).faults(Limits(max=4)) == ["5 is above 4"]
    assert series(1, 5, 2).faults(Limits(min=2)) == ["1 is below 2"]


def test_falling_compares_the_last_with_the_first():
    assert series(3, 4, 2).faults(FALLING) == []
    assert "not falling" in series(3, 1, 3).faults(FALLING)[0]
    assert "only one number" in series(3).faults(FALLING)[0]
    assert series().faults(FALLING) == ["no numbers at all"]


def test_arrays_and_single_numbers_give_the_same_summary():
    numpy = pytest.importorskip("numpy")
    values = [2.0, math.nan, -math.inf, 7.0, 1.0]
    whole, single = Numbers(), series(*values)
    whole.add_array(numpy.array(values[:2]))
    whole.add_array(numpy.array(values[2:], dtype="float32"))
    whole.add_array(numpy.array([]))
    # Only arrays are digested, as their file has them.
    assert vars(whole) | {"_digest": None} == vars(single) | {"_digest": None}
    assert whole.fingerprint[0] == single.fingerprint[0] == "5 numbers"


def test_each_file_gets_its_answer(tmp_path):
    history = tmp_path / "history.json"
    history.write_text('{"loss": [3, 2]}')
    answers = contained.open_files(
        [history, tmp_path / "absent", DATA / "checkpoint.pt"], {"format": "json", "keys": ["loss"]}
    )
    assert [bool(answer.faults) for answer in answers] == [False, True, True]
    assert "No such file" in answers[1].faults[0]


def test_a_reader_that_takes_too_much_memory(tmp_path, monkeypatch):
    monkeypatch.setattr(contained, "MEMORY_LIMIT_BYTES", 100_000_000)
    path = tmp_path / "x.json"
    path.write_text("[" + ",".join(["[]"] * 3_000_000) + "]")
    small = tmp_path / "y.json"
    small.write_text("[1]")
    answers = contained.open_files([path, small], {"format": "json"})
    assert "more memory than a file may" in answers[0].faults[0]
    assert answers[1].faults == ()


def test_a_pickle_that_asks_for_memory_without_end(tmp_path):
    path = rewritten(
        tmp_path / "x.pt",
        lambda name, content: (
            b"\x80\x02N" + b"r\xff\xff\xff\x7f." if "data.pkl" in name else content
        ),
    )
    (answer,) = contained.open_files([path], {"format": "torch"})
    assert "memory" in answer.faults[0] or "reader ended" in answer.faults[0]


def test_a_reader_that_does_not_end(tmp_path):
    fifo = tmp_path / "x.json"
    os.mkfifo(fifo)
    history = tmp_path / "y.json"
    history.write_text("[1]")
    started = time.monotonic()
    answers = contained.open_files([fifo, history], {"format": "json"}, time_limit_s=2)
    assert time.monotonic() - started < 5
    # A pipe has the size 0, and opening it waits for a writer.
    assert "was not done within 2 s" in answers[0].faults[0]
    assert answers[1].faults == ("not opened: no time was left for it",)


def test_a_catastrophic_pattern_is_ended(tmp_path):
    log = tmp_path / "log"
    log.write_text("a" * 60 + "!\n")
    started = time.monotonic()
    with pytest.raises(contained.NoAnswer, match="not done within 1 s"):
        contained.search_log(log, "^(a+)+$", {}, time_limit_s=1)
    assert time.monotonic() - started < 5
    with pytest.raises(contained.NoAnswer):
        contained.search_text("a" * 60 + "!", "^(a+)+$", time_limit_s=1)


def test_a_library_that_is_absent_is_named(tmp_path, monkeypatch):
    monkeypatch.setitem(__import__("sys").modules, "h5py", None)
    (tmp_path / "x.h5").write_bytes(b"\x89HDF\r\n\x1a\n")

    with pytest.raises(ReaderMissing, match="h5py"):
        open_file(tmp_path / "x.h5", Wanted(format="hdf5"))


def test_any_file_will_do_where_no_format_is_asked(tmp_path):
    shutil.copy(DATA / "checkpoint.pt", tmp_path / "x")
    assert faults(tmp_path / "x", "any") == ""
