"""Which code of a start-up hook is harmless: what it may do is listed, and all else is not.

A list of what a hook must not do would never be complete: every function has other names. So a
hook that is not known may only read the environment, set filters of warnings, put a folder that
is written out at the end of the path, and call what it defines in the same way itself.
"""

from __future__ import annotations

import ast
import functools
import re
from collections import Counter
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator

#: Of the first two lines: what says how the file is to be read. In UTF-7, comments can be code.
_CODING = re.compile(r"coding[:=][ \t]*([-\w.]+)")
_PLAIN_CODINGS = {"utf-8", "utf8", "ascii", "us-ascii", "latin-1", "iso-8859-1"}
#: As `standalone.look.hooks` looks for folders of modules in the text of hooks.
_APPENDED = re.compile(r"sys\.path\.append\(\s*['\"]/[^'\"\\\n]*['\"]\s*\)")
_CANNOT = "what cannot be read"
_SHOWN = 80
#: Levels of the syntax tree of code that is read at all: people write twenty.
_DEEPEST = 100
_MODULES = {"os", "os.path", "sys", "warnings", "types", "typing", "__future__"}
_VALUES = {
    "os.environ", "os.sep", "os.pathsep", "os.name", "os.curdir", "os.path", "sys.path",
    "sys.version_info", "sys.version", "sys.platform", "sys.prefix", "sys.base_prefix",
    "sys.exec_prefix", "sys.executable", "sys.flags", "typing.TYPE_CHECKING",
}  # fmt: skip
_CALLS = {
    "os.environ.get", "os.getenv", "warnings.filterwarnings", "warnings.simplefilter",
    *(f"os.path.{name}" for name in (
        "join", "dirname", "basename", "abspath", "normpath", "realpath", "exists", "isdir",
        "isfile", "expanduser", "split", "splitext",
    )),
}  # fmt: skip
_BUILTINS = {"len", "str", "int", "bool", "isinstance"}
_NAMES = {*_BUILTINS, "__file__", "__name__", "Exception", "ImportError", "KeyError",
          "ModuleNotFoundError", "AttributeError", "OSError", "ValueError", "UserWarning",
          "DeprecationWarning", "FutureWarning", "RuntimeWarning", "ImportWarning"}  # fmt: skip
_METHODS = {"startswith", "endswith", "split", "strip", "lower", "upper", "join", "partition"}
_NODES = (
    ast.Module, ast.Expr, ast.Constant, ast.Import, ast.ImportFrom, ast.alias, ast.Assign,
    ast.AnnAssign, ast.Name, ast.Load, ast.Store, ast.Attribute, ast.Call, ast.keyword, ast.If,
    ast.IfExp, ast.Compare, ast.cmpop, ast.BoolOp, ast.boolop, ast.UnaryOp, ast.unaryop,
    ast.BinOp, ast.Add, ast.Div, ast.Tuple, ast.List, ast.Dict, ast.Subscript, ast.Slice,
    ast.Try, ast.ExceptHandler, ast.FunctionDef, ast.arguments, ast.arg, ast.Return, ast.Pass,
    ast.JoinedStr, ast.FormattedValue,
)  # fmt: skip


@functools.lru_cache(maxsize=4)  # several rules read one file after another
def parsed(text: str) -> ast.Module | None:
    """The code as an interpreter reads it; None where it might read something else."""
    for line in re.split(r"\r\n|\r|\n", text)[:2]:
        told = _CODING.search(line)
        if told and told[1].lower().replace("_", "-") not in _PLAIN_CODINGS:
            return None
    try:
        tree = ast.parse(text)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return None  # another version may take it for code
    return tree if _is_shallow(tree) else None


def _is_shallow(tree: ast.Module) -> bool:
    """Whether all that reads the code further, each level in several calls, comes to its end."""
    nodes: list[ast.AST] = [tree]
    for _ in range(_DEEPEST):
        nodes = [child for node in nodes for child in ast.iter_child_nodes(node)]
        if not nodes:
            return True
    return False


