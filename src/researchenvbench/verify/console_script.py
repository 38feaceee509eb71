"""Which Python a stage's programs are run by: the judged one, and no other in its place.

A console script names its interpreter, and `python` is what the first folder of PATH has. Both
lie in the environment, as does much that has the name of a Python and is none. So each is
followed to the program that it starts (`standalone.look.launch`), and that must be the judged
one, in the same prefix.
"""

from __future__ import annotations

import re
import shlex
from pathlib import Path
from typing import TYPE_CHECKING

from ..errors import RefusedError
from .integrity.launch import same_interpreter, why_no_interpreter, wrapper_findings

if TYPE_CHECKING:
    from ..sandbox import StageBox
    from .interpreter import Interpreter

_SCRIPT_LIMIT_BYTES = 64 * 1024**2
_START_BYTES = 8192
#: Of a path that is too long for the kernel, or has spaces: uv's, pip's and conda's second line.
_HAND_OVER = ' "$0" "$@"'
_EXEC = "'''exec' "
#: How uv writes the script's own folder, where an environment may be moved; and the programs
#: that a shell finds for it by PATH, on which the environment comes first.
_BESIDE = (
    '"$(dirname -- "$(realpath -- "$0")")"/',
    '"$(CDPATH= cd -- "$(dirname -- "$0")" && echo "$PWD")"/',
    '"$(dirname -- "$0")"/',
)
_FINDING = ("dirname", "realpath")
_ENV = re.compile(r"/usr/bin/env[ \t]+(python[\d.]*)")
#: What installers give a script's interpreter; others could be a program of their own.
_OPTIONS = re.compile(r"-[bBdEIOPqsSuv]+")


def script_problem(
    script: Path, interpreter: Interpreter, changed: frozenset[str], box: StageBox
) -> str | None:
    """Why a console script is not one of the judged environment, or None.

    `changed` are files that are not what the installers listed.

    Raises:
        SandboxError: the box cannot be looked at.
    """
    unlisted = None
    if str(script) in changed:
        unlisted = f"the console script {script.name} is not what its distribution brought"
    try:
        start = box.read(script, _SCRIPT_LIMIT_BYTES)[:_START_BYTES].decode(errors="replace")
    except RefusedError as error:
        return f"the console script {script.name} is not in the environment: {error.args[0]}"
    if not start.startswith("#!"):
        return unlisted  # a compiled launcher
    said = start.partition("\n")[0].removeprefix("#!").strip()
    binaries = Path(interpreter.executable).parent
    named = named_interpreter(start, script, binaries)
    if named and _is_judged(named, interpreter, box):
        if planted := _planted(start, binaries, box):
            return (
                f"the console script {script.name} finds its interpreter by "
                f"{planted.name}, and {planted} comes before the system's"
            )
        return unlisted
    return (
        f"the console script {script.name} runs another interpreter than the reported one: "
        f"{(named or said)[:200]}"
    )


def named_interpreter(start: str, script: Path, binaries: Path) -> str:
    """The absolute path of what a script says that it is run by; empty where that is not clear.

    `start` is the script's begin, `binaries` the first folder of PATH.
    """
    first, _, rest = start.partition("\n")
    said = first.removeprefix("#!").strip(" \t")
    if of_path := _ENV.fullmatch(said):
        return str(binaries / of_path[1])
    if said == "/bin/sh":
        return _handed_over(rest.partition("\n")[0], script)
    # As the kernel splits it: a path without spaces, and the rest as one argument.
    program, *options = re.split(r"[ \t]+", said, maxsplit=1)
    return program if program.startswith("/") and all(map(_OPTIONS.fullmatch, options)) else ""


def _handed_over(line: str, script: Path) -> str:
    """What a shell is told to go on with, by a line that is a text to Python."""
    head, found, tail = line.partition(_HAND_OVER)
    if not head.startswith(_EXEC) or not found or tail.strip() not in ("", "#'''"):
        return ""
    head = head.removeprefix(_EXEC)
    folder = ""
    for beside in _BESIDE:
        if head.startswith(beside):
            folder, head = f"{script.parent}/", head.removeprefix(beside)
    try:
        program, *options = shlex.split(head)
    except ValueError:
        return ""  # no word, or a quotation without an end
    clear = not re.search(r"[$`]", head) and all(map(_OPTIONS.fullmatch, options))
    path = f"{folder}{program}"
    return path if clear and path.startswith("/") else ""


def _planted(start: str, binaries: Path, box: StageBox) -> Path | None:
    """A program of the environment that a script's shell calls in place of the system's."""
    head = start.split("\n", 2)[1].partition(_HAND_OVER)[0] if "\n" in start else ""
    if not head.startswith(tuple(_EXEC + beside for beside in _BESIDE)):
        return None
    for name in _FINDING:
        path = binaries / name
        steps = box.examine("launch", {"path": str(path)})["steps"]
        if f"$({name} " in head and steps[-1]["kind"] not in ("missing", "folder"):
            return path
    return None


def _is_judged(path: str, interpreter: Interpreter, box: StageBox) -> bool:
    """Whether a path leads to the judged interpreter in its prefix."""
    if path == interpreter.executable:
        return True
    if "\0" in path:
        return False
    one, other = (
        box.examine("launch", {"path": each, "identity": True})["steps"]
        for each in (path, interpreter.executable)
    )
    return same_interpreter(one, other)


def path_problem(interpreter: Interpreter, box: StageBox) -> str | None:
    """Why what PATH has as `python` plays one, or None.

    A stage's shell and its programs start it by that name, and the report may name another.

    Raises:
        SandboxError: the box cannot be looked at.
    """
    binaries = Path(interpreter.executable).parent
    version = interpreter.version.rpartition(".")[0]
    for name in dict.fromkeys(("python", "python3", f"python{version}")):
        path = str(binaries / name)
        if path == interpreter.executable:
            continue  # judged
        steps = box.examine("launch", {"path": path})["steps"]
        if steps[-1]["kind"] in ("missing", "folder"):
            continue
        if why_no_interpreter(steps) or wrapper_findings(steps):
            return f"{path} is beside the reported interpreter, and is none itself"
    return None
