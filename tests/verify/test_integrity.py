"""Whatever an agent does to the repository is seen; only what changes it disqualifies."""

from __future__ import annotations

import hashlib
import os
import shutil
import subprocess
from typing import TYPE_CHECKING

import pytest

from researchenvbench.attempt import Report
from researchenvbench.source import Snapshot, fetch_source, snapshot_in_place
from researchenvbench.task import Task
from researchenvbench.verify.integrity import (
    compare,
    is_generated,
    start_variables,
    untracked,
)

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from conftest import GitRepository
    from researchenvbench.attempt import Finding

FILES = {
    "fit.py": "import numpy\nimport helpers\n",
    "helpers.py": "import torch\n",
    "pkg/__init__.py": "",
    "pkg/model.py": "from scipy import linalg\n",
    "scripts/run.py": "import pandas\n",
    "pkg/version.py": "v = 1\n",
    "run.sh": "#!/bin/sh\n",
}


@pytest.fixture
def snapshot(repository: GitRepository, tmp_path: Path) -> Snapshot:
    """A source with a link and an executable, as its commit has it."""
    repository.write(FILES)
    (repository.folder / "run.sh").chmod(0o755)
    (repository.folder / "link").symlink_to("fit.py")
    commit = repository.commit()
    source = {"kind": "git", "url": str(repository.folder), "commit": commit}
    task = Task.model_validate({"schema": 1, "name": "t", "domain": "d", "source": source})
    return fetch_source(task, cache=tmp_path / "cache")


@pytest.fixture
def repo(snapshot: Snapshot, tmp_path: Path) -> Path:
    """The copy that an agent works in."""
    return shutil.copytree(snapshot.tree, tmp_path / "box" / "repo", symlinks=True)


def found(snapshot: Snapshot, repo: Path, *generated: str, judge: bool = True) -> list[Finding]:
    return list(compare(snapshot, repo, generated, judge=judge))


def brief(findings: list[Finding]) -> list[tuple[str, str, bool]]:
    return [(finding.kind, finding.where, finding.disqualifies) for finding in findings]


def test_an_untouched_copy_has_no_findings(snapshot: Snapshot, repo: Path) -> None:
    (repo / ".venv/lib").mkdir(parents=True)
    (repo / "notes.txt").write_text("mine")
    assert found(snapshot, repo) == []
    assert untracked(snapshot, repo) == ("notes.txt",)


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
        [("pkg/model.py", "removed, or replaced by something that is no file")],
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
    "a link for a file": (_link_for_file, [("fit.py", "changed")]),
    "a pipe for a file": (
        _pipe_for_file,
        [("fit.py", "removed, or replaced by something that is no file")],
    ),
    "a folder for a file": (
        _folder_for_file,
        [("fit.py", "removed, or replaced by something that is no file")],
    ),
    "an endless device for a file": (_device_for_file, [("fit.py", "changed")]),
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


def test_a_moved_commit_disqualifies(snapshot: Snapshot, repo: Path) -> None:
    git = ["git", "-C", str(repo), "-c", "user.name=A", "-c", "user.email=a@example.org"]
    os.spawnvp(os.P_WAIT, "git", [*git, "commit", "--quiet", "--allow-empty", "--message=x"])
    assert brief(found(snapshot, repo)) == [("commit-moved", ".git", True)]


def test_a_removed_history_is_listed(snapshot: Snapshot, repo: Path) -> None:
    """The folder above may be a repository too, whose commit is not meant."""
    shutil.rmtree(repo / ".git")
    assert brief(found(snapshot, repo)) == [("history-removed", ".git", False)]


def test_a_damaged_history_is_no_crash(snapshot: Snapshot, repo: Path) -> None:
    (repo / ".git/HEAD").write_bytes(b"\xff\xff")
    (repo / ".git/config").write_text("[core\nnonsense")
    [finding] = found(snapshot, repo)
    assert (finding.kind, finding.disqualifies) == ("commit-moved", True)
    assert "unreadable" in finding.what


@pytest.mark.parametrize(
    ("path", "expected"),
    [
        ("torch.py", [("shadowing-module", "torch.py", False)]),
        ("numpy/__init__.py", [("shadowing-module", "numpy", False)]),
        ("torch.cpython-311-x86_64-linux-gnu.so", [("shadowing-module", None, False)]),
        ("src/scipy.py", [("shadowing-module", "src/scipy.py", False)]),
        ("scripts/pandas.py", [("shadowing-module", "scripts/pandas.py", False)]),
        ("sitecustomize.py", [("start-up-hook", "sitecustomize.py", False)]),
        # Not imported by the code; no module; within a package, where nothing is shadowed.
        ("unrelated.py", []),
        ("torch.txt", []),
        ("numpy/data.txt", []),
        ("pkg/torch.py", []),
        ("build/torch.py", []),
    ],
)
def test_an_untracked_module_is_found_where_it_shadows(
    snapshot: Snapshot, repo: Path, path: str, expected: list[tuple[str, str | None, bool]]
) -> None:
    (repo / path).parent.mkdir(parents=True, exist_ok=True)
    (repo / path).write_text("")
    wanted = [(kind, where or path, disqualifies) for kind, where, disqualifies in expected]
    assert brief(found(snapshot, repo)) == wanted


def test_many_changes_are_counted_and_not_all_listed(tmp_path: Path) -> None:
    tree = tmp_path / "tree"
    tree.mkdir()
    for number in range(80):
        (tree / f"f{number:02}.txt").write_text("x")
    snapshot = snapshot_in_place(tree)
    copy = shutil.copytree(tree, tmp_path / "copy")
    for path in copy.iterdir():
        path.write_text("y")
    findings = found(snapshot, copy)
    assert len(findings) == 51
    assert findings[-1].what == "and 30 more of this kind"


