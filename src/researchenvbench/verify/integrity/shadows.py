"""Modules that somebody added to a work tree, and what they would be imported in place of.

What is new there is allowed; a build in place makes extensions and version files, a run makes
data, a dependency may be cloned. Only these are findings:
- `start-up-hook`: executed by every interpreter that has the folder on its path;
- `shadowing-module`: at an import root under the name of a framework, of the standard library,
  of a module of the repository itself, or of one that is imported and installed, or beside a
  tracked module that it comes before: it changes what a probe or the code reads, and
  disqualifies. Under the name of another module that the tracked code imports it is listed
  only: a README may say that it be cloned there, or a build has put it there.
What lies within a package is `submodules`' subject.
A folder without `__init__` comes after every installed module, so it is listed only where it
takes the place of a missing one.
"""

from __future__ import annotations

import posixpath
import re
from contextlib import suppress
from pathlib import PurePosixPath
from typing import TYPE_CHECKING, Any

from ...attempt import Finding
from ...errors import TaskError
from ..imports import is_python, read_folder, stdlib_names
from ..readme import code_block
from ..statements import parse
from .submodules import build_files, extensions, submodules, words

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence
    from pathlib import Path

    from ...attempt import Report
    from ...source import Snapshot
    from ...task import Stage, Task

HOOKS = frozenset({"sitecustomize", "usercustomize"})
#: What the probes of C2 import, with what these cannot do without.
_FRAMEWORKS = frozenset({"torch", "jax", "jaxlib", "tensorflow", "numpy"})
STANDARD = stdlib_names(None)
#: Names that decide whatever the code imports.
NAMES = HOOKS | _FRAMEWORKS | STANDARD

#: What a build may generate where its code imports it, and no distribution is called.
_GENERATED = frozenset({"version", "_version"})
#: Builds that turn Python modules into extensions of the same name.
_COMPILES_PYTHON = re.compile(rb"cythonize|mypyc|nuitka|[Cc]ython")
_EXTENSION = rb"(?:Extension|add_module|extension_module|py_module|PYBIND11_MODULE)\s*\("
_ENVIRONMENT = frozenset({"site-packages", "dist-packages"})
_SCRIPT = re.compile(r"[\w./{}-]+\.py\b")


def import_roots(snapshot: Snapshot, starts: Iterable[str]) -> frozenset[str]:
    """Folders that may come first on an import path: of scripts, and above packages."""
    python = [PurePosixPath(path) for path in snapshot.tracked if path.endswith(".py")]
    packages = {path.parent for path in python if path.name == "__init__.py"}
    roots = {path.parent for path in python} - packages
    roots |= {package.parent for package in packages if package.parent not in packages}
    return frozenset({".", "src", *starts, *(str(root) for root in roots)})


def start_folders(
    task: Task | None, report: Report | None, snapshot: Snapshot, repo: Path
) -> frozenset[str]:
    """Folders of the tree `repo`, relative to it, that a stage's processes import from first.

    That of each script that a stage starts, the stage's working folder, and what the task's
    and the report's PYTHONPATH name.
    """
    places = _python_path(report.env) if report else []
    for stage in task.stages.values() if task else ():
        scripts = [posixpath.dirname(script) for script in _scripts(stage, snapshot)]
        filled = [
            place.replace("{repo}", str(repo))
            for place in (stage.folder, *scripts, *_python_path(stage.env))
        ]
        places += [posixpath.join(filled[0], place) for place in filled]
    found = set()
    for place in places:
        path = posixpath.normpath(place)
        # An environment in the tree has frameworks for a good reason.
        if _ENVIRONMENT.isdisjoint(path.split("/")) and PurePosixPath(path).is_relative_to(repo):
            found.add(str(PurePosixPath(path).relative_to(repo)))
    return frozenset(found)


def _python_path(env: Mapping[str, str]) -> list[str]:
    return [part for part in env.get("PYTHONPATH", "").split(":") if part]


def _scripts(stage: Stage, snapshot: Snapshot) -> Iterator[str]:
    yield from (argument for argument in stage.command if argument.endswith(".py"))
    for service in stage.services:
        yield from (argument for argument in service.command if argument.endswith(".py"))
    block = stage.readme_block
    if block is not None and block.language != "python":
        with suppress(TaskError):  # the stage itself says so
            yield from _SCRIPT.findall(code_block(snapshot.tree, block))


