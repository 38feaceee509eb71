"""The list of the frozen files is complete, quick to take again, and bears any file."""

import os
import socket

import pytest

from researchenvbench.errors import SandboxError
from researchenvbench.sandbox.local import manifest
from researchenvbench.sandbox.local.manifest import Manifest, compare, take


@pytest.fixture
def folder(tmp_path):
    folder = tmp_path / "box"
    (folder / "lib").mkdir(parents=True)
    (folder / "lib" / "a").write_bytes(b"a" * 3_000_000)
    os.link(folder / "lib" / "a", folder / "hard")
    (folder / "link").symlink_to("lib//a")
    (folder / "up").symlink_to("..")
    os.mkfifo(folder / "fifo")
    (folder / os.fsdecode(b"\xff\xfe name\n")).write_bytes(b"odd")
    return folder


def test_every_kind_is_listed(folder, monkeypatch):
    monkeypatch.chdir(folder)
    with socket.socket(socket.AF_UNIX) as server:
        server.bind("socket")
        entries = take(folder).entries
    assert {name: entry.kind for name, entry in entries.items()} == {
        "lib": "folder",
        "lib/a": "file",
        "hard": "file",
        "link": "link",
        "up": "link",
        "fifo": "FIFO",
        "socket": "socket",
        os.fsdecode(b"\xff\xfe name\n"): "file",
    }
    assert entries["link"].content == "lib//a"


def test_hard_links_are_read_and_counted_once(folder):
    state = take(folder)
    assert state.digested_bytes == 3_000_003
    assert state.size_bytes == 3_000_003
    assert state.files == 3
    assert state.entries["hard"].content == state.entries["lib/a"].content


def test_only_what_looks_different_is_read_again(folder):
    before = take(folder)
    (folder / "new").write_bytes(b"1234")
    after = take(folder, before)
    assert after.digested_bytes == 4
    assert compare(before, after).added == ("new",)
    assert after.digest == take(folder).digest


def test_stored_and_loaded_is_the_same(folder, tmp_path):
    state = take(folder)
    state.save(tmp_path / "list.json.gz")
    loaded = Manifest.load(tmp_path / "list.json.gz")
    assert loaded.entries == state.entries
    assert loaded.digest == state.digest
    assert take(folder, loaded).digested_bytes == 0


def test_absent(tmp_path):
    with pytest.raises(SandboxError, match="there is no frozen environment"):
        Manifest.load(tmp_path / "list.json.gz")


@pytest.mark.parametrize("content", [b"", b"x", b"\x1f\x8b", b"[]", b'{"entries": [[1]]}'])
def test_damaged(tmp_path, content):
    import gzip

    file = tmp_path / "list.json.gz"
    for written in (content, gzip.compress(content)):
        file.write_bytes(written)
        with pytest.raises(SandboxError, match="cannot be read"):
            Manifest.load(file)


def test_a_link_that_points_elsewhere_is_modified(folder):
    before = take(folder)
    (folder / "link").unlink()
    (folder / "link").symlink_to("lib/a")
    assert compare(before, take(folder)).modified == ("link",)


def test_file_that_becomes_a_folder_is_modified(folder):
    before = take(folder)
    (folder / "hard").unlink()
    (folder / "hard").mkdir()
    assert compare(before, take(folder)).modified == ("hard",)


def test_without_contents_times_tell(folder):
    before = take(folder, contents=False)
    assert before.digested_bytes == 0
    assert not compare(before, take(folder, contents=False))
    os.utime(folder / "hard")
    assert compare(before, take(folder, contents=False)).modified == ("hard", "lib/a")


@pytest.mark.skipif(os.geteuid() == 0, reason="root may read everything")
def test_unreadable(folder):
    (folder / "lib" / "a").chmod(0)
    (folder / "closed").mkdir(mode=0)
    entries = take(folder).entries
    assert entries["hard"].content == "unreadable: Permission denied"
    assert entries["closed"].kind == "folder"


def test_many_small_files_are_digested_in_groups(tmp_path, monkeypatch):
    monkeypatch.setattr(manifest, "_GROUP_FILES", 7)
    for number in range(50):
        (tmp_path / str(number)).write_text(str(number))
    state = take(tmp_path)
    assert len({entry.content for entry in state.entries.values()}) == 50
