"""Is an installed framework whole? Its files against what its installer listed.

It states facts. What decides is compared, and nothing else: Python files and shared
libraries. Files above `_HASHED_BYTES` are compared by their size.
"""

from __future__ import annotations

import ast
import csv
import fnmatch
import hashlib
import io
import os
import re
from concurrent.futures import ThreadPoolExecutor

from .elf import MAGIC
from .installed import ALGORITHMS, Installed, encoded
from .paths import opened

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable
    from typing import Any

    from .paths import Root

_HASHED_BYTES = 2 << 30
_RECORD_LIMIT_BYTES = 64 << 20
_SIZE_DIGITS = 19
_NO_SIZE = 1 << 64  #: of no file
_SHOWN = 20
_THREADS = 4
_CODE = re.compile(r".*\.(?:py|pyc|so(?:\.\d+)*)")
#: Extension modules stand before Python files of the same name. Plain libraries have no module.
_IMPORTABLE = re.compile(r"(?!lib)[^.]+\.(?:py|pyc|(?:cpython-|abi3|pypy)?[\w-]*\.?so)")
#: A value of the mapping that setuptools writes, name by path. One text after the other, since
#: what is nested deep enough ends whoever reads it as a whole.
_MAPPED = re.compile(r"""['"]\s*:\s*('(?:[^'\\\n]|\\.)*'|"(?:[^"\\\n]|\\.)*")""")
_NO_MODULES = ("__pycache__", "lib", "include", "bin", "share", "test", "tests")


def framework(root: Root, layout: dict[str, Any], wanted: dict[str, Any]) -> dict[str, Any]:
    """What is there of one framework.

    `wanted` names its `distributions` (patterns), its `packages` and its `core`: groups of
    files of which one must be there.
    """
    installed = Installed(root, layout["prefixes"])
    folders = [*layout["sites"], *_added(root, layout["sites"])]
    distributions = []
    for site in layout["sites"]:
        for name in root.names(site):
            stem, _, kind = name.rpartition(".")
            title, _, version = stem.partition("-")
            if kind not in ("dist-info", "egg-info", "egg-link"):
                continue
            title = re.sub(r"[-_.]+", "-", title).lower()
            if any(fnmatch.fnmatchcase(title, pattern) for pattern in wanted["distributions"]):
                facts = {"name": title, "version": version, "folder": f"{site}/{name}"}
                if kind == "dist-info":
                    facts.update(_compared(root, installed, layout["prefixes"], site, name))
                distributions.append(facts)
    packages = {name: _package(root, folders, name) for name in wanted["packages"]}
    core = [_group(root, group, packages, layout["prefixes"]) for group in wanted["core"]]
    return {"distributions": distributions, "packages": packages, "core": core}


def _added(root: Root, sites: list[str]) -> list[str]:
    """Folders that editable installs put on the path, or map packages from."""
    found = []
    for site in sites:
        for name in root.names(site):
            if name.endswith((".pth", ".egg-link")):
                text = root.read(f"{site}/{name}", 1 << 20) or b""
                for line in text.decode("utf-8", "surrogateescape").splitlines():
                    folder = os.path.normpath(os.path.join(site, line.strip()))
                    if line.strip() and "\0" not in folder and root.is_folder(folder):
                        found.append(folder)
            elif re.fullmatch(r"__editable___.*_finder\.py", name):
                text = root.read(f"{site}/{name}", 1 << 20) or b""
                mapped = re.search(rb"^MAPPING[^=\n]*= (\{.*\})$", text, re.MULTILINE)
                for path in _MAPPED.findall(mapped[1].decode("utf-8", "replace") if mapped else ""):
                    try:
                        found.append(os.path.dirname(ast.literal_eval(path)))
                    except (ValueError, SyntaxError):
                        continue  # half of an escape
    return found


def _package(root: Root, folders: list[str], name: str) -> str:
    """The folder of a package that can be imported; empty where there is none."""
    for folder in folders:
        if root.is_folder(f"{folder}/{name}") or root.read(f"{folder}/{name}.py", 0) is not None:
            return f"{folder}/{name}"
    return ""


def _group(
    root: Root, group: dict[str, Any], packages: dict[str, str], prefixes: list[str]
) -> dict[str, Any]:
    """The first file that matches one of the patterns and is large enough."""
    tops = {os.path.dirname(folder) for folder in packages.values() if folder}
    seen = ""
    for pattern in group["any_of"]:
        bases = [*prefixes, "/usr"] if pattern.startswith("lib/") else sorted(tops)
        for base in bases:
            for path in _matches(root, base, pattern.split("/")):
                size, native = _size_and_kind(root, path)
                if size >= group.get("at_least_bytes", 1) and (native or ".so" not in pattern):
                    return {"any_of": group["any_of"], "found": path, "size": size}
                seen = seen or f"{path} has {size} bytes" + (
                    "" if native else " and is no ELF file"
                )
    return {"any_of": group["any_of"], "found": "", "seen": seen}


