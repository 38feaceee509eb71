"""What a path that is called a Python starts in the end: links, scripts, and the ELF file.

It states facts; whether they make an interpreter is decided by `verify.interpreter`.
"""

from __future__ import annotations

import os
import re
import stat

from .. import files
from . import elf
from .paths import Root

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

_STEPS = 20
_SCRIPT_LIMIT_BYTES = 65_536
_SHOWN = 4096
#: No Python is larger, with all that it was linked with.
_PROGRAM_LIMIT_BYTES = 1 << 28

#: Shells that a script may name and that are the system's: any other may be a program of its own.
_SHELL = re.compile(r"#![ \t]*((?:/usr)?/bin/(?:sh|bash)|/bin/dash)(?:[ \t]+-[eu]+)?[ \t]*")
_SOME_SHELL = re.compile(r"#!.*sh\b.*")
#: Lines of a script that change nothing for what it starts.
_NEUTRAL = re.compile(r"|:|#.*|set (?:-[eu]+|-o (?:pipefail|errexit|nounset))(?: pipefail)?")
_BESIDE = r"\$\(dirname (?:--\s+)?(?:\"\$0\"|\$0)\)|\$\{0%/\*\}"
#: `exec PROGRAM "$@"` and no more, of a PROGRAM that is written out. In quotes a path may hold
#: spaces.
_HAND_OVER = re.compile(
    r"(?:exec[ \t]+)?(?:\"(?P<quoted>/[^\"$`\\]*)\"|'(?P<single>/[^']*)'"
    r"|(?P<bare>/[\w./+@%:,-]+))[ \t]+\"\$@\"[ \t]*;?"
)
#: Where a line that does more than that names a Python.
_SOME_PYTHON = re.compile(r"(/[^\s\"'$`;&|<>()]*(?:python|pypy)[\w.+-]*)")
#: What `pyenv rehash` writes, from 2013 to 2026; %s is what differs in the middle.
_PYENV_HEAD = """#!/usr/bin/env bash
set -e
[ -n "$PYENV_DEBUG" ] && set -x

program="${0##*/}"
"""
_PYENV_LOOKS = """if %s; then
  for arg; do
    case "$arg" in
    -c* | -- ) break ;;
    */* )
      if [ -f "$arg" ]; then
        export %s
        break
      fi
      ;;
    esac
  done
fi
"""
_PYENV_PROGRAM = ('[[ "$program" = "python"* ]]', '[ "$program" = "python" ]')
_PYENV_FROM = ('PYENV_FILE_ARG="$arg"', 'PYENV_DIR="${arg%/*}"')
_PYENV_SHIMS = """SHIM_PATH=${0%%/*}
if [[ $SHIM_PATH != "%s/shims" ]]; then
  export _PYENV_SHIM_PATH="$SHIM_PATH"
fi
"""
_PYENV_ROOT = re.compile(r"^export PYENV_ROOT=\"(/[^\"$`\\\n]*)\"$", re.MULTILINE)
#: Files that a pyenv has.
_PYENV_FILES = ("libexec/pyenv", "libexec/pyenv-exec", "libexec/pyenv-rehash")
#: Folders in which the same path is another thing at another time.
_VOLATILE = ("/proc", "/sys", "/dev/fd")
_LIBPYTHON = re.compile(r"libpython\d(?:\.\d+)?[a-z]*\.so(?:\.[\d.]+)?")
#: Where the loader looks by itself.
_LIBRARIES = ("/lib64", "/usr/lib64", "/lib", "/usr/lib", "/usr/local/lib")


def examine(order: dict[str, Any]) -> dict[str, Any]:
    """The steps from `path` (below `root`) to what is started, from the folder `folder`.

    A shim of pyenv chooses by that folder; without one it is what pyenv starts everywhere else.

    With `identity`, each step has its `folder` without links, and a program its path so, `real`,
    and its `sha256`, by which two are known to be one; they are empty where they cannot be told.
    """
    root = Root(order.get("root", "/"))
    steps = follow(root, order["path"], order.get("folder", ""))
    if order.get("identity"):
        for step in steps:
            step["folder"] = _real(root, os.path.dirname(step["path"]))
        if steps[-1]["kind"] == "elf":
            real = steps[-1]["real"] = _real(root, steps[-1]["path"])
            steps[-1]["sha256"] = _sha256(root, real)
    return {"steps": steps}


