"""Is the work tree still the commit? Tracked files, the commit itself, and what was added.

Every tracked file is compared with the pristine source by content, kind and executable
bit. Files that the repository's own installer rewrites (the task's `generated`) are listed
and restored before stages. Untracked files are allowed; they become findings only where
they shadow something that the code imports.
"""

from __future__ import annotations

import fnmatch
import hashlib
import os
import re
import stat
from concurrent.futures import ThreadPoolExecutor
from pathlib import PurePosixPath
from typing import TYPE_CHECKING

from ..attempt import Finding
from ..errors import SourceError
from ..source import files_of, git, tracked_file

if TYPE_CHECKING:
    from pathlib import Path

    from ..attempt import Report
    from ..source import Snapshot

_SHOWN = 50  #: findings of one kind; the rest are counted


def compare(
    snapshot: Snapshot, repo: Path, generated: tuple[str, ...], *, judge: bool
) -> tuple[Finding, ...]:
    """What differs between the pristine source and the work tree `repo`.

    With `judge`, a change to a tracked file disqualifies the attempt. Without, the tree as
    found is the snapshot, as for a user's own folder, and edits against HEAD are listed.
    """

    top = repo.resolve()
    real = {parent: (repo / parent).resolve() == top / parent for parent in _parents(snapshot)}

    def differs(path: str) -> str | None:
        if not real[str(PurePosixPath(path).parent)]:
            return "a folder above it is a link to elsewhere"
        try:
            found = tracked_file(repo / path)
        except OSError:
            return "removed, or replaced by something that is no file"
        expected = snapshot.tracked[path]
        if found.sha256 != expected.sha256:
            return "changed"
        if found.kind != expected.kind:
            return f"was {expected.kind}, is {found.kind}"
        return None

    with ThreadPoolExecutor() as pool:
        differences = zip(snapshot.tracked, pool.map(differs, snapshot.tracked), strict=True)
        changed = [(path, what) for path, what in differences if what]
    findings = []
    for path, what in changed:
        if is_generated(path, generated):
            findings.append(
                Finding(
                    kind="generated-file-changed",
                    what=f"{what}, as the task says that the installer may; restored for stages",
                    where=path,
                )
            )
        else:
            findings.append(
                Finding(
                    kind="tracked-file-changed",
                    what=what,
                    where=path,
                    why="the repository must run as its commit has it",
                    disqualifies=judge,
                )
            )
    if not judge and snapshot.commit:
        findings += _edits(repo, snapshot.commit)
    if judge and snapshot.commit:
        findings += _moved_commit(repo, snapshot.commit)
    if judge:
        findings += _shadows(snapshot, repo)
    return _limited(findings)


def is_generated(path: str, generated: tuple[str, ...]) -> bool:
    """Whether the task names `path` as one that the repository's installer rewrites."""
    return any(fnmatch.fnmatch(path, pattern) for pattern in generated)


def _edits(repo: Path, commit: str, below: str = "") -> list[Finding]:
    """Tracked files that differ from the commit; `below` is where a submodule lies.

    git would pass the files through the filters that the repository names, which are
    programs; so it is asked only what it has stored, and the files are hashed here.
    """
    try:
        tree = _tree_of(repo, commit)
        index = _index_of(repo)
        modes = git("config", "--bool", "--default", "true", "core.fileMode", folder=repo)
        edits, inner = _edits_of_files(repo, tree, index, modes=modes.strip() == b"true")
        rendered = _rendered(repo, [path for path, what in edits.items() if what == "edited"])
    except SourceError as error:
        what = f"git cannot say what commit {commit} holds: {error}"
        return [Finding(kind="edits-unknown", what=what, where=below or ".")]
    unsure = "differs from HEAD, or is rendered by a filter or with other line ends"
    findings = [
        Finding(
            kind="edited-file", what=unsure if path in rendered else what, where=f"{below}{path}"
        )
        for path, what in sorted(edits.items())
    ]
    for path in inner:
        findings += _edits(repo / path, tree[path][1], f"{below}{path}/")
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


def _parents(snapshot: Snapshot) -> set[str]:
    """Folders, relative to the tree, that hold tracked files directly."""
    return {str(PurePosixPath(path).parent) for path in snapshot.tracked}


