"""What a `.git` says, read as data: git itself would obey it.

The formats are those of gitrepository-layout(5), git-config(1) and gitformat-index(5). What
would only matter if git were executed there is listed as `planted`: where it is, and what.
"""

# pathlib would double the start-up time.

from __future__ import annotations

import os
import re
import stat
from contextlib import suppress

from .. import files

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import Any

_SMALL_BYTES = 1 << 16
_LARGE_BYTES = 1 << 26
_DEEPEST_REFERENCE = 5
_MOST_PLANTED = 100
_SHOWN = 120

#: Keys whose value git executes, or reads more configuration or files from.
_PROGRAM = re.compile(
    r"core\.(fsmonitor|hookspath|pager|sshcommand|editor|askpass|gitproxy|attributesfile|worktree"
    r"|alternaterefscommand)|filter\..*\.(clean|smudge|process)|diff\.external"
    r"|diff\..*\.(command|textconv)|merge\..*\.driver|include\.path|includeif\..*\.path"
    r"|credential\.(.*\.)?helper|alias\..*|pager\..*|sequence\.editor|gpg\.(.*\.)?program"
    r"|interactive\.difffilter|uploadpack\.packobjectshook"
    r"|remote\..*\.(uploadpack|receivepack|vcs)|trailer\..*\.(command|cmd)",
    re.DOTALL,
)
_SECTION = re.compile(r'\s*\[\s*([\w.-]+)(?:\s+"((?:[^"\\]|\\.)*)")?\s*\]')
_KEY = re.compile(r"\s*([A-Za-z][\w-]*)\s*(?:=\s*(.*))?$")
#: What `git lfs install` leaves is what a repository with large files asks for.
_LFS = re.compile(rb"git[ -]lfs\b")


