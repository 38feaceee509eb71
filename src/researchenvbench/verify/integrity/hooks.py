"""Start-up hooks: which are the harmless ones of well-known tools, and which are tampering.

A hook runs before the first line of every probe and stage. The facts are those of
`standalone.look.hooks`; the code of known tools is kept as data in `hooks.toml`.

- A hook of a known tool, whose modules are as their distribution lists them, is no finding.
- Any other hook is one. It disqualifies where no distribution lists it, where its content is
  not the one listed, and where its code does anything that is not known to be harmless.
"""

from __future__ import annotations

import ast
import fnmatch
import functools
import re
import tomllib
from importlib import resources
from typing import TYPE_CHECKING, Any

from ...attempt import Finding
from .harmless import parsed, strange, wild
from .templates import NOTHING_TRACKED, Tracked, digest_of, is_taken, misled

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    Facts = Mapping[str, Any]

_KIND = "start-up-hook"
_WHY = "it runs at every start of the interpreter and can change what any probe sees"
_FRAMEWORKS = r"\b(?:torch|jax|jaxlib|tensorflow)\b"
#: What no module that a well-known tool starts with has to do with.
_VERDICTS = re.compile(_FRAMEWORKS + r"|\bjson\b")
#: Characters of all files together; an environment's hooks have a twentieth of it.
_MOST_CODE = 4 << 20
_ALONE = {
    "preload": "",
    "library": "a module of its own in a standard library that is made of links",
    "path-file": "a file that replaces the interpreter's own search path",
    "byte-code": "byte code that the source beside it does not give, and that is run in its place",
    "egg": "a module of the standard library's name in a folder that a .pth file puts before it",
    "archive": "an archive that comes before the standard library",
    "volatile": "a folder of modules that leads through /proc, to another one at another time",
    "long-pth": "a .pth file of more than 64 KiB, which no installer writes",
    "many": "more start-up hooks, or lines of .pth files, than any environment has",
}
_BEFORE = (
    "a module in a folder that a well-known tool puts before the standard library, and not that "
    "tool's own"
)
#: Ways to run modules and files that are named by a text.
_BY_NAME = re.compile(
    r"import_module|spec_from_file_location|Source\w*Loader|run_path|run_module|find_module"
)
_ACTIVATION = re.compile(r"\b(LD_PRELOAD|LD_AUDIT|PYTHON[A-Z]+)=")


def judge_hooks(hooks: Sequence[Facts], tracked: Tracked = NOTHING_TRACKED) -> list[Finding]:
    """What a reader must know of the hooks; none may lead to other code than is `tracked`.

    A file that is marked `of_host` was there before the build: it is the host's own, and what
    is judged is what the build put beside it.
    """
    found = (_judged(hook, tracked) for hook in _read_so_far(hooks))
    return [finding for finding in found if finding is not None]


def _read_so_far(hooks: Sequence[Facts]) -> Iterator[Facts]:
    """The hooks; files after more code than is ever read count as such that cannot be."""
    left = _MOST_CODE
    for hook in hooks:
        files = []
        for file in hook["files"]:
            left -= len(file["text"])
            files.append(file if left >= 0 else {**file, "whole": False})
        yield {**hook, "files": files}


