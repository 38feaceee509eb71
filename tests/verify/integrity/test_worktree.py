"""Whatever an agent does to the repository is seen; only what changes it disqualifies."""

from __future__ import annotations

import hashlib
import os
import shutil
import socket
import subprocess
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from trees import FILES, brief, copy_of, found, looked_at, snapshot_of

from researchenvbench.errors import SourceError
from researchenvbench.sandbox.local.sandbox import LocalSandbox
from researchenvbench.source import Snapshot, snapshot_in_place
from researchenvbench.verify.integrity.worktree import compare, is_generated

if TYPE_CHECKING:
    from collections.abc import Callable

    from conftest import GitRepository


@pytest.fixture
def snapshot(repository: GitRepository, tmp_path: Path) -> Snapshot:
    """A source with a link and an executable, as its commit has it."""
    repository.write(FILES)
    (repository.folder / "run.sh").chmod(0o755)
    (repository.folder / "link").symlink_to("fit.py")
    repository.commit()
    return snapshot_of(repository, tmp_path / "cache")


@pytest.fixture
def repo(snapshot: Snapshot, tmp_path: Path) -> Path:
    """The copy that an agent works in."""
    return copy_of(snapshot, tmp_path)


def test_an_untouched_copy_has_no_findings(snapshot: Snapshot, repo: Path) -> None:
    (repo / ".venv/lib").mkdir(parents=True)
    (repo / "notes.txt").write_text("mine")
    compared = looked_at(snapshot, repo)
    assert compared.findings == ()
    assert (compared.untracked, compared.untracked_count) == (("notes.txt",), 1)


def _swap_link(repo: Path) -> None:
    (repo / "link").unlink()
    (repo / "link").symlink_to("helpers.py")


def _link_for_file(repo: Path) -> None:
    content = (repo / "fit.py").read_bytes()
    (repo / "elsewhere.txt").write_bytes(content)
    (repo / "fit.py").unlink()
    (repo / "fit.py").symlink_to("elsewhere.txt")


def _pipe_for_file(repo: Path) -> None:
    (repo / "fit.py").unlink()
    os.mkfifo(repo / "fit.py")


def _folder_for_file(repo: Path) -> None:
    (repo / "fit.py").unlink()
    (repo / "fit.py").mkdir()


def _device_for_file(repo: Path) -> None:
    (repo / "fit.py").unlink()
    (repo / "fit.py").symlink_to("/dev/zero")


def _socket_for_file(repo: Path) -> None:
    (repo / "fit.py").unlink()
    here = Path.cwd()
    os.chdir(repo)  # the address of a socket may have 107 bytes
    try:
        with socket.socket(socket.AF_UNIX) as server:
            server.bind("fit.py")
    finally:
        os.chdir(here)


def _huge_file(repo: Path) -> None:
    os.truncate(repo / "fit.py", 1 << 40)


def _repository_for_folder(repo: Path) -> None:
    shutil.rmtree(repo / "pkg")
    subprocess.run(["git", "init", "--quiet", repo / "pkg"], check=True)
    (repo / "pkg" / "__init__.py").write_text("")


def _file_for_folder(repo: Path) -> None:
    shutil.rmtree(repo / "pkg")
    (repo / "pkg").write_text("")


def _linked_folder(repo: Path) -> None:
    # The same content, but from a place that can change after the comparison.
    (repo / "pkg").rename(repo.parent / "pkg")
    (repo / "pkg").symlink_to(repo.parent / "pkg")