def _real(root: Root, path: str) -> str:
    try:
        return root.real(path)
    except OSError:
        return ""  # links in a circle


def _sha256(root: Root, real: str) -> str:
    """Of a program, which may be a hole of a terabyte."""
    import hashlib

    digest = hashlib.sha256()
    try:
        with files.opened(root.folder or "/", real) as handle:
            left = os.fstat(handle).st_size
            if left > _PROGRAM_LIMIT_BYTES:
                return ""
            while left > 0 and (piece := os.read(handle, min(left, files.READ_BYTES))):
                digest.update(piece)
                left -= len(piece)
    except (files.Refused, OSError):
        return ""
    return digest.hexdigest()


def follow(root: Root, path: str, folder: str = "") -> list[dict[str, Any]]:
    """Each step with its `path` and `kind`: link, script, elf, missing, folder or other."""
    steps: list[dict[str, Any]] = []
    while len(steps) < _STEPS:
        try:
            here = root.beside(path)
            mode = os.lstat(here).st_mode
        except OSError:
            return [*steps, {"path": path, "kind": "missing"}]
        if is_volatile(root, path):
            return [*steps, {"path": path, "kind": "volatile"}]
        if stat.S_ISLNK(mode):
            target = os.readlink(here)
            steps.append({"path": path, "kind": "link", "target": target})
            path = os.path.join(root.real(os.path.dirname(path)), target)
            continue
        content = root.read(path, _SCRIPT_LIMIT_BYTES + 1)
        if content is None:
            kind = "folder" if stat.S_ISDIR(mode) else "other"
            return [*steps, {"path": path, "kind": kind}]
        if content.startswith(elf.MAGIC):
            facts = elf.facts(here)
            libraries = _libraries(root, path, facts)
            return [*steps, {"path": path, "kind": "elf", **facts, "libraries": libraries}]
        if not content.startswith(b"#!"):
            return [*steps, {"path": path, "kind": "other"}]
        text = content.decode("utf-8", "replace")
        hands_over, target = _handed_over(root, path, text, folder)
        steps.append(
            {"path": path, "kind": "script", "text": text[:_SHOWN], "hands_over": hands_over}
        )
        if not target:
            return steps
        path = target
    return steps


def is_volatile(root: Root, path: str) -> bool:
    """Whether the way to `path` leads through /proc, /sys or /dev/fd, by links or by its name."""
    try:
        way = root.way(path)
    except OSError:
        return False  # links in a circle lead nowhere at all
    return any(
        folder == place or folder.startswith(f"{place}/") for folder in way for place in _VOLATILE
    )


def _libraries(root: Root, path: str, facts: dict[str, Any]) -> list[dict[str, Any]]:
    """What a program may get as its libpython: in its run paths and in the usual folders.

    All of them, since the loader passes over those that do not suit it.
    """
    named = [name for name in facts["needed"] if _LIBPYTHON.fullmatch(os.path.basename(name))]
    beside = os.path.dirname(root.real(path))

    def places(name: str) -> list[str]:
        if "/" in name:
            return [name]
        folders = [folder for text in facts["run_paths"] for folder in text.split(":")]
        for folder in _LIBRARIES:
            folders += [
                folder,
                *(f"{folder}/{one}" for one in root.names(folder) if "-linux-" in one),
            ]
        return [f"{folder}/{name}" for folder in folders]

    found: dict[str, dict[str, Any]] = {}
    for name in named:
        for place in places(name):
            place = place.replace("${ORIGIN}", beside).replace("$ORIGIN", beside)
            if place.startswith("/") and root.read(place, 4) == elf.MAGIC:
                real = root.real(place)
                found.setdefault(real, {"path": place, **elf.facts(root.at(place))})
    return list(found.values())


