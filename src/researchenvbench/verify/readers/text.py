"""JSON and CSV."""

from __future__ import annotations

import csv
import json
from typing import TYPE_CHECKING, Any

from .numbers import Numbers, parse_number
from .wanted import Found, Unreadable, Wanted
from .wording import begins_with, counted, listed, shorten

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

#: A document is held in memory as objects of some ten times its size.
_JSON_LIMIT_BYTES = 64_000_000
_FIELD_LIMIT = 1_000_000
_ABSENT = object()


def read_json(path: Path, wanted: Wanted) -> Found:
    """A JSON document. A name is a path such as `history.0.loss`."""
    size = path.stat().st_size
    if size > _JSON_LIMIT_BYTES:
        raise Unreadable(f"{size} bytes is more than the {_JSON_LIMIT_BYTES} that are read")
    raw = path.read_bytes()
    try:
        document = json.loads(raw)
    except RecursionError as error:
        raise Unreadable("JSON that is nested too deep to be read") from error
    except ValueError as error:  # bad UTF-8, bad JSON, or a number of thousands of digits
        raise Unreadable(f"not JSON: {shorten(str(error))}; {begins_with(raw[:64])}") from error
    if document in ({}, [], None, ""):
        raise Unreadable(f"JSON that holds nothing: {shorten(repr(document))}")
    found = Found(f"JSON, {_outline(document)}")
    for name in wanted.keys:
        if _follow(document, name) is _ABSENT:
            found.faults.append(f"no key {name!r}; it is {_outline(document)}")
    for name, limits in wanted.numeric.items():
        value = _follow(document, name)
        if value is _ABSENT:
            found.faults.append(f"no key {name!r}; it is {_outline(document)}")
            continue
        numbers = Numbers()
        numbers.add_json(value)
        found.need_numbers(name, "key", numbers, limits)
    return found


def _follow(document: Any, name: str) -> Any:
    """The value at a dotted path; a key that itself holds dots is tried first."""
    if isinstance(document, dict) and name in document:
        return document[name]
    value = document
    for part in name.split("."):
        if isinstance(value, dict) and part in value:
            value = value[part]
        elif isinstance(value, list) and part.isascii() and part.isdigit():
            if int(part) >= len(value):
                return _ABSENT
            value = value[int(part)]
        else:
            return _ABSENT
    return value


def _outline(document: Any) -> str:
    if isinstance(document, dict):
        return f"a table with the keys {listed(str(key) for key in document)}"
    if isinstance(document, list):
        return f"a list of {counted(len(document), 'value')}"
    return shorten(repr(document), 40)


def read_csv(path: Path, wanted: Wanted) -> Found:
    """Rows under a header, separated by commas, tabs or semicolons.

    Lines before the header that start with `#` are comments. A first row of numbers alone
    is data, not a header; columns are then named by their number from 0, which also works
    with a header. An empty cell is no value, as loggers leave them that write several
    metrics at different steps.
    """
    csv.field_size_limit(_FIELD_LIMIT)
    lines = _lines(path)
    first = next((line for line in lines if line.strip() and not line.startswith("#")), None)
    if first is None:
        raise Unreadable("it is empty" if not path.stat().st_size else "it holds no rows")
    delimiter = max(",\t;", key=first.count)
    try:
        return _read_rows(first, lines, delimiter, wanted)
    except csv.Error as error:
        raise Unreadable(f"not CSV: {shorten(str(error))}") from error


def _read_rows(first: str, lines: Iterator[str], delimiter: str, wanted: Wanted) -> Found:
    def all_lines() -> Iterator[str]:
        yield first
        yield from lines

    rows = csv.reader(all_lines(), delimiter=delimiter)
    header = next(rows)
    width, count = len(header), 0
    names = [name.strip() for name in header]
    pending = []
    if all(parse_number(cell) is not None for cell in header):
        names = [str(i) for i in range(width)]
        pending = [header]
    places = {str(i): i for i in range(width)} | {name: i for i, name in enumerate(names)}
    series = {name: Numbers() for name in wanted.numeric if name in places}

    def all_rows() -> Iterator[list[str]]:
        yield from pending
        yield from rows

    for row in all_rows():
        if not row:
            continue
        count += 1
        if len(row) != width:
            fields = counted(len(row), "field")
            raise Unreadable(f"row {count} has {fields}, the header {width}: {shorten(str(row))}")
        for name, numbers in series.items():
            cell = row[places[name]].strip()
            if cell:
                numbers.add_text(cell)
    found = Found(f"CSV, {counted(count, 'row')}, columns {listed(names)}")
    least = 1 if wanted.rows is None else wanted.rows
    if count < least:
        found.faults.append(f"{counted(count, 'row')}, at least {least} wanted")
    found.need_names([*wanted.columns, *wanted.numeric], places, "column")
    for name, numbers in series.items():
        found.need_numbers(name, "column", numbers, wanted.numeric[name])
    return found


def _lines(path: Path) -> Iterator[str]:
    """The lines of a text file; one that is longer than a table's is refused."""
    with path.open("rb") as stream:
        number = 0
        while raw := stream.readline(_FIELD_LIMIT + 1):
            number += 1
            if len(raw) > _FIELD_LIMIT:
                raise Unreadable(f"not CSV: line {number} is longer than {_FIELD_LIMIT} bytes")
            if b"\0" in raw:
                raise Unreadable(f"not text: line {number} holds NULs; {begins_with(raw[:64])}")
            try:
                yield raw.decode("utf-8-sig" if number == 1 else "utf-8")
            except UnicodeDecodeError as error:
                raise Unreadable(
                    f"line {number} is not UTF-8 text; {begins_with(raw[:64])}"
                ) from error
