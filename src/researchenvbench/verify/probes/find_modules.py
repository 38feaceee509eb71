"""Which modules does this interpreter find? Runs in the judged environment.

Stand-alone, Python 3.6 and newer: `find_modules.py NONCE QUESTION.json ANSWER.json`. The
question is `{"names": [...], "parents": false, "limit_s": 60}`. Every name is looked up with
the finders of `sys.meta_path`, so that editable installs answer too, and nothing is imported.
With `parents`, packages above a name are imported first, in a process of their own that is
ended at the limit, for those that make their submodules only then. Each answer is one of

    module   there is a module or a package
    hollow   a folder without `__init__.py` in which there is no module, such as what is left
             of a package that was removed: it can be imported and holds nothing
    missing  no finder knows it
"""

import contextlib
import importlib
import importlib.machinery
import importlib.util
import json
import os
import select
import signal
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from importlib.machinery import ModuleSpec

#: For all packages together; less than the whole question may take.
PARENTS_LIMIT_S = 300.0
ANSWER_LIMIT_BYTES = 16 << 20
READ_BYTES = 1 << 16
LOOK_AT_FILES = 20000


def find(name: str, path: "list[str] | None") -> "ModuleSpec | None":
    """The spec of one module in its parent's search path, or None."""
    for finder in list(sys.meta_path):
        find_spec = getattr(finder, "find_spec", None)
        if find_spec is None:
            continue
        try:
            spec = find_spec(name, path)  # type: ModuleSpec | None
        except (ImportError, AttributeError, ValueError, OSError, TypeError, KeyError):
            continue
        if spec is not None:
            return spec
    return None


def locate(dotted: str) -> str:
    """What a name is, without importing anything."""
    parts = dotted.split(".")
    path = None  # type: list[str] | None
    spec = None
    for count in range(1, len(parts) + 1):
        if count > 1 and path is None:
            return "missing"
        spec = find(".".join(parts[:count]), path)
        if spec is None:
            return "missing"
        locations = spec.submodule_search_locations
        path = None if locations is None else list(locations)
    if spec is not None and is_namespace(spec) and not holds_module(path or []):
        return "hollow"
    return "module"


def is_namespace(spec: "ModuleSpec") -> bool:
    """Whether it is a folder without `__init__`."""
    return spec.submodule_search_locations is not None and (
        spec.loader is None or "NamespaceLoader" in type(spec.loader).__name__
    )


def holds_module(folders: "list[str]") -> bool:
    """Whether any module lies in or below one of the folders."""
    suffixes = tuple(importlib.machinery.all_suffixes())
    seen = 0
    for top in folders:
        for _, below, files in os.walk(top):
            if "__pycache__" in below:
                below.remove("__pycache__")
            if any(file.endswith(suffixes) for file in files):
                return True
            seen += len(files) + 1
            if seen > LOOK_AT_FILES:
                return True
    return False


def locate_with_parents(names: "list[str]", limit_s: float) -> "dict[str, str]":
    """What names below one package are once the packages above them are imported."""
    reading, writing = os.pipe()
    child = os.fork()
    if child == 0:
        answers = {}
        try:
            os.setsid()
            os.close(reading)
            for name in names:
                try:
                    importlib.import_module(name.rpartition(".")[0])
                    found = name in sys.modules or importlib.util.find_spec(name) is not None
                except Exception:  # noqa: BLE001  # whatever the package's own code raises
                    found = False
                answers[name] = "module" if found else "missing"
            with os.fdopen(writing, "wb") as stream:
                stream.write(json.dumps(answers).encode("utf-8") + b"\n")
        finally:
            os._exit(0)
    os.close(writing)
    try:
        answered = read_until(reading, time.monotonic() + limit_s)
    finally:
        os.close(reading)
        end(child)
    try:
        told = json.loads(answered.decode("utf-8"))
        return {name: "module" for name in names if told.get(name) == "module"}
    except (ValueError, AttributeError, RecursionError):  # it crashed, or took too long
        return {}


def read_until(descriptor: int, deadline: float) -> bytes:
    """The line that is written to a pipe; nothing if it comes too late.

    The package's own code may ignore every alarm, and what it started may hold the pipe.
    """
    line = b""
    while not line.endswith(b"\n") and len(line) < ANSWER_LIMIT_BYTES:
        left_s = deadline - time.monotonic()
        if left_s <= 0 or not select.select([descriptor], [], [], left_s)[0]:
            return b""
        part = os.read(descriptor, READ_BYTES)
        if not part:
            return b""
        line += part
    return line


def end(child: int) -> None:
    """End a process and those of its group; it may not have made the group yet."""
    for kill in (os.killpg, os.kill):
        with contextlib.suppress(OSError):
            kill(child, signal.SIGKILL)
    os.waitpid(child, 0)


def main() -> None:
    """Answer the question."""
    nonce, question_file, answer_file = sys.argv[1:4]
    here = Path(__file__).resolve().parent
    sys.path[:] = [entry for entry in sys.path if entry and Path(entry).resolve() != here]
    with Path(question_file).open(encoding="utf-8") as stream:
        question = json.load(stream)
    answers = {}  # type: dict[str, str]
    by_top = {}  # type: dict[str, list[str]]
    for name in question["names"]:
        answers[name] = locate(name)
        if answers[name] == "missing" and "." in name:
            by_top.setdefault(name.split(".")[0], []).append(name)
    if question["parents"]:
        last = time.monotonic() + PARENTS_LIMIT_S
        for top in sorted(by_top):
            left_s = min(float(question["limit_s"]), last - time.monotonic())
            if left_s > 0 and locate(top) == "module":
                answers.update(locate_with_parents(by_top[top], left_s))
    names = getattr(sys, "stdlib_module_names", None)  # from 3.10 on
    answer = {
        "nonce": nonce,
        "version": ".".join(str(part) for part in sys.version_info[:3]),
        "stdlib": None if names is None else sorted(names),
        "answers": answers,
    }
    with Path(answer_file).open("w", encoding="utf-8") as stream:
        json.dump(answer, stream)


main()