CHANGES: dict[str, tuple[Callable[[Path], object], list[tuple[str, str]]]] = {
    "changed": (
        lambda repo: (repo / "fit.py").write_text("import numpy\n"),
        [("fit.py", "changed")],
    ),
    "same size, same time": (
        lambda repo: (repo / "helpers.py").write_text("import t0rch\n"),
        [("helpers.py", "changed")],
    ),
    "removed": (
        lambda repo: (repo / "pkg/model.py").unlink(),
        [("pkg/model.py", "removed")],
    ),
    "made executable": (
        lambda repo: (repo / "fit.py").chmod(0o755),
        [("fit.py", "was file, is executable")],
    ),
    "no longer executable": (
        lambda repo: (repo / "run.sh").chmod(0o644),
        [("run.sh", "was executable, is file")],
    ),
    "another link": (_swap_link, [("link", "changed")]),
    "a link for a file": (_link_for_file, [("fit.py", "was file, is link")]),
    "a pipe for a file": (_pipe_for_file, [("fit.py", "was file, is FIFO")]),
    "a socket for a file": (_socket_for_file, [("fit.py", "was file, is socket")]),
    "a folder for a file": (_folder_for_file, [("fit.py", "was file, is folder")]),
    "a repository for a folder": (
        _repository_for_folder,
        [("pkg/model.py", "removed"), ("pkg/version.py", "removed")],
    ),
    "a file for a folder": (
        _file_for_folder,
        [(f"pkg/{name}.py", "removed") for name in ("__init__", "model", "version")],
    ),
    "an endless device for a file": (_device_for_file, [("fit.py", "was file, is link")]),
    "a terabyte for a file": (_huge_file, [("fit.py", "changed")]),
    "a linked folder": (
        _linked_folder,
        [
            ("pkg/__init__.py", "a folder above it is a link to elsewhere"),
            ("pkg/model.py", "a folder above it is a link to elsewhere"),
            ("pkg/version.py", "a folder above it is a link to elsewhere"),
        ],
    ),
}


@pytest.mark.parametrize("name", CHANGES)
def test_a_change_to_a_tracked_file_disqualifies(snapshot: Snapshot, repo: Path, name: str) -> None:
    change, expected = CHANGES[name]
    change(repo)
    findings = [f for f in found(snapshot, repo) if f.kind == "tracked-file-changed"]
    assert [(finding.where, finding.what) for finding in findings] == expected
    assert all(finding.disqualifies for finding in findings)


def test_a_generated_file_may_change(snapshot: Snapshot, repo: Path) -> None:
    (repo / "pkg/version.py").write_text("v = 2\n")
    (repo / "fit.py").write_text("changed\n")
    assert brief(found(snapshot, repo, "pkg/version.py", "*.egg-info/*")) == [
        ("tracked-file-changed", "fit.py", True),
        ("generated-file-changed", "pkg/version.py", False),
    ]
    assert is_generated("x.egg-info/PKG-INFO", ("*.egg-info/*",))
    assert not is_generated("pkg/version.pyx", ("pkg/version.py",))


def test_what_no_installer_does_to_a_generated_file_disqualifies(
    snapshot: Snapshot, repo: Path
) -> None:
    _linked_folder(repo)
    _link_for_file(repo)
    assert brief(found(snapshot, repo, "pkg/*", "fit.py", "link")) == [
        ("tracked-file-changed", path, True)
        for path in ("fit.py", "pkg/__init__.py", "pkg/model.py", "pkg/version.py")
    ]


@pytest.mark.skipif(os.geteuid() == 0, reason="root may read everything")
def test_a_file_that_cannot_be_read_is_changed(snapshot: Snapshot, repo: Path) -> None:
    (repo / "fit.py").chmod(0)
    [finding] = found(snapshot, repo)
    assert (finding.what, finding.disqualifies) == ("cannot be read: Permission denied", True)


def test_a_linked_work_tree_is_not_followed(snapshot: Snapshot, tmp_path: Path) -> None:
    """What lies behind the link could be changed after it was looked at."""
    sandbox, attempt = LocalSandbox(), tmp_path / "attempt"
    attempt.mkdir()
    with sandbox.build_box(attempt, snapshot.tree, key="k") as box:
        box.layout.repo.rename(tmp_path / "elsewhere")
        box.layout.repo.symlink_to(tmp_path / "elsewhere")
    sandbox.freeze(attempt)
    with sandbox.stage_box(attempt, network=False, gpus=()) as stage:
        compared = compare(snapshot, stage, (), judge=True)
    [finding] = compared.findings
    assert (finding.kind, finding.disqualifies) == ("work-tree-replaced", True)
    assert finding.what == f"{sandbox.layout(attempt).repo} is a link"
    assert compared.untracked == ()


def test_a_removed_work_tree_is_no_crash(snapshot: Snapshot, tmp_path: Path) -> None:
    sandbox, attempt = LocalSandbox(), tmp_path / "attempt"
    attempt.mkdir()
    with sandbox.build_box(attempt, snapshot.tree, key="k") as box:
        shutil.rmtree(box.layout.repo)
    sandbox.freeze(attempt)
    with sandbox.stage_box(attempt, network=False, gpus=()) as stage:
        [finding] = compare(snapshot, stage, (), judge=True).findings
    assert finding.what.endswith("box/repo: No such file or directory")
    assert finding.disqualifies


