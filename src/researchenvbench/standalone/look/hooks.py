"""What runs before a program's first line: .pth code, start files, sitecustomize and the like.

It states facts: each hook's file, its code, the modules beside it that the code imports, and
who lists those files. Which of them are harmless is decided by `verify.integrity.hooks`.
"""

from __future__ import annotations

import mmap
import os
import re
import sys

from .caches import foreign, foreign_of_library
from .installed import Installed
from .launch import is_volatile

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from .paths import Root

_FILE_LIMIT_BYTES = 1 << 20
_PATH_FILE_LIMIT_BYTES = 65_536  #: a .pth file of more is no installer's
_TEXT_LIMIT = 65_536
_ARCHIVE_LIMIT_BYTES = 1 << 30
#: No environment has as many: what is more is counted, and looked at no further.
_MOST_HOOKS = 200
_MOST_PATH_FILES = 2_000
_MOST_FOLDERS = 2_000
_CUSTOM = ("sitecustomize", "usercustomize")
_SUFFIXES = (".py", ".pyc", ".so")
_IMPORTED = re.compile(
    r"(?:^|[;:,\n\s])(?:import|from)\s+([\w.]+(?:\s*,\s*[\w.]+)*)|__import__\(\s*[rbu]?['\"]([\w.]+)"
)
_APPENDED = re.compile(r"sys\.path\.append\(\s*['\"](/[^'\"\\\n]*)['\"]\s*\)")
#: How the list of an archive names a module at its top.
_IN_ARCHIVE = rb"PK\x01\x02.{42}(%s(?:/__init__)?\.pyc?)"
#: Folders that pdbpp and nvidia-cutlass-dsl put before the standard library by a .pth line,
#: below whatever folder of the search path has them; and what the module of pdbpp's executes.
_PDBPP, _CUTLASS = "_pdbpp_path_hack", "nvidia_cutlass_dsl/dsl_packages"
PUT_BEFORE = (_PDBPP, _CUTLASS)
_EXECUTED = ("pdbpp.py", "pdb.py")
#: Modules of a hook that import others at each start, such as cuda-bindings'.
_REDIRECTOR = re.compile(r"_\w+_redirector\.py")
#: Of standard libraries from 2.7 to 3.12, no more of today's.
_OLD_MODULES = frozenset(("distutils", "imp", "asyncore", "asynchat", "smtpd", "__builtin__"))
#: In easy-install.pth of old setuptools: it moves its folders to the beginning of the path.
_PUT_FIRST = "__egginsert"
_PRELOAD = "/etc/ld.so.preload"


def hooks(root: Root, layout: dict[str, Any]) -> list[dict[str, Any]]:
    """Every hook of the environment, with its `kind`, and the `files` that take part in it."""
    looked = _Looked(root, layout)
    sites = _distinct(layout, "sites")
    for site in sites:
        for name in looked.names(site):
            if name.endswith(".pth"):
                looked.path_file(site, name)
            elif name.endswith(".start"):
                looked.of_sites.append(("start", f"{site}/{name}", site, None))
    looked.look_at_sites()
    places = _distinct(layout, "libraries")
    places += [f"{one}/lib-dynload" for one in places]
    for place in dict.fromkeys([*places, *sites, *looked.folders]):
        for module in _CUSTOM:
            for inside in looked.module(place, module):
                looked.add(module, inside, place)
        if is_volatile(root, place):
            looked.add("volatile", place, place)
    for place in looked.before:
        if taken := looked.of_the_library(place):
            looked.add("egg", taken, place)
    looked.put_before(places + sites)
    for archive in layout["archives"]:
        looked.add("archive", archive, os.path.dirname(archive))
    for library in layout["libraries"]:
        for name in _own_among_links(root, library):
            looked.add("library", f"{library}/{name}", library)
        for cache in foreign_of_library(root, library):
            looked.add("byte-code", cache, library)
    for path in layout["path_files"]:
        looked.add("path-file", path, os.path.dirname(path))
    for prefix in layout["prefixes"]:
        folder = f"{prefix}/etc/conda/activate.d"
        for name in looked.names(folder):
            if name.endswith(".sh"):
                looked.add("activation", f"{folder}/{name}", prefix)
    looked.preload()
    looked.too_many()
    return looked.found


