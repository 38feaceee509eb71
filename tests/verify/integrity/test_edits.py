"""In a user's own folder, edits since the commit are listed; nothing is judged or executed."""

from __future__ import annotations

import hashlib
import os
import subprocess
from typing import TYPE_CHECKING

from trees import FILES, found

from researchenvbench.source import snapshot_in_place

if TYPE_CHECKING:
    from pathlib import Path

    from conftest import GitRepository


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
    (folder / "elsewhere.txt").write_bytes((folder / "fit.py").read_bytes())
    (folder / "fit.py").unlink()
    (folder / "fit.py").symlink_to("elsewhere.txt")
    (folder / "pkg").rename(folder.parent / "pkg")
    (folder / "pkg").symlink_to(folder.parent / "pkg")
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
    folder = tmp_path / "box" / "repo"
    folder.mkdir(parents=True)
    git = ["git", "-C", str(folder), "-c", "user.name=A", "-c", "user.email=a@example.org"]
    (folder / "a.py").write_text("1\n")
    for command in (["init", "-q", "--object-format=sha256"], ["add", "."], ["commit", "-qmx"]):
        subprocess.run([*git, *command], check=True)
    snapshot = snapshot_in_place(folder)
    assert found(snapshot, folder, judge=False) == []
    (folder / "a.py").write_text("2\n")
    findings = found(snapshot_in_place(folder), folder, judge=False)
    assert [(finding.where, finding.what) for finding in findings] == [("a.py", "edited")]
