"""Trees of candidates: what lies on the default branch, one commit deep, without large files.

Kept in the cache by the repository's number and its last push, so that each is fetched once
while nothing is pushed. What is fetched is only read.
"""

from __future__ import annotations

import re
import shutil
from dataclasses import dataclass
from typing import TYPE_CHECKING

from filelock import FileLock

from ..errors import SourceError
from ..gitcommand import lacks, make_git
from .tree import LARGEST_FILE_BYTES

if TYPE_CHECKING:
    from pathlib import Path

    from .criteria import Facts

_BRANCH = "refs/heads/candidate"


@dataclass(frozen=True)
class Fetched:
    """A tree that is there."""

    folder: Path  #: a bare git directory
    commit: str


class Trees:
    """A folder of trees."""

    def __init__(self, folder: Path) -> None:
        """The trees in `folder`, which need not exist yet."""
        self.folder = folder

    def fetch(self, facts: Facts) -> Fetched:
        """The tree of a repository, fetched where it is not there.

        Raises:
            SourceError: it cannot be had.
            HostError: git is not installed.
            OSError: the folder cannot be written.
        """
        self.folder.mkdir(parents=True, exist_ok=True)
        pushed = re.sub(r"\D", "", facts.pushed)[:14] or "never"
        place = self.folder / f"{facts.id}@{pushed}.git"
        with FileLock(self.folder / f".{facts.id}.lock"):
            if place.is_dir() and (commit := _commit_of(place)):
                return Fetched(place, commit)
            shutil.rmtree(place, ignore_errors=True)
            made = self.folder / f".{facts.id}.part"  # of an interrupted try, under the lock
            shutil.rmtree(made, ignore_errors=True)
            made.mkdir()
            try:
                commit = _fetch(facts.address, made)
                made.rename(place)
            finally:
                shutil.rmtree(made, ignore_errors=True)
        return Fetched(place, commit)


def _fetch(address: str, folder: Path) -> str:
    make_git("init", "--quiet", "--bare", folder=folder, bare=True)
    without_large = f"--filter=blob:limit={LARGEST_FILE_BYTES}"
    refs = ("--", address, f"+HEAD:{_BRANCH}")
    fetch = ("fetch", "--quiet", "--no-tags", "--depth=1", without_large)
    make_git(*fetch, *refs, folder=folder, bare=True)
    # git would fetch what is left out as soon as somebody asks for it: it is to stay away.
    (folder / "config").unlink()
    make_git("init", "--quiet", "--bare", folder=folder, bare=True)
    commit = _commit_of(folder)
    if not commit:
        raise SourceError(f"{address} has no commit on its default branch")
    return commit


def _commit_of(folder: Path) -> str:
    """The commit that was fetched; empty where it is not there."""
    try:
        commit = make_git("rev-parse", "--verify", _BRANCH, folder=folder, bare=True)
    except SourceError:
        return ""
    said = commit.decode().strip()
    return "" if lacks(said, folder, bare=True) else said
