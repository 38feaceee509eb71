"""What an environment's packages weigh is what an index lists of them, or it is not known."""

from __future__ import annotations

import hashlib
import http.server
import json
import subprocess
import sys
import threading
import zipfile
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from researchenvbench.run.archives import archive_bytes
from researchenvbench.verify.interpreter import Interpreter

if TYPE_CHECKING:
    from collections.abc import Iterator


@pytest.fixture
def interpreter(tmp_path: Path) -> Interpreter:
    """An environment in which nothing is installed yet."""
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", tmp_path / "env"], check=True)
    (site,) = tmp_path.glob("env/lib/python*/site-packages")
    return Interpreter(
        executable=str(tmp_path / "env/bin/python"),
        version=".".join(map(str, sys.version_info[:3])),
        implementation="cpython",
        prefix=str(tmp_path / "env"),
        base_prefix=sys.base_prefix,
        purelib=str(site),
        platlib=str(site),
        kind="venv",
    )


def install(interpreter: Interpreter, name: str, direct_url: object = None) -> None:
    """Leave the traces that an installer leaves of a distribution."""
    facts = Path(interpreter.purelib) / f"{name}-1.0.dist-info"
    facts.mkdir()
    (facts / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: 1.0\n")
    if direct_url is not None:
        (facts / "direct_url.json").write_text(json.dumps(direct_url))


class Index(http.server.ThreadingHTTPServer):
    """A package index that lists files, with their sizes or without."""

    def __init__(self, folder: Path) -> None:
        super().__init__(("127.0.0.1", 0), _Answers)
        self.folder = folder
        self.lists_sizes = True

    @property
    def installs(self) -> dict[str, str]:
        """By which uv finds it."""
        return {"UV_DEFAULT_INDEX": f"http://127.0.0.1:{self.server_port}/simple"}

    def add(self, name: str, payload: bytes) -> int:
        """Serve a wheel of version 1.0; returns its size."""
        path = self.folder / f"{name}-1.0-py3-none-any.whl"
        with zipfile.ZipFile(path, "w") as wheel:
            wheel.writestr(f"{name}.py", payload)
            facts = f"{name}-1.0.dist-info"
            meta = f"Metadata-Version: 2.1\nName: {name}\nVersion: 1.0\n"
            wheel.writestr(f"{facts}/METADATA", meta)
            wheel.writestr(f"{facts}/WHEEL", "Wheel-Version: 1.0\nTag: py3-none-any\n")
            wheel.writestr(f"{facts}/RECORD", "")
        return path.stat().st_size


class _Answers(http.server.BaseHTTPRequestHandler):
    server: Index

    def do_GET(self) -> None:
        name = self.path.strip("/").rpartition("/")[2]
        wheel = self.server.folder / name
        project = self.server.folder / f"{name}-1.0-py3-none-any.whl"
        if wheel.is_file():
            self._send(wheel.read_bytes(), "application/octet-stream")
        elif project.is_file():
            content = project.read_bytes()
            file = {
                "filename": project.name,
                "url": f"/files/{project.name}",
                "hashes": {"sha256": hashlib.sha256(content).hexdigest()},
            } | ({"size": len(content)} if self.server.lists_sizes else {})
            listed = {"meta": {"api-version": "1.1"}, "name": name, "files": [file]}
            self._send(json.dumps(listed).encode(), "application/vnd.pypi.simple.v1+json")
        else:
            self.send_error(404)

    def _send(self, content: bytes, kind: str) -> None:
        self.send_response(200)
        self.send_header("Content-Type", kind)
        self.send_header("Content-Length", str(len(content)))
        self.end_headers()
        self.wfile.write(content)

    def log_message(self, *_: object) -> None:
        """Say nothing."""


@pytest.fixture
def index(tmp_path: Path) -> Iterator[Index]:
    (tmp_path / "index").mkdir()
    with Index(tmp_path / "index") as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield server
        server.shutdown()


def test_an_environment_without_packages_fetched_none(interpreter: Interpreter) -> None:
    assert archive_bytes(interpreter, {}) == (0, "")


def test_the_sizes_are_those_that_the_index_lists(interpreter: Interpreter, index: Index) -> None:
    sizes = [index.add("one", b"#" * 1000), index.add("two", b"#" * 5000)]
    index.add("three", b"of which nothing is installed")
    install(interpreter, "one")
    install(interpreter, "two")
    install(interpreter, "of-the-repository", {"url": "file:///src", "dir_info": {}})
    assert archive_bytes(interpreter, index.installs) == (sum(sizes), "")


def test_one_that_is_not_listed_with_its_size_makes_all_unknown(
    interpreter: Interpreter, index: Index
) -> None:
    index.add("one", b"")
    install(interpreter, "one")
    index.lists_sizes = False
    assert archive_bytes(interpreter, index.installs) == (None, "the index lists no size of one")
    index.lists_sizes = True
    install(interpreter, "gone")
    size, why = archive_bytes(interpreter, index.installs)
    assert size is None
    assert why


def test_of_what_comes_from_an_address_or_from_conda_nothing_is_known(
    interpreter: Interpreter,
) -> None:
    install(interpreter, "direct", {"url": "https://example.org/x.git", "vcs_info": {}})
    size, why = archive_bytes(interpreter, {})
    assert size is None
    assert "direct came from an address" in why
    assert archive_bytes(replace(interpreter, kind="conda"), {})[0] is None


def test_a_wheel_of_this_host_is_looked_at_itself(interpreter: Interpreter, index: Index) -> None:
    size = index.add("local", b"#" * 700)
    wheels = index.folder.parent / "wheels"
    index.folder.rename(wheels)  # the index has it no more
    install(interpreter, "local")
    assert archive_bytes(interpreter, {**index.installs, "UV_FIND_LINKS": str(wheels)}) == (
        size,
        "",
    )
