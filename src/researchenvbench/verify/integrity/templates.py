"""Files that tools make from a template, such as the finders of editable installs.

What stays the same in each is known by its digest (`hooks.toml`); what differs is for whom such
a file finds modules, and that is read here. Both are told apart by the syntax tree: with lines
or patterns, code could be put among what differs.
"""

from __future__ import annotations

import ast
import hashlib
import re
import sys
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from .harmless import parsed, plain_name

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

#: Of a finder of setuptools.
_VALUES = ("MAPPING", "NAMESPACES", "PATH_PLACEHOLDER")
_STARTERS = {"install", "install_inplace", "MesonpyMetaFinder", "sys.meta_path.insert",
             "sys.path_hooks.insert"}  # fmt: skip
#: What meson-python 0.22 and later puts into a function `init`, after it has made its finder.
_INIT = ["sys.meta_path.insert(0, finder)", "sys.path_hooks.insert(0, finder._path_hook)"]
_REDIRECTION = re.compile(r"^F\.map_module\('(\w+)', '([^'\n]*)'\)$", re.MULTILINE | re.ASCII)
#: What ends a line for some who read it and not for others.
_ODD_ENDS = re.compile("[\r\v\f\x1c-\x1e\x85\u2028\u2029]")
#: Imported at each start by the interpreter itself or by other hooks, or judged by name.
_NOBODYS = {"sitecustomize", "usercustomize", "torch", "jax", "jaxlib", "tensorflow"}
_OTHER_HOOKS = ("_distutils_hack", "_virtualenv", "__editable__", "_editable_impl_")


@dataclass(frozen=True)
class Tracked:
    """The repository's own modules, which no finder may lead elsewhere."""

    repo: str  #: as a box shows it
    files: frozenset[str] = frozenset()
    names: frozenset[str] = field(init=False, default=frozenset())

    def __post_init__(self) -> None:
        """Any folder with modules in it may be a package, and any module may be at the top."""
        parts = {part for file in self.files if file.endswith(".py") for part in file.split("/")}
        object.__setattr__(self, "names", frozenset(part.removesuffix(".py") for part in parts))

    def has(self, path: str) -> bool:
        """Whether an absolute path leads to a tracked file, or to a folder of some."""
        inner = path.removeprefix(f"{self.repo}/").rstrip("/")
        if path.rstrip("/") == self.repo:
            return True
        return path.startswith(f"{self.repo}/") and (
            inner in self.files or any(file.startswith(f"{inner}/") for file in self.files)
        )


NOTHING_TRACKED = Tracked("")


def misled(text: str, form: str, tracked: Tracked) -> str:
    """The first module that a finder leads elsewhere than an honest one would; else empty.

    It stands before Python's own finders: it must not be for the standard library, for what
    runs at each start, for frameworks, or for tracked modules and other files than those.
    """
    for name, paths in _found_by(text, form):
        if is_taken(name):
            return name
        elsewhere = [path for path in paths if path.startswith("/") and not tracked.has(path)]
        if elsewhere and name.partition(".")[0] in tracked.names:
            return name
    return ""


def is_taken(name: str) -> bool:
    """Whether a module of that name belongs to Python, to its start, or to frameworks."""
    top = name.partition(".")[0]
    return top in sys.stdlib_module_names or top in _NOBODYS or top.startswith(_OTHER_HOOKS)


def digest_of(text: str, form: str) -> str:
    """SHA-256 of what a tool's template gives to each file that is made from it.

    Args:
        text: The file.
        form: `whole`; `values`, where three variables hold what differs; `call`, where a last
            statement does; or `redirections`, where calls of one function do.

    Returns:
        The empty text where the file does not have that form.
    """
    if form == "values":
        text = _without_values(text)
    elif form == "call":
        text = _without_call(text)
    elif form == "redirections":
        text = _REDIRECTION.sub("", text)
    return hashlib.sha256(text.strip().encode()).hexdigest() if text else ""


def _statements(text: str) -> tuple[list[ast.stmt], list[str]]:
    """The statements and the lines; none where lines could be counted in several ways."""
    tree = None if _ODD_ENDS.search(text) else parsed(text)
    return (tree.body, text.split("\n")) if tree else ([], [])


def _has_lines_alone(body: list[ast.stmt], number: int, lines: list[str]) -> bool:
    """Whether nothing else stands on the lines of a statement."""
    node = body[number]
    before = body[number - 1].end_lineno if number else 0
    after = body[number + 1].lineno if number + 1 < len(body) else sys.maxsize
    end = node.end_lineno or 0
    ends_line = len(lines[end - 1].encode()) == node.end_col_offset
    return node.col_offset == 0 and (before or 0) < node.lineno and end < after and ends_line