def _distinct(layout: dict[str, Any], key: str) -> list[str]:
    """Folders of the environment, with those that it has where it is of another version."""
    return list(dict.fromkeys([*layout[key], *layout.get(f"more_{key}", ())]))


def _own_among_links(root: Root, library: str) -> list[str]:
    """Modules of a standard library that lie there while most others are links to another one.

    A library that was borrowed, all but some modules, was made to differ in those. What conda
    writes anew for each prefix is left out.
    """
    links, files = 0, []
    for name in root.names(library):
        if name.endswith(".py") and not name.startswith("_sysconfigdata"):
            if os.path.islink(root.beside(f"{library}/{name}")):
                links += 1
            else:
                files.append(name)
    return files if links > len(files) else []


def imported_by_sites(root: Root, sites: list[str]) -> frozenset[str]:
    """The top names of modules that code in .pth files and in start files of folders imports."""
    found: set[str] = set()
    for site in sites:
        paths = [name for name in root.names(site) if name.endswith((".pth", ".start"))]
        for name in paths[:_MOST_PATH_FILES]:
            content = root.read(f"{site}/{name}", _PATH_FILE_LIMIT_BYTES) or b""
            text = content.decode("utf-8-sig", "surrogateescape")
            if name.endswith(".start"):  # lines are `package.module:function`
                found.update(re.findall(r"^\s*(\w+)", text, re.MULTILINE))
                continue
            for line in text.splitlines():
                if line.startswith(("import ", "import\t")):
                    for several, one in _IMPORTED.findall(line):
                        found.update(
                            part.partition(".")[0] for part in re.split(r"[\s,]+", several or one)
                        )
    return frozenset(found)


