"""Is the work tree still the commit? Tracked files, the commit itself, and what was added.

Every tracked file is compared with the pristine source by content, kind and executable bit.
The tree is looked at from within a stage's box by the harness's own Python, which states
facts (`standalone.look.worktree`); here they are judged. git is never run on it, and nothing that
it says of itself is believed: not its index, its objects or its configuration. Files that the
repository's own installer rewrites (the task's `generated`) are listed and restored before
stages. What modules were added is `shadows`' subject.
"""

from __future__ import annotations

import fnmatch
import os
import re
from dataclasses import dataclass
from pathlib import PurePosixPath
from typing import TYPE_CHECKING, Any

from ...attempt import Finding
from ...errors import SourceError
from ...source import NOT_SOURCE, tracked_file
from .edits import edits
from .shadows import NAMES, import_roots, shadows, uncounted

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Mapping
    from pathlib import Path

    from ...sandbox import StageBox
    from ...source import Snapshot

_SHOWN = 50  #: findings of one kind; the rest are counted
_UNTRACKED_LISTED = 200
#: The text that git-lfs keeps in place of a large file, which says what that file is:
#: https://github.com/git-lfs/git-lfs/blob/main/docs/spec.md
_POINTER = re.compile(
    rb"version https://git-lfs\.github\.com/spec/v1\n(?:.*\n)*?"
    rb"oid sha256:(?P<oid>[0-9a-f]{64})\nsize (?P<size>\d+)\n"
)
_POINTER_LIMIT_BYTES = 1024


@dataclass(frozen=True)
class Compared:
    """What became of a work tree."""

    findings: tuple[Finding, ...]
    #: Paths that the source does not have, environments and caches left out; the first ones.
    untracked: tuple[str, ...]
    untracked_count: int


def compare(
    snapshot: Snapshot,
    box: StageBox,
    generated: tuple[str, ...],
    *,
    judge: bool,
    starts: Collection[str] = (),
    python: str | None = None,
) -> Compared:
    """What differs between the pristine source and the work tree of `box`.

    With `judge`, a change to a tracked file disqualifies the attempt. Without, the tree as
    found is the snapshot, as for a user's own folder on this host, and edits against HEAD are
    listed. `starts` are folders of the tree that stages put on the import path, relative to it;
    `python` is the interpreter of the judged environment.

    Raises:
        SandboxError: the box cannot be looked at.
        SourceError: the pristine source is damaged.
    """
    pointers = _pointers(snapshot) if judge else {}
    roots = import_roots(snapshot, starts) if judge else frozenset()
    facts = box.examine(
        "worktree",
        {
            "repo": str(box.layout.repo),
            "root": str(box.layout.root if judge else box.layout.repo),
            "sizes": _sizes(snapshot, pointers) if judge else {p: [] for p in snapshot.tracked},
            "skipped": sorted(NOT_SOURCE),
            "listed": _UNTRACKED_LISTED,
            "roots": sorted(roots),
            "names": sorted(NAMES),
            "prefix": str(PurePosixPath(python).parent.parent) if python else "",
            "commit": snapshot.commit if judge and snapshot.commit else "",
        },
    )
    if facts["trouble"]:
        return Compared((_replaced(facts["trouble"], judge),), (), 0)
    if judge:
        findings = _changes(snapshot, facts["tracked"], pointers, generated)
        if snapshot.commit:
            findings += _history(facts["git"], snapshot.commit)
        findings += shadows(snapshot, facts["modules"], roots, frozenset(facts["installed"]))
        if not facts["all_modules"]:
            findings.append(uncounted())
        findings += _checker_configuration(facts["checker"])
    else:
        findings = edits(box.layout.repo, snapshot.commit) if snapshot.commit else []
    return Compared(_limited(findings), tuple(facts["untracked"]), facts["count"])


def is_generated(path: str, generated: tuple[str, ...]) -> bool:
    """Whether the task names `path` as one that the repository's installer rewrites."""
    return any(fnmatch.fnmatch(path, pattern) for pattern in generated)


# --- tracked files -----------------------------------------------------------------------


def _sizes(snapshot: Snapshot, pointers: Mapping[str, tuple[str, int]]) -> dict[str, list[int]]:
    """The sizes in bytes that the content of each tracked file may have."""
    sizes = {}
    for path in snapshot.tracked:
        sizes[path] = [_pristine(snapshot, path).lstat().st_size]
        if path in pointers:
            sizes[path].append(pointers[path][1])
    return sizes


def _pointers(snapshot: Snapshot) -> dict[str, tuple[str, int]]:
    """SHA-256 and size in bytes of each file that git-lfs would put in place of its pointer."""
    attributes = [path for path in snapshot.tracked if path.rpartition("/")[2] == ".gitattributes"]
    if not any(b"filter=lfs" in _content(snapshot, path) for path in attributes):
        return {}
    found = {}
    for path in snapshot.tracked:
        if _pristine(snapshot, path).lstat().st_size > _POINTER_LIMIT_BYTES:
            continue
        if match := _POINTER.match(_content(snapshot, path)):
            found[path] = (match["oid"].decode(), int(match["size"]))
    return found