def _judged(hook: Facts, tracked: Tracked) -> Finding | None:
    kind, first = hook["kind"], hook["files"][0]
    files = [file for file in hook["files"] if not file.get("of_host")]
    if _sleeps(hook):
        files = [file for file in files if file is first]
    modules = [file for file in files if file is not first]
    if not files:
        return None
    if kind == "activation":
        return _activation(first)
    if kind == "egg" and tracked.has(first["path"]):
        return None  # the repository's own, and so the same for everybody
    if kind in _ALONE:
        named = f"the loader puts {', '.join(hook['code'])} into every process"
        return _finding(hook, _ALONE[kind] or named)
    for file in files:
        if file["listed"] and not file["listed"]["same"]:
            owner = file["listed"]["owner"]
            return _finding(hook, f"{_through(hook, file)} differs from what {owner} lists")
    for file in files:
        if word := _misled(file, tracked):
            what = f"{_through(hook, file)} is asked for {word} before Python's own finders"
            return _finding(hook, what)
    if names := [name for line in hook["code"] for name in _made_up(line) & tracked.names]:
        return _finding(hook, f"{_outline(hook)} puts a module in the place of {names[0]}")
    if kind == "before":
        own = _known_file(first) and all(_is_trusted(file) for file in modules)
        return None if own or _is_own_package(first, tracked) else _finding(hook, _BEFORE)
    for line in hook["code"]:
        if modules and _makes_namespace(line):
            what = f"{_through(hook, modules[0])} is there, where the tool has a mere folder"
            return _finding(hook, what)
    if _is_known(hook) and all(_is_trusted(file) for file in modules):
        return None
    for file in files:
        if not file["listed"] and not _known_file(file):
            harmless = _is_known(hook) and all(file["listed"] or _is_tame(file) for file in files)
            what = f"{_through(hook, file)} is listed by no distribution"
            return _finding(hook, what, disqualifies=not harmless)
    if first not in files:
        return None
    owner = next((file["listed"]["owner"] for file in files if file["listed"]), "a known tool")
    what = f"{_through(hook, first)} is listed by {owner}"
    reached = [word for file in files if (word := _reached(hook, file))]
    if reached:
        what += f" and reaches for what a harmless hook does not need ({reached[0]})"
    return _finding(hook, what, disqualifies=bool(reached))


def _misled(file: Facts, tracked: Tracked) -> str:
    """The module that a finder leads elsewhere, though all of it that is a template's is."""
    forms = {known["form"] for known in _known()[1] if _has_name(file, known["name"])}
    return next((word for form in forms if (word := misled(file["text"], form, tracked))), "")


def _is_own_package(file: Facts, tracked: Tracked) -> bool:
    """Whether a package is one that its tool has in a folder which comes before all others.

    It must not take the place of a package of the repository.
    """
    folder, _, name = file["path"].rpartition("/")
    mine = (f"/{name}/__init__.py", f"/{name}.py")
    return any(
        folder.endswith(f"/{one['name']}") and name in one["packages"] for one in _known()[2]
    ) and not any(f"/{path}".endswith(mine) for path in tracked.files)


def _makes_namespace(line: str) -> bool:
    """Whether a line is that of a tool whose package is a folder without modules."""
    return any(known["pattern"].fullmatch(line.rstrip()) for known in _known()[0] if known["bare"])


def _made_up(line: str) -> set[str]:
    """Modules, by their first names, that a line makes at the start (namespace packages)."""
    found = (known["pattern"].fullmatch(line.rstrip()) for known in _known()[0])
    names = [name for match in found if match for name in match.groupdict().values()]
    return {name.partition(".")[0] for name in names if name}


def _through(hook: Facts, file: Facts) -> str:
    """The hook, and the file of it that matters."""
    return _outline(hook) + ("" if file is hook["files"][0] else f" imports {file['path']}, which")


def _finding(hook: Facts, what: str, *, disqualifies: bool = True) -> Finding:
    runs = bool(hook["runs"])
    return Finding(
        kind=_KIND,
        what=what,
        where=hook["path"],
        why=_WHY if runs else "it would run where the user's own site-packages are read",
        disqualifies=disqualifies and runs,
    )


def _outline(hook: Facts) -> str:
    if hook["kind"] == "pth":
        strange = [line for line in hook["code"] if not _known_line(line)] or hook["code"]
        return f"code in a .pth file ({strange[0][:160]})"
    if hook["kind"] == "start":
        return "a start file of site"
    if hook["kind"] == "before":
        return "a module before the standard library"
    return f"a {hook['kind']} module"


def _activation(file: Facts) -> Finding | None:
    set_ = sorted(set(_ACTIVATION.findall(file["text"])))
    if not set_ or (file["listed"] and file["listed"]["same"]):
        return None
    return Finding(
        kind="loader-variable",
        what=f"an activation script of the prefix sets {', '.join(set_)}",
        where=file["path"],
        why="it changes which code the stage's processes load",
    )


def _is_known(hook: Facts) -> bool:
    """Whether the hook's own code is that of a known tool, or does nothing at all."""
    if hook["kind"] == "pth":
        return all(_known_line(line) for line in hook["code"])
    first = hook["files"][0]
    if hook["kind"] == "start":
        lines = [line for line in first["text"].splitlines() if line.strip()]
        return all(_known_line(line) for line in lines)
    return _known_file(first) or _is_empty(first)


