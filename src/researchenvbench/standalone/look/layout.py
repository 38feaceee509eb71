"""Where an interpreter looks for modules, found out without asking it.

What `site` and `getpath` of CPython do (docs.python.org, "The initialization of the sys.path
module search path"), as far as it tells which folders can hold start-up hooks.
"""

from __future__ import annotations

import os
import re

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from .paths import Root

_CONFIGURATION_LIMIT_BYTES = 65_536


def layout(
    root: Root,
    steps: list[dict[str, Any]],
    home: str,
    answered: dict[str, str],
    user_bases: list[str] | None = None,
) -> dict[str, Any]:
    """Prefixes, `sites` (folders with .pth files), standard libraries and what is odd.

    Which version it is, and which folder above the program its library lies in, is told by names
    that can be others: `more_sites` and `more_libraries` are those that it has by another name.

    `answered` is what the interpreter says of itself: folders that it names are added to those
    that are found, and take none away. `user_bases` are folders for which variables say that
    they are the user's, beside the one in `home`.
    """
    started, program = _started(steps)
    binaries = os.path.dirname(started)
    configuration, prefix, shared = _venv(root, binaries)
    own = os.path.dirname(os.path.dirname(program))
    bases = [own]
    if configuration.get("home"):
        bases.append(os.path.dirname(root.real(configuration["home"])))
    bases.append(answered.get("base_prefix") or own)
    prefixes = [prefix or own, answered.get("prefix") or prefix or own]
    version = _version(program, configuration)
    sites = []
    for folder in [*prefixes, *(bases if shared else [])]:
        sites += _sites(root, folder, version)
    sites += [answered[key] for key in ("purelib", "platlib") if answered.get(key)]
    users = [*([f"{home}/.local"] if home else []), *(user_bases or [])] if shared else []
    user = [site for base in users for site in _sites(root, base, version)]
    libraries = [library for base in bases for library in _libraries(root, base, version)]
    libraries += [answered[key] for key in ("stdlib", "platstdlib") if answered.get(key)]
    read = [*prefixes, *(bases if shared else []), *users]
    above = [*bases, *(folder for base in bases for folder in _above(base))]
    return {
        "prefixes": _distinct(root, [*prefixes, *bases]),
        "sites": _distinct(root, [*sites, *user]),
        "libraries": _distinct(root, libraries),
        "more_sites": _distinct(root, [site for one in read for site in _sites(root, one, "")]),
        "more_libraries": _distinct(root, [x for one in above for x in _libraries(root, one, "")]),
        "archives": _distinct(root, _archives(root, [*prefixes, *bases], version)),
        "user_site": shared,
        "path_files": [
            f"{folder}/{name}"
            for folder in _distinct(root, [binaries, os.path.dirname(program)])
            for name in [*root.names(folder), *_in_modules(root, folder)]
            if name.endswith("._pth") or name in _OF_A_BUILD
        ],
    }


#: By which a Python takes itself for one that was just built, and its library from where that is.
_OF_A_BUILD = ("pybuilddir.txt", "Modules/Setup.local")


def _in_modules(root: Root, folder: str) -> list[str]:
    return [f"Modules/{name}" for name in root.names(f"{folder}/Modules")]


def _above(folder: str) -> list[str]:
    """The folders that hold the folder: the library is looked for in each, upwards."""
    found = []
    while folder not in ("", "/"):
        folder = os.path.dirname(folder)
        found.append(folder)
    return found


_SHARED = "include-system-site-packages"


def _started(steps: list[dict[str, Any]]) -> tuple[str, str]:
    """The path by which the program is started, and where the program itself lies."""
    first = 0
    for number, step in enumerate(steps):
        if step["kind"] == "script" and number + 1 < len(steps):
            first = number + 1
    return steps[first]["path"], steps[-1]["path"]


def _venv(root: Root, binaries: str) -> tuple[dict[str, str], str, bool]:
    """What the environment's `pyvenv.cfg` says, the folder that holds it, and what is shared.

    The system's packages are, for `site`, where nothing is said of them.
    """
    for folder in (binaries, os.path.dirname(binaries)):
        text = root.read(f"{folder}/pyvenv.cfg", _CONFIGURATION_LIMIT_BYTES + 1)
        if text is None:
            continue
        # As files end their lines, and not as texts do, which also know form feeds and others.
        lines = re.split(r"\r\n|\r|\n", text.decode("utf-8", "replace"))
        pairs = [line.partition("=") for line in lines if "=" in line]
        said = {key.strip().lower(): value.strip() for key, _, value in pairs}
        shared = said.get(_SHARED, "true").lower() == "true"
        # Of one that is not read to its end, the last line counts, whatever it is.
        return said, folder, shared or len(text) > _CONFIGURATION_LIMIT_BYTES
    return {}, "", True


def _version(program: str, configuration: dict[str, str]) -> str:
    """The version as folders name it; empty where nothing says it."""
    named = re.search(r"(?:python|pypy)(\d\.\d+)", os.path.basename(program))
    said = configuration.get("version") or configuration.get("version_info") or ""
    written = re.match(r"\d\.\d+", said)
    return named[1] if named else written[0] if written else ""


def _libraries(root: Root, prefix: str, version: str) -> list[str]:
    """Folders of standard libraries below a prefix: of the version, or of all where unknown."""
    found = []
    for library in ("lib", "lib64"):
        for name in root.names(f"{prefix}/{library}"):
            told = re.fullmatch(r"(?:python|pypy)(\d\.\d+)t?", name)
            if told and (not version or told[1] == version):
                found.append(f"{prefix}/{library}/{name}")
    if root.is_folder(f"{prefix}/lib-python"):  # PyPy before 3.8
        found += [f"{prefix}/lib-python/{name}" for name in root.names(f"{prefix}/lib-python")]
    return found


def _archives(root: Root, prefixes: list[str], version: str) -> list[str]:
    """Archives, or folders of their names, that come before the standard library."""
    return [
        f"{prefix}/{library}/{name}"
        for prefix in prefixes
        for library in ("lib", "lib64")
        for name in root.names(f"{prefix}/{library}")
        if re.fullmatch(r"python\d+t?\.zip", name)
        and (not version or name[6:].startswith(version.replace(".", "")))
    ]


def _sites(root: Root, prefix: str, version: str) -> list[str]:
    """Folders below a prefix whose .pth files are read, Debian's among them."""
    found = [f"{prefix}/site-packages", f"{prefix}/lib/python3/dist-packages"]
    for top in (prefix, f"{prefix}/local"):
        for library in _libraries(root, top, version):
            found += [f"{library}/site-packages", f"{library}/dist-packages"]
    return [folder for folder in found if root.is_folder(folder)]


def _distinct(root: Root, paths: list[str]) -> list[str]:
    """The paths without those that are another one by way of links."""
    real: dict[str, str] = {}
    for path in paths:
        real.setdefault(root.real(path), path)
    return list(real)
