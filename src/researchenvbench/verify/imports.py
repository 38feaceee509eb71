"""Which modules does the tracked code import, and which of those imports are optional?

Pure reading: files come in as bytes, from a folder or from git's objects (`objects`), and
nothing is executed. The paper's denominator of C0 is counted here as well, beside our own reading,
which keeps apart what is required and what is only tried. Where a module lies, and whether
it belongs to the repository, is `tree`'s subject; whether it can be imported is `static`'s.
"""

from __future__ import annotations

import os
import stat
import sys
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING

from ..errors import SourceError
from .statements import Statement, parse, statements_of, syntax
from .tree import Tree

if TYPE_CHECKING:
    import ast
    from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence

#: Folders that hold no code of the repository's own, at any depth (protocol, C0).
EXCLUDED_FOLDERS = frozenset(
    {".git", ".venv", "venv", "build", "dist", "node_modules", "__pycache__"}
    # Caches of tools.
    | {".eggs", ".hypothesis", ".ipynb_checkpoints", ".mypy_cache", ".nox", ".pytest_cache"}
    | {".pytype", ".ruff_cache", ".tox"}
)

#: In the standard library of some Python from 3.6 on, and not of every newer one.
_ONCE_STANDARD = frozenset(
    {"_bootlocale", "aifc", "asynchat", "asyncore", "audioop", "binhex", "cgi", "cgitb", "chunk"}
    | {"crypt", "distutils", "dummy_threading", "formatter", "imghdr", "imp", "lib2to3"}
    | {"macpath", "mailcap", "msilib", "nis", "nntplib", "ossaudiodev", "parser", "pipes"}
    | {"smtpd", "sndhdr", "spwd", "sunau", "symbol", "telnetlib", "uu", "xdrlib"}
)

_BYTE_ORDER_MARK = b"\xef\xbb\xbf"
_MAX_FILE_BYTES = 20_000_000


@dataclass(frozen=True)
class Unparsable:
    """A file that no import can be read from, and why."""

    file: str
    error: str


@dataclass(frozen=True)
class Module:
    """An absolute import's top-level name, over all files."""

    name: str
    files: tuple[str, ...]
    dotted: tuple[str, ...]  #: full names, such as `a.b`
    required: bool  #: some import of it is not optional


@dataclass(frozen=True)
class Imports:
    """Everything that a set of files imports."""

    files: Mapping[str, tuple[Statement, ...]]
    unparsable: tuple[Unparsable, ...]
    #: The paper's denominator: distinct top-level names of absolute imports, the standard
    #: library and first-party names among them. A file that begins with a byte-order mark, is
    #: not UTF-8 or does not parse adds nothing. Checked against `tests/data/c0_totals.json`.
    total_paper: int

    @cached_property
    def modules(self) -> dict[str, Module]:
        """The distinct top-level names of absolute imports."""
        uses: dict[str, list[tuple[str, Statement]]] = {}
        for file, statements in self.files.items():
            for statement in statements:
                if not statement.level:
                    uses.setdefault(statement.top, []).append((file, statement))
        return {
            name: Module(
                name=name,
                files=tuple(sorted({file for file, _ in found})),
                dotted=tuple(sorted({statement.module for _, statement in found})),
                required=any(not statement.optional for _, statement in found),
            )
            for name, found in sorted(uses.items())
        }

    def required_in(self, file: str, module: str) -> bool:
        """Whether `file` imports `module` (a full name) in a place where it must be there."""
        statements = [s for s in self.files.get(file, ()) if not s.level]
        same = [s for s in statements if s.module == module]
        # A checker may name the submodule that `from a import b` takes, or a parent.
        same = same or [s for s in statements if s.top == module.partition(".")[0]]
        return not same or any(not statement.optional for statement in same)


def is_python(path: str) -> bool:
    """Whether C0 reads this file: Python, in no excluded folder."""
    parts = PurePosixPath(path).parts
    return path.endswith(".py") and EXCLUDED_FOLDERS.isdisjoint(parts[:-1])


