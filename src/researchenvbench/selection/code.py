"""What a Python file uses, from its syntax tree: names behind their aliases, calls, texts.

A comment uses nothing, and an alias hides nothing: after `import torch.distributed as dist`,
`dist.barrier()` is a use of `torch.distributed.barrier`. Types are not followed: of
`self.model.cuda()` it is known that something's `cuda` is called.
"""

from __future__ import annotations

import ast
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

#: No device, strategy or provider has a longer name.
_LONGEST_TEXT = 200

Kind = Literal["name", "method", "text", "setting"]


@dataclass(frozen=True)
class Use:
    """One thing that a file uses."""

    kind: Kind
    #: name: dotted, as it is imported; method: of a call; text: a string; setting: NAME=TEXT.
    value: str
    line: int


def uses_of(tree: ast.Module) -> Iterator[Use]:
    """Everything that a rule can ask for, in no order."""
    aliases = _aliases(tree)
    for node in ast.walk(tree):
        match node:
            case ast.Import(names=names):
                for name in names:
                    yield Use("name", name.name, node.lineno)
            case ast.ImportFrom(module=str(module), names=names, level=0):
                for name in names:
                    yield Use("name", f"{module}.{name.name}", node.lineno)
            case ast.Attribute() | ast.Name():
                if dotted := _dotted(node, aliases):
                    yield Use("name", dotted, node.lineno)
            case ast.Call(func=func, keywords=keywords):
                if isinstance(func, ast.Attribute):
                    # Of a chain over several lines that on which the name stands.
                    yield Use("method", func.attr, func.end_lineno or node.lineno)
                yield from _settings((keyword.arg, keyword.value) for keyword in keywords)
            case ast.Dict(keys=keys, values=values):
                named = zip(map(_text, keys), values, strict=True)
                yield from _settings(named)
            case ast.Assign(targets=[target], value=value):
                yield from _settings([(_target(target), value)])
            case ast.AnnAssign(target=target, value=ast.expr() as value):
                yield from _settings([(_target(target), value)])
            case ast.arguments():
                yield from _settings(_defaults(node))
            case ast.Constant(value=str(text)) if len(text) < _LONGEST_TEXT:
                yield Use("text", text, node.lineno)


def _settings(named: Iterable[tuple[str | None, ast.expr | None]]) -> Iterator[Use]:
    """Values that code gives to names: of arguments, defaults, entries, fields alike."""
    for name, value in named:
        match value:
            case ast.Constant(value=str(text)) if name and len(text) < _LONGEST_TEXT:
                yield Use("setting", f"{name}={text}", value.lineno)
            case ast.Constant(value=int(number)) if name:
                yield Use("setting", f"{name}={number}", value.lineno)


def _defaults(arguments: ast.arguments) -> Iterator[tuple[str, ast.expr | None]]:
    placed = [*arguments.posonlyargs, *arguments.args]
    for argument, value in zip(reversed(placed), reversed(arguments.defaults), strict=False):
        yield argument.arg, value
    for argument, default in zip(arguments.kwonlyargs, arguments.kw_defaults, strict=True):
        yield argument.arg, default


def _target(node: ast.expr) -> str:
    match node:
        case ast.Name(id=name) | ast.Attribute(attr=name):
            return name
        case ast.Subscript(slice=key):
            return _text(key)
    return ""


def _text(node: ast.expr | None) -> str:
    return node.value if isinstance(node, ast.Constant) and isinstance(node.value, str) else ""


def _aliases(tree: ast.Module) -> dict[str, str]:
    """What names of this file stand for, wherever in it they are imported."""
    aliases = {}
    for node in ast.walk(tree):
        match node:
            case ast.Import(names=names):
                for name in names:
                    if name.asname:
                        aliases[name.asname] = name.name
                    else:
                        aliases[name.name.partition(".")[0]] = name.name.partition(".")[0]
            case ast.ImportFrom(module=str(module), names=names, level=0):
                for name in names:
                    aliases[name.asname or name.name] = f"{module}.{name.name}"
    return aliases


def _dotted(node: ast.expr, aliases: Mapping[str, str]) -> str:
    """The dotted name of an expression that starts with something imported; else nothing."""
    parts = []
    while isinstance(node, ast.Attribute):
        parts.append(node.attr)
        node = node.value
    if not isinstance(node, ast.Name) or node.id not in aliases:
        return ""
    return ".".join([aliases[node.id], *reversed(parts)])
