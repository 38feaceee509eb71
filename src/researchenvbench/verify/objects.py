"""The files of a commit, from git's objects and without a work tree."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import PurePosixPath
from typing import TYPE_CHECKING

from ..errors import SourceError
from ..gitcommand import git
from .imports import is_python
from .tree import MODULE_SUFFIXES

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path

#: Of reading all Python files of a commit; thousands take a second or two.
_READ_LIMIT_S = 300


@dataclass(frozen=True)
class Entry:
    """A file, link or submodule that a commit tracks."""

    mode: str  #: 100… is a regular file, 120000 a link, 160000 a submodule
    digest: str
    path: str

    @property
    def is_file(self) -> bool:
        """Whether it is a regular file."""
        return self.mode.startswith("100")


@dataclass(frozen=True)
class CommitFiles:
    """What C0 reads of a commit."""

    paths: tuple[str, ...]  #: of all tracked files and links
    python: tuple[tuple[str, bytes], ...]  #: path and content of the Python files that C0 reads
    links: Mapping[str, str]  #: path of a link to the path that it holds


def read_commit(git_folder: Path, commit: str) -> CommitFiles:
    """Read `commit` in the git directory `git_folder`.

    Raises:
        SourceError: git does not have the commit or one of its files.
        HostError: git is not installed.
    """
    entries = entries_of(git_folder, commit)
    code = [entry for entry in entries if entry.is_file and is_python(entry.path)]
    links = [entry for entry in entries if entry.mode == "120000"]
    contents = contents_of(git_folder, [*code, *links])
    return CommitFiles(
        paths=tuple(entry.path for entry in entries if entry.mode != "160000"),
        python=tuple((entry.path, contents[entry.path]) for entry in code),
        links={entry.path: os.fsdecode(contents[entry.path]) for entry in links},
    )


def entries_of(git_folder: Path, commit: str) -> list[Entry]:
    """What `commit` tracks, by path.

    Raises:
        SourceError: git does not have the commit.
        HostError: git is not installed.
    """
    listed = git("ls-tree", "-rz", "--full-tree", commit, folder=git_folder, bare=True)
    entries = []
    for line in listed.split(b"\0"):
        if line:
            facts, _, name = line.partition(b"\t")
            mode, _, digest = facts.decode().split()
            entries.append(Entry(mode, digest, os.fsdecode(name)))
    return entries


def sizes_of(git_folder: Path, entries: Sequence[Entry]) -> dict[str, int]:
    """Bytes of those of the files that the git directory holds, by path.

    Raises:
        SourceError: git cannot say.
        HostError: git is not installed.
    """
    asked = "".join(f"{entry.digest}\n" for entry in entries).encode()
    answer = git(
        *("cat-file", "--batch-check"),
        folder=git_folder,
        bare=True,
        stdin=asked,
        time_limit_s=_READ_LIMIT_S,
    )
    said = [line.split() for line in answer.splitlines()]
    return {
        entry.path: int(words[2])
        for entry, words in zip(entries, said, strict=True)
        if len(words) == 3
    }


def linked_modules(commit: CommitFiles) -> dict[str, str]:
    """Modules that a link makes reachable by a second path: that path to the file.

    As `outline.linked_modules` says it of a work tree; a link to a link is not followed.
    """
    modules = [path for path in commit.paths if PurePosixPath(path).suffix in MODULE_SUFFIXES]
    aliases = {}
    for link, target in commit.links.items():
        inside = os.path.normpath(PurePosixPath(link).parent / target)
        if inside.startswith(("/", "..")) or inside == ".":
            continue
        for module in modules:
            if module == inside or module.startswith(f"{inside}/"):
                aliases[link + module[len(inside) :]] = module
    return aliases


def contents_of(git_folder: Path, wanted: Sequence[Entry]) -> dict[str, bytes]:
    """The contents of files, by path.

    Raises:
        SourceError: git lacks one of them.
        HostError: git is not installed.
    """
    asked = "".join(f"{entry.digest}\n" for entry in wanted).encode()
    answer = git(
        *("cat-file", "--batch"),
        folder=git_folder,
        bare=True,
        stdin=asked,
        time_limit_s=_READ_LIMIT_S,
    )
    contents = {}
    at = 0
    for entry in wanted:
        end = answer.index(b"\n", at)
        header = answer[at:end].split()
        if len(header) != 3:
            raise SourceError(f"{entry.path}: git lacks the object {entry.digest}")
        size = int(header[2])
        contents[entry.path] = answer[end + 1 : end + 1 + size]
        at = end + size + 2
    return contents
