"""The cache holds whole things or none; what has changed in it is seen before it is used."""

from __future__ import annotations

import hashlib
import json
import os
import shutil
import subprocess
from typing import TYPE_CHECKING

import pytest

from researchenvbench.asset import FileAsset
from researchenvbench.assets import Missing, Ready, check_ready, here, remove
from researchenvbench.source import fetch_source

from .servers import Fault

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from .conftest import Tasks
    from .servers import Server

CONTENT = b"0123456789" * 100


def url(server: Server, content: bytes = CONTENT) -> str:
    digest = hashlib.sha256(content).hexdigest()
    return f'[assets.data]\nkind = "url"\nurl = "{server.address}/data.bin"\nsha256 = "{digest}"\n'


@pytest.fixture
def ready(server: Server, tasks: Tasks) -> Ready:
    server.files["/data.bin"] = CONTENT
    return tasks.ready(url(server))


def test_what_is_as_it_was_can_be_used(ready: Ready) -> None:
    assert check_ready(ready) is None


def change(path: Path, content: bytes) -> None:
    path.chmod(0o644)
    path.write_bytes(content)


@pytest.mark.parametrize("content", [CONTENT[::-1], CONTENT[:-1], b""])
def test_what_has_changed_is_seen_and_had_anew(
    ready: Ready, server: Server, tasks: Tasks, content: bytes
) -> None:
    change(ready.path, content)
    problem = check_ready(ready)
    assert problem is not None
    assert "data.bin has" in problem
    assert tasks.ready(url(server)) == ready
    assert ready.path.read_bytes() == CONTENT
    assert check_ready(ready) is None


def test_another_time_alone_is_no_change(ready: Ready, server: Server, tasks: Tasks) -> None:
    os.utime(ready.path, (1, 1))
    assert check_ready(ready) is None
    assert tasks.ready(url(server)) == ready
    assert len(server.requests) == 1


def test_what_is_gone_is_seen_and_had_anew(ready: Ready, server: Server, tasks: Tasks) -> None:
    remove(unused=False)
    assert "no more in the cache" in (check_ready(ready) or "")
    assert tasks.ready(url(server)) == ready


def test_a_list_that_was_changed_is_no_object(ready: Ready, server: Server, tasks: Tasks) -> None:
    manifest = ready.path.parents[1] / "manifest.json"
    said = json.loads(manifest.read_text())
    said["files"][0]["size_bytes"] += 1
    manifest.write_text(json.dumps(said))
    assert check_ready(ready) is not None
    assert tasks.ready(url(server)) == ready


@pytest.mark.parametrize("garbage", [b"", b"{", b"[]", b"\xff\xfe"])
def test_garbage_in_the_cache_is_passed_over(
    ready: Ready, server: Server, tasks: Tasks, cache: Path, garbage: bytes
) -> None:
    for file in (*cache.glob("wanted/*.json"), *cache.glob("objects/*/manifest.json")):
        file.write_bytes(garbage)
    assert tasks.ready(url(server)) == ready


def test_a_file_of_the_task(tasks: Tasks) -> None:
    (tasks.folder / "data.csv").write_bytes(CONTENT)
    digest = hashlib.sha256(CONTENT).hexdigest()
    wanted = f'[assets.data]\nkind = "file"\npath = "data.csv"\nsha256 = "{digest}"\n'
    ready = tasks.ready(wanted)
    assert (ready.origin, ready.path.read_bytes()) == ("real", CONTENT)
    assert isinstance(ready.asset, FileAsset)
    remove(unused=False)
    (tasks.folder / "data.csv").write_bytes(b"other")
    missing = tasks.missing(wanted)
    assert "has changed" in missing.why
    assert "restore" in missing.advice


@pytest.mark.parametrize("path", ["data", "data/a.csv"])
def test_what_lies_in_the_source(tasks: Tasks, path: str) -> None:
    data = tasks.folder / "data"
    data.mkdir()
    (data / "a.csv").write_text("x")
    (data / "b.csv").symlink_to("a.csv")
    wanted = f'[assets.set]\nkind = "source"\npath = "{path}"\n'
    snapshot = fetch_source(tasks.task(wanted))
    found = tasks.prepare(wanted, snapshot=snapshot)["set"]
    assert isinstance(found, Ready)
    assert found.path.name in ("content", "a.csv")
    names = sorted(p.name for p in found.path.glob("*")) if found.path.is_dir() else ["a.csv"]
    assert names == (["a.csv", "b.csv"] if path == "data" else ["a.csv"])
    # A folder of this host is looked at each time.
    (data / "a.csv").write_text("y")
    again = tasks.prepare(wanted, snapshot=fetch_source(tasks.task(wanted)))["set"]
    assert isinstance(again, Ready)
    assert again.digest != found.digest