class _Looked:
    def __init__(self, root: Root, layout: dict[str, Any]) -> None:
        self.found: list[dict[str, Any]] = []
        #: What .pth files put on the path: folders and archives.
        self.folders: dict[str, None] = {}
        #: Those of them that come before the standard library.
        self.before: dict[str, None] = {}
        self._put_before: dict[str, None] = {}  #: those of `PUT_BEFORE` that are
        self.of_sites: list[tuple[str, str, str, list[str] | None]] = []
        self._more: list[str] = []  #: hooks that are counted alone
        self._path_files = 0
        self._compared: set[str] = set()  #: modules whose byte code has been looked at
        self._root = root
        self._sites = _distinct(layout, "sites")
        libraries = _distinct(layout, "libraries")
        self._libraries = [*libraries, *(f"{one}/lib-dynload" for one in libraries)]
        self._user_site = layout["user_site"]
        self._installed = Installed(root, layout["prefixes"])
        self._names: dict[str, list[str]] = {}
        self._by_module: dict[str, dict[str, list[str]]] = {}

    def names(self, folder: str) -> list[str]:
        """What a folder holds."""
        if folder not in self._names:
            self._names[folder] = self._root.names(folder)
        return self._names[folder]

    def path_file(self, site: str, name: str) -> None:
        """A .pth file: folders to be put on the path, and lines of code."""
        path = f"{site}/{name}"
        self._path_files += 1
        if self._path_files > _MOST_PATH_FILES:
            self._more.append(path)
            return
        content = self._root.read(path, _PATH_FILE_LIMIT_BYTES + 1) or b""
        if len(content) > _PATH_FILE_LIMIT_BYTES:
            self.of_sites.append(("long-pth", path, site, None))
        text = content.decode("utf-8-sig", "surrogateescape")
        code: dict[str, None] = {}
        put_first = _PUT_FIRST in text
        # Up to 3.12 `site` reads lines as files have them, and later as texts have them.
        for line in [*re.split(r"\r\n|\r|\n", text), *text.splitlines()]:
            if line.startswith(("import ", "import\t")):
                code.setdefault(line)
            elif line.strip() and not line.startswith("#"):
                place = os.path.normpath(os.path.join(site, line.rstrip()))
                self._put(place, path)
                if put_first and place in self.folders:
                    self.before.setdefault(place)
        for folder in _APPENDED.findall("\n".join(code)):
            self._put(folder, path)
        for inside in PUT_BEFORE:
            if any(os.path.basename(inside) in line for line in code):
                self._put_before.setdefault(inside)
        if code:
            self.of_sites.append(("pth", path, site, list(code)))

    def of_the_library(self, place: str) -> str:
        """A module in a folder or archive that the standard library has, too; else empty."""
        names = sys.stdlib_module_names if hasattr(sys, "stdlib_module_names") else _OLD_MODULES
        if self._root.is_folder(place):
            names = names & set(self._modules(place))
        return next((found for name in sorted(names) for found in self.module(place, name)), "")

    def _put(self, place: str, path: str) -> None:
        if "\0" in place or place in self.folders:
            return
        if len(self.folders) >= _MOST_FOLDERS:
            self._more.append(path)
        elif os.path.exists(self._root.at(place)):
            self.folders.setdefault(place)

    def look_at_sites(self) -> None:
        """The hooks of .pth and start files, once all of the path is known."""
        for kind, path, site, code in self.of_sites:
            self.add(kind, path, site, code)

    def add(
        self,
        kind: str,
        path: str,
        site: str,
        code: list[str] | None = None,
        beside: tuple[str, ...] = (),
    ) -> None:
        """A hook, with the modules of the sites that its code imports, and what it executes."""
        if len(self.found) >= _MOST_HOOKS:
            self._more.append(path)
            return
        first = self._file(path, site)
        text = "\n".join(code) if code is not None else first["text"]
        files = [first]
        if kind in ("pth", "start", *_CUSTOM):
            files += self._imported(kind, text)
            for file in files[1:]:
                if _REDIRECTOR.fullmatch(os.path.basename(file["path"])):
                    known = {one["path"] for one in files}
                    more = self._imported("pth", file["text"])
                    files += [one for one in more if one["path"] not in known]
        files += [self._file(one, site) for one in beside]
        for file in files[1:]:
            for folder in _APPENDED.findall(file["text"]):
                self._put(folder, path)
        runs = kind != "usercustomize" or self._user_site
        self.found.append(
            {"kind": kind, "path": path, "code": code or [], "files": files, "runs": runs}
        )
        if runs and kind in ("pth", "start", *_CUSTOM):
            for file in files:
                self._byte_code(file["path"], site)

    def put_before(self, places: list[str]) -> None:
        """What can be imported from each folder that a line puts before the standard library."""
        for inside in self._put_before:
            for place in dict.fromkeys([*places, *self.folders]):
                self._all_of(f"{place}/{inside}")
                if not self._root.is_folder(place):
                    within = re.escape(inside).encode() + rb"/[^\0]{1,200}?"
                    for path in self._in_archive(place, within):
                        self.add("before", path, os.path.dirname(place))
        if _PDBPP in self._put_before:  # an old line takes any folder of the name
            for place in self.folders:
                if place.endswith(f"/{_PDBPP}"):
                    self._all_of(place)

    def _all_of(self, folder: str) -> None:
        if not self._root.is_folder(folder):
            if self._root.read(folder, 0) is not None:
                self.add("before", folder, os.path.dirname(folder))  # an archive
            return
        above = os.path.dirname(folder)
        for entries in self._modules(folder).values():
            for entry in entries:
                path = f"{folder}/{entry}"
                if entry == "__pycache__" or any(one["path"] == path for one in self.found):
                    continue
                if not (entry.endswith(_SUFFIXES) or self._root.is_folder(path)):
                    continue
                beside: tuple[str, ...] = ()
                if os.path.basename(folder) == _PDBPP:
                    places = (f"{above}/{name}" for name in _EXECUTED)
                    beside = tuple(one for one in places if os.path.lexists(self._root.at(one)))
                self.add("before", path, above, beside=beside)
                self._byte_code(path, above)

    def _byte_code(self, path: str, site: str) -> None:
        """What would be run in place of a hook's module."""
        if not path.endswith(".py") or path in self._compared:
            return
        self._compared.add(path)
        content = self._root.read(path, _FILE_LIMIT_BYTES)
        for cache in foreign(self._root, path, content) if content is not None else ():
            self.add("byte-code", cache, site)

    def too_many(self) -> None:
        """One hook for all those that were only counted: the one that was changed last."""
        if self._more:
            last = max(self._more, key=self._root.changed_ns)
            file = {"path": last, "text": "", "whole": False, "listed": None,
                    "changed_ns": self._root.changed_ns(last)}  # fmt: skip
            self.found.append(
                {"kind": "many", "path": last, "code": [], "files": [file], "runs": True}
            )

    def preload(self) -> None:
        """Libraries that the loader puts into every process.

        It looks itself for those without a folder, and knows words in place of folders, so that
        whether one is there is not for us to tell.
        """
        content = self._root.read(_PRELOAD, _FILE_LIMIT_BYTES + 1) or b""
        text = re.sub(r"#.*", "", content.decode("utf-8", "replace"))
        words = [word for word in re.split(r"[\s:]+", text) if word]
        # What ends a comment early, or is not read to its end, can hold others.
        if not words and (b"\0" in content or len(content) > _FILE_LIMIT_BYTES):
            words = ["?"]
        if words:
            self.add("preload", _PRELOAD, "/etc", words)

    def _imported(self, kind: str, text: str) -> list[dict[str, Any]]:
        names: dict[str, None] = {}
        for several, one in _IMPORTED.findall(text):
            for name in re.split(r"[\s,]+", several or one):
                names.setdefault(name)
        if kind == "start":  # lines are `package.module:function`
            for line in text.splitlines():
                names.setdefault(line.partition(":")[0].strip())
        files: dict[str, dict[str, Any]] = {}
        for name in names:
            parts = name.split(".")
            places = [*self._sites, *self.folders]
            if parts[0] not in sys.stdlib_module_names | _OLD_MODULES:
                places += self._libraries
            for count in range(1, len(parts) + 1):
                for site in places:
                    for path in self.module(site, *parts[:count]):
                        if path not in files:
                            files[path] = self._file(path, site)
        return list(files.values())

    def module(self, place: str, *parts: str) -> list[str]:
        """The files that can be the module or package, in a folder or an archive."""
        if not self._root.is_folder(place):
            return self._in_archive(place, re.escape("/".join(parts)).encode())
        *folders, name = parts
        folder = "/".join([place, *folders])
        found = []
        for entry in self._modules(folder).get(name, ()):
            path = f"{folder}/{entry}"
            if entry == name:
                inner = (
                    self._modules(path).get("__init__", ()) if self._root.is_folder(path) else ()
                )
                found += [f"{path}/{one}" for one in inner if one.endswith(_SUFFIXES)]
            elif entry.endswith(_SUFFIXES):
                found.append(path)
        return [path for path in found if self._root.read(path, 0) is not None]

    def _modules(self, folder: str) -> dict[str, list[str]]:
        """The entries of a folder by the name of the module that they would be."""
        if folder not in self._by_module:
            sorted_: dict[str, list[str]] = {}
            for entry in self.names(folder):
                sorted_.setdefault(entry.partition(".")[0], []).append(entry)
            self._by_module[folder] = sorted_
        return self._by_module[folder]

    def _in_archive(self, archive: str, name: bytes) -> list[str]:
        """The same in a zip file or an egg, whose list names what it holds, by a pattern."""
        if self._root.read(archive, 0) is None:
            return []
        pattern = re.compile(_IN_ARCHIVE % name, re.DOTALL)
        try:
            with open(self._root.at(archive), "rb") as stream:
                size = os.fstat(stream.fileno()).st_size
                if size > _ARCHIVE_LIMIT_BYTES:
                    return [f"{archive}/{name.decode()}"]  # who knows
                with mmap.mmap(stream.fileno(), 0, access=mmap.ACCESS_READ) as data:
                    return [f"{archive}/{one.decode()}" for one in set(pattern.findall(data))]
        except (OSError, ValueError):  # not to be read, or empty
            return []

    def _file(self, path: str, site: str) -> dict[str, Any]:
        content = self._root.read(path, _FILE_LIMIT_BYTES)
        if content is None:  # a folder, or a part of an archive
            there = path if os.path.exists(self._root.at(path)) else site
            changed_ns = self._root.changed_ns(there)
            return {"path": path, "text": "", "whole": False, "changed_ns": changed_ns,
                    "listed": None}  # fmt: skip
        return {
            "path": path,
            "text": content[:_TEXT_LIMIT].decode("utf-8-sig", "replace"),
            "whole": len(content) <= _TEXT_LIMIT,
            "changed_ns": self._root.changed_ns(path),
            "listed": self._installed.says(path, site, content),
        }