def _matches(root: Root, base: str, parts: list[str]) -> Iterable[str]:
    if not parts:
        yield base
        return
    for name in root.names(base):
        if fnmatch.fnmatchcase(name, parts[0]):
            yield from _matches(root, f"{base}/{name}", parts[1:])


def _size_and_kind(root: Root, path: str) -> tuple[int, bool]:
    head = root.read(path, 4)
    if head is None:
        return -1, False
    return os.stat(root.at(path)).st_size, head == MAGIC


def _compared(
    root: Root, installed: Installed, prefixes: list[str], site: str, name: str
) -> dict[str, Any]:
    """How the code of a distribution differs from what its installer listed."""
    listed = _listed_by_conda(installed, prefixes, site, name)
    source = "conda" if listed else "RECORD"
    if not listed:
        record = root.read(f"{site}/{name}/RECORD", _RECORD_LIMIT_BYTES)
        if record is None:
            return {"source": ""}
        try:
            listed = _listed_by_record(record)
        except csv.Error:
            return _unreadable(f"{name}/RECORD")
    code = {path: told for path, told in listed.items() if _CODE.fullmatch(path)}
    top = root.at(site)
    with ThreadPoolExecutor(_THREADS) as pool:
        told = list(pool.map(lambda item: _difference(top, *item), code.items()))
    missing = [path for path, what in zip(code, told, strict=True) if what == "missing"]
    changed = [path for path, what in zip(code, told, strict=True) if what == "changed"]
    extra = [
        path for path in _extra(root, site, code) if not installed.lists(f"{site}/{path}", site)
    ]
    return {
        "source": source,
        "checked": len(code),
        "missing": missing[:_SHOWN],
        "changed": changed[:_SHOWN],
        "extra": extra[:_SHOWN],
        "counts": {"missing": len(missing), "changed": len(changed), "extra": len(extra)},
    }


def _unreadable(record: str) -> dict[str, Any]:
    """What is told of a distribution whose RECORD is none: it is what differs."""
    counts = {"missing": 0, "changed": 1, "extra": 0}
    return {"source": "RECORD", "checked": 0, "missing": [], "changed": [record], "extra": [],
            "counts": counts}  # fmt: skip


def _listed_by_record(record: bytes) -> dict[str, tuple[str, str, int]]:
    """Algorithm, digest and size by path; size -1 where none is given.

    Raises:
        csv.Error: it is no RECORD.
    """
    listed = {}
    for row in csv.reader(io.StringIO(record.decode("utf-8", "replace"))):
        if len(row) >= 2 and not row[0].startswith(("../", "/")) and "__pycache__/" not in row[0]:
            algorithm, _, digest = row[1].partition("=")
            told = row[2] if len(row) > 2 and row[2].isdecimal() else "-1"
            size = int(told) if len(told) <= _SIZE_DIGITS else _NO_SIZE
            listed[row[0]] = (algorithm, digest, size)
    return listed


def _listed_by_conda(
    installed: Installed, prefixes: list[str], site: str, name: str
) -> dict[str, tuple[str, str, int]]:
    """What conda listed of the package that brought this distribution.

    It rewrites libraries after their RECORD was written, so its own list is the one that holds.
    """
    for prefix in prefixes:
        if not site.startswith(prefix + "/"):
            continue
        below = site[len(prefix) + 1 :] + "/"
        listed = installed.of_conda(prefix)
        owners = {owner for path, (owner, _) in listed.items() if path.startswith(below + name)}
        if owners:
            return {
                path[len(below) :]: ("sha256", digest, -1)
                for path, (owner, digest) in listed.items()
                if owner in owners and path.startswith(below) and "__pycache__/" not in path
            }
    return {}


def _difference(top: str, path: str, told: tuple[str, str, int]) -> str:
    algorithm, digest, size = told
    try:
        # What is no regular file is none that an installer has put there.
        with opened(f"{top}/{path}") as stream:
            found = os.fstat(stream.fileno()).st_size
            if size >= 0 and found != size:
                return "changed"
            if not digest or found > _HASHED_BYTES:
                return ""
            if algorithm not in ALGORITHMS:
                return "changed"  # one that does not exist proves nothing
            state = hashlib.file_digest(stream, algorithm)
    except OSError:
        return "missing"
    return "" if digest in (encoded(state.digest()), state.hexdigest()) else "changed"


def _extra(root: Root, site: str, code: dict[str, Any]) -> list[str]:
    """Modules that were put into the distribution's packages and that it does not list."""
    tops = {path.partition("/")[0] for path in code if "/" in path and "\0" not in path}
    found = []
    for top in sorted(tops):
        base = root.at(site)
        for folder, folders, files in os.walk(f"{base}/{top}"):
            folders[:] = [name for name in folders if name not in _NO_MODULES]
            below = os.path.relpath(folder, base)
            found += [
                path
                for path in (f"{below}/{name}" for name in files if _IMPORTABLE.fullmatch(name))
                if path not in code
            ]
    return sorted(found)