@pytest.mark.parametrize(
    ("content", "why"),
    [
        (None, "the source has no data.bin"),
        (b"version https://git-lfs.github.com/spec/v1\noid sha256:0\n", "only a pointer"),
    ],
)
def test_what_the_source_does_not_hold(tasks: Tasks, content: bytes | None, why: str) -> None:
    if content is not None:
        (tasks.folder / "data.bin").write_bytes(content)
    wanted = '[assets.set]\nkind = "source"\npath = "data.bin"\n'
    found = tasks.prepare(wanted, snapshot=fetch_source(tasks.task(wanted)))["set"]
    assert isinstance(found, Missing)
    assert why in found.why


def test_a_link_that_leads_out_of_the_source(tasks: Tasks) -> None:
    (tasks.folder / "data.bin").symlink_to("/etc/passwd")
    wanted = '[assets.set]\nkind = "source"\npath = "data.bin"\n'
    found = tasks.prepare(wanted, snapshot=fetch_source(tasks.task(wanted)))["set"]
    assert isinstance(found, Missing)
    assert "link" in found.why


def test_without_the_source(tasks: Tasks) -> None:
    missing = tasks.missing('[assets.set]\nkind = "source"\npath = "data.bin"\n')
    assert "has not been fetched" in missing.why


def test_auto_takes_an_original_that_is_here(server: Server, tasks: Tasks) -> None:
    tasks.script("out.write_text('made')")
    server.files["/data.bin"] = CONTENT
    wanted = f'{url(server)}[assets.data.stand_in]\nscript = "make.py"\n'
    task = tasks.task(wanted)
    assert tasks.ready(wanted).origin == "stand-in"
    assert here(task, "data").original is None
    assert tasks.ready(wanted, "real").origin == "real"
    assert tasks.ready(wanted).origin == "real"
    assert tasks.ready(wanted, "stand-in").origin == "stand-in"
    found = here(task, "data")
    assert (found.original, found.stand_in) == (len(CONTENT), len(b"made"))


def test_only_what_nobody_asks_for_is_removed(
    ready: Ready, server: Server, tasks: Tasks, cache: Path
) -> None:
    remove(unused=True)
    assert check_ready(ready) is None
    other = CONTENT[::-1]
    server.files["/data.bin"] = other
    now = tasks.ready(url(server, other))
    assert remove(unused=True) >= len(CONTENT)
    assert check_ready(ready) is not None
    assert check_ready(now) is None
    shutil.rmtree(tasks.folder)
    remove(unused=True)
    assert not list(cache.glob("objects/*"))


@pytest.fixture
def small_disk(cache: Path) -> Iterator[Path]:
    """A cache on a disk of one megabyte."""
    cache.mkdir(parents=True)
    mount = ["mount", "-t", "tmpfs", "-o", "size=1m", "reb-test", str(cache)]
    if subprocess.run(mount, check=False, capture_output=True).returncode != 0:
        pytest.skip("no file system can be mounted here")
    yield cache
    subprocess.run(["umount", str(cache)], check=True)


def test_a_disk_that_is_too_small(server: Server, tasks: Tasks, small_disk: Path) -> None:
    large = bytes(2_000_000)
    server.files["/data.bin"] = large
    missing = tasks.missing(url(server, large))
    assert "2.0 MB are to come" in missing.why
    assert "reb assets remove --unused" in missing.advice
    assert not list(small_disk.glob("objects/*"))


def test_a_disk_that_is_full_in_the_middle(server: Server, tasks: Tasks, small_disk: Path) -> None:
    """A server that does not say how much is to come."""
    large = bytes(2_000_000)
    server.files["/data.bin"] = large
    server.faults["/data.bin"] = [Fault(without_length=True)]
    missing = tasks.missing(url(server, large))
    assert "the disk is full" in missing.why
    assert "REB_CACHE" in missing.advice
    remove(unused=True)
    assert not list(small_disk.glob("partial/*"))
    server.files["/data.bin"] = CONTENT
    assert tasks.ready(url(server)).path.read_bytes() == CONTENT


def test_a_cache_that_cannot_be_made(tasks: Tasks, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("REB_CACHE", "/dev/null/nowhere")
    missing = tasks.missing('[assets.set]\nkind = "source"\npath = "data.bin"\n')
    assert "REB_CACHE" in missing.advice
