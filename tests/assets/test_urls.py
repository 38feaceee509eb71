"""Originals that a server gives: whatever it does, the right file comes or an answer that helps."""

from __future__ import annotations

import gzip
import hashlib
import io
import stat
import tarfile
import zipfile
from typing import TYPE_CHECKING

import pytest

from researchenvbench.assets import http

from .servers import Fault

if TYPE_CHECKING:
    from pathlib import Path

    from .conftest import Tasks
    from .servers import Server

CONTENT = bytes(range(256)) * 4000  # a megabyte
NOW = {"Retry-After": "0"}


def asset(server: Server, content: bytes = CONTENT, path: str = "/data.bin", more: str = "") -> str:
    digest = hashlib.sha256(content).hexdigest()
    return (
        f'[assets.data]\nkind = "url"\nurl = "{server.address}{path}"\nsha256 = "{digest}"\n{more}'
    )


def test_a_file_comes_once_and_is_read_only(server: Server, tasks: Tasks) -> None:
    server.files["/data.bin"] = CONTENT
    ready = tasks.ready(asset(server))
    assert (ready.origin, ready.path.name) == ("real", "data.bin")
    assert ready.path.read_bytes() == CONTENT
    assert stat.S_IMODE(ready.path.stat().st_mode) == 0o444
    assert tasks.ready(asset(server)) == ready
    assert len(server.requests) == 1


@pytest.mark.parametrize("status", [403, 404, 410])
def test_a_refusal_is_not_asked_again(server: Server, tasks: Tasks, status: int) -> None:
    server.faults["/data.bin"] = [Fault(status)]
    missing = tasks.missing(asset(server))
    assert f"answers {status}" in missing.why
    assert "stand-in" in missing.advice
    assert len(server.requests) == 1


def test_a_busy_server_is_asked_again(server: Server, tasks: Tasks) -> None:
    server.files["/data.bin"] = CONTENT
    past = {"Retry-After": "Wed, 21 Oct 2015 07:28:00 GMT"}
    server.faults["/data.bin"] = [Fault(429, NOW), Fault(503, past)]
    assert tasks.ready(asset(server)).path.read_bytes() == CONTENT
    assert [request.status for request in server.requests] == [429, 503, 200]


def test_a_server_that_stays_busy_is_given_up(server: Server, tasks: Tasks) -> None:
    server.faults["/data.bin"] = [Fault(503, NOW)]
    server.for_ever.add("/data.bin")
    missing = tasks.missing(asset(server))
    assert "503" in missing.why
    assert "however often" in missing.why
    assert "the same command goes on" in missing.advice


def test_a_longer_wait_is_said(server: Server, tasks: Tasks) -> None:
    server.files["/data.bin"] = CONTENT
    server.faults["/data.bin"] = [Fault(429, {"Retry-After": "1"})]
    tasks.ready(asset(server))
    assert any("next try in 1 s" in line for line in tasks.said)


def test_nobody_listens(server: Server, tasks: Tasks) -> None:
    wanted = asset(server).replace(server.address, "http://127.0.0.1:9")
    missing = tasks.missing(wanted)
    assert "127.0.0.1:9: it cannot be reached" in missing.why


def test_a_web_page_instead_of_the_file(server: Server, tasks: Tasks) -> None:
    server.faults["/data.bin"] = [
        Fault(headers={"Content-Type": "text/html"}, body=b"<!DOCTYPE html><p>Log in")
    ]
    missing = tasks.missing(asset(server))
    assert "a web page came" in missing.why
    assert "login" in missing.advice


def test_a_cut_download_goes_on(server: Server, tasks: Tasks) -> None:
    server.files["/data.bin"] = CONTENT
    server.faults["/data.bin"] = [Fault(cut_after=400_000)]
    assert tasks.ready(asset(server)).path.read_bytes() == CONTENT
    first, second = server.requests
    assert "Range" not in first.headers
    start = int(second.headers["Range"].removeprefix("bytes=").removesuffix("-"))
    assert 0 < start <= 400_000
    assert second.headers["If-Range"].startswith('"')
    assert second.status == 206


def test_a_server_without_ranges_starts_anew(server: Server, tasks: Tasks) -> None:
    server.files["/data.bin"] = CONTENT
    server.ranges = False
    server.faults["/data.bin"] = [Fault(cut_after=400_000)]
    assert tasks.ready(asset(server)).path.read_bytes() == CONTENT
    assert [request.status for request in server.requests] == [200, 200]


