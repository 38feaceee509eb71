"""What a reported path starts in the end: CPython, PyPy, or something that is neither.

The facts are the steps of `standalone.look.launch`: links, scripts that hand over, an ELF file.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

from ...attempt import Finding

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    Steps = Sequence[Mapping[str, Any]]

_OF_PROC = re.compile(r"/+(?:\.{1,2}/+)*proc/")
_CPYTHON_LIBRARY = re.compile(r"(?:.*/)?libpython\d(?:\.\d+)?[a-z]*\.so(?:\.[\d.]+)?")
_PYPY_LIBRARY = re.compile(r"(?:.*/)?libpypy[\d.]*-c\.so(?:\.[\d.]+)?")
_CPYTHON_WHOLE = {"Py_Main", "PyRun_SimpleFileExFlags"}
#: One that holds all of CPython exports its interface for extension modules: 3.11 has 1,683.
_CPYTHON_NAMES = 700
#: The smallest whole CPython, 2.7 without its symbols, has twice as much.
_CPYTHON_BYTES = 1 << 20
#: What the small program in front of libpython calls: Programs/python.c of CPython 2.7 to 3.14.
_CPYTHON_CALLS = {
    "Py_BytesMain", "Py_Main", "_Py_UnixMain", "Py_DecodeLocale", "PyMem_RawMalloc",
    "PyMem_RawFree", "_PyMem_RawStrdup", "_PyMem_SetupAllocators", "_PyMem_SetDefaultAllocator",
}  # fmt: skip
_CPYTHON_STARTS = {"Py_BytesMain", "Py_Main", "_Py_UnixMain"}


def why_no_interpreter(steps: Steps) -> str:
    """Why the steps end in no interpreter; empty where they do."""
    if any(
        _OF_PROC.match(step[key]) for step in steps for key in ("path", "target") if key in step
    ):
        return f"{steps[0]['path']} leads through /proc, to what is another thing at another time"
    last = steps[-1]
    path, kind = last["path"], last["kind"]
    if kind == "volatile":
        return f"{path} leads through /proc, to what is another thing at another time"
    if kind == "elf":
        return "" if _implementation(last) else f"{path} is a program, but neither CPython nor PyPy"
    if kind == "script":
        if last["hands_over"] == "shim":
            return f"{path} is a shim of pyenv, and the version that it chooses has no such program"
        return f"{path} is a script that does not simply hand over to an interpreter"
    if kind == "missing":
        return f"{path} does not exist"
    if kind == "link":
        return f"{path} is a link that leads in a circle"
    return f"{path} is no program" if kind == "other" else f"{path} is a {kind}"


def past_shims(steps: Steps) -> str:
    """The path that is started: that of the first step, or what pyenv's shim chooses.

    A shim may choose another one in another folder, or by a variable, so it is left out of it.
    """
    first = 0
    for number, step in enumerate(steps[:-1]):
        if step.get("hands_over") == "shim":
            first = number + 1
    path: str = steps[first]["path"]
    return path


def outline(steps: Steps) -> str:
    """How the reported path leads to what is started, in words."""
    words = {"link": "a link", "script": "a script that only starts it"}
    through = [f"{step['path']} ({words[step['kind']]})" for step in steps[:-1]]
    return " -> ".join([*through, steps[-1]["path"]])


def wrapper_findings(steps: Steps) -> list[Finding]:
    """What between the reported path and the interpreter changes what is started.

    A script that only hands over is none (`outline` tells of it).
    """
    found = []
    for step in steps:
        if step["kind"] == "script" and step["hands_over"] == "altered":
            found.append(
                Finding(
                    kind="interpreter-wrapper-alters",
                    what="a script that does more than to start an interpreter whose path is "
                    f"written out, by the system's shell: {_excerpt(step['text'])}",
                    where=step["path"],
                    why="every probe and every stage is started by it",
                    disqualifies=True,
                )
            )
    last = steps[-1]
    strange = _strange_calls(last)
    if last["kind"] == "elf" and strange:
        found.append(
            Finding(
                kind="interpreter-wrapper-alters",
                what=f"a program that is built around Python ({', '.join(strange[:5])})",
                where=last["path"],
                why="Python's own program only calls its main function",
                disqualifies=True,
            )
        )
    return found


def same_interpreter(one: Steps, other: Steps) -> bool:
    """Whether two paths start the same program in the same prefix, by nothing that alters it.

    Both are steps with `identity`. A Python takes its prefix from the folder of the path that
    it is started by, links and all. The program may be there twice, since a venv can be made of
    copies.
    """
    if not _hands_over_only(one) or not _hands_over_only(other):
        return False
    mine, theirs = one[-1], other[-1]
    if mine["kind"] != "elf" or theirs["kind"] != "elf":
        return False
    started = _started(one)["folder"]
    same_file = mine["real"] == theirs["real"] or mine["sha256"] == theirs["sha256"] != ""
    return bool(started) and started == _started(other)["folder"] and same_file


def _hands_over_only(steps: Steps) -> bool:
    return all(step["kind"] != "script" or step["hands_over"] in ("only", "shim") for step in steps)


def _started(steps: Steps) -> Mapping[str, Any]:
    """The path that the program itself is started by: the first, or what the last script names."""
    first = 0
    for number, step in enumerate(steps[:-1]):
        if step["kind"] == "script":
            first = number + 1
    return steps[first]


def _implementation(elf: Mapping[str, Any]) -> str:
    needed, uses = elf["needed"], set(elf["uses"])
    if any(_PYPY_LIBRARY.fullmatch(name) for name in needed):
        return "pypy" if "pypy_main_startup" in uses else ""
    if "pypy_main_startup" in elf["defines"]:
        return "pypy"
    if _is_whole(elf):
        return "cpython"
    if any(_CPYTHON_LIBRARY.fullmatch(name) for name in needed) and uses & _CPYTHON_STARTS:
        # There is none where only the loader's own cache knows where it lies.
        return "cpython" if all(_is_whole(library) for library in elf["libraries"]) else ""
    return ""


def _is_whole(elf: Mapping[str, Any]) -> bool:
    """Whether a file can be one that holds all of CPython."""
    return (
        set(elf["defines"]) >= _CPYTHON_WHOLE
        and elf["defined"] >= _CPYTHON_NAMES
        and elf["size_bytes"] >= _CPYTHON_BYTES
        and bool(elf["marked"])
    )


def _strange_calls(elf: Mapping[str, Any]) -> list[str]:
    """Names of Python's library that a program uses and that Python's own does not."""
    if elf["kind"] != "elf" or not any(_CPYTHON_LIBRARY.fullmatch(name) for name in elf["needed"]):
        return []
    return sorted(set(elf["uses"]) - _CPYTHON_CALLS)


def _excerpt(text: str) -> str:
    lines = [line.strip() for line in text.splitlines()[1:]]
    return "; ".join(line for line in lines if line and not line.startswith("#"))[:160]
