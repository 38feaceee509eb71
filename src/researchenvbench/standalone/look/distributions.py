"""Which installed distributions have code that is not what their installer listed.

Python files and the scripts of `bin` are compared with the RECORDs, and with conda's lists. A
file that several distributions list needs to be what one of them says, since the last that was
installed has overwritten it. What is missing is no subject here: running the code shows it.
"""

from __future__ import annotations

import csv
import hashlib
import io
import os
import re
from concurrent.futures import ThreadPoolExecutor

from .installed import ALGORITHMS, Installed, encoded

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import Any

    from .paths import Root

_RECORD_LIMIT_BYTES = 64 << 20
_FILE_LIMIT_BYTES = 16 << 20
_SHOWN = 20
_NO_MODULES = frozenset(("site-packages", "dist-packages", "__pycache__", "test", "tests",
                         "lib-dynload"))  # fmt: skip
#: What is looked at elsewhere: hooks, and a package's own module with its folder.
_NOT_HERE = frozenset(("sitecustomize", "usercustomize", "__init__"))
_EXTENSION = re.compile(r"(?:[\w-]+\.)*so")  #: what follows the stem of one
_INIT = re.compile(r"__init__\.(?:py|pyc|(?:[\w-]+\.)*so)")
_THREADS = 4
_SLICE = 256


def changed(root: Root, layout: dict[str, Any], within: str) -> list[dict[str, Any]]:
    """The distributions of sites below `within` that differ, with some of their `files`."""
    installed = Installed(root, layout["prefixes"])
    by_conda: dict[str, str] = {}
    for prefix in layout["prefixes"]:
        for path, (_, digest) in installed.of_conda(prefix).items():
            by_conda[f"{prefix}/{path}"] = digest
    found = []
    for site in layout["sites"]:
        if f"{site}/".startswith(f"{within.rstrip('/')}/"):
            found += _of_site(root, site, by_conda, installed)
    return found


def changed_library(root: Root, layout: dict[str, Any]) -> list[dict[str, Any]]:
    """Standard libraries whose Python files differ from what conda or Debian's packages list.

    So do those in which somebody put a module that comes before another one, and, where there is
    a list, one that is not on it.
    What the program that starts Python is made of is no subject, and neither is a library that
    nobody lists, such as that of a Python that was built from source.
    """
    installed = Installed(root, layout["prefixes"])
    found = []
    for library in layout["libraries"]:
        listed = {path: ("md5", digest) for path, digest in installed.of_dpkg(library).items()}
        for prefix in layout["prefixes"]:
            for path, (_, digest) in installed.of_conda(prefix).items():
                if f"{prefix}/{path}".startswith(f"{library}/"):
                    listed[f"{prefix}/{path}"] = ("sha256", digest)
        different = _added(root, library, set(listed))
        for path, (algorithm, digest) in sorted(listed.items()):
            inner = path[len(library) + 1 :]
            made = ("site-packages/", "dist-packages/", "_sysconfigdata")  # anew for each prefix
            if not path.endswith(".py") or inner.startswith(made):
                continue
            content = root.read(path, _FILE_LIMIT_BYTES)
            if content is not None and hashlib.new(
                algorithm, content, usedforsecurity=False
            ).hexdigest() != digest:  # fmt: skip
                different.append(path)
        if different:
            changed_ns = max(root.changed_ns(path) for path in different)
            found.append({"folder": library, "count": len(different), "changed_ns": changed_ns,
                          "files": different[:_SHOWN]})  # fmt: skip
    return found


def _added(root: Root, library: str, listed: set[str]) -> list[str]:
    """Modules that nobody lists, or that come before one of the same name in the same folder."""
    has_list = f"{library}/os.py" in listed
    added = []
    waiting = [library, f"{library}/lib-dynload"]
    while waiting:
        folder = waiting.pop()
        by_name: dict[str, list[str]] = {}
        for name in root.names(folder):
            path = f"{folder}/{name}"
            stem, _, suffix = name.partition(".")
            if suffix in ("py", "pyc") or suffix.endswith("so"):
                by_name.setdefault(stem, []).append(path)
            elif not suffix and name not in _NO_MODULES and root.is_folder(path):
                inner = [one for one in root.names(path) if _INIT.fullmatch(one)]
                by_name.setdefault(stem, []).extend(f"{path}/{one}" for one in inner)
                if inner and not os.path.islink(root.beside(path)):
                    waiting.append(path)
        for name, there in by_name.items():
            if name in _NOT_HERE or name.startswith("_sysconfigdata"):
                continue
            sources = {path for path in there if path.endswith(".py")}
            # Byte code beside its source, as Python 2 has it, is not run by any other.
            paths = [path for path in there if path.removesuffix("c") not in sources - {path}]
            unknown = [path for path in paths if not listed & {path, root.real(path)}]
            if has_list:
                added += unknown
            elif len(paths) > 1:  # CPython itself has no two
                added += [path for path in paths if not path.endswith(f"/{name}.py")]
    return sorted(added)