def _sleeps(hook: Facts) -> bool:
    """Whether all the hook's code does nothing unless a variable is set (`triggers`)."""
    return hook["kind"] == "pth" and all(
        any(line["pattern"].fullmatch(code.rstrip()) and line["only"] for line in _known()[0])
        for code in hook["code"]
    )


def triggers() -> frozenset[str]:
    """Variables that give code to a known hook, or that it starts other code for."""
    return frozenset(name for line in _known()[0] for name in line["variables"])


def _is_trusted(file: Facts) -> bool:
    """A module of a known hook: known by its content, or as its distribution lists it.

    What a tool makes anew for each package is listed by that package, which proves nothing.
    """
    if _known_file(file):
        return True
    return bool(file["listed"]) and not _is_made(file) and not _VERDICTS.search(file["text"])


def _reached(hook: Facts, file: Facts) -> str:
    """What the file does beyond what is harmless; empty where there is no such thing."""
    first = file is hook["files"][0]
    own = {name for one in hook["files"][1:] for name in _module_names(one["path"])}
    if not file["whole"]:
        return "more than can be read"
    if _known_file(file):
        return ""
    if first and hook["kind"] == "pth":
        lines = [line for line in hook["code"] if not _known_line(line)]
        return next((word for line in lines if (word := strange(line.strip(), own))), "")
    if first and hook["kind"] == "start":
        lines = [line.strip() for line in file["text"].splitlines() if line.strip()]
        return next((line for line in lines if line.partition(":")[0] not in own), "")
    if not file["path"].endswith(".py"):
        return "code that is compiled"
    editable = bool(file["listed"] and file["listed"]["editable"])
    if _is_made(file) and (editable or "/_distutils_hack/" in file["path"]):
        return wild(file["text"])
    return strange(file["text"], own)


def _module_names(path: str) -> list[str]:
    """The dotted names by which the file may be imported."""
    parts = path.rpartition(".")[0].removesuffix("/__init__").split("/")[-4:]
    names = [".".join(parts[start:]) for start in range(len(parts))]
    # The end of a path may be called like what is not in it.
    return [name for name in names if not is_taken(name)]


def _is_empty(file: Facts) -> bool:
    """Whether a module holds nothing but comments and texts."""
    if not file["path"].endswith(".py") or not file["whole"]:
        return False
    tree = parsed(file["text"])
    return tree is not None and all(
        isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant) for node in tree.body
    )


def _is_tame(file: Facts) -> bool:
    """Whether virtualenv's patch, of a version that is not known, does nothing else."""
    if not file["path"].endswith("/_virtualenv.py"):
        return bool(file["path"].endswith("/_virtualenv.pth"))
    return bool(file["whole"]) and not wild(file["text"]) and not _BY_NAME.search(file["text"])


# --- what is known -------------------------------------------------------------------------


@functools.cache
def _known() -> tuple[list[dict[str, Any]], list[dict[str, Any]], list[dict[str, Any]]]:
    data = resources.files(__package__).joinpath("hooks.toml").read_text(encoding="utf-8")
    table = tomllib.loads(data)
    lines = [
        {
            "pattern": re.compile(line["pattern"], re.ASCII),
            "variables": line.get("variables", []),
            "only": line.get("only_with_a_variable", False),
            "bare": line.get("imports_a_mere_folder", False),
        }
        for line in table["lines"]
    ]
    return lines, table["files"], table["folders"]


def _known_line(line: str) -> bool:
    if any(is_taken(name) for name in _made_up(line)):
        return False
    return any(known["pattern"].fullmatch(line.rstrip()) for known in _known()[0])


def _known_file(file: Facts) -> bool:
    if not file["whole"]:
        return False
    return any(
        digest_of(file["text"], known["form"]) in known["sha256"]
        for known in _known()[1]
        if _has_name(file, known["name"])
    )


def _has_name(file: Facts, pattern: str) -> bool:
    """Whether the last parts of the path fit the pattern."""
    tail = file["path"].split("/")[-1 - pattern.count("/") :]
    return fnmatch.fnmatchcase("/".join(tail), pattern)


def _is_made(file: Facts) -> bool:
    """Whether the file is named as those that a tool makes from a template."""
    return any(_has_name(file, known["name"]) for known in _known()[1])