def test_a_large_file_may_stand_for_its_pointer(repository: GitRepository, tmp_path: Path) -> None:
    """`git lfs pull` is what the repository asks for; another content is not."""
    content = b"weights\n" * 1000
    oid = hashlib.sha256(content).hexdigest()
    pointer = f"version https://git-lfs.github.com/spec/v1\noid sha256:{oid}\nsize 8000\n"
    repository.commit(
        {".gitattributes": "*.bin filter=lfs diff=lfs merge=lfs -text\n", "w.bin": pointer}
    )
    snapshot = snapshot_of(repository, tmp_path / "cache")
    repo = copy_of(snapshot, tmp_path)
    assert found(snapshot, repo) == []
    (repo / "w.bin").write_bytes(content)
    assert found(snapshot, repo) == []
    (repo / "w.bin").write_bytes(content[:-1] + b"!")
    assert brief(found(snapshot, repo)) == [("tracked-file-changed", "w.bin", True)]


def test_files_of_submodules_are_compared(
    repository: GitRepository, another_repository: GitRepository, tmp_path: Path
) -> None:
    another_repository.commit({"inner.py": "i\n"})
    repository("submodule", "--quiet", "add", str(another_repository.folder), "deps/inner")
    repository.commit()
    snapshot = snapshot_of(repository, tmp_path / "cache", submodules=True)
    repo = copy_of(snapshot, tmp_path)
    assert found(snapshot, repo) == []
    (repo / "deps/inner/inner.py").write_text("j\n")
    assert brief(found(snapshot, repo)) == [("tracked-file-changed", "deps/inner/inner.py", True)]


def test_nobody_is_blamed_for_a_damaged_pristine_source(snapshot: Snapshot, repo: Path) -> None:
    (snapshot.tree / "fit.py").write_text("damaged\n")
    with pytest.raises(SourceError, match=r"fit\.py: the pristine source has been changed"):
        found(snapshot, repo)
    (snapshot.tree / "fit.py").unlink()
    with pytest.raises(SourceError, match=r"fit\.py: the file has vanished"):
        found(snapshot, repo)


def test_many_changes_are_counted_and_not_all_listed(tmp_path: Path) -> None:
    tree = tmp_path / "tree"
    tree.mkdir()
    for number in range(80):
        (tree / f"f{number:02}.txt").write_text("x")
    snapshot = snapshot_in_place(tree)
    copy = shutil.copytree(tree, tmp_path / "box" / "copy")
    for path in copy.iterdir():
        path.write_text("y")
    findings = found(snapshot, copy)
    assert len(findings) == 51
    assert findings[-1].what == "and 30 more of this kind"


def test_many_strange_untracked_files_are_listed_and_counted(
    snapshot: Snapshot, repo: Path
) -> None:
    data = repo / "data"
    data.mkdir()
    for number in range(5000):
        (data / f"{number:04}.txt").touch()
    os.mkfifo(repo / "pipe")
    (repo / os.fsdecode(b"caf\xe9")).write_text("")
    (repo / "away").symlink_to("/")
    (repo / "loop").symlink_to("loop")
    (data / "huge.bin").touch()
    os.truncate(data / "huge.bin", 1 << 40)
    for folder in (repo / "env", repo / ".git" / "x", repo / "__pycache__"):
        folder.mkdir()
        (folder / "inside").touch()
    (repo / "env" / "pyvenv.cfg").touch()
    compared = looked_at(snapshot, repo)
    assert compared.findings == ()
    assert compared.untracked_count == 5005
    assert len(compared.untracked) == 200
    assert compared.untracked[:5] == ("away", "caf\udce9", "loop", "pipe", "data/0000.txt")


def test_names_that_are_no_utf8(repository: GitRepository, tmp_path: Path) -> None:
    strange = os.fsdecode(b"caf\xe9.py")
    repository.write({strange: "1\n"})
    repository.commit()
    snapshot = snapshot_in_place(repository.folder)
    copy = shutil.copytree(repository.folder, tmp_path / "box" / "copy")
    assert found(snapshot, copy) == []
    (copy / strange).write_text("2\n")
    [finding] = found(snapshot, copy)
    assert finding.where == strange
    assert "caf" in finding.model_dump_json()
