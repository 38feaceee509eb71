"""What lies in a work tree that nobody is trusted with: facts, which others judge.

The order names the tracked paths with the sizes that their content may have; only a file of
such a size is hashed, since no other can be the right one. No link is followed but where an
import would follow it, nothing is opened that is no regular file, and what is listed is
bounded. Paths are relative to the tree; names that are no UTF-8 hold surrogates.
"""

# pathlib would double the start-up time.

from __future__ import annotations

import hashlib
import os
import stat

from .. import files
from . import gitfolder

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from typing import Any

    #: kind, size in bytes, SHA-256 or "", and why it cannot be read or ""
    Fact = tuple[str, int, str, str]

_WORKERS = 8
_SLICE = 64
#: More entries than that are not counted.
_MOST_VISITED = 1_000_000
#: Of one folder that might be a package.
_MOST_NAMES = 5_000
#: Modules whose names nobody asked for.
_MOST_MODULES = 100_000
_CONFIGURATION_LIMIT_BYTES = 1 << 20
_EXTENSION = (".so", ".pyd")
_MODULE = (".py", ".pyc", *_EXTENSION)


def examine(order: dict[str, Any]) -> dict[str, Any]:
    """The facts of one work tree.

    Args:
        order: `repo`, the tree's absolute path, and `root`, a folder above it from which on
            no link may lead there; `sizes`, for each tracked path the sizes in bytes at which
            it is hashed; `skipped`, names of folders that are no source; `listed`, how many
            untracked paths are named; `roots`, the folders that are searched for modules, and
            `names`, those of modules that are always told; `prefix`, that of the judged
            environment, or ""; `commit`, or "" where the source has none.
    """
    top = order["repo"]
    if trouble := _no_folder(order["root"], top):
        return {"trouble": trouble}
    tree = _Tree(top, order["sizes"], frozenset(order["skipped"]))
    untracked, count, complete = tree.untracked(order["listed"])
    modules, all_modules = tree.modules(frozenset(order["roots"]), frozenset(order["names"]))
    return {
        "trouble": "",
        "tracked": tree.tracked(),
        "untracked": untracked,
        "count": count,
        "complete": complete,
        "modules": modules,
        "all_modules": all_modules,
        "installed": sorted(_installed(order["prefix"])) if modules and order["prefix"] else [],
        "checker": _checker_configuration(top, tree.known),
        "git": gitfolder.look(top, order["commit"]) if order["commit"] else None,
    }


def _no_folder(root: str, top: str) -> str:
    """Why the tree is not where it was: it, or a folder between, is a link or not there."""
    path = root
    for part in ("", *[part for part in top[len(root) :].split("/") if part]):
        path = f"{path}/{part}" if part else path
        try:
            mode = os.lstat(path).st_mode
        except OSError as error:
            return f"{path}: {error.strerror}"
        if not stat.S_ISDIR(mode):
            return f"{path} is a {files.kind_of(mode)}"
    return ""


