"""Originals on a hub: every file is what the hub lists, and each refusal says what to do."""

from __future__ import annotations

import os
import signal
import subprocess
import time
from typing import TYPE_CHECKING

import pytest

from .conftest import fetching
from .servers import REVISION, Fault

if TYPE_CHECKING:
    from pathlib import Path

    from .conftest import Tasks
    from .servers import Server

WEIGHTS = bytes(range(256)) * 8000  # two megabytes
FILES = {"config.json": b'{"layers": 2}', "weights/model.bin": WEIGHTS, "README.md": b"# Model\n"}
NOW = {"Retry-After": "0"}
RESOLVE = f"/o/net/resolve/{REVISION}"


def asset(more: str = "", revision: str = REVISION, repo: str = "o/net") -> str:
    pin = f'revision = "{revision}"\n' if revision else ""
    return f'[assets.net]\nkind = "hub"\nrepo = "{repo}"\n{pin}{more}\n'


@pytest.fixture
def hub(server: Server) -> Server:
    server.repos["models/o/net"] = FILES
    server.repos["datasets/o/set"] = {"train.csv": b"x\n1\n"}
    server.large.add("weights/model.bin")
    return server


def test_all_files_come_and_are_verified(hub: Server, tasks: Tasks) -> None:
    ready = tasks.ready(asset())
    found = {str(p.relative_to(ready.path)): p for p in ready.path.rglob("*") if p.is_file()}
    assert {name: path.read_bytes() for name, path in found.items()} == FILES
    count = len(hub.requests)
    assert tasks.ready(asset()) == ready
    assert len(hub.requests) == count


def test_only_the_files_that_are_named(hub: Server, tasks: Tasks) -> None:
    ready = tasks.ready(asset('files = ["*.json", "weights/*"]'))
    assert not (ready.path / "README.md").exists()
    assert (ready.path / "weights/model.bin").read_bytes() == WEIGHTS
    assert not hub.asked("README.md")


def test_a_data_set(hub: Server, tasks: Tasks) -> None:
    ready = tasks.ready(asset('type = "dataset"', repo="o/set"))
    assert (ready.path / "train.csv").read_bytes() == b"x\n1\n"
    assert hub.asked(f"/datasets/o/set/resolve/{REVISION}/train.csv")


def test_the_token_goes_to_the_hub_alone(
    hub: Server, tasks: Tasks, monkeypatch: pytest.MonkeyPatch, cache: Path
) -> None:
    monkeypatch.setenv("HF_TOKEN", "hf_secret")
    hub.faults[f"{RESOLVE}/README.md"] = [Fault(503, NOW)]
    tasks.ready(asset())
    to_hub = [request for request in hub.requests if request.host == "127.0.0.1"]
    elsewhere = [request for request in hub.requests if request.host == "localhost"]
    assert to_hub
    assert elsewhere
    assert all(request.headers["Authorization"] == "Bearer hf_secret" for request in to_hub)
    assert not any("Authorization" in request.headers for request in elsewhere)
    hub.faults["/api/models/o/net/revision/" + "b" * 40] = [Fault(401)]
    missing = tasks.missing(asset(revision="b" * 40))
    assert "HF_TOKEN is set" in missing.why
    assert "hf_secret" not in " ".join([missing.why, missing.advice, *tasks.said])
    for path in cache.rglob("*"):
        if path.is_file():
            assert b"hf_secret" not in path.read_bytes()


def test_a_gated_one_says_what_to_do(hub: Server, tasks: Tasks) -> None:
    refused = {"X-Error-Code": "GatedRepo", "X-Error-Message": "Access is restricted."}
    hub.faults[f"{RESOLVE}/README.md"] = [Fault(403, refused)]
    missing = tasks.missing(asset())
    assert "it is gated" in missing.why
    assert "Access is restricted." in missing.why
    assert "accept its conditions on" in missing.advice
    assert "HF_TOKEN" in missing.advice
    assert "--assets stand-in" in missing.advice


@pytest.mark.parametrize(("status", "words"), [(401, "not for everybody"), (404, "not there")])
def test_one_that_is_not_there(hub: Server, tasks: Tasks, status: int, words: str) -> None:
    hub.faults[f"/api/models/o/net/revision/{REVISION}"] = [Fault(status)]
    missing = tasks.missing(asset())
    assert words in missing.why
    assert "`repo`" in missing.advice


def test_a_busy_hub_is_asked_again(hub: Server, tasks: Tasks) -> None:
    hub.faults[f"/api/models/o/net/revision/{REVISION}"] = [Fault(429, NOW)]
    hub.faults[f"{RESOLVE}/config.json"] = [Fault(429, NOW)]
    assert tasks.ready(asset()).path.is_dir()


def test_one_that_nobody_has_looked_up_is_not_used(hub: Server, tasks: Tasks) -> None:
    missing = tasks.missing(asset(revision=""))
    assert "not pinned" in missing.why
    assert f"git ls-remote {hub.address}/o/net HEAD" in missing.advice
    assert not hub.requests


