"""What the checker is given: outlines of the tracked code, and nothing that lies beside it.

A checker that reads whole files spends nine tenths of its time on types that C0 does not ask
for. It is given an outline of each file: every import, where it stands among conditions,
`try`, functions, `return` and `raise`, and nothing else. What it reports of imports is the
same. Comments are not part of an outline, so those that silence a checker have no effect.
"""

from __future__ import annotations

import ast
import re
from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING

from .statements import mentions_platform
from .tree import MODULE_SUFFIXES

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

_UNKNOWN = ast.Name("_", ast.Load())
_ENDINGS = frozenset({"sys.exit", "exit", "quit", "os._exit", "os.abort"})
#: A comment that configures pyright, whatever our configuration says.
_CHECKER_COMMENT = re.compile(rb"(#\s*pyright)\s*:")


def outline(content: bytes, tree: ast.Module | str) -> bytes:
    """The outline of a file, from its syntax tree; a file that has none is given back whole."""
    if not isinstance(tree, str):
        try:
            small = ast.fix_missing_locations(ast.Module(_kept(tree.body), []))
            return ast.unparse(small).encode("utf-8", "replace") + b"\n"
        except RecursionError:
            pass  # generated code that nests too deep: the whole file serves as well
    return _CHECKER_COMMENT.sub(rb"\1 ", content)


def _kept(body: Sequence[ast.stmt]) -> list[ast.stmt]:
    return [small for statement in body for small in _reduced(statement)]


def _reduced(node: ast.stmt) -> list[ast.stmt]:
    """What stands for a statement in the outline: nothing, or one or more statements."""
    match node:
        case ast.Import() | ast.ImportFrom():
            return [node]
        case ast.Return():
            return [ast.Return(None)]
        case ast.Raise():
            return [ast.Raise(None, None)]
        case ast.Break() | ast.Continue():
            return [node]
        case ast.Assert(test=test) if mentions_platform(test) or isinstance(test, ast.Constant):
            return [ast.Assert(test, None)]
        case ast.Expr(value=ast.Call(func=func)) if _dotted(func) in _ENDINGS:
            return [ast.Expr(ast.Call(func, [], []))]
        case ast.FunctionDef() | ast.AsyncFunctionDef() if _holds_import(node):
            nothing = ast.arguments([], [], None, [], [], None, [])
            return [ast.FunctionDef(node.name, nothing, _body(node.body), [], lineno=node.lineno)]
        case ast.ClassDef() if _holds_import(node):
            return [ast.ClassDef(node.name, [], [], _body(node.body), [])]
        case ast.If():
            body, orelse = _kept(node.body), _kept(node.orelse)
            return [ast.If(node.test, body or [ast.Pass()], orelse)] if body or orelse else []
        case ast.While():
            return [ast.While(node.test, _body(node.body), _kept(node.orelse))]
        case ast.For() | ast.AsyncFor():
            body, orelse = _kept(node.body), _kept(node.orelse)
            if not (body or orelse):
                return []
            target = ast.Name("_", ast.Store())
            return [ast.For(target, _UNKNOWN, body or [ast.Pass()], orelse, lineno=node.lineno)]
        case ast.With() | ast.AsyncWith():
            body = _kept(node.body)
            return [ast.With([ast.withitem(_UNKNOWN)], body, lineno=node.lineno)] if body else []
        case ast.Try() | ast.TryStar():
            return _reduced_try(node)
        case ast.Match():
            cases = [_kept(case.body) for case in node.cases]
            return [ast.If(_UNKNOWN, body, []) for body in cases if body]
    return []


def _reduced_try(node: ast.Try | ast.TryStar) -> list[ast.stmt]:
    body, orelse, final = _kept(node.body), _kept(node.orelse), _kept(node.finalbody)
    handlers = [_kept(handler.body) for handler in node.handlers]
    if not (body or orelse or final or any(handlers)):
        return []
    small = [ast.ExceptHandler(_UNKNOWN, None, kept or [ast.Pass()]) for kept in handlers]
    return [ast.Try(body or [ast.Pass()], small, orelse, final)]


def _body(body: Sequence[ast.stmt]) -> list[ast.stmt]:
    return _kept(body) or [ast.Pass()]


def _holds_import(node: ast.AST) -> bool:
    return any(isinstance(inner, ast.Import | ast.ImportFrom) for inner in ast.walk(node))


def _dotted(node: ast.expr) -> str:
    match node:
        case ast.Name(id=name):
            return name
        case ast.Attribute(value=ast.Name(id=name), attr=attribute):
            return f"{name}.{attribute}"
    return ""


# --- a repository ----------------------------------------------------------------------


def clean_copy(
    tracked: Iterable[str], aliases: Mapping[str, str], outlines: Mapping[str, bytes]
) -> dict[str, bytes]:
    """What the checker sees, by path in the repository.

    Stubs and compiled modules that are tracked are there to be imported, the latter empty.
    Python files in excluded folders, and those behind tracked links, likewise.
    """
    copy = dict(outlines)
    for file in tracked:
        if file not in copy and file not in aliases and _is_module(file):
            copy[file] = b""
    for file, target in aliases.items():
        copy[file] = copy.get(target, b"")
    return copy


def _is_module(file: str) -> bool:
    return PurePosixPath(file).suffix in MODULE_SUFFIXES and not file.endswith(".pyx")


def linked_modules(repo: Path, tracked: Sequence[str]) -> dict[str, str]:
    """Modules that a tracked link makes reachable by a second path: that path to the file."""
    root = repo.resolve()
    modules = [file for file in tracked if _is_module(file)]
    aliases = {}
    for link in tracked:
        place = repo / link
        if not place.is_symlink():
            continue
        target = place.resolve()
        if not target.is_relative_to(root) or target == root:
            continue
        inside = str(target.relative_to(root))
        for file in modules:
            if file == inside:
                aliases[link] = file
            elif file.startswith(f"{inside}/"):
                aliases[link + file[len(inside) :]] = file
    return aliases
