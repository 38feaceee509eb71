"""What a user has edited in an own folder since its commit: listed, never judged.

This asks git about the folder, on this host. That is for folders of whoever runs the harness;
a work tree that an agent left is never asked about by git (`worktree`).
"""

from __future__ import annotations

import hashlib
import os
import stat
from concurrent.futures import ThreadPoolExecutor
from pathlib import PurePosixPath
from typing import TYPE_CHECKING

from ...attempt import Finding
from ...errors import SourceError
from ...gitcommand import git

if TYPE_CHECKING:
    from pathlib import Path


def edits(repo: Path, commit: str, below: str = "") -> list[Finding]:
    """Tracked files that differ from the commit; `below` is where a submodule lies.

    git would pass the files through the filters that the repository names, which are
    programs; so it is asked only what it has stored, and the files are hashed here.
    """
    try:
        tree = _tree_of(repo, commit)
        index = _index_of(repo)
        modes = git("config", "--bool", "--default", "true", "core.fileMode", folder=repo)
        found, inner = _edits_of_files(repo, tree, index, modes=modes.strip() == b"true")
        rendered = _rendered(repo, [path for path, what in found.items() if what == "edited"])
    except SourceError as error:
        what = f"git cannot say what commit {commit} holds: {error}"
        return [Finding(kind="edits-unknown", what=what, where=below or ".")]
    unsure = "differs from HEAD, or is rendered by a filter or with other line ends"
    findings = [
        Finding(
            kind="edited-file", what=unsure if path in rendered else what, where=f"{below}{path}"
        )
        for path, what in sorted(found.items())
    ]
    for path in inner:
        findings += edits(repo / path, tree[path][1], f"{below}{path}/")
    return findings


def _edits_of_files(
    repo: Path, tree: dict[str, tuple[str, str]], index: dict[str, str], *, modes: bool
) -> tuple[dict[str, str], list[str]]:
    """What was done to which path, and the submodules that must be looked into."""
    top = repo.resolve()
    parents = {str(PurePosixPath(path).parent) for path in tree}
    real = {parent for parent in parents if (repo / parent).resolve() == top / parent}
    inner = []

    def differs(path: str) -> str | None:
        mode, blob = tree[path]
        if str(PurePosixPath(path).parent) not in real:
            return "a folder above it is a link to elsewhere"
        try:
            found, content = _blob_of(repo / path, len(blob))
        except OSError:
            return None if index.get(path) == "S" else "deleted"  # S: left out by the checkout
        if path not in index:
            return "no longer tracked"
        if found[:3] != mode[:3]:
            return "of another kind"
        if mode != "160000" and content != blob:
            return "edited"
        if modes and mode[:3] == "100" and (int(found, 8) ^ int(mode, 8)) & 0o100:
            return "its executable bit was changed"
        return None

    with ThreadPoolExecutor() as pool:
        differences = zip(tree, pool.map(differs, tree), strict=True)
        edits = {path: what for path, what in differences if what}
    for path, (mode, _) in tree.items():
        if mode == "160000" and path not in edits and (repo / path / ".git").exists():
            inner.append(path)
    for path in index:
        if path not in tree and os.path.lexists(repo / path):
            edits[path] = "added since the commit"
    return edits, inner


def _tree_of(repo: Path, commit: str) -> dict[str, tuple[str, str]]:
    """Mode and object of each path that the commit holds."""
    tree = {}
    for line in git("ls-tree", "-r", "-z", commit, folder=repo).split(b"\0"):
        facts, _, path = line.partition(b"\t")
        if path:
            mode, _, name = facts.decode().split()
            tree[os.fsdecode(path)] = (mode, name)
    return tree


def _index_of(repo: Path) -> dict[str, str]:
    """git's tag (git-ls-files(1), `-t`) of each path that it tracks."""
    listed = os.fsdecode(git("ls-files", "-t", "-z", folder=repo)).split("\0")
    return {line[2:]: line[0] for line in listed if line}


def _blob_of(path: Path, digits: int) -> tuple[str, str]:
    """The mode that git would store for what is at `path`, and its name as an object.

    Raises:
        OSError: nothing that git could store is there.
    """
    # The name's length tells the object format (gitformat-pack(5)): SHA-1 or SHA-256.
    algorithm = "sha1" if digits == 40 else "sha256"
    digest = hashlib.new(algorithm, usedforsecurity=False)
    status = path.lstat()
    if stat.S_ISDIR(status.st_mode):
        return "160000", ""
    if stat.S_ISLNK(status.st_mode):
        target = os.fsencode(os.readlink(path))  # noqa: PTH115  # bytes must survive
        digest.update(b"blob %d\0" % len(target) + target)
        return "120000", digest.hexdigest()
    if not stat.S_ISREG(status.st_mode):
        raise OSError(0, "neither a regular file nor a link", str(path))
    with path.open("rb") as stream:
        digest.update(b"blob %d\0" % status.st_size)
        while piece := stream.read(1 << 20):
            digest.update(piece)
    return "100755" if status.st_mode & 0o100 else "100644", digest.hexdigest()


def _rendered(repo: Path, paths: list[str]) -> set[str]:
    """Those of the paths whose content git stores in another form than it checks out."""
    names = ["filter", "text", "eol", "ident", "working-tree-encoding", "crlf"]
    asked = b"".join(os.fsencode(path) + b"\0" for path in paths)
    said = git("check-attr", "--cached", "--stdin", "-z", *names, folder=repo, stdin=asked)
    parts = os.fsdecode(said).split("\0")
    triples = zip(parts[::3], parts[1::3], parts[2::3], strict=False)
    return {path for path, _, value in triples if value not in ("unspecified", "unset")}
