"""What a work tree's `.git` says is read as data, believed by nobody, and never executed."""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from trees import FILES, brief, copy_of, found, snapshot_of

if TYPE_CHECKING:
    from collections.abc import Callable

    from conftest import GitRepository
    from researchenvbench.attempt import Finding
    from researchenvbench.source import Snapshot


@pytest.fixture
def snapshot(repository: GitRepository, tmp_path: Path) -> Snapshot:
    repository.commit(FILES)
    return snapshot_of(repository, tmp_path / "cache")


@pytest.fixture
def repo(snapshot: Snapshot, tmp_path: Path) -> Path:
    return copy_of(snapshot, tmp_path)


def git(repo: Path, *arguments: str) -> str:
    """What an agent does there."""
    identity = ["-c", "user.name=A", "-c", "user.email=a@example.org"]
    command = ["git", "-C", str(repo), *identity, *arguments]
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout.strip()


CHANGED = ("tracked-file-changed", "fit.py", True)


def told(findings: list[Finding]) -> list[tuple[str, str]]:
    """Place and words of what is planted; none of it disqualifies."""
    planted = [finding for finding in findings if finding.kind == "git-configuration"]
    assert not any(finding.disqualifies for finding in planted)
    return [(finding.where, finding.what) for finding in planted]


def test_a_moved_commit_disqualifies(snapshot: Snapshot, repo: Path) -> None:
    git(repo, "commit", "--quiet", "--allow-empty", "--message=x")
    [finding] = found(snapshot, repo)
    assert (finding.kind, finding.disqualifies) == ("commit-moved", True)
    assert finding.what == f"HEAD is {git(repo, 'rev-parse', 'HEAD')}, not {snapshot.commit}"


def test_a_moved_commit_is_found_by_way_of_branches(snapshot: Snapshot, repo: Path) -> None:
    git(repo, "checkout", "--quiet", "-b", "mine")
    assert found(snapshot, repo) == []
    git(repo, "pack-refs", "--all")
    assert not (repo / ".git/refs/heads/mine").exists()
    assert found(snapshot, repo) == []
    git(repo, "commit", "--quiet", "--allow-empty", "--message=x")
    git(repo, "pack-refs", "--all")
    assert brief(found(snapshot, repo)) == [("commit-moved", ".git", True)]
    git(repo, "checkout", "--quiet", "--orphan", "new")
    [finding] = found(snapshot, repo)
    assert "HEAD names refs/heads/new, which has no commit" in finding.what


def test_a_head_that_is_a_link_is_read_as_git_does(snapshot: Snapshot, repo: Path) -> None:
    git(repo, "branch", "mine")
    (repo / ".git/HEAD").unlink()
    (repo / ".git/HEAD").symlink_to("refs/heads/mine")
    assert git(repo, "rev-parse", "HEAD") == snapshot.commit
    assert found(snapshot, repo) == []


@pytest.mark.parametrize(
    "break_it",
    [
        lambda head: head.write_bytes(b"\xff\xff"),
        lambda head: head.write_text("ref: refs/../../../../etc/passwd"),
        lambda head: head.write_text("ref: HEAD"),
        lambda head: os.truncate(head, 1 << 40),
        lambda head: (head.unlink(), os.mkfifo(head)),
        lambda head: (head.unlink(), head.symlink_to("/dev/zero")),
        lambda head: (
            head.write_text("ref: refs/heads/a"),
            (head.parent / "refs/heads/a").write_text("ref: refs/heads/a"),
        ),
    ],
)
def test_a_damaged_history_is_no_crash(
    snapshot: Snapshot, repo: Path, break_it: Callable[[Path], object]
) -> None:
    break_it(repo / ".git/HEAD")
    (repo / ".git/config").write_text("[core\nnonsense")
    [finding] = found(snapshot, repo)
    assert (finding.kind, finding.disqualifies) == ("commit-moved", True)
    assert "unreadable" in finding.what


def test_a_removed_history_is_listed(snapshot: Snapshot, repo: Path) -> None:
    """The folder above may be a repository too, whose commit is not meant."""
    shutil.rmtree(repo / ".git")
    assert brief(found(snapshot, repo)) == [("history-removed", ".git", False)]
    for make in (Path.mkdir, os.mkfifo, lambda path: path.write_text("nonsense")):
        make(repo / ".git")
        assert brief(found(snapshot, repo)) == [("history-removed", ".git", False)]
        (repo / ".git").rmdir() if (repo / ".git").is_dir() else (repo / ".git").unlink()


def test_a_history_that_lies_elsewhere_is_followed_and_told(
    snapshot: Snapshot, repo: Path, tmp_path: Path
) -> None:
    git(repo, "init", "--quiet", "--separate-git-dir", str(tmp_path / "elsewhere"))
    assert told(found(snapshot, repo)) == [
        (".git", f"is a file that names {tmp_path / 'elsewhere'}")
    ]
    (repo / ".git").unlink()
    (repo / ".git").symlink_to(tmp_path / "elsewhere")
    assert told(found(snapshot, repo)) == [(".git", f"is a link to {tmp_path / 'elsewhere'}")]
    git(repo, "commit", "--quiet", "--allow-empty", "--message=x")
    assert ("commit-moved", ".git", True) in brief(found(snapshot, repo))


