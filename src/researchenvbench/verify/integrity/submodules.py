"""Untracked modules within the repository's own packages, which its code imports from there.

A build in place makes extensions there, and files with names of their own (`GENERATED`): these
are no findings. A module of Python under another name is listed: a README may say that it be
copied there. Under the name of one that the repository's build makes as an extension it stands
for compiled code and is none, so it disqualifies.
"""

from __future__ import annotations

import fnmatch
import re
from typing import TYPE_CHECKING

from ...attempt import Finding
from ..imports import is_python, read_folder
from ..statements import parse

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    from ...source import Snapshot

#: Names of modules, without their ends, that builds and generators of code write.
GENERATED = (
    "version", "_version", "__version__", "*_version", "git_version*",  # setuptools-scm and kin
    "__config__", "_build_info", "build_info",  # numpy's kind of build, meson
    "*_pb2", "*_pb2_grpc", "*_generated",  # protobuf, gRPC, flatbuffers
    "parsetab", "lextab", "yacctab", "*Lexer", "*Parser", "*Listener", "*Visitor",  # ply, ANTLR
    "*_rc", "ui_*",  # Qt
)  # fmt: skip
BUILD_FILES = frozenset(
    {"setup.py", "setup.cfg", "pyproject.toml", "meson.build", "CMakeLists.txt", "build.py"}
    | {"noxfile.py"}
)
_NATIVE = (".c", ".cc", ".cpp", ".cxx", ".cu", ".rs")
#: Sources of a whole extension module that is named as they are.
_WHOLE = (".pyx", ".pyx.in")
#: How a build names a module that it compiles; %s are the names.
_IN_BUILD = rb"""(?x)
    Extension \s* \( [^)]{0,300}? ["'] (?:[\w./{}]*[./])? (?P<setup>%s) ["']
  | (?:add_module|add_library|extension_module) \s* \( \s* ["']? (?P<cmake>%s) \b
  | (?:module-name|ext-modules) \s* = [^\n]* ["'] (?:[\w.]*\.)? (?P<toml>%s) ["']
  | \[\[tool\.setuptools\.ext-modules\]\] \s* name \s* = \s* ["'] (?:[\w.]*\.)? (?P<table>%s) ["']
"""
_IN_NATIVE = rb"""(?x)
    \b PyInit_ (?P<python>%s) \b
  | (?:PYBIND11_MODULE|NB_MODULE|BOOST_PYTHON_MODULE) \s* \( \s* (?P<macro>%s) \b
  | \#\[pymodule\] (?:\s*\#\[[^\]]*\])* \s* (?:pub\s+)? (?:fn|mod) \s+ (?P<rust>%s) \b
"""
_WORD = re.compile(rb"[A-Za-z_\x80-\xff][\w\x80-\xff]*")
_BY_CALL = re.compile(
    rb"""(?:import_module|__import__)\s*\(\s*(?:name\s*=\s*)?["'](\.*)([\w.]+)["']"""
)


def submodules(
    snapshot: Snapshot,
    modules: Iterable[tuple[str, str, str, str, list[str]]],
    roots: Iterable[str],
) -> list[Finding]:
    """Those of the untracked modules that the tracked code imports from its own folders.

    Each has its path, its kind, its folder ("" for the tree's), its name there, and for a folder
    without `__init__` the modules in it. `roots` are folders that absolute imports begin at.
    """
    candidates = [
        module
        for module in modules
        if module[1] in ("module", "package", "namespace")
        and not _is_tracked(_join(module[2], module[3]), snapshot)
    ]
    if not candidates:
        return []
    imported = _imported(snapshot, {stem for _, _, _, stem, _ in candidates}, roots)
    taken: list[tuple[str, str, set[str]]] = []
    for path, kind, folder, stem, inside in candidates:
        names = imported.get(_join(folder, stem))
        if names is None or (kind == "namespace" and not names & set(inside)):
            continue
        taken.append((path, folder, names & set(inside) if kind == "namespace" else {stem}))
    built = extensions(snapshot, {name for _, _, names in taken for name in names})
    findings = []
    for path, folder, names in taken:
        guilty = any(
            name in built
            or any(f"{_join(folder, name)}{end}" in snapshot.tracked for end in _WHOLE)
            for name in names
        )
        if guilty or not all(is_generated_name(name) for name in names):
            findings.append(_finding(path, ", ".join(sorted(names)), guilty=guilty))
    return findings