def _handed_over(root: Root, path: str, text: str, started_in: str) -> tuple[str, str]:
    """How a script hands over (only, shim, altered, or not at all), and to what."""
    folder = _pyenv_of(text)
    if folder and all(root.read(f"{folder}/{name}", 1) for name in _PYENV_FILES):
        return "shim", _chosen_by_pyenv(root, folder, os.path.basename(path), started_in)
    first, _, rest = text.partition("\n")
    if not _SOME_SHELL.fullmatch(first):
        return "", ""
    shell = _SHELL.fullmatch(first)
    # As a shell reads them: other white space and other ends of lines are part of words.
    lines = [line.strip(" \t") for line in rest.split("\n")]
    lines = [line for line in lines if not _NEUTRAL.fullmatch(line)]
    only = _HAND_OVER.fullmatch(lines[0]) if len(lines) == 1 else None
    whole = len(text) <= _SCRIPT_LIMIT_BYTES
    if only:
        of_system = whole and shell and root.read(shell[1], 4) == elf.MAGIC
        target = only["quoted"] or only["single"] or only["bare"]
        return "only" if of_system else "altered", target
    for line in reversed(lines):
        if "$@" in line or "$*" in line:
            named = _SOME_PYTHON.findall(re.sub(_BESIDE, lambda _: os.path.dirname(path), line))
            return "altered", named[-1] if named else ""
    return "" if whole and not folder else "altered", ""


def _pyenv_of(text: str) -> str:
    """The folder of the pyenv whose shim the text is, to the letter; empty where it is none."""
    told = _PYENV_ROOT.findall(text)
    if len(told) != 1:
        return ""
    folder: str = told[0]
    looks = [_PYENV_LOOKS % (asked, kept) for asked in _PYENV_PROGRAM for kept in _PYENV_FROM]
    export = f'\nexport PYENV_ROOT="{folder}"\n'
    middles = [*(look + export for look in looks), export, export + _PYENV_SHIMS % folder]
    for middle in middles:
        for place in ("libexec", "bin"):
            end = f'exec "{folder}/{place}/pyenv" exec "$program" "$@"\n'
            if text == _PYENV_HEAD + middle + end:
                return folder
    return ""


def _chosen_by_pyenv(root: Root, folder: str, program: str, started_in: str) -> str:
    """What the shim starts there where no variable chooses another version; else empty.

    As `pyenv-version-file`, `pyenv-version-file-read` and `pyenv-latest` of pyenv 2.4 find it: by
    the first `.python-version` of the folder and those above it, else by pyenv's own file.
    """
    ways = [started_in] if started_in else []
    while ways and ways[-1] not in ("", "/"):
        ways.append(os.path.dirname(ways[-1]))
    told = [root.read(f"{way.rstrip('/')}/.python-version", _SHOWN) for way in ways]
    text = next((one for one in told if one is not None), None)
    if text is None:
        text = root.read(f"{folder}/version", _SHOWN) or b"system"
    for line in text.decode("utf-8", "replace").splitlines():
        for version in [word for word in line.split()[:1] if not word.startswith("#")]:
            for place in _places_of(root, folder, version):
                if os.path.exists(root.at(f"{place}/{program}")):
                    return f"{place}/{program}"
    return ""


def _places_of(root: Root, folder: str, version: str) -> list[str]:
    """The folders that may hold the programs of a version as pyenv's files name it."""
    if version == "system":
        return ["/usr/local/bin", "/usr/bin", "/bin"]
    if "/" in version or version == "..":
        return []
    names = root.names(f"{folder}/versions")
    plain = version.removeprefix("python-")
    known = [name for name in (version, plain) if name in names]
    newest = sorted(
        (name for name in names if re.fullmatch(re.escape(plain) + r"(?:\.\d+)+", name)),
        key=lambda name: [int(part) for part in name.split(".") if part.isdigit()],
    )
    return [f"{folder}/versions/{name}/bin" for name in (known or newest[-1:])]
