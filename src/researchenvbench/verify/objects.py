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
    listed = git("ls-tree", "-rz", "--full-tree", commit, folder=git_folder, bare=True)
    entries: list[tuple[str, str, str]] = []  # mode, digest, path
    for line in listed.split(b"\0"):
        if line:
            facts, _, name = line.partition(b"\t")
            mode, _, digest = facts.decode().split()
            entries.append((mode, digest, os.fsdecode(name)))
    # 100… is a regular file, 120000 a link, 160000 a submodule.
    code = [(path, digest) for mode, digest, path in entries if mode[0:3] == "100"]
    code = [(path, digest) for path, digest in code if is_python(path)]
    links = [(path, digest) for mode, digest, path in entries if mode == "120000"]
    contents = _contents(git_folder, [*code, *links])
    return CommitFiles(
        paths=tuple(path for mode, _, path in entries if mode != "160000"),
        python=tuple((path, contents[path]) for path, _ in code),
        links={path: os.fsdecode(contents[path]) for path, _ in links},
    )


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


def _contents(git_folder: Path, wanted: Sequence[tuple[str, str]]) -> dict[str, bytes]:
    asked = "".join(f"{digest}\n" for _, digest in wanted).encode()
    answer = git(
        *("cat-file", "--batch"),
        folder=git_folder,
        bare=True,
        stdin=asked,
        time_limit_s=_READ_LIMIT_S,
    )
    contents = {}
    at = 0
    for path, digest in wanted:
        end = answer.index(b"\n", at)
        header = answer[at:end].split()
        if len(header) != 3:
            raise SourceError(f"{path}: git lacks the object {digest}")
        size = int(header[2])
        contents[path] = answer[end + 1 : end + 1 + size]
        at = end + size + 2
    return contents
