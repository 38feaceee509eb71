"""Sources as their commits have them, copies as an agent works in them, and what is found."""

from __future__ import annotations

import shutil
from typing import TYPE_CHECKING

from researchenvbench.sandbox.local.adopted import adopted_box
from researchenvbench.source import Snapshot, fetch_source
from researchenvbench.task import Task
from researchenvbench.verify.integrity.worktree import Compared, compare

if TYPE_CHECKING:
    from collections.abc import Collection
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


def snapshot_of(repository: GitRepository, cache: Path, *, submodules: bool = False) -> Snapshot:
    """The pristine source of what is committed."""
    source = {
        "kind": "git",
        "url": str(repository.folder),
        "commit": repository("rev-parse", "HEAD"),
        "submodules": submodules,
    }
    task = Task.model_validate({"schema": 1, "name": "t", "domain": "d", "source": source})
    return fetch_source(task, cache=cache)


def copy_of(snapshot: Snapshot, folder: Path) -> Path:
    """The copy that an agent works in."""
    return shutil.copytree(snapshot.tree, folder / "box" / "repo", symlinks=True)


def looked_at(
    snapshot: Snapshot,
    repo: Path,
    *generated: str,
    judge: bool = True,
    starts: Collection[str] = (),
    python: str | None = None,
) -> Compared:
    """What is found in a tree, from within a stage's box."""
    with adopted_box(repo, None, repo.parent / "scratch", network=False) as box:
        return compare(snapshot, box, generated, judge=judge, starts=starts, python=python)


def found(
    snapshot: Snapshot,
    repo: Path,
    *generated: str,
    judge: bool = True,
    starts: Collection[str] = (),
) -> list[Finding]:
    """The findings alone."""
    return list(looked_at(snapshot, repo, *generated, judge=judge, starts=starts).findings)


def brief(findings: list[Finding]) -> list[tuple[str, str, bool]]:
    """Kind, place, and whether it disqualifies."""
    return [(finding.kind, finding.where, finding.disqualifies) for finding in findings]
