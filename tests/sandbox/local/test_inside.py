"""What programs left cannot lead the harness astray."""

import os
import socket
from pathlib import Path

import pytest

from researchenvbench.errors import SandboxError
from researchenvbench.sandbox.local import inside
from researchenvbench.sandbox.local.manifest import take
from researchenvbench.sandbox.removing import remove_tree


@pytest.fixture
def root(tmp_path):
    folder = tmp_path / "root"
    folder.mkdir()
    (folder / "file").write_bytes(b"content")
    (folder / "sub" / "deep").mkdir(parents=True)
    (folder / "sub" / "a.csv").write_bytes(b"a")
    (folder / "sub" / "deep" / "b.csv").write_bytes(b"b")
    (folder / "sub" / ".hidden.csv").write_bytes(b"h")
    (folder / "away").symlink_to("/etc")
    (folder / "to_sub").symlink_to("sub")
    return folder


def make_deep(folder):
    """A chain of folders that is deeper than a path can be long."""
    here = os.open(folder, os.O_RDONLY)
    for _ in range(1200):
        os.mkdir("d" * 50, dir_fd=here)
        below = os.open("d" * 50, os.O_RDONLY, dir_fd=here)
        os.close(here)
        here = below
    os.close(here)


def read(root, path, limit_bytes=100):

    return inside.read(root, Path(path), limit_bytes)


class TestRead:
    def test_file(self, root):
        assert read(root, "/file") == b"content"
        assert read(root, "/file", 7) == b"content"

    @pytest.mark.parametrize(
        ("path", "message"),
        [
            ("/absent", "does not exist"),
            ("/absent/file", "does not exist"),
            ("/away", "is a symbolic link"),
            ("/away/passwd", "a folder of its path is none, or a link"),
            ("/to_sub/a.csv", "a folder of its path is none, or a link"),
            ("/sub", "is a folder"),
            ("/file/x", "a folder of its path is none"),
            ("/sub/../file", "must not hold .."),
        ],
    )
    def test_refused(self, root, path, message):
        with pytest.raises(SandboxError, match=message):
            read(root, path)

    def test_over_the_limit(self, root):
        with pytest.raises(SandboxError, match="has 7 bytes; at most 6"):
            read(root, "/file", 6)

    def test_fifo_does_not_hang(self, root):
        os.mkfifo(root / "fifo")
        with pytest.raises(SandboxError, match="is a FIFO"):
            read(root, "/fifo")

    def test_socket(self, root, monkeypatch):
        monkeypatch.chdir(root)
        with socket.socket(socket.AF_UNIX) as server:
            server.bind("socket")
            with pytest.raises(SandboxError, match="is a socket"):
                read(root, "/socket")

    def test_device(self):

        with pytest.raises(SandboxError, match="is a character device"):
            inside.read(Path("/"), Path("/dev/zero"), 10)

    def test_hundred_megabytes_are_not_read(self, root):
        os.truncate(root / "file", 100 << 20)
        with pytest.raises(SandboxError, match="at most 100"):
            read(root, "/file")


class TestWrite:
    def test_replaces_a_link_and_not_what_it_points_to(self, root, tmp_path):
        target = tmp_path / "target"
        target.write_text("kept")
        (root / "sub" / "name").symlink_to(target)

        inside.write(root, Path("/sub/name"), b"new", 0o600)
        assert target.read_text() == "kept"
        assert (root / "sub" / "name").read_bytes() == b"new"

    def test_not_through_a_link(self, root):

        with pytest.raises(SandboxError, match="cannot be written"):
            inside.write(root, Path("/to_sub/name"), b"", 0o600)


class TestCollect:
    def collect(self, root, tmp_path, pattern, **options):
        options = {"limit": 10, "opened_ns": 0, **options}
        return [str(c.inside) for c in inside.collect(root, pattern, tmp_path / "into", **options)]

    @pytest.mark.parametrize(
        ("pattern", "expected"),
        [
            ("/file", ["/file"]),
            ("/absent", []),
            ("/sub/*.csv", ["/sub/a.csv"]),
            ("/sub/.*.csv", ["/sub/.hidden.csv"]),
            ("/**/*.csv", ["/sub/a.csv", "/sub/deep/b.csv"]),
            ("/sub/**", ["/sub/a.csv", "/sub/deep/b.csv"]),
            ("/s[tu]b/?.csv", ["/sub/a.csv"]),
            ("/*/passwd", []),
            ("/to_sub/*", []),
        ],
    )
    def test_patterns(self, root, tmp_path, pattern, expected):
        assert self.collect(root, tmp_path, pattern) == expected

    def test_limit(self, root, tmp_path):
        assert self.collect(root, tmp_path, "/**/*.csv", limit=1) == ["/sub/a.csv"]

    def test_relative_pattern(self, root, tmp_path):
        with pytest.raises(SandboxError, match="not an absolute pattern"):
            self.collect(root, tmp_path, "*.csv")

    def test_links_and_special_files_are_passed_over(self, root, tmp_path):
        os.mkfifo(root / "sub" / "fifo.csv")
        (root / "sub" / "link.csv").symlink_to("a.csv")
        assert self.collect(root, tmp_path, "/sub/*.csv") == ["/sub/a.csv"]

    def test_names_of_any_bytes(self, root, tmp_path):
        name = os.fsdecode(b"\xff" * 250 + b".csv")
        (root / name).write_bytes(b"n")
        assert self.collect(root, tmp_path, "/*.csv") == [f"/{name}"]

    def test_a_very_deep_tree_ends(self, root, tmp_path):
        make_deep(root)
        assert len(take(root).entries) > 50
        assert self.collect(root, tmp_path, "/**/a.csv") == ["/sub/a.csv"]
        remove_tree(root)
        assert not root.exists()
