"""Bare copies of the commits that tasks name, so that a deleted repository shrinks nothing.

A mirror is a folder of the user's with a bare repository a commit, `NAME@COMMIT.git`, and an
`index.json` that says for people what came from where. A copy is found by its commit, which
fixes its content: neither its name nor where it came from matters. It takes its name only
when it holds the commit with all its objects; what an interruption left is made anew.
"""

from __future__ import annotations

import re
import shutil
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import TYPE_CHECKING

from filelock import FileLock
from pydantic import ConfigDict, Field

from .errors import RecordError, SourceError
from .gitcommand import address, fetch_commit, git, lacks, make_git
from .stored import Stored

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping
    from pathlib import Path

    from .task import GitSource

#: How far below a folder of existing repositories one is looked for.
_DEPTH = 3
_BRANCH = "refs/heads/mirrored"


class Copy(Stored):
    """One commit that a mirror holds."""

    folder: str = Field(description="Within the mirror.")
    taken_from: str
    taken: str = Field(description="When, in UTC.")
    size_bytes: int


class Index(Stored):
    """What a mirror holds, by commit; for people and other programs."""

    schema_version: int = Field(1, alias="schema")
    commits: dict[str, Copy] = Field(default_factory=dict)

    model_config = ConfigDict(extra="ignore", frozen=True, populate_by_name=True)


@dataclass(frozen=True)
class Taken:
    """What `Mirror.take` did for a commit."""

    folder: Path
    taken_from: str  #: empty where it was there already
    size_bytes: int


class Mirror:
    """A folder of bare repositories."""

    def __init__(self, folder: Path) -> None:
        """A mirror in `folder`, which need not exist yet."""
        self.folder = folder.absolute()

    def find(self, commit: str) -> Path:
        """The bare repository that holds `commit`.

        Raises:
            SourceError: there is none, or it is damaged; the message says which.
        """
        if not self.folder.is_dir():
            raise SourceError("there is no such folder")
        places = sorted(self.folder.glob(f"*@{commit}.git"))
        if not places:
            raise SourceError("it does not hold the commit")
        problems = []
        for place in places:
            if not (why := lacks(commit, place, bare=True)):
                return place
            problems.append(f"{place.name}: {why}")
        raise SourceError("; ".join(problems))

    def take(
        self, source: GitSource, task_folder: Path, *, copies: Mapping[str, Path] | None = None
    ) -> Taken:
        """See to it that the mirror holds the commit of `source`, with all its objects.

        `copies` are repositories on this host, by the commits that they hold; they are tried
        before the addresses of the source.

        Raises:
            SourceError: no place has it; each is named with what it said.
            HostError: git is not installed.
            OSError: the folder cannot be written.
        """
        self.folder.mkdir(parents=True, exist_ok=True)
        commit = source.commit
        with FileLock(self.folder / f".{commit}.lock"):
            for there in sorted(self.folder.glob(f"*@{commit}.git")):
                if not incomplete(commit, there):
                    return Taken(there, "", _size(there))
            place = self.folder / f"{_name(source.url)}@{commit}.git"
            addresses = [source.url, *source.also_at]
            if copies and commit in copies:
                addresses.insert(0, str(copies[commit]))
            tried = []
            for url in addresses:
                try:
                    return self._take(url, commit, task_folder, place)
                except SourceError as error:
                    tried.append(f"{url}: {error.args[0]}")
        raise SourceError(
            f"commit {commit} cannot be had; " + "; ".join(tried),
            advice="check the addresses and the network; a repository of this host that has it "
            "can be given by --from",
        )

    def _take(self, url: str, commit: str, task_folder: Path, place: Path) -> Taken:
        made = self.folder / f".{commit}.part"  # of an interrupted try, under the same lock
        shutil.rmtree(made, ignore_errors=True)
        made.mkdir()
        try:
            make_git("init", "--quiet", "--bare", folder=made, bare=True)
            fetch_commit(address(url, task_folder)[0], commit, made, bare=True)
            # Whoever clones the copy gets the commit, and git never drops it.
            make_git("update-ref", _BRANCH, commit, folder=made, bare=True)
            make_git("symbolic-ref", "HEAD", _BRANCH, folder=made, bare=True)
            if why := incomplete(commit, made):
                raise SourceError(why)
            if place.exists():
                shutil.rmtree(place)  # it was looked at above, and is damaged
            made.rename(place)
        finally:
            shutil.rmtree(made, ignore_errors=True)
        size_bytes = _size(place)
        now = datetime.now(UTC).isoformat(timespec="seconds")
        self._note(
            commit, Copy(folder=place.name, taken_from=url, taken=now, size_bytes=size_bytes)
        )
        return Taken(place, url, size_bytes)

    def _note(self, commit: str, copy: Copy) -> None:
        path = self.folder / "index.json"
        with FileLock(self.folder / ".index.lock"):
            try:
                commits = Index.load(path).commits if path.exists() else {}
            except RecordError:
                commits = {}  # it is written anew; what is there is found without it
            there = {c: known for c, known in commits.items() if self._is_there(known)}
            Index(commits={**there, commit: copy}).save(path)

    def _is_there(self, copy: Copy) -> bool:
        return (self.folder / copy.folder).is_dir()


def incomplete(commit: str, folder: Path) -> str:
    """Why a bare repository is no whole copy of `commit`; empty where it is one.

    Raises:
        HostError: git is not installed.
    """
    if why := lacks(commit, folder, bare=True):
        return why
    check = ("fsck", "--connectivity-only", "--no-dangling", "--no-progress", commit)
    try:
        make_git(*check, folder=folder, bare=True)
    except SourceError as error:
        return f"objects of the commit are missing: {error}"
    return ""


def repositories_below(folders: Iterable[Path]) -> Iterator[Path]:
    """The git directories in `folders`, themselves among them, to a depth of three."""
    for folder in folders:
        waiting = [(folder, 0)]
        while waiting:
            place, depth = waiting.pop()
            git_folder = place / ".git" if (place / ".git").is_dir() else place
            if (git_folder / "HEAD").is_file() and (git_folder / "objects").is_dir():
                yield git_folder
            elif depth < _DEPTH and place.is_dir():
                below = sorted(place.iterdir(), reverse=True)
                waiting += [(sub, depth + 1) for sub in below if sub.is_dir()]


def copies_of(commits: Iterable[str], repositories: Iterable[Path]) -> dict[str, Path]:
    """Which of `commits` the `repositories` of this host hold: the first that has each.

    Raises:
        HostError: git is not installed.
    """
    wanted = sorted(set(commits))
    asked = "".join(f"{commit}\n" for commit in wanted).encode()
    found: dict[str, Path] = {}
    for repository in repositories:
        try:
            said = git("cat-file", "--batch-check", folder=repository, bare=True, stdin=asked)
        except SourceError:
            continue  # damaged, or no repository after all
        for commit, line in zip(wanted, said.decode().splitlines(), strict=False):
            if line.startswith(f"{commit} commit "):
                found.setdefault(commit, repository)
    return found


def _name(url: str) -> str:
    """The owner and the repository of an address, as a name for a folder."""
    path = url.rstrip("/").removesuffix(".git").replace(":", "/")
    parts = [re.sub(r"[^A-Za-z0-9._-]", "-", part) for part in path.split("/")]
    return "__".join([part for part in parts if part.strip(".")][-2:]) or "source"


def _size(folder: Path) -> int:
    return sum(path.lstat().st_size for path in folder.rglob("*") if path.is_file())
