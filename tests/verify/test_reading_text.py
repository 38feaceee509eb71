"""JSON, CSV and logs: really made ones pass, and each way of being wrong is told."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from reading import FALLING, FINITE, faults

from researchenvbench.verify.readers.lines import LINE_LIMIT, lines_of, search_lines
from researchenvbench.verify.readers.numbers import Limits


@pytest.fixture
def history(tmp_path):
    path = tmp_path / "history.json"
    path.write_text('{"loss": [3, 2.5, 1], "final": {"acc": 0.9}, "a.b": 1, "bad": [1, NaN]}')
    return path


def test_json_names_are_paths_into_it(history):
    numeric = {"loss": FALLING, "final.acc": Limits(max=1), "loss.0": Limits(min=3), "a.b": FINITE}
    assert faults(history, "json", keys=("final", "loss.2", "a.b"), numeric=numeric) == ""


@pytest.mark.parametrize(
    ("wanted", "said"),
    [
        ({"keys": ("final.loss",)}, "no key 'final.loss'"),
        ({"numeric": {"loss.3": FINITE}}, "no key 'loss.3'"),
        ({"numeric": {"bad": FINITE}}, "1 of 2 numbers are NaN"),
        ({"numeric": {"final": FINITE}}, "no numbers, such as {'acc': 0.9}"),
        ({"numeric": {"loss": Limits(max=2)}}, "3 is above 2"),
    ],
)
def test_json_without_what_was_wanted(history, wanted, said):
    assert said in faults(history, "json", **wanted)


@pytest.mark.parametrize(
    ("content", "said"),
    [
        (b"", "it is empty"),
        (b'{"loss": [1, 2', "not JSON"),
        (b"[" * 1_000_000, "too deep"),
        (b'{"a": ' + b"9" * 10_000 + b"}", "not JSON"),
        (b"\xff\xfe\x00", "not JSON"),
        (b"{}", "holds nothing"),
        (b"<!DOCTYPE html><html>", "an HTML page"),
    ],
)
def test_json_that_is_none(tmp_path, content, said):
    path = tmp_path / "x.json"
    path.write_bytes(content)
    assert said in faults(path, "json")


def test_true_is_no_number_and_a_huge_integer_is_not_finite(tmp_path):
    path = tmp_path / "x.json"
    path.write_text(json.dumps({"flag": True, "huge": 10**400}))
    assert "no numbers" in faults(path, "json", numeric={"flag": FINITE})
    assert "infinite" in faults(path, "json", numeric={"huge": FINITE})


def table(tmp_path: Path, content: str | bytes) -> Path:
    path = tmp_path / "x.csv"
    path.write_bytes(content.encode() if isinstance(content, str) else content)
    return path


def test_csv_rows_and_columns(tmp_path):
    path = table(tmp_path, "\ufeffstep,loss\r\n0,3.5\r\n1,\r\n2,1e-3\r\n")
    wanted = {"rows": 3, "columns": ("step", "loss"), "numeric": {"loss": FALLING}}
    assert faults(path, "csv", **wanted) == ""


def test_csv_with_tabs_comments_and_quoted_line_ends(tmp_path):
    path = table(tmp_path, '#{"t": 1}\nr\tl\n1\t"a\nb"\n0.5\tc\n')
    assert faults(path, "csv", rows=2, columns=("r", "l"), numeric={"r": FALLING}) == ""


def test_csv_without_a_header_has_numbered_columns(tmp_path):
    path = table(tmp_path, "3,1\n2,1\n")
    assert faults(path, "csv", rows=2, numeric={"0": FALLING}) == ""
    assert "no column 'loss'; it has 0, 1" in faults(path, "csv", columns=("loss",))


@pytest.mark.parametrize(
    ("content", "said"),
    [
        ("", "it is empty"),
        ("\n\n", "holds no rows"),
        ("a,b\n", "0 rows, at least 1 wanted"),
        ("a,b\n1,2\n3\n", "row 2 has 1 field, the header 2"),
        ("a,b\n1,2\n3,4,5\n", "row 2 has 3 fields"),
        ("a,b\n1,2\0\n", "holds NULs"),
        (b"a,b\n1,\xff\n", "line 2 is not UTF-8"),
        ("a,b\n1," + "9" * 2_000_000, "line 2 is longer than"),
        (b"PK\x03\x04\0\0\0", "a zip archive"),
    ],
)
def test_csv_that_is_none(tmp_path, content, said):
    assert said in faults(table(tmp_path, content), "csv")


@pytest.mark.parametrize("cell", ["nan", "inf", "1,024", "n/a"])
def test_csv_cells_must_be_finite_numbers(tmp_path, cell):
    path = table(tmp_path, f'loss\n1\n"{cell}"\n')
    assert "column 'loss'" in faults(path, "csv", numeric={"loss": FINITE})


def test_csv_counts_rows(tmp_path):
    assert "2 rows, at least 3 wanted" in faults(table(tmp_path, "a\n1\n2\n"), "csv", rows=3)
    assert faults(table(tmp_path, "a\n"), "csv", rows=0) == ""


@pytest.mark.parametrize("ending", [b"\n", b"\r\n", b"\r"])
def test_line_ends(tmp_path, ending):
    path = tmp_path / "log"
    path.write_bytes(b"one" + ending + ending + b"two")
    assert [line for line, _ in lines_of(path)] == ["one", "", "two"]


def test_a_line_end_that_falls_on_the_border_of_two_pieces(tmp_path):
    path = tmp_path / "log"
    path.write_bytes(b"x" * ((1 << 20) - 1) + b"\r\nnext")
    assert [line for line, _ in lines_of(path)] == ["x" * LINE_LIMIT, "next"]


def test_colours_progress_bars_and_invalid_text(tmp_path):
    path = tmp_path / "log"
    path.write_bytes(
        b"\r 10%|# | loss=3.0\r 50%|## | loss=2.0\x1b[A\r\n\xff\xfe \x1b[1;32mloss=1.0\x1b[0m\n"
    )
    search = search_lines(path, r"loss=(?P<loss>\S+)$", {"loss": FALLING})
    assert (search.matches, search.faults) == (3, [])


def test_a_line_of_a_hundred_megabytes_takes_no_memory(tmp_path):
    path = tmp_path / "log"
    with path.open("wb") as out:
        for _ in range(100):
            out.write(b"loss=" * 200_000)
        out.write(b"\nloss=1\n")
    peak = Path("/proc/self/status").read_text().split("VmHWM:")[1].split()[0]
    search = search_lines(path, r"^loss=\d$", {})
    after = Path("/proc/self/status").read_text().split("VmHWM:")[1].split()[0]
    assert (search.matches, search.long_lines) == (1, 1)
    assert int(after) - int(peak) < 20_000


def test_a_group_must_be_a_number_where_it_matched(tmp_path):
    path = tmp_path / "log"
    path.write_text("a=1,024\nb=5\n")
    search = search_lines(path, r"a=(?P<a>\S+)|b=(?P<b>\d)", {"a": FINITE, "b": FINITE})
    assert search.faults == ["group 'a': 1 of its values are no numbers, such as '1,024'"]
    assert search.numbers["b"] == "5"
