"""Archives are unpacked the same by Pythons with and without a filter of their own."""

from __future__ import annotations

import io
import stat
import tarfile
from typing import TYPE_CHECKING

import pytest

from researchenvbench.tarballs import MisleadingError, extract_data

if TYPE_CHECKING:
    from pathlib import Path


@pytest.fixture(params=["with a filter", "without"], autouse=True)
def python(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """Pythons before 3.11.4 have none."""
    if request.param == "without":
        for name in ("data_filter", "FilterError"):
            monkeypatch.delattr(tarfile, name, raising=False)
    elif not hasattr(tarfile, "data_filter"):
        pytest.skip("this Python has no filter")


def unpacked(into: Path, *members: tuple[str, bytes, str]) -> Path:
    """What is made of (name, kind, target or content)."""
    packed = io.BytesIO()
    with tarfile.open(fileobj=packed, mode="w") as tar:
        for name, kind, text in members:
            entry = tarfile.TarInfo(name)
            entry.type, entry.mode, entry.uid = kind, 0o6777, 1234
            if kind == tarfile.REGTYPE:
                entry.size = len(text)
                tar.addfile(entry, io.BytesIO(text.encode()))
            else:
                entry.linkname = text
                tar.addfile(entry)
    packed.seek(0)
    into.mkdir()
    with tarfile.open(fileobj=packed) as tar:
        extract_data(tar, into)
    return into


FILE, FOLDER, LINK, HARD = tarfile.REGTYPE, tarfile.DIRTYPE, tarfile.SYMTYPE, tarfile.LNKTYPE


def test_what_is_honest_is_unpacked(tmp_path: Path) -> None:
    there = unpacked(
        tmp_path / "there",
        ("a", FOLDER, ""),
        ("./a/file", FILE, "text"),
        ("a/link", LINK, "file"),
        ("a/up", LINK, "../b"),
        ("a/hard", HARD, "a/file"),
        ("b", FILE, "other"),
    )
    assert (there / "a" / "link").read_text() == (there / "a" / "hard").read_text() == "text"
    assert (there / "a" / "up").read_text() == "other"
    status = (there / "a" / "file").stat()
    assert status.st_uid != 1234
    assert not status.st_mode & (stat.S_ISUID | stat.S_ISGID | stat.S_IWOTH | stat.S_IWGRP)


@pytest.mark.parametrize(
    "member",
    [
        ("../out", FILE, "x"),
        ("a/../../out", FILE, "x"),
        ("link", LINK, "/etc"),
        ("link", LINK, "../out"),
        ("a/link", LINK, "../../out"),
        ("hard", HARD, "../out"),
        ("fifo", tarfile.FIFOTYPE, ""),
        ("device", tarfile.CHRTYPE, ""),
    ],
)
def test_what_leads_out_is_not(tmp_path: Path, member: tuple[str, bytes, str]) -> None:
    (tmp_path / "out").mkdir()
    with pytest.raises(MisleadingError):
        unpacked(tmp_path / "there", member)
    assert not list((tmp_path / "out").iterdir())


def test_an_absolute_name_is_put_below(tmp_path: Path) -> None:
    assert (unpacked(tmp_path / "there", ("/a/file", FILE, "x")) / "a" / "file").is_file()