def is_generated_name(stem: str) -> bool:
    """Whether builds and generators of code write modules of that name."""
    return any(fnmatch.fnmatchcase(stem, pattern) for pattern in GENERATED)


def build_files(snapshot: Snapshot) -> Iterator[bytes]:
    """The contents of what says how the repository is built."""
    for path, entry in snapshot.tracked.items():
        if entry.kind != "link" and path.rpartition("/")[2] in BUILD_FILES:
            yield (snapshot.tree / path).read_bytes()


def extensions(snapshot: Snapshot, names: set[str]) -> set[str]:
    """Those of `names` that the repository's build or its native sources call an extension."""
    if not names:
        return set()
    either = b"(?:" + b"|".join(re.escape(name.encode()) for name in sorted(names)) + b")"
    in_build, in_native = (
        re.compile(text.replace(b"%s", either)) for text in (_IN_BUILD, _IN_NATIVE)
    )
    found = {name for content in build_files(snapshot) for name in _named(in_build, content)}
    for path, entry in snapshot.tracked.items():
        if entry.kind != "link" and path.endswith(_NATIVE):
            found |= set(_named(in_native, (snapshot.tree / path).read_bytes()))
    return found


def words(content: bytes) -> set[str]:
    """All that could be a name in a file."""
    return {word.decode(errors="replace") for word in _WORD.findall(content)}


def _named(pattern: re.Pattern[bytes], content: bytes) -> Iterator[str]:
    for match in pattern.finditer(content):
        yield from (name.decode() for name in match.groups() if name)


def _join(folder: str, name: str) -> str:
    return f"{folder}/{name}" if folder else name


def _is_tracked(place: str, snapshot: Snapshot) -> bool:
    return f"{place}.py" in snapshot.tracked or f"{place}/__init__.py" in snapshot.tracked


def _imported(snapshot: Snapshot, stems: set[str], roots: Iterable[str]) -> Mapping[str, set[str]]:
    """Where in the tree the tracked code imports modules of these names from, and what of each.

    Not those at the top of an import path, of which others may be installed.
    """
    tops = ["" if root == "." else root for root in sorted(roots)]
    found: dict[str, set[str]] = {}
    python = [path for path in snapshot.tracked if is_python(path)]
    for path, content in read_folder(snapshot.tree, python):
        if not words(content) & stems:
            continue
        for level, parts, names in _statements(content):
            if not stems.intersection(parts) and not stems.intersection(names):
                continue
            if level:
                way = path.split("/")
                bases = ["/".join(way[:-level])] if len(way) >= level else []
            else:
                bases = tops
            steps = [(parts[:end], set(parts[end : end + 1])) for end in range(1, len(parts))]
            steps += [(parts, set(names)), *(([*parts, name], set[str]()) for name in names)]
            for place, taken in steps:
                if place and place[-1] in stems and (level or len(place) > 1):
                    for base in bases:
                        found.setdefault(_join(base, "/".join(place)), set()).update(taken)
    return found


def _statements(content: bytes) -> Iterator[tuple[int, list[str], tuple[str, ...]]]:
    """Imports, by statements and by calls with a text: leading dots, parts, names."""
    parsed = parse(content)
    for statement in () if isinstance(parsed, str) else parsed:
        parts = statement.module.split(".") if statement.module else []
        yield statement.level, parts, statement.names
    for dots, module in _BY_CALL.findall(content):
        yield len(dots), module.decode(errors="replace").split("."), ()


def _finding(path: str, names: str, *, guilty: bool) -> Finding:
    why = "it is imported from there, and no file of the commit is of that name"
    if guilty:
        why = f"the repository's build makes {names} as an extension, which is compiled code"
    return Finding(
        kind="shadowing-module",
        what=f"an untracked module named {names}, which the code imports from its own package",
        where=path,
        why=why,
        disqualifies=guilty,
    )
