"""Is the reported interpreter one? It is asked a question that is drawn at run time.

And it is looked at: whatever answers rightly must be CPython or PyPy in the end (`launch`).
"""

from __future__ import annotations

import secrets
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Annotated, Literal

from pydantic import StringConstraints

from ..errors import RefusedError
from ..sandbox import Command
from ..stored import Stored
from .integrity.launch import outline, past_shims, why_no_interpreter

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from ..sandbox import Box, StageBox

_ANSWER_LIMIT_BYTES = 1_000_000
#: A twentieth of a second is usual; a busy host must not be taken for a bad interpreter.
_TIME_LIMIT_S = 300.0

#: Written for Python 3.6 and newer, and for Python 2 to fail on in its own words. `-I` keeps
#: the environment's variables and the current folder out of it.
_QUESTION = """
import json, os, sys, sysconfig
nonce, question = sys.argv[1], sys.argv[2]
a, b = (int(part) for part in question.split("*"))
versions = {}
try:
    from importlib import metadata
    for name in ("torch", "jax", "tensorflow"):
        try:
            versions[name] = str(metadata.version(name))
        except metadata.PackageNotFoundError:
            pass
except ImportError:
    pass
with open(sys.argv[3], "w") as answer:
    json.dump({
        "nonce": nonce, "product": a * b,
        "version": "%d.%d.%d" % sys.version_info[:3],
        "implementation": sys.implementation.name,
        "prefix": sys.prefix, "base_prefix": sys.base_prefix,
        "purelib": sysconfig.get_path("purelib"), "platlib": sysconfig.get_path("platlib"),
        "stdlib": sysconfig.get_path("stdlib"), "platstdlib": sysconfig.get_path("platstdlib"),
        "frameworks": versions,
        "conda": os.path.isdir(os.path.join(sys.prefix, "conda-meta")),
    }, answer)
"""


@dataclass(frozen=True)
class Interpreter:
    """A Python that answered."""

    #: As it was reported, or what pyenv's shim starts from the work tree in its place. A link is
    #: kept, since it decides the prefix.
    executable: str
    version: str
    implementation: str
    prefix: str
    base_prefix: str
    purelib: str
    platlib: str
    kind: Literal["venv", "conda", "system"]
    #: Versions of the frameworks' distributions, by their metadata.
    frameworks: Mapping[str, str] = field(default_factory=dict)
    #: What conda's activation scripts of the prefix set.
    activation: Mapping[str, str] = field(default_factory=dict)
    #: By which links and scripts the path leads to the program, in words.
    leads: str = ""
    #: Its standard library, and where the compiled part of that is.
    stdlib: str = ""
    platstdlib: str = ""


#: What can be looked for in a box: no relative path, and nothing that no system call takes.
_Path = Annotated[str, StringConstraints(pattern=r"^/[^\x00]*$", max_length=4096)]


class _Answer(Stored):
    """What an interpreter says of itself."""

    nonce: str
    product: int
    version: str
    implementation: str
    prefix: _Path
    base_prefix: _Path
    purelib: _Path
    platlib: _Path
    stdlib: _Path
    platstdlib: _Path
    frameworks: dict[str, str]
    conda: bool


def ask(
    box: StageBox, path: str, environment: Mapping[str, str], log: Path
) -> tuple[Interpreter | None, str]:
    """The interpreter at `path` inside the box, or None and why it is none.

    Raises:
        SandboxError: the box cannot be looked at.
    """
    if not path.startswith("/") or "\0" in path:
        return None, f"python_path is not an absolute path: {path[:200]!r}"
    steps = box.examine("launch", {"path": path, "folder": str(box.layout.repo)})["steps"]
    started = past_shims(steps)
    nonce = secrets.token_hex(16)
    left, right = secrets.randbelow(10**9), secrets.randbelow(10**9)
    answer_path = box.layout.tools / f"answer-{nonce}.json"
    box.put(answer_path, b"")
    finished = box.run(
        Command(
            argv=[started, "-I", "-c", _QUESTION, nonce, f"{left}*{right}", str(answer_path)],
            cwd=box.layout.work,
            env=environment,
            time_limit_s=_TIME_LIMIT_S,
        ),
        log,
        append=True,
    )
    if finished.start_error:
        return None, f"{path} cannot be run: {finished.start_error}"
    if finished.timed_out:
        return None, f"{path} did not answer within {_TIME_LIMIT_S:.0f} s"
    try:
        answer = _Answer.model_validate_json(box.read(answer_path, _ANSWER_LIMIT_BYTES))
    except (RefusedError, ValueError, RecursionError):
        answer = None  # removed, replaced by something else, or not what was asked for
    if answer is None or (answer.nonce, answer.product) != (nonce, left * right):
        how = finished.signal or f"exit status {finished.exit_code}"
        return None, f"{path} is no Python interpreter: it ended with {how} and no right answer"
    why = why_no_interpreter(steps)
    if why:
        return None, f"{path} is no Python interpreter: {why}"
    kind: Literal["venv", "conda", "system"] = "system"
    if answer.conda:
        kind = "conda"
    elif answer.prefix != answer.base_prefix:
        kind = "venv"
    interpreter = Interpreter(
        executable=started,
        version=answer.version,
        implementation=answer.implementation,
        prefix=answer.prefix,
        base_prefix=answer.base_prefix,
        purelib=answer.purelib,
        platlib=answer.platlib,
        kind=kind,
        frameworks=answer.frameworks,
        activation=_conda_activation(box, answer.prefix, environment, log)
        if kind == "conda"
        else {},
        leads=outline(steps),
        stdlib=answer.stdlib,
        platstdlib=answer.platstdlib,
    )
    with log.open("a", encoding="utf-8", errors="replace") as stream:
        stream.write(f"{interpreter.leads}\n")
    return interpreter, ""


def _conda_activation(
    box: Box, prefix: str, environment: Mapping[str, str], log: Path
) -> dict[str, str]:
    """What the prefix's own `etc/conda/activate.d/*.sh` set, as `conda activate` runs them."""
    out = box.layout.tools / "activation.env"
    box.put(out, b"")
    script = 'for f in "$CONDA_PREFIX"/etc/conda/activate.d/*.sh; do [ -r "$f" ] && . "$f"; done'
    finished = box.run(
        Command(
            argv=["bash", "-c", f'{script}; env -0 > "{out}"'],
            cwd=box.layout.work,
            env={**environment, "CONDA_PREFIX": prefix},
            time_limit_s=_TIME_LIMIT_S,
        ),
        log,
        append=True,
    )
    if not finished.ok:
        return {}
    try:
        said = box.read(out, _ANSWER_LIMIT_BYTES).decode(errors="replace")
    except RefusedError:
        return {}  # a script of the prefix has put something else there
    pairs = [entry.partition("=") for entry in said.split("\0")]
    ignored = {"_", "SHLVL", "PWD", "OLDPWD", "PATH", *environment}
    return {name: value for name, _, value in pairs if name and name not in ignored}
