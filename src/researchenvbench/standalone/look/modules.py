"""Which modules of given names lie in given folders and archives, as of a search path."""

# pathlib would double the start-up time.

from __future__ import annotations

import mmap
import os
import re

from .launch import is_volatile
from .paths import Root

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

_SUFFIXES = (".py", ".pyc", ".so", ".pyd")
#: Of one folder, whose names are not kept; a search path has no more.
_MOST_NAMES = 2_000_000
#: Modules that the start-up hooks of setuptools, virtualenv and builds in place import.
_STARTED = re.compile(
    r"_distutils\w*|__editable__\w*|_editable\w*|_\w+_editable(_loader)?|_virtualenv"
)
_TEXT_LIMIT_BYTES = 65_536
#: Of an archive's end, where its list is.
_ARCHIVE_END_BYTES = 1 << 30
#: An entry in the list of an archive; the length of its name is at its 29th byte.
_ENTRY = re.compile(rb"PK\x01\x02.{24}(..).{16}", re.DOTALL)


def examine(order: dict[str, Any]) -> dict[str, Any]:
    """The paths of modules and packages.

    Args:
        order: `folders`, absolute, and `names`, those that are asked for. A folder may be an
            archive, or a folder in one. `sites` are folders with .pth files of the interpreter:
            what the code in these imports is asked for, too.

    Returns:
        `found`, each with its `path` and the `real` one, without the links that its folder leads
        through, and with its text as `started` where a start-up hook imports it; `volatile`, the
        folders that are other ones at another time; and `crowded`, those that hold more than is
        looked at.
    """
    root = Root()
    sites = order.get("sites", [])
    wanted = _Wanted(frozenset(order["names"]), _imported(root, sites))
    found: list[dict[str, Any]] = []
    crowded = []
    for folder in order["folders"]:
        paths, whole = _found(folder, wanted)
        if not whole:
            crowded.append(folder)
        for name, path in paths or _in_archive(folder, wanted):
            real = os.path.realpath(os.path.dirname(path)) + path[path.rindex("/") :]
            if name in wanted.named:
                found.append({"path": path, "real": real})
            elif not _is_of_a_site(root, path, real, sites):
                found.append({"path": path, "real": real, "started": _started(root, path)})
    volatile = [folder for folder in order["folders"] if is_volatile(root, folder)]
    return {"found": found, "volatile": volatile, "crowded": crowded}


class _Wanted:
    """Names of modules: those that are asked for, and those that start-up hooks import."""

    def __init__(self, names: frozenset[str], imported: frozenset[str]) -> None:
        self.named = names
        self._imported = imported

    def __contains__(self, name: str) -> bool:
        return name in self.named or name in self._imported or bool(_STARTED.fullmatch(name))


def _imported(root: Root, sites: list[str]) -> frozenset[str]:
    """The modules that code in .pth files, and start files, name."""
    from .hooks import imported_by_sites

    return imported_by_sites(root, sites)


def _is_of_a_site(root: Root, path: str, real: str, sites: list[str]) -> bool:
    """Whether the module is that which the interpreter would find without the folder, too."""
    name = path.rpartition("/")[2]
    mine = _source(root, path)
    for site in sites:
        if real == f"{os.path.realpath(site)}/{name}":
            return True  # that of the environment, which is looked at as all of its hooks are
        if mine is not None and mine == _source(root, f"{site}/{name}"):
            return True
    return False


def _started(root: Root, path: str) -> dict[str, Any]:
    content = _source(root, path)
    place = f"{path}/__init__.py" if os.path.isdir(path) else path
    text = (content or b"").decode("utf-8-sig", "replace")
    return {"path": place, "text": text, "whole": content is not None}


def _source(root: Root, path: str) -> bytes | None:
    """The source of a module, or of a package that has no other; None where it is none."""
    if os.path.isdir(path):
        if _inits(path) != ["__init__.py"]:
            return None
        path = f"{path}/__init__.py"
    if not path.endswith(".py"):
        return None
    content = root.read(path, _TEXT_LIMIT_BYTES + 1)
    return None if content is None or len(content) > _TEXT_LIMIT_BYTES else content


def _inits(folder: str) -> list[str]:
    """What makes a folder a package, with the names that compiled modules have."""

    def is_init(name: str) -> bool:
        return name.startswith("__init__.") and name.endswith(_SUFFIXES)

    return _listed(folder, is_init)[0]


def _listed(folder: str, is_wanted: Callable[[str], bool]) -> tuple[list[str], bool]:
    """Names in a folder that are wanted, sorted, and whether all of them were looked at."""
    found: list[str] = []
    try:
        with os.scandir(folder) as entries:
            for number, entry in enumerate(entries):
                if number >= _MOST_NAMES:
                    return sorted(found), False
                if is_wanted(entry.name):
                    found.append(entry.name)
    except OSError:
        pass  # not there, or not ours to enter: nothing is imported from it
    return sorted(found), True


def _found(folder: str, wanted: _Wanted) -> tuple[list[tuple[str, str]], bool]:
    """The modules in a folder, each with its path, and whether all of it was looked at."""
    names, whole = _listed(folder, lambda name: name.partition(".")[0] in wanted)
    found: list[tuple[str, str]] = []
    for name in names:
        path = f"{folder}/{name}"
        if (
            _inits(path)
            or (name.endswith(_SUFFIXES) and not os.path.isdir(path))
            or any(os.path.lexists(f"{folder}/{one}") for one in _put_before(name))
        ):
            found.append((name.partition(".")[0], path))
    return found, whole


def _put_before(name: str) -> list[str]:
    """Folders that a hook puts before the standard library wherever a folder `name` has them."""
    from .hooks import PUT_BEFORE

    return [one for one in PUT_BEFORE if one.startswith(f"{name}/")]


def _in_archive(place: str, wanted: _Wanted) -> list[tuple[str, str]]:
    """The same in a zip file or an egg, by its list; `zipfile` might read it otherwise."""
    archive, inner = place.rstrip("/"), ""
    while archive and not os.path.lexists(archive):
        archive, _, part = archive.rpartition("/")
        inner = f"{part}/{inner}"
    if not os.path.isfile(archive):
        return []
    found: dict[tuple[str, str], None] = {}
    try:
        with (
            open(archive, "rb") as stream,
            mmap.mmap(stream.fileno(), 0, access=mmap.ACCESS_READ) as data,
        ):
            for entry in _ENTRY.finditer(data, max(0, len(data) - _ARCHIVE_END_BYTES)):
                end = entry.end() + int.from_bytes(entry[1], "little")
                name = data[entry.end() : end].decode("utf-8", "replace")
                module = _module(name[len(inner) :]) if name.startswith(inner) else ""
                if module in wanted:
                    found.setdefault((module, f"{archive}/{name}"))
    except (OSError, ValueError):  # not to be read, or empty
        return []
    return list(found)


def _module(name: str) -> str:
    """The module that an archive's entry is, or the package that it makes one; else nothing."""
    stem, dot, suffix = name.rpartition(".")
    top = stem.partition("/")[0]
    if any(stem.startswith(f"{one}/") for one in _put_before(top)):
        return top
    return stem.removesuffix("/__init__") if dot and suffix in ("py", "pyc") else ""