def _moved_commit(repo: Path, commit: str) -> list[Finding]:
    if not (repo / ".git").exists():
        return [
            Finding(
                kind="history-removed",
                what="the repository's .git is gone",
                where=".git",
                why="what asks git for a version fails; tracked files were compared by content",
            )
        ]
    try:
        head = git("rev-parse", "HEAD", folder=repo).decode().strip()
    except SourceError as error:
        head = f"unreadable ({error})"
    if head == commit:
        return []
    return [
        Finding(
            kind="commit-moved",
            what=f"HEAD is {head}, not {commit}",
            where=".git",
            why="the repository must run as its commit has it",
            disqualifies=True,
        )
    ]


def _shadows(snapshot: Snapshot, repo: Path) -> list[Finding]:
    """Untracked modules at an import root that carry the name of something imported."""
    from .imports import collect, read_folder

    imported = collect(read_folder(snapshot.tree, snapshot.tracked)).modules
    tracked = set(snapshot.tracked) | {
        str(parent) for path in snapshot.tracked for parent in PurePosixPath(path).parents
    }
    findings = []
    for root in sorted(_import_roots(snapshot)):
        folder = repo / root
        for path in sorted(folder.iterdir()) if folder.is_dir() else []:
            relative = str(path.relative_to(repo))
            name = _module_name(path)
            if name is None or relative in tracked:
                continue
            if name in imported:
                findings.append(
                    Finding(
                        kind="shadowing-module",
                        what=f"an untracked module named {name}, which the code imports",
                        where=relative,
                        why="it is imported in place of the installed distribution",
                    )
                )
            if name in ("sitecustomize", "usercustomize"):
                findings.append(
                    Finding(
                        kind="start-up-hook",
                        what="a module that every start of the interpreter executes",
                        where=relative,
                        why="it can change what any probe sees",
                    )
                )
    return findings


def _import_roots(snapshot: Snapshot) -> set[str]:
    """Folders that stand first on the import path when a script of theirs is run."""
    python = {str(PurePosixPath(path).parent) for path in snapshot.tracked if path.endswith(".py")}
    packages = {
        str(PurePosixPath(path).parent)
        for path in snapshot.tracked
        if PurePosixPath(path).name == "__init__.py"
    }
    return {".", "src"} | (python - packages)


def _module_name(path: Path) -> str | None:
    """The name by which `path` can be imported, where it is a module or a package."""
    if path.suffix in (".py", ".pyc", ".so"):
        return path.name.partition(".")[0]
    return path.name if (path / "__init__.py").is_file() else None


#: Variables by which a process loads or starts other code than it would by itself: ld.so(8),
#: the interpreter's own (`python --help-env`), and what shells read as they start.
_START_VARIABLES = re.compile(
    r"LD_\w+|PYTHON(PATH|HOME|STARTUP|INSPECT|USERBASE|BREAKPOINT|PLATLIBDIR|WARNINGS)"
    r"|BASH_ENV|ENV|PROMPT_COMMAND"
)


def start_variables(report: Report | None) -> tuple[Finding, ...]:
    """Variables of the report's `env` table that change what is loaded or started."""
    if report is None:
        return ()
    return tuple(
        Finding(
            kind="loader-variable",
            what=f"the report sets {name}={value[:200]}",
            where="report.json: env",
            why="it changes which code the stage's processes load",
        )
        for name, value in sorted(report.env.items())
        if _START_VARIABLES.fullmatch(name)
    )


def untracked(snapshot: Snapshot, repo: Path) -> tuple[str, ...]:
    """Paths below `repo` that the source does not have, environments and caches left out."""
    return tuple(path for path in files_of(repo) if path not in snapshot.tracked)


def _limited(findings: list[Finding]) -> tuple[Finding, ...]:
    kept: list[Finding] = []
    counts: dict[str, int] = {}
    for finding in findings:
        counts[finding.kind] = counts.get(finding.kind, 0) + 1
        if counts[finding.kind] <= _SHOWN:
            kept.append(finding)
    kept += [
        Finding(kind=kind, what=f"and {count - _SHOWN} more of this kind")
        for kind, count in counts.items()
        if count > _SHOWN
    ]
    return tuple(kept)
