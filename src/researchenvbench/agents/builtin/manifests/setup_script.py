"""setup.py, setup.cfg and PKG-INFO, read without running anything.

What setup.py computes in ways that cannot be followed is left to the installer, which runs
it later anyway; here it is only needed for decisions that come before.
"""

from __future__ import annotations

import ast
import configparser
import re
import sys
from email.parser import HeaderParser
from typing import TYPE_CHECKING, Any

from packaging.specifiers import InvalidSpecifier, SpecifierSet

from . import requirements_file
from .requirement import Declared, Kind, parse

if TYPE_CHECKING:
    from collections.abc import Mapping

    from . import Manifests

_EXTENSION = re.compile(
    r"\b(ext_modules|Extension|CppExtension|CUDAExtension|Pybind11Extension|cythonize"
    r"|RustExtension|CMakeBuild|BuildExtension|cffi_modules)\b"
)


class _UnknownError(Exception):
    """A value that cannot be told without running the script."""


def read_setup_py(text: str, texts: Mapping[str, str], into: Manifests) -> None:
    """Add what setup.py says literally to `into`."""
    into.installable = True
    try:
        tree = ast.parse(text)
    except (SyntaxError, ValueError) as error:
        into.faults.append(f"setup.py does not parse: {error}")
        return
    into.compiles |= bool(_EXTENSION.search(text))
    into.asks_for_nvcc |= "CUDAExtension" in text or "nvcc" in text or "CUDA_HOME" in text
    into.setup_imports |= _imported(tree)
    names = _assigned(tree)
    for call in ast.walk(tree):
        if isinstance(call, ast.Call) and _called(call) == "setup":
            _read_call(call, names, texts, into)


def _read_call(
    call: ast.Call, names: dict[str, ast.expr], texts: Mapping[str, str], into: Manifests
) -> None:
    arguments = {word.arg: word.value for word in call.keywords if word.arg}

    def value(key: str) -> Any:
        if key not in arguments:
            return None
        try:
            return _evaluate(arguments[key], names)
        except _UnknownError:
            into.dynamic |= key == "install_requires"
            return _file_named_in(arguments[key], names, texts, key, into)

    name = value("name")
    into.name = into.name or (name if isinstance(name, str) else "")
    into.declared += _requirements(value("install_requires"), "package", "install_requires", into)
    into.build_requires += _requirements(value("setup_requires"), "build", "setup_requires", into)
    extras = value("extras_require")
    for extra, lines in extras.items() if isinstance(extras, dict) else ():
        into.declared += _requirements(lines, "extra", f"extra {extra}", into, extra=str(extra))
    _bound(value("python_requires"), "setup.py python_requires", into)
    classifiers = value("classifiers")
    if isinstance(classifiers, list):
        into.classifiers += [str(classifier) for classifier in classifiers]
    points = value("entry_points")
    scripts = points.get("console_scripts", []) if isinstance(points, dict) else []
    _scripts(scripts, into)


def _file_named_in(
    node: ast.expr, names: dict[str, ast.expr], texts: Mapping[str, str], key: str, into: Manifests
) -> Any:
    """A requirements file whose name stands in an expression, read in its place."""
    if key != "install_requires":
        return None
    nodes = list(ast.walk(node))
    nodes += [
        inner
        for one in list(nodes)
        if isinstance(one, ast.Name) and one.id in names
        for inner in ast.walk(names[one.id])
    ]
    for one in nodes:
        if isinstance(one, ast.Constant) and one.value in texts:
            path = str(one.value)
            if requirements_file.is_requirements_file(path):
                found, _ = requirements_file.read(path, texts, "package")
                into.declared += found
                return None
    return None


def _requirements(
    lines: Any, kind: Kind, where: str, into: Manifests, *, extra: str = ""
) -> list[Declared]:
    if isinstance(lines, str):
        lines = lines.splitlines()
    found = []
    for line in lines if isinstance(lines, (list, tuple)) else []:
        requirement = parse(str(line))
        if requirement is not None:
            found.append(Declared(requirement, f"setup.py {where}", kind, extra))
        elif str(line).strip():
            into.faults.append(f"setup.py {where}: no requirement: {line}")
    return found


def _called(call: ast.Call) -> str:
    function = call.func
    return getattr(function, "id", getattr(function, "attr", ""))


def _assigned(tree: ast.Module) -> dict[str, ast.expr]:
    """Names that are assigned once at the top of the script."""
    found: dict[str, ast.expr] = {}
    twice = set()
    for node in tree.body:
        if isinstance(node, ast.Assign) and len(node.targets) == 1:
            target = node.targets[0]
            if isinstance(target, ast.Name):
                twice |= {target.id} & found.keys()
                found[target.id] = node.value
        elif isinstance(node, ast.AugAssign) and isinstance(node.target, ast.Name):
            twice.add(node.target.id)
    return {name: value for name, value in found.items() if name not in twice}


