"""The import statements of one file, and whether each is optional.

An import is optional where the code can go on without it: under `try` with a handler that
catches ImportError (in its body, its handlers and its `else`), under
`contextlib.suppress(ImportError)`, where only a type checker reads it (TYPE_CHECKING), or on
either side of a condition on the platform or on Python's version. All others are required,
also those within functions.
"""

from __future__ import annotations

import ast
import warnings
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator

_GUARDS = frozenset({"ImportError", "ModuleNotFoundError", "Exception", "BaseException"})
_PLATFORM_FACTS = frozenset(
    {("sys", "platform"), ("sys", "version_info"), ("sys", "version"), ("sys", "maxsize")}
    | {("sys", "implementation"), ("sys", "hexversion"), ("os", "name"), ("os", "uname")}
    | {("platform", "system"), ("platform", "machine"), ("platform", "python_version")}
    | {("platform", "python_implementation"), ("platform", "processor")}
)


@dataclass(frozen=True)
class Statement:
    """One import of one module, as the code has it."""

    module: str  #: `a.b` of `import a.b` and of `from a.b import c`; may be empty if relative
    names: tuple[str, ...]  #: `c` of `from a.b import c`
    level: int  #: leading dots; 0 is absolute
    optional: bool
    line: int

    @property
    def top(self) -> str:
        """The top-level name."""
        return self.module.partition(".")[0]


def parse(content: bytes) -> tuple[Statement, ...] | str:
    """The imports of one file in the order of their lines, or why it cannot be read.

    The encoding is the one that the file declares (PEP 263), else UTF-8.
    """
    tree = syntax(content)
    return tree if isinstance(tree, str) else statements_of(tree)


def statements_of(tree: ast.Module) -> tuple[Statement, ...]:
    """The imports of a syntax tree in the order of their lines."""
    return tuple(sorted(_statements(tree), key=lambda statement: statement.line))


def syntax(content: bytes) -> ast.Module | str:
    """The syntax tree of one file, or why it has none."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # of invalid escapes and the like
            return ast.parse(content)
    except SyntaxError as error:
        at = f" (line {error.lineno})" if error.lineno else ""
        return f"{error.msg}{at}"
    except (ValueError, RecursionError, MemoryError) as error:
        return f"{type(error).__name__}: {error}"


def _statements(tree: ast.Module) -> Iterator[Statement]:
    # A stack and no recursion: generated code nests deeper than Python calls.
    waiting: list[tuple[ast.AST, bool]] = [(tree, False)]
    while waiting:
        node, optional = waiting.pop()
        if isinstance(node, ast.Import):
            for alias in node.names:
                yield Statement(alias.name, (), 0, optional, node.lineno)
        elif isinstance(node, ast.ImportFrom):
            names = tuple(alias.name for alias in node.names)
            yield Statement(node.module or "", names, node.level, optional, node.lineno)
        else:
            waiting.extend(_children(node, optional))


def _children(node: ast.AST, optional: bool) -> Iterator[tuple[ast.AST, bool]]:
    """The statements within a statement, and whether imports there are optional."""
    certain: list[ast.stmt] | None = None  # what stays as sure as the statement itself
    if isinstance(node, ast.Try | ast.TryStar) and any(map(_catches_import_error, node.handlers)):
        certain = node.finalbody
    elif isinstance(node, ast.With) and any(map(_suppresses_import_error, node.items)):
        certain = []
    elif isinstance(node, ast.If) and (side := _typing_only_side(node)) is not None:
        certain = node.orelse if side == "body" else node.body
    elif isinstance(node, ast.If) and mentions_platform(node.test):
        certain = []
    sure = None if certain is None else {id(child) for child in certain}
    for child in ast.iter_child_nodes(node):
        if isinstance(child, ast.stmt | ast.ExceptHandler | ast.match_case):
            yield child, optional or (sure is not None and id(child) not in sure)


def _catches_import_error(handler: ast.ExceptHandler) -> bool:
    return handler.type is None or _is_guard(handler.type)


def _suppresses_import_error(item: ast.withitem) -> bool:
    call = item.context_expr
    return (
        isinstance(call, ast.Call)
        and _last_name(call.func) == "suppress"
        and any(map(_is_guard, call.args))
    )


def _is_guard(caught: ast.expr) -> bool:
    if isinstance(caught, ast.Tuple):
        return any(map(_is_guard, caught.elts))
    return _last_name(caught) in _GUARDS


def _typing_only_side(node: ast.If) -> str | None:
    """Which side of a condition only a type checker reads: "body", "orelse", or None."""
    test = node.test
    if isinstance(test, ast.UnaryOp) and isinstance(test.op, ast.Not):
        return "orelse" if _last_name(test.operand) == "TYPE_CHECKING" else None
    if isinstance(test, ast.BoolOp) and isinstance(test.op, ast.And):
        return "body" if "TYPE_CHECKING" in map(_last_name, test.values) else None
    return "body" if _last_name(test) == "TYPE_CHECKING" else None


def mentions_platform(test: ast.expr) -> bool:
    """Whether a condition asks for the platform or the version of Python."""
    return any(
        isinstance(node, ast.Attribute)
        and isinstance(node.value, ast.Name)
        and (node.value.id, node.attr) in _PLATFORM_FACTS
        for node in ast.walk(test)
    )


def _last_name(node: ast.expr) -> str | None:
    if isinstance(node, ast.Attribute):
        return node.attr
    return node.id if isinstance(node, ast.Name) else None