def test_a_hub_that_answers_for_another_revision(hub: Server, tasks: Tasks) -> None:
    hub.answers_for = "c" * 40
    assert f"answers for revision {'c' * 40} instead of {REVISION}" in tasks.missing(asset()).why


def test_another_file_of_the_same_size(hub: Server, tasks: Tasks) -> None:
    hub.faults[f"{RESOLVE}/config.json"] = [Fault(body=b'{"layers": 3}')]
    missing = tasks.missing(asset())
    assert "config.json: what came is another file" in missing.why
    assert tasks.ready(asset()).path.is_dir()  # the next time it is the right one


def test_another_large_file_of_the_same_size(hub: Server, tasks: Tasks) -> None:
    hub.faults["/cdn/models/o/net/weights/model.bin"] = [Fault(body=WEIGHTS[::-1])]
    assert "weights/model.bin: what came is another file" in tasks.missing(asset()).why


def test_a_web_page_instead_of_a_file(hub: Server, tasks: Tasks) -> None:
    page = Fault(headers={"Content-Type": "text/html"}, body=b"<html>Log in")
    hub.faults[f"{RESOLVE}/config.json"] = [page]
    missing = tasks.missing(asset())
    assert "a web page instead of the file" in missing.why
    assert "proxy" in missing.advice


@pytest.mark.parametrize(
    "body",
    [b"<html>Log in", b"[]", b"{}", b'{"sha": "%s", "siblings": [{"rfilename": "a"}]}'],
)
def test_a_list_that_is_none(hub: Server, tasks: Tasks, body: bytes) -> None:
    said = body.replace(b"%s", REVISION.encode())
    hub.faults[f"/api/models/o/net/revision/{REVISION}"] = [Fault(body=said)]
    assert "HF_ENDPOINT" in tasks.missing(asset()).advice


def test_a_path_that_leads_out_of_the_folder(hub: Server, tasks: Tasks, tmp_path: Path) -> None:
    hub.repos["models/o/net"] = {"../../out.txt": b"x"}
    assert "the list of its files cannot be read" in tasks.missing(asset()).why
    assert not list(tmp_path.rglob("out.txt"))


def test_a_pattern_that_fits_nothing(hub: Server, tasks: Tasks) -> None:
    missing = tasks.missing(asset('files = ["*.safetensors"]'))
    assert "has no file *.safetensors" in missing.why
    assert "config.json" in missing.why


def test_a_killed_download_goes_on(hub: Server, tasks: Tasks, cache: Path) -> None:
    tasks.task(asset())
    hub.seconds_a_chunk = 0.1  # three seconds for the large file
    with fetching(tasks) as process:
        deadline = time.monotonic() + 30
        while time.monotonic() < deadline:
            parts = [part.stat().st_size for part in cache.glob("partial/*/*.part")]
            if any(size > 200_000 for size in parts):
                break
            time.sleep(0.02)
        process.send_signal(signal.SIGKILL)
    assert process.returncode == -signal.SIGKILL
    assert not list(cache.glob("objects/*"))
    hub.seconds_a_chunk = 0.0
    before = len(hub.requests)
    ready = tasks.ready(asset())
    assert (ready.path / "weights/model.bin").read_bytes() == WEIGHTS
    again = [request.path for request in hub.requests[before:]]
    assert not any("config.json" in path for path in again)  # it was whole
    assert hub.asked("/cdn/")[-1].status == 206
    assert not list(cache.glob("staging/*"))


def test_two_processes_at_once_fetch_it_once(hub: Server, tasks: Tasks) -> None:
    tasks.task(asset())
    hub.seconds_a_chunk = 0.03
    with fetching(tasks) as one, fetching(tasks) as other:
        said = [process.communicate(timeout=60)[0] for process in (one, other)]
    assert (one.returncode, other.returncode) == (0, 0), said
    assert len(hub.asked("/cdn/")) == 1
    assert sum("waits for another process" in text for text in said) == 1


@pytest.mark.skipif("REB_TEST_HUB" not in os.environ, reason="REB_TEST_HUB names no hub")
def test_the_real_hub(tasks: Tasks, monkeypatch: pytest.MonkeyPatch) -> None:
    """A small public model, at a commit that everybody can look up."""
    monkeypatch.setenv("HF_ENDPOINT", os.environ["REB_TEST_HUB"])
    look_up = [
        "git",
        "ls-remote",
        f"{os.environ['REB_TEST_HUB']}/hf-internal-testing/tiny-random-gpt2",
    ]
    said = subprocess.run([*look_up, "HEAD"], check=True, capture_output=True, text=True).stdout
    wanted = asset(
        'files = ["config.json"]', said.split()[0], "hf-internal-testing/tiny-random-gpt2"
    )
    assert (tasks.ready(wanted).path / "config.json").stat().st_size > 0