class _Tree:
    """One work tree, and what is known of its source."""

    def __init__(self, top: str, sizes: dict[str, list[int]], skipped: frozenset[str]) -> None:
        self._top = top
        self._sizes = sizes
        self._skipped = skipped
        self._real: dict[str, bool] = {"": True}
        self.known: set[str] = set(sizes)  #: tracked files and the folders above them
        for path in sizes:
            folder = path.rpartition("/")[0]
            while folder and folder not in self.known:
                self.known.add(folder)
                folder = folder.rpartition("/")[0]

    def tracked(self) -> dict[str, Fact]:
        """What is at each tracked path."""
        from concurrent.futures import ThreadPoolExecutor

        for path in self._sizes:  # before threads share what is found
            self._is_real(path.rpartition("/")[0])
        paths = list(self._sizes)
        slices = [paths[start : start + _SLICE] for start in range(0, len(paths), _SLICE)]

        def look(some: list[str]) -> list[Fact]:
            return [self._fact(path) for path in some]

        with ThreadPoolExecutor(_WORKERS) as pool:
            found = [fact for facts in pool.map(look, slices) for fact in facts]
        return dict(zip(paths, found, strict=True))

    def _fact(self, path: str) -> Fact:
        if not self._is_real(path.rpartition("/")[0]):
            return "behind a link", 0, "", ""
        full = f"{self._top}/{path}"
        try:
            status = os.lstat(full)
        except (FileNotFoundError, NotADirectoryError):
            return "absent", 0, "", ""
        except OSError as error:
            return "unknown", 0, "", error.strerror or str(error)
        kind = files.kind_of(status.st_mode)
        try:
            if kind == "link":
                target = os.fsencode(os.readlink(full))
                return kind, len(target), hashlib.sha256(target).hexdigest(), ""
            if kind != "file":
                return kind, 0, "", ""
            kind = "executable" if status.st_mode & 0o100 else "file"
            wanted = status.st_size in self._sizes[path]
            return kind, status.st_size, _sha256(full, status.st_size) if wanted else "", ""
        except OSError as error:
            return kind, status.st_size, "", error.strerror or str(error)

    def _is_real(self, folder: str) -> bool:
        """Whether neither the folder nor one above it is a link."""
        found = self._real.get(folder)
        if found is None:
            try:
                linked = stat.S_ISLNK(os.lstat(f"{self._top}/{folder}").st_mode)
            except (OSError, ValueError):
                linked = False
            found = self._is_real(folder.rpartition("/")[0]) and not linked
            self._real[folder] = found
        return found

    def untracked(self, most: int) -> tuple[list[str], int, bool]:
        """The first untracked paths, how many there are, and whether all were counted."""
        listed: list[str] = []
        count = visited = 0
        waiting = [""]
        while waiting:
            folder = waiting.pop()
            below = []
            for name, is_folder in _entries(f"{self._top}/{folder}"):
                visited += 1
                if visited > _MOST_VISITED:
                    return listed, count, False
                path = f"{folder}/{name}" if folder else name
                if is_folder:
                    if name not in self._skipped and not _is_environment(f"{self._top}/{path}"):
                        below.append(path)
                elif path not in self._sizes and name not in self._skipped:
                    count += 1
                    if len(listed) < most:
                        listed.append(path)
            waiting += reversed(below)
        return listed, count, True

    def modules(self, roots: frozenset[str], names: frozenset[str]) -> tuple[list[list[Any]], bool]:
        """Untracked modules in `roots` and in the folders of tracked files; whether all of them.

        Each as path, kind (module, extension, package, namespace, stub), and for a namespace
        the names of the modules in it.
        """
        if not roots:
            return [], True  # nobody judges them
        stems: dict[str, set[str]] = {root: set() for root in roots}
        for path in self._sizes:
            folder, _, file = path.rpartition("/")
            there = stems.setdefault(folder or ".", set())
            if file.endswith(".py"):
                there.add(file.partition(".")[0])
        told: list[list[Any]] = []
        others = 0
        for folder in sorted(stems):
            below = "" if folder == "." else folder
            if not self._is_real(below):
                continue
            for name, is_folder in _entries(f"{self._top}/{below}"):
                path = f"{below}/{name}" if below else name
                if path in self._sizes:
                    continue
                # Neither a module nor a link to a folder that can be imported.
                if not is_folder and "." in name and not name.endswith((*_MODULE, ".pyi")):
                    continue
                stem = name if is_folder else name.partition(".")[0]
                row = self._module(path, name)
                if row is None:
                    continue
                if stem not in names and stem not in stems[folder]:
                    others += 1
                    if others > _MOST_MODULES:
                        continue
                told.append(row)
        return told, others <= _MOST_MODULES

    def _module(self, path: str, name: str) -> list[Any] | None:
        """What an untracked module is, or None where it is none, or tracked."""
        full = f"{self._top}/{path}"
        if os.path.isdir(full):  # by way of a link too, as an import would
            return self._package(path, full) if name not in self._skipped else None
        if name.endswith(_EXTENSION):
            return [path, "extension", []]
        if name.endswith(_MODULE):
            return [path, "module", []]
        return [path, "stub", []] if name.endswith(".pyi") else None

    def _package(self, path: str, full: str) -> list[Any] | None:
        inside = []
        with_stubs = False
        for number, (name, is_folder) in enumerate(_unsorted(full)):
            stem, _, rest = name.partition(".")
            if stem == "__init__" and name.endswith(_MODULE):
                # A folder of the source becomes a package by a file that the source has not.
                if any(f"{path}/__init__{suffix}" in self.known for suffix in _MODULE):
                    return None
                return [f"{path}/{name}" if path in self.known else path, "package", []]
            if number < _MOST_NAMES and not is_folder:
                with_stubs = with_stubs or rest == "pyi"
                if name.endswith(_MODULE):
                    inside.append(stem)
        if path in self.known:
            return None
        if inside:
            return [path, "namespace", sorted(inside)]
        return [path, "stub", []] if with_stubs else None


def _sha256(path: str, size: int) -> str:
    """Of a regular file's content, which is read no further than it should reach."""
    digest = hashlib.sha256()
    handle = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    try:
        if not stat.S_ISREG(os.fstat(handle).st_mode):
            return ""
        left = size + 1
        while left and (piece := os.read(handle, min(files.READ_BYTES, left))):
            digest.update(piece)
            left -= len(piece)
    finally:
        os.close(handle)
    return digest.hexdigest()


def _entries(folder: str) -> list[tuple[str, bool]]:
    """Names in a folder, sorted, and whether each is a folder itself and no link to one."""
    return sorted(_unsorted(folder))


def _unsorted(folder: str) -> Iterator[tuple[str, bool]]:
    try:
        with os.scandir(folder) as entries:
            for entry in entries:
                yield entry.name, entry.is_dir(follow_symlinks=False)
    except (OSError, ValueError):
        return  # gone, not ours to enter, or no name that a file can have


def _is_environment(folder: str) -> bool:
    exists: Callable[[str], bool] = os.path.lexists
    return exists(f"{folder}/pyvenv.cfg") or exists(f"{folder}/conda-meta")


def _installed(prefix: str) -> set[str]:
    """Names of the modules in an environment's own folders of packages."""
    found = set()
    for library in ("lib", "lib64", "local/lib"):
        for python, _ in _entries(f"{prefix}/{library}"):
            for packages in ("site-packages", "dist-packages"):
                for name, is_folder in _unsorted(f"{prefix}/{library}/{python}/{packages}"):
                    if is_folder or name.endswith(_MODULE):
                        found.add(name.partition(".")[0])
    return found


def _checker_configuration(top: str, known: set[str]) -> list[str]:
    """Untracked files by which a checker of imports would be told what to say."""
    found = []
    if "pyrightconfig.json" not in known and os.path.lexists(f"{top}/pyrightconfig.json"):
        found.append("pyrightconfig.json")
    if "typings" not in known and os.path.isdir(f"{top}/typings"):
        found.append("typings")
    if "pyproject.toml" not in known:
        try:
            text = files.read("/", f"{top}/pyproject.toml", _CONFIGURATION_LIMIT_BYTES)
        except files.Refused:
            text = b""
        if b"pyright]" in text or b"pyright." in text:
            found.append("pyproject.toml")
    return found