def plain_name(node: ast.AST) -> str:
    """The dotted name that the expression is; empty where it is another one."""
    parts = []
    while isinstance(node, ast.Attribute):
        parts.append(node.attr)
        node = node.value
    return ".".join([node.id, *reversed(parts)]) if isinstance(node, ast.Name) else ""


def _words(node: ast.AST) -> str:
    """The expression as code, or that it has none that could be shown."""
    try:
        return ast.unparse(node)[:_SHOWN]
    except (ValueError, RecursionError, MemoryError):
        return _CANNOT


def strange(text: str, own: Collection[str] = ()) -> str:
    """The first thing in the code that is not known to be harmless; empty where all is.

    Args:
        text: Python code.
        own: Modules that are judged in the same way.
    """
    tree = parsed(text)
    if tree is None:
        return _CANNOT
    return next(_strange(tree, own, text), "")


def _strange(tree: ast.Module, own: Collection[str], text: str) -> Iterator[str]:
    """What is strange in the code, in no order."""
    known: dict[str, str] = {}  # names of allowed things: the dotted names that they have
    of_own: set[str] = set()  # names of own modules
    functions: set[str] = set()
    bound: list[str] = []
    nodes = list(ast.walk(tree))
    for node in nodes:
        if isinstance(node, ast.Import):
            for one in node.names:
                name = one.asname or one.name.partition(".")[0]
                bound.append(name)
                if one.name in _MODULES:
                    known[name] = one.name if one.asname else name
                elif one.name in own:
                    of_own.add(one.asname or one.name)
                else:
                    yield f"import {one.name}"
        elif isinstance(node, ast.ImportFrom):
            module = node.module or ""
            for one in node.names:
                dotted, name = f"{module}.{one.name}", one.asname or one.name
                bound.append(name)
                if module == "__future__" or dotted in _VALUES | _CALLS:
                    known[name] = dotted
                elif not node.level and module in own and one.name.strip("_*") == one.name:
                    functions.add(name)
                else:
                    yield f"from {module} import {one.name}"
        elif isinstance(node, ast.FunctionDef):
            bound.append(node.name)
            functions.add(node.name)
            if node.decorator_list or node.name.startswith("__"):
                yield f"def {node.name}"
        elif isinstance(node, ast.ExceptHandler) and node.name:
            bound.append(node.name)
        elif isinstance(node, ast.arg):
            bound.append(node.arg)
        elif isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
            bound.append(node.id)
    named = set(bound)
    # A name that is two things is none that is known.
    twice = {name for name, times in Counter(bound).items() if times > 1}
    for name in (twice & (set(known) | of_own | functions)) | (named & _NAMES):
        yield f"two things named {name}"
    usable, callable_ = named | _NAMES, functions | _BUILTINS
    inner: set[int] = set()  # parts of a dotted name, which is looked at as a whole
    for node in nodes:
        if not isinstance(node, _NODES):
            yield type(node).__name__.lower()
        elif isinstance(node, ast.Call):
            dotted = _dotted(node.func, known)
            owner, _, method = plain_name(node.func).rpartition(".")
            allowed = (
                dotted in _CALLS
                or (isinstance(node.func, ast.Name) and node.func.id in callable_)
                or (owner in of_own and not method.startswith("_"))
                or (isinstance(node.func, ast.Attribute) and node.func.attr in _METHODS)
                or (dotted == "sys.path.append" and _is_plain(node, text))
            )
            if not allowed:
                yield _words(node.func)
            elif owner in of_own or dotted:
                inner.update(id(part) for part in ast.walk(node.func))
        elif isinstance(node, ast.Attribute) and id(node) not in inner:
            dotted = _dotted(node, known)
            if isinstance(node.ctx, ast.Load) and (dotted in _VALUES | _CALLS):
                inner.update(id(part) for part in ast.walk(node))
            elif not (isinstance(node.ctx, ast.Load) and node.attr in _METHODS):
                yield _words(node)
        elif isinstance(node, ast.Name) and id(node) not in inner:
            if isinstance(node.ctx, ast.Load) and node.id not in usable:
                yield node.id
        elif isinstance(node, ast.Subscript) and not isinstance(node.ctx, ast.Load):
            yield _words(node)