def test_a_server_that_always_cuts_is_given_up(
    server: Server, tasks: Tasks, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(http, "_FIRST_WAIT_S", 0.01)
    server.files["/data.bin"] = CONTENT
    server.ranges = False
    server.faults["/data.bin"] = [Fault(cut_after=1000)]
    server.for_ever.add("/data.bin")
    assert "the connection was cut" in tasks.missing(asset(server)).why


def test_a_file_that_changed_meanwhile_is_not_mixed(
    server: Server, tasks: Tasks, cache: Path
) -> None:
    """What was cut off of an older file is no start of the newer one."""
    server.files["/data.bin"] = CONTENT[::-1]
    server.faults["/data.bin"] = [Fault(cut_after=400_000), *[Fault(503, NOW)] * 6]
    wanted = asset(server)
    tasks.missing(wanted)
    assert any(part.stat().st_size for part in cache.glob("partial/*/file.part"))
    server.files["/data.bin"] = CONTENT
    assert tasks.ready(wanted).path.read_bytes() == CONTENT
    assert server.requests[-1].status == 200
    assert not list(cache.glob("partial/*"))


def test_another_file_of_the_same_size(server: Server, tasks: Tasks) -> None:
    server.files["/data.bin"] = CONTENT[::-1]
    missing = tasks.missing(asset(server))
    assert "another file" in missing.why
    assert hashlib.sha256(CONTENT).hexdigest() in missing.why
    server.files["/data.bin"] = CONTENT
    assert tasks.ready(asset(server)).path.read_bytes() == CONTENT


def test_what_nobody_has_looked_up_is_not_used(server: Server, tasks: Tasks) -> None:
    wanted = "\n".join(line for line in asset(server).splitlines() if "sha256" not in line)
    missing = tasks.missing(wanted)
    assert "not pinned" in missing.why
    assert f"curl -L {server.address}/data.bin | sha256sum" in missing.advice
    assert not server.requests


def zipped(entries: dict[str, bytes], link: str = "") -> bytes:
    made = io.BytesIO()
    with zipfile.ZipFile(made, "w") as archive:
        for name, content in entries.items():
            archive.writestr(name, content)
        if link:
            info = zipfile.ZipInfo(link)
            info.external_attr = (stat.S_IFLNK | 0o777) << 16
            archive.writestr(info, "/etc/passwd")
    return made.getvalue()


def tarred(entries: dict[str, bytes], links: dict[str, str] | None = None) -> bytes:
    made = io.BytesIO()
    with (
        gzip.GzipFile(fileobj=made, mode="wb", mtime=0) as zipped_stream,
        tarfile.open(fileobj=zipped_stream, mode="w") as archive,
    ):
        for name, content in entries.items():
            info = tarfile.TarInfo(name)
            info.size = len(content)
            archive.addfile(info, io.BytesIO(content))
        for name, target in (links or {}).items():
            info = tarfile.TarInfo(name)
            info.type, info.linkname = tarfile.SYMTYPE, target
            archive.addfile(info)
    return made.getvalue()


@pytest.mark.parametrize("kind", ["zip", "tar"])
def test_an_archive_becomes_a_folder(server: Server, tasks: Tasks, kind: str) -> None:
    entries = {"set/a.txt": b"1", "set/deep/b.txt": b"2"}
    archive = zipped(entries) if kind == "zip" else tarred(entries, {"set/c.txt": "a.txt"})
    server.files["/set"] = archive
    ready = tasks.ready(asset(server, archive, "/set", f'unpack = "{kind}"'))
    assert (ready.path / "set/a.txt").read_bytes() == b"1"
    assert (ready.path / "set/deep/b.txt").read_bytes() == b"2"
    if kind == "tar":  # a link to a file beside it is a copy of it
        assert not (ready.path / "set/c.txt").is_symlink()
        assert (ready.path / "set/c.txt").read_bytes() == b"1"


@pytest.mark.parametrize(
    ("kind", "archive"),
    [
        ("zip", zipped({"../out.txt": b"x"})),
        ("zip", zipped({"/out.txt": b"x"})),
        ("zip", zipped({"good": b"x"}, link="bad")),
        ("tar", tarred({"../out.txt": b"x"})),
        ("tar", tarred({"a": b"x"}, {"bad": "/etc/passwd"})),
        ("tar", tarred({"a": b"x"}, {"bad": "../../../etc/passwd"})),
        ("tar", tarred({"d/a": b"x"}, {"bad": "d"})),
        ("tar", tarred({"a": b"x"}, {"bad": "not-there"})),
        ("zip", b"PK no archive"),
        ("tar", zipped({"a": b"x"})),
        ("tar", tarred({"a": b"x" * 100_000})[:-60]),
        ("zip", zipped({})),
    ],
)
def test_an_archive_that_leads_out_of_its_folder_or_is_none(
    server: Server, tasks: Tasks, tmp_path: Path, kind: str, archive: bytes
) -> None:
    server.files["/set"] = archive
    missing = tasks.missing(asset(server, archive, "/set", f'unpack = "{kind}"'))
    assert any(
        word in missing.why
        for word in ("not unpacked", "is a link", "no zip", "no tar", "without a file")
    )
    assert not list(tmp_path.rglob("out.txt"))