def collect(
    files: Iterable[tuple[str, bytes]],
    *,
    also: Callable[[str, bytes, ast.Module | str], None] = lambda *_: None,
) -> Imports:
    """The imports of `files`, given as (path relative to the repository, content).

    `also` is shown each file with its syntax tree, or why it has none: parsing is what takes
    the time, and trees are too large to be kept.
    """
    found: dict[str, tuple[Statement, ...]] = {}
    unparsable = []
    paper: set[str] = set()
    for file, content in files:
        if not is_python(file):
            continue
        tree = syntax(content)
        also(file, content, tree)
        if isinstance(tree, str):
            unparsable.append(Unparsable(file, tree))
            continue
        found[file] = statements_of(tree)
        if not content.startswith(_BYTE_ORDER_MARK) and _is_utf8(content):
            paper.update(s.top for s in found[file] if not s.level)
    return Imports(found, tuple(unparsable), len(paper))


def stdlib_names(judged: Collection[str] | None) -> frozenset[str]:
    """Names of the standard library.

    `judged` is `sys.stdlib_module_names` of the judged interpreter; one before 3.10 has none,
    and gets every name that the standard library has or had.
    """
    ours = sys.stdlib_module_names
    return frozenset(judged if judged is not None else ours | _ONCE_STANDARD) | {"__main__"}


def third_party_names(
    imports: Imports, tree: Tree, standard: Collection[str]
) -> dict[str, set[str]]:
    """Name to the files in which it is neither standard nor the repository's own."""
    found: dict[str, set[str]] = {}
    for file, statements in imports.files.items():
        for statement in statements:
            if statement.level or statement.top in standard:
                continue
            if not tree.is_first_party(file, statement):
                found.setdefault(statement.top, set()).add(file)
    return found


# --- from entry points ---------------------------------------------------------------


def import_closure(
    tree_root: Path,
    entry_scripts: Iterable[str],
    *,
    files: Sequence[str] | None = None,
    entry_modules: Iterable[str] = (),
    code: Iterable[bytes] = (),
) -> set[str]:
    """The repository's Python files that entry points reach by imports, themselves included.

    Args:
        tree_root: the source.
        entry_scripts: paths relative to it; one that is not a Python file of it is left out.
        files: its tracked files; by default those that lie there.
        entry_modules: names that are run by `python -m` or imported by a console script.
        code: Python that comes from elsewhere, such as a driver or a block of a README.

    Raises:
        SourceError: a file cannot be read.
    """
    known = files if files is not None else _listed(tree_root)
    tree = Tree(known)
    contents = dict(read_folder(tree_root, known))
    waiting = [(file, str(PurePosixPath(file).parent)) for file in entry_scripts]
    waiting += [(f, ".") for name in entry_modules if (f := tree.file_of(name))]
    for text in code:
        statements = parse(text)
        if not isinstance(statements, str):
            for statement in statements:
                waiting += [(found, ".") for found in tree.reached("-", statement)]
    closure: set[str] = set()
    while waiting:
        file, script_folder = waiting.pop()
        if file in closure or file not in contents:
            continue
        closure.add(file)
        statements = parse(contents[file])
        if isinstance(statements, str):
            continue
        for statement in statements:
            reached = tree.reached(file, statement, also=(script_folder,))
            waiting += [(found, script_folder) for found in reached]
    return closure


def _listed(root: Path) -> list[str]:
    found = (path.relative_to(root) for path in root.rglob("*.py") if path.is_file())
    return sorted(str(path) for path in found if EXCLUDED_FOLDERS.isdisjoint(path.parts))


# --- reading files ---------------------------------------------------------------------


def read_folder(root: Path, tracked: Iterable[str]) -> Iterator[tuple[str, bytes]]:
    """The tracked files that C0 reads, from a work tree. Links are not followed.

    Raises:
        SourceError: a file cannot be read, or is too large to be code.
    """
    for path in tracked:
        if not is_python(path):
            continue
        try:
            handle = os.open(root / path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK)
        except OSError as error:
            if (root / path).is_symlink():
                continue
            raise SourceError(f"{path} cannot be read: {error.strerror}") from error
        with os.fdopen(handle, "rb") as stream:
            status = os.fstat(handle)
            if not stat.S_ISREG(status.st_mode) or status.st_size > _MAX_FILE_BYTES:
                raise SourceError(f"{path} is no regular file below {_MAX_FILE_BYTES} bytes")
            yield path, stream.read()


def _is_utf8(content: bytes) -> bool:
    try:
        content.decode("utf-8")
    except UnicodeDecodeError:
        return False
    return True