def test_in_a_users_folder_edits_are_listed_and_not_judged(repository: GitRepository) -> None:
    repository.commit(FILES)
    repository.write({"fit.py": "edited\n", "new.py": "", "torch.py": ""})
    (repository.folder / "pkg/model.py").unlink()
    repository("add", "new.py")
    snapshot = snapshot_in_place(repository.folder)
    findings = found(snapshot, repository.folder, judge=False)
    assert [(f.kind, f.where, f.what, f.disqualifies) for f in findings] == [
        ("edited-file", "fit.py", "edited", False),
        ("edited-file", "new.py", "added since the commit", False),
        ("edited-file", "pkg/model.py", "deleted", False),
    ]


def edits(repository: GitRepository) -> dict[str, str]:
    findings = found(snapshot_in_place(repository.folder), repository.folder, judge=False)
    return {finding.where: finding.what for finding in findings}


def test_a_users_filter_is_not_run_and_the_index_not_written(
    repository: GitRepository, tmp_path: Path
) -> None:
    repository.commit({**FILES, ".gitattributes": "*.py filter=evil\n"})
    ran, index = tmp_path / "ran", repository.folder / ".git/index"
    for name in ("clean", "smudge", "process"):
        repository("config", f"filter.evil.{name}", f"touch {ran}; cat")
    repository.write({"fit.py": "edited\n", "run.sh": "edited\n"})
    for path in FILES:
        os.utime(repository.folder / path, (1, 1))
    before = hashlib.sha256(index.read_bytes()).hexdigest()
    assert edits(repository) == {
        "fit.py": "differs from HEAD, or is rendered by a filter or with other line ends",
        "run.sh": "edited",
    }
    assert not ran.exists()
    assert hashlib.sha256(index.read_bytes()).hexdigest() == before
    subprocess.run(
        ["git", "-C", str(repository.folder), "diff", "HEAD"], check=False, capture_output=True
    )
    assert ran.exists(), "the trap itself does not work"


def test_every_kind_of_edit_has_its_word(repository: GitRepository) -> None:
    repository.commit({**FILES, "sparse.txt": "x", "kept.txt": "x"})
    folder = repository.folder
    assert edits(repository) == {}
    (folder / "run.sh").chmod(0o755)
    _link_for_file(folder)
    _linked_folder(folder)
    repository("update-index", "--skip-worktree", "sparse.txt")
    (folder / "sparse.txt").unlink()
    repository("rm", "--quiet", "--cached", "kept.txt")
    (folder / "helpers.py").unlink()
    assert edits(repository) == {
        "fit.py": "of another kind",
        "helpers.py": "deleted",
        "kept.txt": "no longer tracked",
        **dict.fromkeys(
            ("pkg/__init__.py", "pkg/model.py", "pkg/version.py"),
            "a folder above it is a link to elsewhere",
        ),
        "run.sh": "its executable bit was changed",
    }
    repository("config", "core.fileMode", "false")
    assert "run.sh" not in edits(repository)


def test_edits_in_a_submodule_are_listed(
    repository: GitRepository, another_repository: GitRepository
) -> None:
    another_repository.commit({"inner.py": "i\n"})
    repository.commit({"a.py": "1\n"})
    repository("submodule", "--quiet", "add", str(another_repository.folder), "deps/inner")
    repository.commit()
    assert edits(repository) == {}
    repository.write({"deps/inner/inner.py": "edited\n"})
    assert edits(repository) == {"deps/inner/inner.py": "edited"}


def test_edits_where_names_are_sha256(tmp_path: Path) -> None:
    git = ["git", "-C", str(tmp_path), "-c", "user.name=A", "-c", "user.email=a@example.org"]
    (tmp_path / "a.py").write_text("1\n")
    for command in (["init", "-q", "--object-format=sha256"], ["add", "."], ["commit", "-qmx"]):
        subprocess.run([*git, *command], check=True)
    snapshot = snapshot_in_place(tmp_path)
    assert found(snapshot, tmp_path, judge=False) == []
    (tmp_path / "a.py").write_text("2\n")
    findings = found(snapshot_in_place(tmp_path), tmp_path, judge=False)
    assert [(finding.where, finding.what) for finding in findings] == [("a.py", "edited")]


def test_names_that_are_no_utf8(repository: GitRepository, tmp_path: Path) -> None:
    strange = os.fsdecode(b"caf\xe9.py")
    repository.write({strange: "1\n"})
    repository.commit()
    snapshot = snapshot_in_place(repository.folder)
    copy = shutil.copytree(repository.folder, tmp_path / "copy")
    assert found(snapshot, copy) == []
    (copy / strange).write_text("2\n")
    [finding] = found(snapshot, copy)
    assert finding.where == strange
    assert "caf" in finding.model_dump_json()


def test_variables_that_load_other_code_are_findings():
    env = {"LD_PRELOAD": "/tmp/x.so", "PYTHONPATH": "/repo", "HF_HOME": "/x", "PYTHONHASHSEED": "0"}
    found = start_variables(Report(env=env))
    assert [finding.what.split("=")[0].split()[-1] for finding in found] == [
        "LD_PRELOAD",
        "PYTHONPATH",
    ]
    assert not any(finding.disqualifies for finding in found)
    assert start_variables(None) == ()