def _values_of(
    body: list[ast.stmt],
) -> dict[str, tuple[int, ast.expr]]:
    """The number of the statement and the value, by variable; none where one is set twice."""
    found: dict[str, tuple[int, ast.expr]] = {}
    for number, node in enumerate(body):
        target: ast.expr
        match node:
            case ast.Assign(targets=[ast.Name() as target], value=value):
                pass
            case ast.AnnAssign(target=ast.Name() as target, value=ast.expr() as value):
                pass
            case _:
                continue
        if target.id in _VALUES:
            if target.id in found:
                return {}
            found[target.id] = (number, value)
    return found


def _without_values(text: str) -> str:
    """A finder of setuptools whose three variables are literals, without these."""
    body, lines = _statements(text)
    values = _values_of(body)
    if set(values) != set(_VALUES):
        return ""
    for number, value in sorted(values.values(), key=lambda item: -item[0]):
        node = body[number]
        if not (_is_literal(value) and _has_lines_alone(body, number, lines)):
            return ""
        begin = lines[node.lineno - 1].encode()[: value.col_offset].decode()
        if value.lineno != node.lineno or not begin.isascii():
            return ""
        lines[node.lineno - 1 : node.end_lineno] = [begin.rstrip()]
    return "\n".join(lines)


def _without_call(text: str) -> str:
    """The text before a last statement that only installs a finder with literal arguments."""
    body, lines = _statements(text)
    if not body:
        return ""
    last = body[-1]
    rest = "".join(lines[last.end_lineno or 0 :]).strip()
    call = _last_call(last)
    if call is None or rest or not _has_lines_alone(body, len(body) - 1, lines):
        return ""
    return "\n".join(lines[: last.lineno - 1]) if _installs(call) else ""


def _last_call(last: ast.stmt) -> ast.expr | None:
    """The call by which a file installs its finder: a statement, or all that `init` does."""
    if isinstance(last, ast.Expr):
        return last.value
    match last:
        case ast.FunctionDef(
            name="init",
            decorator_list=[],
            returns=None,
            body=[ast.Assign(targets=[ast.Name(id="finder")], value=call), *others],
        ) if not ast.unparse(last.args) and [ast.unparse(one) for one in others] == _INIT:
            return call
    return None


def _installs(node: ast.expr) -> bool:
    if not isinstance(node, ast.Call) or plain_name(node.func) not in _STARTERS:
        return False
    given = [*node.args, *(keyword.value for keyword in node.keywords)]
    return all(_is_literal(one) or _installs(one) for one in given)


def _is_literal(node: ast.expr) -> bool:
    if isinstance(node, ast.BinOp):  # two texts put together
        parts = (node.left, node.right)
        return all(isinstance(part, ast.Constant) and isinstance(part.value, str) for part in parts)
    try:
        ast.literal_eval(node)
    except (ValueError, TypeError, RecursionError, MemoryError):
        return False
    return True


def _found_by(text: str, form: str) -> Iterator[tuple[str, tuple[str, ...]]]:
    """For which modules a file of such a form finds, and where they lie as far as it says."""
    if form == "redirections":
        yield from ((name, (path,)) for name, path in _REDIRECTION.findall(text))
        return
    body, _ = _statements(text)
    if form == "values":
        for name, (_, value) in _values_of(body).items():
            if name != "PATH_PLACEHOLDER" and _is_literal(value):
                yield from _named(ast.literal_eval(value))
    elif form == "call" and body and (last := _last_call(body[-1])):
        for call in ast.walk(last):
            if isinstance(call, ast.Call):
                for place, given in enumerate(call.args):
                    if _is_literal(given) and not isinstance(given, ast.BinOp):
                        yield from _named(ast.literal_eval(given), is_first=place == 0)


def _named(value: object, *, is_first: bool = False) -> Iterator[tuple[str, tuple[str, ...]]]:
    """Names of modules: keys, members of a set, and those of a list that is given first."""
    if isinstance(value, dict):
        entries: Mapping[object, object] = value
        for name, there in entries.items():
            yield str(name), tuple(_texts(there))
    elif isinstance(value, set | frozenset) or (is_first and isinstance(value, list | tuple)):
        yield from ((str(name), ()) for name in value)


def _texts(value: object) -> Iterable[str]:
    if isinstance(value, str):
        return [value]
    return [str(one) for one in value] if isinstance(value, list | tuple) else []