def _is_plain(call: ast.Call, text: str) -> bool:
    """Whether the call is written in the one way in which its folder is found and looked at."""
    return bool(_APPENDED.fullmatch(ast.get_source_segment(text, call) or ""))


def _dotted(node: ast.expr, known: dict[str, str]) -> str:
    """The dotted name, where it begins with a known one."""
    parts = []
    while isinstance(node, ast.Attribute):
        parts.append(node.attr)
        node = node.value
    if not isinstance(node, ast.Name) or node.id not in known:
        return ""
    return ".".join([known[node.id], *reversed(parts)])


# --- what a finder of modules may do ------------------------------------------------------

_TAME_MODULES = {
    "os", "sys", "functools", "importlib", "threading", "contextlib", "typing", "types", "re",
    "collections", "itertools", "pathlib", "warnings", "traceback", "__future__", "distutils",
    "ensurepip", "setuptools", "tokenize",
}  # fmt: skip
_WILD_NAMES = {
    "exec", "eval", "compile", "open", "__import__", "globals", "vars", "chr", "bytes",
    "bytearray", "input", "exit", "quit", "SystemExit", "settrace", "setprofile", "__builtins__",
    "builtins", "__dict__", "__subclasses__", "__globals__", "write_text",
    "write_bytes", "unlink", "_exit", "excepthook", "audit", "addaudithook", "displayhook",
}  # fmt: skip
_WILD_TEXTS = {"os", "posix", "sys", "builtins", "subprocess", "json", "torch", "jax", "jaxlib",
               "tensorflow", *_WILD_NAMES}  # fmt: skip
#: Functions of `os` and others, on whatever they are called: its module has many names.
_WILD_METHODS = re.compile(
    r"exec[lv]\w*|spawn\w+|posix_spawn\w*|fork\w*|system|popen|kill\w*|abort|putenv|dup2?"
)
_TAME_OF_OS = {"path", "environ", "sep", "fspath", "getenv", "listdir", "PathLike", "pathsep",
               "scandir", "getcwd", "name"}  # fmt: skip


def wild(text: str) -> str:
    """What a finder of modules, which is about importing by its nature, has no need of.

    Returns:
        The first such thing; empty where there is none.
    """
    tree = parsed(text)
    if tree is None:
        return _CANNOT
    nodes = list(ast.walk(tree))
    owners = {id(node.value) for node in nodes if isinstance(node, ast.Attribute)}
    for node in nodes:
        if isinstance(node, ast.Name) and node.id in ("os", "sys") and id(node) not in owners:
            return f"{node.id} as a value"
        if isinstance(node, ast.Constant) and node.value in _WILD_TEXTS:
            return f"the name {node.value!r}"
        if isinstance(node, ast.Import):
            for one in node.names:
                if one.name.partition(".")[0] not in _TAME_MODULES or (
                    one.asname and one.name in ("os", "sys")
                ):
                    return f"import {one.name}"
        elif isinstance(node, ast.ImportFrom):
            module = (node.module or "").partition(".")[0]
            names = {one.name for one in node.names}
            if (module not in _TAME_MODULES and not node.level) or names & _WILD_NAMES:
                return f"from {node.module} import {', '.join(sorted(names))}"
            if module == "os" and not names <= _TAME_OF_OS:
                return f"from os import {', '.join(sorted(names))}"
        elif isinstance(node, ast.Name) and node.id in _WILD_NAMES:
            return node.id
        elif isinstance(node, ast.Attribute):
            of_os = isinstance(node.value, ast.Name) and node.value.id == "os"
            named = node.attr in _WILD_NAMES | {"os", "sys"} or _WILD_METHODS.fullmatch(node.attr)
            if named or (of_os and node.attr not in _TAME_OF_OS):
                return _words(node)
        elif isinstance(node, ast.Call) and plain_name(node.func) == "getattr":
            of_self = node.args and plain_name(node.args[0]) in ("self", "spec.loader")
            if not (of_self or (len(node.args) > 1 and isinstance(node.args[1], ast.Constant))):
                return "getattr of a computed name"
    return ""