def look(top: str, commit: str) -> dict[str, Any]:
    """What the `.git` of the tree at `top` says, where `commit` is expected.

    Returns:
        `there`, whether it can be a repository at all; `head`, the commit that HEAD names, or
        "" with the reason in `why`; `known`, false where HEAD is kept in a form that is not
        read here; `planted`, pairs of a place and what is there.
    """
    found: dict[str, Any] = {"there": True, "head": "", "why": "", "known": True, "planted": []}
    try:
        folder = _folder(top, found)
    except files.Refused as refusal:
        return {**found, "there": False, "why": str(refusal)}
    if not os.path.lexists(f"{folder}/HEAD"):
        return {**found, "there": False, "why": "it has no HEAD"}
    common = folder
    with suppress(files.Refused):
        said = _text(f"{folder}/commondir").strip()
        if "\0" not in said:
            common = os.path.realpath(os.path.join(folder, said))
    try:
        found["head"] = _head(folder, common)
    except files.Refused as refusal:
        found["why"] = str(refusal)
        found["known"] = not os.path.isdir(f"{common}/reftable")
    planted = [*_files(common), *_configuration(common), *_index(folder, len(commit) // 2)]
    found["planted"] += planted[:_MOST_PLANTED]
    return found


def _folder(top: str, found: dict[str, Any]) -> str:
    """The repository's own folder, which `.git` is, names, or is a link to."""
    path = f"{top}/.git"
    try:
        mode = os.lstat(path).st_mode
    except OSError as error:
        raise files.Refused("it is gone") from error
    if stat.S_ISLNK(mode):
        found["planted"].append([".git", f"is a link to {os.readlink(path)[:_SHOWN]}"])
    elif stat.S_ISREG(mode):
        said = _text(path)
        if not said.startswith("gitdir: "):
            raise files.Refused("it is a file that names no folder")
        if "\0" in said:
            raise files.Refused("it is a file that names what no folder can be called")
        path = os.path.join(top, said.removeprefix("gitdir: ").rstrip("\n"))
        found["planted"].append([".git", f"is a file that names {path[:_SHOWN]}"])
    elif not stat.S_ISDIR(mode):
        raise files.Refused(f"it is a {files.kind_of(mode)}")
    return os.path.realpath(path)


def _head(folder: str, common: str) -> str:
    """The commit that HEAD names."""
    path = f"{folder}/HEAD"
    linked = os.path.islink(path)  # how git once wrote it
    said = f"ref: {os.readlink(path)}" if linked else _text(path).strip()
    for _ in range(_DEEPEST_REFERENCE):
        if _is_name(said):
            return said
        name = said.removeprefix("ref:").strip()
        if name == said or not name.startswith("refs/") or ".." in name or "\0" in name:
            raise files.Refused("HEAD names neither a commit nor a branch")
        said = _reference(common, name)
    raise files.Refused("HEAD names a branch that names another, and so on")


def _reference(common: str, name: str) -> str:
    with suppress(files.Refused):
        return _text(f"{common}/{name}").strip()
    for line in _text(f"{common}/packed-refs", _LARGE_BYTES).splitlines():
        commit, _, packed = line.partition(" ")
        if packed == name:
            return commit
    raise files.Refused(f"HEAD names {name[:_SHOWN]}, which has no commit")


def _is_name(text: str) -> bool:
    return re.fullmatch(r"[0-9a-f]{40}|[0-9a-f]{64}", text) is not None


def _files(common: str) -> Iterator[list[str]]:
    """What makes git see other objects, other content or other files than there are."""
    for place, what in (
        ("objects/info/alternates", "other folders from which objects are taken"),
        ("objects/info/http-alternates", "other places from which objects are taken"),
        ("info/grafts", "commits that are given other parents"),
        ("info/attributes", "attributes, by which files are passed through filters"),
        ("info/sparse-checkout", "paths that a checkout leaves out"),
    ):
        try:
            content = files.read("/", f"{common}/{place}", _LARGE_BYTES)
        except files.Refused:
            if os.path.lexists(f"{common}/{place}"):
                yield [f".git/{place}", "it cannot be read"]
            continue
        if _does_something(content):
            yield [f".git/{place}", what]
    packed = ""
    with suppress(files.Refused):
        packed = _text(f"{common}/packed-refs", _LARGE_BYTES)
    if " refs/replace/" in packed or _names(f"{common}/refs/replace"):
        yield [".git/refs/replace", "objects that git takes in place of others"]
    for name in _names(f"{common}/hooks"):
        if name.endswith(".sample"):
            continue
        with suppress(files.Refused):
            text = files.read("/", f"{common}/hooks/{name}", _SMALL_BYTES)
            if _LFS.search(text) or not _does_something(text):
                continue
        yield [f".git/hooks/{name}", "a program that git would execute"]


def _does_something(text: bytes) -> bool:
    """Whether there is more in it than comments."""
    return any(line.strip() and not line.startswith(b"#") for line in text.splitlines())


def _configuration(common: str) -> Iterator[list[str]]:
    for file in ("config", "config.worktree"):
        if not os.path.lexists(f"{common}/{file}"):
            continue
        try:
            text = _text(f"{common}/{file}", 1 << 20)
        except files.Refused:
            yield [f".git/{file}", "it cannot be read"]
            continue
        for key, value in _pairs(text):
            harmless = value.lower() in ("false", "no", "off", "0", "")
            if _PROGRAM.fullmatch(key) and not harmless and not _is_lfs(key, value):
                yield [f".git/{file}", f"{key} = {value}"[:_SHOWN]]


def _is_lfs(key: str, value: str) -> bool:
    return key.startswith("filter.lfs.") and value.startswith("git-lfs ")


def _pairs(text: str) -> Iterator[tuple[str, str]]:
    """The keys of a configuration with their sections, in lower case but for subsections."""
    section = ""
    for line in text.splitlines():
        rest = line
        if match := _SECTION.match(line):
            section = match[1].lower() + (f".{match[2]}" if match[2] is not None else "")
            rest = line[match.end() :]
        if match := _KEY.match(rest):
            value = match[2]
            yield f"{section}.{match[1].lower()}", "true" if value is None else value.strip(' "')


def _index(folder: str, name_bytes: int) -> Iterator[list[str]]:
    """Whether the index tells git not to look at files."""
    path = f"{folder}/index"
    if not os.path.lexists(path):
        return
    try:
        content = files.read("/", path, _LARGE_BYTES)
        assumed, skipped = _flags(content, name_bytes)
    except (files.Refused, IndexError, ValueError):
        yield [".git/index", "it cannot be read"]
        return
    if assumed:
        yield [".git/index", f"{assumed} files that git is told to assume unchanged"]
    if skipped:
        yield [".git/index", f"{skipped} files that git is told to leave out (skip-worktree)"]


def _flags(content: bytes, name_bytes: int) -> tuple[int, int]:
    """How many entries of an index, version 2 to 4, have each of the two flags.

    Raises:
        ValueError, IndexError: it is no index.
    """
    version = int.from_bytes(content[4:8], "big")
    if content[:4] != b"DIRC" or version not in (2, 3, 4):
        raise ValueError("no index of a version that is known")
    assumed = skipped = 0
    at = 12
    for _ in range(int.from_bytes(content[8:12], "big")):
        start, at = at, at + 40 + name_bytes
        flags = content[at]  # the higher byte of two
        at += 2
        assumed += bool(flags & 0x80)
        if flags & 0x40:
            skipped += bool(content[at] & 0x40)
            at += 2
        if version == 4:  # names are told by how they differ from the one before
            while content[at] & 0x80:
                at += 1
            at = content.index(0, at + 1) + 1
        else:
            end = content.index(0, at)
            at = start + (end - start + 8) // 8 * 8
    return assumed, skipped


def _names(folder: str) -> list[str]:
    try:
        return sorted(os.listdir(folder))[:_MOST_PLANTED]
    except OSError:
        return []


def _text(path: str, limit_bytes: int = _SMALL_BYTES) -> str:
    return os.fsdecode(files.read("/", path, limit_bytes))