def _of_site(
    root: Root, site: str, by_conda: dict[str, str], installed: Installed
) -> list[dict[str, Any]]:
    owners: dict[str, str] = {}
    listed: dict[str, set[tuple[str, str]]] = {}
    known: set[str] = set()
    for name in root.names(site):
        if name.endswith(".dist-info"):
            record = root.read(f"{site}/{name}/RECORD", _RECORD_LIMIT_BYTES) or b""
            for path, algorithm, digest in _listed(record):
                known.add(os.path.normpath(path))
                if _is_code(path):
                    owners[path] = name
                    listed.setdefault(path, set()).add((algorithm, digest))

    def differs(path: str) -> bool:
        place = os.path.normpath(f"{site}/{path}")  # pathlib would cost start-up time
        content = root.read(place, _FILE_LIMIT_BYTES)
        if content is None:  # byte code in the place of its source is what would run
            return root.read(f"{place}c", 1) is not None
        if len(content) == _FILE_LIMIT_BYTES:
            return False
        said = listed[path] | {("sha256", by_conda[place])} if place in by_conda else listed[path]
        return not any(_is(content, *one) for one in said)

    def differing(some: list[str]) -> list[str]:
        return [path for path in some if differs(path)]

    paths = list(listed)
    slices = [paths[start : start + _SLICE] for start in range(0, len(paths), _SLICE)]
    with ThreadPoolExecutor(_THREADS) as pool:
        different = [path for part in pool.map(differing, slices) for path in part]
    by_owner: dict[str, list[str]] = {}
    for path in different:
        by_owner.setdefault(owners[path], []).append(path)
    for path, source in _before(root, site, paths):
        place = f"{site}/{path}"
        if path not in known and place not in by_conda and not _by_dpkg(installed, root, place):
            by_owner.setdefault(owners[source], []).append(path)
    return [
        {"folder": f"{site}/{owner}", "count": len(files), "files": sorted(files)[:_SHOWN]}
        for owner, files in sorted(by_owner.items())
    ]


def _before(root: Root, site: str, listed: list[str]) -> list[tuple[str, str]]:
    """What an interpreter takes instead of a listed Python file, and that file.

    An extension of the same name comes before a source, and a package before a module. Folders
    may hold many files, so each is listed once.
    """
    by_folder: dict[str, dict[str, str]] = {}
    for path in listed:
        folder, name = os.path.split(os.path.normpath(path))
        if name.endswith(".py") and not folder.startswith(".."):
            by_folder.setdefault(folder, {})[name[:-3]] = path
    found = []
    for folder, sources in by_folder.items():
        inner = f"{folder}/" if folder else ""
        for name in root.names(f"{site}/{folder}"):
            stem, _, suffix = name.partition(".")
            if stem not in sources:
                continue
            if _EXTENSION.fullmatch(suffix):
                found.append((f"{inner}{name}", sources[stem]))
            elif name == stem and name != "__init__":
                inits = [one for one in root.names(f"{site}/{inner}{name}") if _INIT.fullmatch(one)]
                found += [(f"{inner}{name}/{one}", sources[stem]) for one in inits]
    return found


def _by_dpkg(installed: Installed, root: Root, path: str) -> bool:
    try:
        real = root.real(path)
    except OSError:  # links in a circle
        return False
    return real in installed.of_dpkg(os.path.dirname(real))


def _is_code(path: str) -> bool:
    """Whether it is a Python file, or a script of `bin`."""
    return path.endswith(".py") or (path.startswith("../") and "/bin/" in path)


def _listed(record: bytes) -> list[tuple[str, str, str]]:
    """Path, algorithm and digest of what a RECORD lists with a digest."""
    rows = []
    for row in _rows(record):
        if len(row) < 2 or "=" not in row[1] or "\0" in row[0]:
            continue
        algorithm, _, digest = row[1].partition("=")
        rows.append((row[0], algorithm, digest))
    return rows


def _rows(record: bytes) -> Iterator[list[str]]:
    """The lines of a RECORD, but for those that are none."""
    # The limit is there for whole programs; what a RECORD may hold is limited already.
    csv.field_size_limit(_RECORD_LIMIT_BYTES)
    reader = csv.reader(io.StringIO(record.decode("utf-8", "surrogateescape")))
    while True:
        try:
            yield next(reader)
        except StopIteration:
            return
        except csv.Error:  # somebody wrote that line; the others are read
            continue


def _is(content: bytes, algorithm: str, digest: str) -> bool:
    """Whether a digest, as RECORDs or as conda writes it, is that of the content."""
    if algorithm not in ALGORITHMS:
        return False  # one that does not exist proves nothing
    state = hashlib.new(algorithm, content)
    return digest in (encoded(state.digest()), state.hexdigest())
