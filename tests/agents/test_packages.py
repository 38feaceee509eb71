"""Programs of agents: fetched from a server, checked by digest, unpacked with care."""

from __future__ import annotations

import base64
import functools
import gzip
import hashlib
import io
import tarfile
import threading
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer

import pytest

from researchenvbench.agents.definition import AgentDefinition
from researchenvbench.agents.packages import (
    download_of,
    from_registry,
    install,
    machine,
    package_digest,
    unpack,
)
from researchenvbench.errors import RebError


def packed(files, links=()):
    made = io.BytesIO()
    with (
        gzip.GzipFile(fileobj=made, mode="wb", mtime=0) as stream,
        tarfile.open(fileobj=stream, mode="w") as archive,
    ):
        for name, (content, mode) in files.items():
            info = tarfile.TarInfo(name)
            info.size, info.mode = len(content), mode
            archive.addfile(info, io.BytesIO(content))
        for name, target in links:
            info = tarfile.TarInfo(name)
            info.type, info.linkname = tarfile.SYMTYPE, target
            archive.addfile(info)
    return made.getvalue()


@pytest.fixture
def registry(tmp_path):
    """A folder, and the address at which it is served."""
    folder = tmp_path / "registry"
    folder.mkdir()

    class Quiet(SimpleHTTPRequestHandler):
        def log_message(self, *_):
            pass

    handler = functools.partial(Quiet, directory=folder)
    server = ThreadingHTTPServer(("127.0.0.1", 0), handler)
    thread = threading.Thread(target=server.serve_forever, args=(0.05,), daemon=True)
    thread.start()
    yield folder, f"http://127.0.0.1:{server.server_address[1]}"
    server.shutdown()
    server.server_close()


def definition(address, archive, **changes):
    digest = base64.b64encode(hashlib.sha512(archive).digest()).decode()
    download = {
        "url": f"{address}/tool.tgz",
        "integrity": f"sha512-{digest}",
        "size_bytes": len(archive),
        "take": {"package/bin": "bin"},
        **changes,
    }
    return AgentDefinition.model_validate(
        {
            "name": "tool",
            "title": "Tool",
            "version": "1.0",
            "program": "bin/tool",
            "downloads": {machine(): download},
            "run": {"argv": ["{program}", "{prompt}"]},
        }
    )


PROGRAM = {
    "package/bin/tool": (b"#!/bin/sh\necho tool\n", 0o755),
    "package/bin/data": (b"x", 0o644),
    "package/elsewhere": (b"y", 0o644),
}


def test_it_is_fetched_once_and_kept(registry, tmp_path):
    folder, address = registry
    archive = packed(PROGRAM)
    (folder / "tool.tgz").write_bytes(archive)
    tool = definition(address, archive)
    download = download_of(tool)
    said = []
    place = install(tool, download, said.append, tmp_path / "cache")
    assert sorted(path.name for path in place.rglob("*") if path.is_file()) == ["data", "tool"]
    assert (place / "bin/tool").stat().st_mode & 0o111
    assert not (place / "bin/data").stat().st_mode & 0o111
    assert package_digest(download)[:12] in place.name
    (folder / "tool.tgz").unlink()
    assert install(tool, download, said.append, tmp_path / "cache") == place
    left = [path.name for path in place.parent.iterdir() if not path.name.endswith(".lock")]
    assert left == [place.name]


def test_what_is_not_what_the_definition_names_is_not_kept(registry, tmp_path):
    folder, address = registry
    archive = packed(PROGRAM)
    (folder / "tool.tgz").write_bytes(packed({**PROGRAM, "package/bin/more": (b"z", 0o644)}))
    tool = definition(address, archive, size_bytes=len((folder / "tool.tgz").read_bytes()))
    with pytest.raises(RebError, match="is not what the definition names"):
        install(tool, download_of(tool), lambda _: None, tmp_path / "cache")
    left = [path for path in (tmp_path / "cache/agents").iterdir() if path.suffix != ".lock"]
    assert left == []


def test_a_server_that_has_it_not(registry, tmp_path):
    _, address = registry
    tool = definition(address, packed(PROGRAM))
    with pytest.raises(RebError, match=r"tool\.tgz: is not given"):
        install(tool, download_of(tool), lambda _: None, tmp_path / "cache")


def test_an_archive_without_the_program(registry, tmp_path):
    folder, address = registry
    archive = packed({"package/bin/other": (b"", 0o755)})
    (folder / "tool.tgz").write_bytes(archive)
    tool = definition(address, archive)
    with pytest.raises(RebError, match="has no bin/tool to start"):
        install(tool, download_of(tool), lambda _: None, tmp_path / "cache")


def test_nothing_leaves_its_folder(tmp_path):
    archive = tmp_path / "x.tgz"
    archive.write_bytes(
        packed(
            {"package/bin/tool": (b"t", 0o755), "package/bin/../../../out": (b"o", 0o644)},
            links=[("package/bin/link", "/etc/passwd")],
        )
    )
    unpack(archive, tmp_path / "in", {"package/bin": "bin"})
    found = sorted(path.name for path in (tmp_path / "in").rglob("*"))
    assert found == ["bin", "tool"]
    assert not (tmp_path / "out").exists()


def test_what_is_no_archive_and_what_lacks_a_name(tmp_path):
    archive = tmp_path / "x.tgz"
    archive.write_bytes(b"no archive")
    with pytest.raises(RebError, match="cannot be unpacked"):
        unpack(archive, tmp_path / "in", {"a": "a"})
    archive.write_bytes(packed(PROGRAM)[:60])
    with pytest.raises(RebError, match="cannot be unpacked"):
        unpack(archive, tmp_path / "in", {"package/bin": "bin"})
    archive.write_bytes(packed(PROGRAM))
    with pytest.raises(RebError, match="does not have package/nothing"):
        unpack(archive, tmp_path / "in", {"package/nothing": "x", "package/bin": "bin"})


def test_a_kind_of_machine_that_is_not_named():
    tool = definition("http://127.0.0.1:1", packed(PROGRAM))
    other = "aarch64" if machine() == "x86_64" else "x86_64"
    moved = tool.model_copy(update={"downloads": {other: tool.downloads[machine()]}})
    with pytest.raises(RebError, match=f"is not named for {machine()}"):
        download_of(moved)


def test_a_mirror_of_the_registry_is_asked_instead():
    url = "https://registry.npmjs.org/@a/b/-/b-1.tgz"
    assert from_registry(url, {}) == url
    mirror = {"npm_config_registry": "https://mirror.example/npm/"}
    assert from_registry(url, mirror) == "https://mirror.example/npm/@a/b/-/b-1.tgz"
    assert from_registry("https://other.example/x.tgz", mirror) == "https://other.example/x.tgz"