def shadows(
    snapshot: Snapshot,
    modules: Iterable[Sequence[Any]],
    roots: frozenset[str],
    installed: frozenset[str],
) -> list[Finding]:
    """What the untracked `modules` (`standalone.look.worktree`) take the place of.

    `installed` are names of modules in the judged environment.
    """
    findings = []
    of_code = import_roots(snapshot, ())
    others: list[tuple[str, str, str, list[str]]] = []
    within: list[tuple[str, str, str, str, list[str]]] = []
    for path, kind, names in modules:
        folder, _, name = path.rpartition("/")
        if name.startswith("__init__."):  # of a tracked folder, which it makes a package
            folder, _, name = folder.rpartition("/") if kind == "package" else (folder, "", name)
        stem = name.partition(".")[0]
        own = f"{folder}/{stem}.py" if folder else f"{stem}.py"
        if own in snapshot.tracked and kind in ("extension", "package"):
            findings.append(_in_place_of(own, path, kind, snapshot))
        elif (folder or ".") not in roots:
            within.append((path, kind, folder, stem, names))
        elif kind == "stub":
            findings.append(_stub(path))
        elif kind != "namespace" and stem in HOOKS:
            findings.append(_hook(path))
        elif kind != "namespace" and stem in NAMES:
            what = "the standard library" if stem in STANDARD else "probes"
            why = f"it is imported in place of the real one, also by {what}"
            findings.append(_shadow(path, f"an untracked module named {stem}", why, guilty=True))
        else:
            within.append((path, kind, folder, stem, names))
            if (folder or ".") in of_code:  # and not only named by a path
                others.append((path, kind, stem, names))
    findings += _imported(snapshot, others, roots, installed)
    told = {finding.where for finding in findings}
    within = [module for module in within if module[0] not in told]
    return findings + submodules(snapshot, within, roots)


def uncounted() -> Finding:
    """Where there are more modules than are looked at."""
    return _shadow(
        ".",
        "more untracked modules beside the tracked ones than are looked at",
        "one of them may be imported in place of another",
        guilty=True,
    )


def _imported(
    snapshot: Snapshot,
    modules: list[tuple[str, str, str, list[str]]],
    roots: frozenset[str],
    installed: frozenset[str],
) -> list[Finding]:
    """Those of the modules whose names the tracked code imports."""
    if not modules:
        return []
    imported = _imports(snapshot, {stem for _, _, stem, _ in modules})
    built = extensions(snapshot, set(imported))
    findings = []
    for path, kind, stem, names in modules:
        if stem not in imported or stem in _GENERATED:
            continue
        if kind == "namespace" and not imported[stem] & set(names):
            continue
        if kind == "extension" and _is_built(stem, snapshot):
            continue
        theirs = _tracked_module(stem, snapshot, roots)
        if theirs and kind != "namespace":
            what = f"an untracked module named {stem}, as the repository's own {theirs}"
            why = "it may be imported in place of the repository's own"
            findings.append(_shadow(path, what, why, guilty=True))
        elif not theirs:
            what = f"an untracked module named {stem}, which the code imports"
            why = "it is imported in place of an installed one, or of one that is missing"
            # A build may put an extension into the tree and into the environment.
            guilty = kind in ("module", "package") and (stem in installed or stem in built)
            findings.append(_shadow(path, what, why, guilty=guilty))
    return findings


def _imports(snapshot: Snapshot, names: set[str]) -> Mapping[str, set[str]]:
    """Which of `names` the tracked code imports, and the modules that it takes from each."""
    found: dict[str, set[str]] = {}
    python = [path for path in snapshot.tracked if is_python(path)]
    for _, content in read_folder(snapshot.tree, python):
        if not words(content) & names:
            continue
        statements = parse(content)
        for statement in () if isinstance(statements, str) else statements:
            if statement.level or statement.top not in names:
                continue
            taken = found.setdefault(statement.top, set())
            parts = statement.module.split(".")
            taken.update(parts[1:2] or statement.names)
    return found


def _tracked_module(stem: str, snapshot: Snapshot, roots: frozenset[str]) -> str:
    """The repository's own module of that name at an import root, or nothing."""
    for root in sorted(roots):
        place = stem if root == "." else f"{root}/{stem}"
        for file in (f"{place}.py", f"{place}/__init__.py"):
            if file in snapshot.tracked:
                return file
    return ""


def _is_built(stem: str, snapshot: Snapshot) -> bool:
    """Whether the repository's own build names an extension so."""
    named = re.compile(_EXTENSION + rb"[^)]{0,300}?\b" + re.escape(stem.encode()) + rb"\b")
    return any(named.search(content) for content in build_files(snapshot))


def _in_place_of(own: str, path: str, kind: str, snapshot: Snapshot) -> Finding:
    honest = kind == "extension" and any(
        _COMPILES_PYTHON.search(content) for content in build_files(snapshot)
    )
    why = "it comes before the tracked file when that is imported"
    if honest:
        why += "; the repository's own build compiles Python, and may have made it"
    return _shadow(path, f"an untracked {kind} beside {own}", why, guilty=not honest)


def _shadow(path: str, what: str, why: str, *, guilty: bool = False) -> Finding:
    return Finding(kind="shadowing-module", what=what, where=path, why=why, disqualifies=guilty)


def _hook(path: str) -> Finding:
    return Finding(
        kind="start-up-hook",
        what="a module that every start of the interpreter executes",
        where=path,
        why="it can change what any probe sees",
        disqualifies=True,
    )


def _stub(path: str) -> Finding:
    return Finding(
        kind="checker-configuration",
        what="stubs for a type checker",
        where=path,
        why="C0 checks a clean copy without them, so they have no effect",
    )