def test_a_tree_that_git_made_beside_another_is_read(
    snapshot: Snapshot, repo: Path, tmp_path: Path
) -> None:
    beside = tmp_path / "box" / "beside"
    git(repo, "worktree", "add", "--quiet", "-b", "mine", str(beside))
    assert [(f.kind, f.where) for f in found(snapshot, beside)] == [("git-configuration", ".git")]
    git(beside, "commit", "--quiet", "--allow-empty", "--message=x")
    assert ("commit-moved", ".git", True) in brief(found(snapshot, beside))


def test_flags_of_the_index_hide_nothing(snapshot: Snapshot, repo: Path) -> None:
    for version in ("2", "3", "4"):
        git(repo, "update-index", "--index-version", version)
        git(repo, "update-index", "--assume-unchanged", "fit.py", "helpers.py")
        git(repo, "update-index", "--skip-worktree", "pkg/model.py")
        (repo / "fit.py").write_text("changed\n")
        assert git(repo, "status", "--short", "fit.py") == "", "the trick itself does not work"
        findings = found(snapshot, repo)
        assert CHANGED in brief(findings)
        assert told(findings) == [
            (".git/index", "2 files that git is told to assume unchanged"),
            (".git/index", "1 files that git is told to leave out (skip-worktree)"),
        ]
        git(repo, "update-index", "--no-assume-unchanged", "fit.py", "helpers.py")
        git(repo, "update-index", "--no-skip-worktree", "pkg/model.py")
    (repo / ".git/index").write_bytes(b"DIRC\0\0\0\2\xff\xff\xff\xff")
    assert told(found(snapshot, repo)) == [(".git/index", "it cannot be read")]


def test_objects_that_stand_for_others_hide_nothing(
    snapshot: Snapshot, repo: Path, tmp_path: Path
) -> None:
    (repo / "fit.py").write_text("changed\n")
    blob = git(repo, "rev-parse", "HEAD:fit.py")
    git(repo, "replace", blob, git(repo, "hash-object", "-w", "fit.py"))
    assert git(repo, "show", "HEAD:fit.py") == "changed", "the trick itself does not work"
    (repo / ".git/objects/info/alternates").write_text(f"{tmp_path}/objects\n")
    (repo / ".git/info/grafts").write_text(f"{snapshot.commit}\n")
    findings = found(snapshot, repo)
    assert CHANGED in brief(findings)
    assert [where for where, _ in told(findings)] == [
        ".git/objects/info/alternates",
        ".git/info/grafts",
        ".git/refs/replace",
    ]
    git(repo, "pack-refs", "--all")
    assert ".git/refs/replace" in dict(told(found(snapshot, repo)))


def test_filters_hide_nothing_and_nothing_is_executed(
    snapshot: Snapshot, repo: Path, tmp_path: Path
) -> None:
    ran = tmp_path / "ran"
    pristine = snapshot.tree / "fit.py"
    trap = tmp_path / "trap"
    trap.write_text(f"#!/bin/sh\ntouch '{ran}'\ncat '{pristine}'\n")
    trap.chmod(0o755)
    (repo / ".git/info/attributes").write_text("*.py filter=evil diff=evil\n")
    keys = ["filter.evil.clean", "diff.evil.textconv", "core.fsmonitor", "core.sshCommand"]
    for key in keys:
        git(repo, "config", key, str(trap))
    git(repo, "config", "include.path", str(tmp_path / "more"))
    shutil.copy(trap, repo / ".git/hooks/post-checkout")
    ran.unlink(missing_ok=True)
    (repo / "fit.py").write_text("changed\n")
    findings = found(snapshot, repo)
    assert not ran.exists()
    assert CHANGED in brief(findings)
    assert told(findings) == [
        (".git/info/attributes", "attributes, by which files are passed through filters"),
        (".git/hooks/post-checkout", "a program that git would execute"),
        (".git/config", f"core.fsmonitor = {trap}"),
        (".git/config", f"core.sshcommand = {trap}"),
        (".git/config", f"filter.evil.clean = {trap}"),
        (".git/config", f"diff.evil.textconv = {trap}"),
        (".git/config", f"include.path = {tmp_path / 'more'}"),
    ]
    git(repo, "status")
    assert ran.exists(), "the trap itself does not work"


def test_what_honest_work_does_to_a_repository_is_clean(snapshot: Snapshot, repo: Path) -> None:
    git(repo, "config", "user.name", "A")
    git(repo, "config", "core.fsmonitor", "false")
    git(repo, "remote", "add", "origin", "https://example.org/x.git")
    git(repo, "config", "filter.lfs.clean", "git-lfs clean -- %f")
    git(repo, "config", "filter.lfs.process", "git-lfs filter-process")
    (repo / ".git/hooks/pre-push").write_text('#!/bin/sh\ngit lfs pre-push "$@"\n')
    (repo / ".git/hooks/post-merge").write_text("#!/bin/sh\n# nothing yet\n")
    (repo / "fit.py").touch()
    git(repo, "add", "--all")
    git(repo, "stash", "list")
    git(repo, "gc", "--quiet")
    git(repo, "tag", "v1")
    assert found(snapshot, repo) == []