def _content(snapshot: Snapshot, path: str) -> bytes:
    return b"" if snapshot.tracked[path].kind == "link" else _pristine(snapshot, path).read_bytes()


def _pristine(snapshot: Snapshot, path: str) -> Path:
    """A file of the pristine source, which must be there.

    Raises:
        SourceError: it is not.
    """
    full = snapshot.tree / path
    if not os.path.lexists(full):
        raise SourceError(
            f"{full}: the file has vanished from the pristine source",
            advice=f"remove {snapshot.tree.parent}, so that the source is fetched again",
        )
    return full


def _check_pristine(snapshot: Snapshot, path: str) -> None:
    """Nobody is blamed for what happened to our own copy."""
    if tracked_file(_pristine(snapshot, path)) != snapshot.tracked[path]:
        raise SourceError(
            f"{snapshot.tree / path}: the pristine source has been changed",
            advice=f"remove {snapshot.tree.parent}, so that the source is fetched again",
        )


def _changes(
    snapshot: Snapshot,
    facts: Mapping[str, Any],
    pointers: Mapping[str, tuple[str, int]],
    generated: tuple[str, ...],
) -> list[Finding]:
    findings = []
    for path, expected in snapshot.tracked.items():
        kind, _, sha256, trouble = facts[path]
        same = sha256 == expected.sha256 or (path in pointers and sha256 == pointers[path][0])
        what = _difference(expected.kind, kind, trouble, changed=not same)
        if not what:
            continue
        _check_pristine(snapshot, path)
        # An installer writes data; it puts no link or folder in a file's place.
        if is_generated(path, generated) and {kind, expected.kind} <= {"file", "executable"}:
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
                    disqualifies=True,
                )
            )
    return findings


def _difference(expected: str, kind: str, trouble: str, *, changed: bool) -> str:
    """In words, or nothing."""
    if trouble:
        return f"cannot be read: {trouble}"
    if kind == "absent":
        return "removed"
    if kind == "behind a link":
        return "a folder above it is a link to elsewhere"
    if kind != expected and not {kind, expected} <= {"file", "executable"}:
        return f"was {expected}, is {kind}"
    if changed:
        return "changed"
    return f"was {expected}, is {kind}" if kind != expected else ""


def _replaced(trouble: str, judge: bool) -> Finding:
    return Finding(
        kind="work-tree-replaced",
        what=trouble,
        where=".",
        why="the repository is no longer where the task has it",
        disqualifies=judge,
    )


# --- history -----------------------------------------------------------------------------


def _history(found: Mapping[str, Any], commit: str) -> list[Finding]:
    """What `.git` says, which no judgement of content depends on."""
    if not found["there"]:
        return [
            Finding(
                kind="history-removed",
                what=f"the repository's .git is none: {found['why']}",
                where=".git",
                why="what asks git for a version fails; tracked files were compared by content",
            )
        ]
    findings = [
        Finding(
            kind="git-configuration",
            what=what,
            where=where,
            why="it would matter if git were executed here, which the judge never does",
        )
        for where, what in found["planted"]
    ]
    if not found["known"]:
        findings.append(
            Finding(
                kind="commit-unknown",
                what=f"HEAD is kept in a form that is not read: {found['why']}",
                where=".git",
                why="tracked files were compared by content",
            )
        )
    elif found["head"] != commit:
        head = found["head"] or f"unreadable ({found['why']})"
        findings.append(
            Finding(
                kind="commit-moved",
                what=f"HEAD is {head}, not {commit}",
                where=".git",
                why="the repository must run as its commit has it",
                disqualifies=True,
            )
        )
    return findings


# --- what was added ----------------------------------------------------------------------


def _checker_configuration(places: Iterable[str]) -> list[Finding]:
    return [
        Finding(
            kind="checker-configuration",
            what="configuration or stubs of a type checker",
            where=place,
            why="C0 checks a clean copy with its own configuration, so it has no effect",
        )
        for place in places
    ]


def _limited(findings: list[Finding]) -> tuple[Finding, ...]:
    """The first of each kind, those that disqualify before others; the rest are counted."""
    kept: list[Finding] = []
    counts: dict[str, int] = {}
    for finding in sorted(findings, key=lambda finding: not finding.disqualifies):
        counts[finding.kind] = counts.get(finding.kind, 0) + 1
        if counts[finding.kind] <= _SHOWN:
            kept.append(finding)
    kept += [
        Finding(kind=kind, what=f"and {count - _SHOWN} more of this kind")
        for kind, count in counts.items()
        if count > _SHOWN
    ]
    return tuple(kept)
