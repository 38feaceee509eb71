"""Which distributions a repository asks for, read from the files that name them.

Requirements files and conda's environments by lines, pyproject.toml by its tables, setup.py by
the lists of its syntax tree. Nothing is executed, and a description that names a package is no
requirement.
"""

from __future__ import annotations

import ast
import re
import tomllib
from pathlib import PurePosixPath
from typing import TYPE_CHECKING, Any

from packaging.utils import canonicalize_name

from ..verify.statements import syntax
from .lines import lines_of

if TYPE_CHECKING:
    from collections.abc import Iterator

_FILES = re.compile(
    r"[\w.-]*requirements[\w.-]*\.(?:txt|in)|pyproject\.toml|setup\.(?:py|cfg)"
    r"|(?:conda[_-]?)?env(?:ironment)?[\w.-]*\.ya?ml",
    re.IGNORECASE,
)
_IN_FOLDER = re.compile(r"requirements/[\w.-]+\.(?:txt|in)$")
#: A distribution's name (PyPA's name format), up to its extras, version, marker or address.
_REQUIREMENT = re.compile(
    r"\s*(?P<name>[A-Za-z0-9](?:[\w.-]*[A-Za-z0-9])?)\s*(?:\[[^\]]*\]\s*)?(?:$|[<>=!~;@(,#])"
)


def is_requirements(path: str) -> bool:
    """Whether a file of this name says what is to be installed."""
    return bool(_FILES.fullmatch(PurePosixPath(path).name) or _IN_FOLDER.search(path))


def required_by(path: str, text: str) -> list[tuple[int, str]]:
    """Line and normalised name of each distribution that the file asks for."""
    name = PurePosixPath(path).name
    if name == "pyproject.toml":
        return _placed(_of_pyproject(text), text)
    if name == "setup.py":
        return list(_of_setup(text))
    dash = "-" if name.endswith((".yml", ".yaml")) else ""
    found = []
    for number, line in lines_of(text):
        said = line.strip()
        if dash and not said.startswith(dash):
            continue
        if match := _REQUIREMENT.match(said.removeprefix(dash)):
            found.append((number, str(canonicalize_name(match["name"]))))
    return found


def _of_setup(text: str) -> Iterator[tuple[int, str]]:
    tree = syntax(text.encode("utf-8", "replace"))
    if isinstance(tree, str):
        return
    for node in ast.walk(tree):
        if not isinstance(node, ast.List | ast.Tuple):
            continue
        for item in node.elts:
            match item:
                case ast.Constant(value=str(text)) if found := _REQUIREMENT.match(text):
                    yield item.lineno, str(canonicalize_name(found["name"]))


def _of_pyproject(text: str) -> list[str]:
    """The requirements as they are written; of Poetry's tables the names alone."""
    try:
        data = tomllib.loads(text)
    except (tomllib.TOMLDecodeError, RecursionError):
        return []
    project, poetry = _table(data, "project"), _table(data, "tool", "poetry")
    groups = [
        _list(_table(data, "build-system").get("requires")),
        _list(project.get("dependencies")),
        *map(_list, _table(project, "optional-dependencies").values()),
        *map(_list, _table(data, "dependency-groups").values()),
        list(_table(poetry, "dependencies")),
        list(_table(poetry, "dev-dependencies")),
        *(list(_table(group, "dependencies")) for group in _table(poetry, "group").values()),
    ]
    return [str(item) for group in groups for item in group if isinstance(item, str)]


def _placed(written: list[str], text: str) -> list[tuple[int, str]]:
    """With the lines on which they stand."""
    lines = text.splitlines()
    found = []
    for requirement in written:
        if match := _REQUIREMENT.match(requirement):
            at = next((n for n, line in enumerate(lines, start=1) if _holds(line, requirement)), 0)
            found.append((at, str(canonicalize_name(match["name"]))))
    return found


def _holds(line: str, requirement: str) -> bool:
    quoted = f'"{requirement}"' in line or f"'{requirement}'" in line
    return quoted or bool(re.match(rf"\s*{re.escape(requirement)}\s*=", line))


def _table(data: Any, *keys: str) -> dict[str, Any]:
    for key in keys:
        data = data.get(key) if isinstance(data, dict) else None
    return data if isinstance(data, dict) else {}


def _list(value: Any) -> list[Any]:
    return value if isinstance(value, list) else []
