"""What `reb doctor` says of engines, GPUs in containers and package indexes."""

import http.server
import tempfile
import threading
from contextlib import contextmanager
from pathlib import Path

import pytest

from researchenvbench.run.doctor_engines import engine_lines
from researchenvbench.run.registries import registry_lines
from researchenvbench.sandbox import HostEnvironment
from researchenvbench.sandbox.containers.gpus import cdi_files
from researchenvbench.sandbox.engines.finding import find_engine
from researchenvbench.sandbox.engines.storage import storage_of


@contextmanager
def index(status, seen):
    class Index(http.server.BaseHTTPRequestHandler):
        def do_GET(self):
            seen.append(self.path)
            self.send_response(status)
            self.end_headers()

        def log_message(self, *_):
            pass

    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), Index) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        yield f"http://somebody:hidden-word@127.0.0.1:{server.server_port}/simple"
        server.shutdown()
        thread.join()


@pytest.mark.parametrize(("status", "state"), [(200, "good"), (401, "missing"), (503, "missing")])
def test_an_index_is_asked_and_its_password_not_printed(status, state, monkeypatch):
    monkeypatch.setenv("no_proxy", "127.0.0.1")
    seen = []
    with index(status, seen) as address:
        (line,) = registry_lines({"PIP_INDEX_URL": address})
    assert seen == ["/simple"]
    assert line.state == state
    assert "hidden-word" not in line.found
    assert "127.0.0.1" in line.found


def test_an_index_that_nobody_serves_does_not_answer(tmp_path, monkeypatch):
    monkeypatch.setenv("no_proxy", "127.0.0.1")
    installs = {
        "PIP_INDEX_URL": f"file://{tmp_path}",
        "PIP_EXTRA_INDEX_URL": f"http://u:hidden-word@127.0.0.1:9/simple {tmp_path}/none",
    }
    there, closed, absent = registry_lines(installs)
    assert there.state == "good"
    assert (closed.state, absent.state) == ("missing", "missing")
    assert "does not answer" in closed.found
    assert "hidden-word" not in closed.found
    assert closed.advice


def test_where_pip_uses_no_index_none_is_asked():
    (line,) = registry_lines({"PIP_NO_INDEX": "1"})
    assert "no-index" in line.found


def test_an_engine_that_is_not_installed_is_a_note_with_advice(monkeypatch, tmp_path):
    monkeypatch.setenv("PATH", str(tmp_path))
    lines = {line.what: line for line in engine_lines(HostEnvironment())}
    for name in ("podman", "docker"):
        assert lines[name].state == "note"
        assert lines[name].advice.startswith("apt-get install ")


def test_an_engine_that_starts_nothing_is_said_in_its_own_words(monkeypatch, tmp_path):
    program = tmp_path / "docker"
    program.write_text("#!/bin/sh\necho 'Cannot connect to the Docker daemon at x' >&2\nexit 1\n")
    program.chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:/usr/bin:/bin")
    (line,) = [
        line for line in engine_lines(HostEnvironment(), ["docker"]) if line.what == "docker"
    ]
    assert line.state == "note"
    assert "daemon is not running" in line.found


def test_only_files_that_name_nvidia_s_gpus_are_taken_for_theirs(tmp_path):
    (tmp_path / "nvidia.yaml").write_text("kind: nvidia.com/gpu\n")
    (tmp_path / "other.yaml").write_text("kind: example.org/device\n")
    (tmp_path / "notes.txt").write_text("nvidia.com/gpu\n")
    assert cdi_files([tmp_path, tmp_path / "absent"]) == [tmp_path / "nvidia.yaml"]


@pytest.mark.container
def test_what_is_said_of_podman_is_what_is_used(podman):
    lines = list(engine_lines(HostEnvironment(), ["podman"]))
    found = {line.what: line.found for line in lines}
    used = find_engine("podman")
    assert used.version in found["podman"]
    assert "GB free" in found["podman"]
    gets = [line.found for line in lines if line.what == "podman gets"]
    flags = " ".join((*used.global_flags, *used.run_flags))
    for flag in flags.split():
        assert any(flag in line for line in gets), flag
    assert "podman limits" in found
    assert ("can be entered" in found["podman networks"]) == (not used.why_outside)
    assert "podman base image" in found
    assert "shared memory" in found


@pytest.mark.container
def test_a_storage_that_copies_is_said(monkeypatch):
    # By a short name: podman's sockets lie in it.
    with tempfile.TemporaryDirectory(prefix="reb-") as folder:
        kept = f'driver = "vfs"\ngraphroot = "{folder}/kept"\nrunroot = "{folder}/run"\n'
        Path(folder, "storage.conf").write_text(f"[storage]\n{kept}")
        monkeypatch.setenv("CONTAINERS_STORAGE_CONF", f"{folder}/storage.conf")
        monkeypatch.setenv("REB_CACHE", f"{folder}/engines")
        storage_of.cache_clear()
        lines = {line.what: line for line in engine_lines(HostEnvironment(), ["podman"])}
        storage_of.cache_clear()
    assert f"images in {folder}/kept" in lines["podman"].found
    assert "whole copy" in lines["podman storage"].found
    assert "overlay" in lines["podman storage"].advice