def _evaluate(node: ast.expr, names: dict[str, ast.expr], depth: int = 0) -> Any:
    if depth > 20:
        raise _UnknownError
    match node:
        case ast.Constant():
            return node.value
        case ast.List() | ast.Tuple() | ast.Set():
            return [_evaluate(one, names, depth + 1) for one in node.elts]
        case ast.Dict():
            return {
                _evaluate(key, names, depth + 1): _known(value, names, depth + 1)
                for key, value in zip(node.keys, node.values, strict=True)
                if key is not None
            }
        case ast.Name() if node.id in names:
            return _evaluate(names[node.id], names, depth + 1)
        case ast.BinOp(op=ast.Add()):
            left = _evaluate(node.left, names, depth + 1)
            right = _evaluate(node.right, names, depth + 1)
            if type(left) is type(right) and isinstance(left, (str, list)):
                return left + right
        case ast.Subscript():
            table = _evaluate(node.value, names, depth + 1)
            key = _evaluate(node.slice, names, depth + 1)
            if isinstance(table, dict) and key in table:
                return table[key]
    raise _UnknownError


def _known(node: ast.expr, names: dict[str, ast.expr], depth: int) -> Any:
    """A value of a table, or None, so that one which cannot be told costs not the others."""
    try:
        return _evaluate(node, names, depth)
    except _UnknownError:
        return None


def _imported(tree: ast.Module) -> set[str]:
    """Third-party modules that the script imports when it runs."""
    found = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            found |= {alias.name.split(".")[0] for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
            found.add(node.module.split(".")[0])
    return found - set(sys.stdlib_module_names) - {"distutils", "imp"}


def read_setup_cfg(text: str, into: Manifests) -> None:
    """Add what the declarative setup.cfg says to `into`."""
    config = configparser.ConfigParser(interpolation=None, strict=False)
    try:
        config.read_string(text)
    except configparser.Error as error:
        into.faults.append(f"setup.cfg cannot be read: {error}")
        return
    name = config.get("metadata", "name", fallback="")
    if name:
        into.installable = True
        into.name = into.name or name
    classifiers = config.get("metadata", "classifiers", fallback="").splitlines()
    into.classifiers += [line.strip() for line in classifiers if line.strip()]
    _bound(config.get("options", "python_requires", fallback=None), "setup.cfg", into)
    _cfg_lines(config.get("options", "install_requires", fallback=""), "package", "", into)
    if config.has_section("options.extras_require"):
        for extra, lines in config.items("options.extras_require"):
            _cfg_lines(lines, "extra", extra, into)
    points = config.get("options.entry_points", "console_scripts", fallback="")
    _scripts(points.splitlines(), into)


def _cfg_lines(lines: str, kind: Kind, extra: str, into: Manifests) -> None:
    for line in lines.splitlines():
        requirement = parse(line)
        if requirement is not None:
            where = f"setup.cfg extra {extra}" if extra else "setup.cfg install_requires"
            into.declared.append(Declared(requirement, where, kind, extra))


def read_metadata(text: str, path: str, into: Manifests) -> None:
    """Add what an archive's own PKG-INFO says, where the other files do not say it."""
    message = HeaderParser().parsestr(text)
    into.name = into.name or str(message.get("Name", ""))
    if not into.python_bounds:
        _bound(message.get("Requires-Python"), f"{path} Requires-Python", into)
    if not into.classifiers:
        into.classifiers += message.get_all("Classifier") or []
    known = {(one.name, one.extra) for one in into.declared}
    for line in message.get_all("Requires-Dist") or []:
        requirement = parse(line)
        if requirement is None:
            continue
        extra = re.search(r"extra\s*==\s*['\"]([^'\"]+)['\"]", line)
        if extra:
            requirement = (
                parse(
                    re.sub(r"\s*(and\s+)?extra\s*==\s*['\"][^'\"]+['\"]", "", line)
                    .strip()
                    .rstrip(";")
                    .strip()
                )
                or requirement
            )
        kind: Kind = "extra" if extra else "package"
        found = Declared(requirement, path, kind, extra.group(1) if extra else "")
        if (found.name, found.extra) not in known:
            into.declared.append(found)


def _scripts(lines: Any, into: Manifests) -> None:
    """Entry points as `name = module:function`."""
    for line in lines if isinstance(lines, list) else []:
        name, equals, target = str(line).partition("=")
        if equals:
            into.scripts[name.strip()] = target.split(":")[0].strip()


def _bound(text: Any, where: str, into: Manifests) -> None:
    if not isinstance(text, str) or not text.strip():
        return
    try:
        into.python_bounds.append((SpecifierSet(text), where))
    except InvalidSpecifier:
        into.faults.append(f"{where} is no version specifier: {text}")
