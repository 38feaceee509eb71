"""pyproject.toml: PEP 621, poetry, and what the build needs."""

from __future__ import annotations

import tomllib
from typing import TYPE_CHECKING, Any

from packaging.requirements import Requirement
from packaging.specifiers import InvalidSpecifier

from .requirement import Declared, Kind, parse, poetry_specifier

if TYPE_CHECKING:
    from . import Manifests

_WHERE = "pyproject.toml"


def read(text: str, into: Manifests) -> None:
    """Add what the file declares to `into`."""
    try:
        data = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        into.faults.append(f"{_WHERE} cannot be read: {error}")
        return
    build = _table(data, "build-system")
    if build:
        into.installable = True
        into.backend = str(build.get("build-backend", "setuptools.build_meta:__legacy__"))
        into.build_requires += _list(build.get("requires"), "build", "build-system.requires", into)
    project = _table(data, "project")
    if project:
        _read_project(project, into)
    poetry = _table(_table(data, "tool"), "poetry")
    if poetry and "dependencies" not in project:
        _read_poetry(poetry, into)
    for group, lines in _table(data, "dependency-groups").items():
        if isinstance(lines, list):
            texts = [line for line in lines if isinstance(line, str)]
            into.declared += _list(texts, "developer", f"dependency-groups.{group}", into)
    uv_sources = _table(_table(_table(data, "tool"), "uv"), "sources")
    for name in uv_sources:
        into.faults.append(f"{_WHERE} takes {name} from a place of its own (tool.uv.sources)")


def _read_project(project: dict[str, Any], into: Manifests) -> None:
    into.installable = True
    into.name = into.name or str(project.get("name", ""))
    dynamic = project.get("dynamic", [])
    into.dynamic |= isinstance(dynamic, list) and "dependencies" in dynamic
    into.declared += _list(project.get("dependencies"), "package", "project.dependencies", into)
    for extra, lines in _table(project, "optional-dependencies").items():
        into.declared += _list(lines, "extra", f"extra {extra}", into, extra=extra)
    _bound(str(project.get("requires-python", "")), f"{_WHERE} requires-python", into)
    classifiers = project.get("classifiers", [])
    if isinstance(classifiers, list):
        into.classifiers += [str(classifier) for classifier in classifiers]
    into.scripts |= _scripts(_table(project, "scripts"))


def _read_poetry(poetry: dict[str, Any], into: Manifests) -> None:
    into.name = into.name or str(poetry.get("name", ""))
    classifiers = poetry.get("classifiers", [])
    if isinstance(classifiers, list):
        into.classifiers += [str(classifier) for classifier in classifiers]
    into.scripts |= _scripts(_table(poetry, "scripts"))
    in_extras = {
        str(name): extra
        for extra, names in _table(poetry, "extras").items()
        if isinstance(names, list)
        for name in names
    }
    for name, value in _table(poetry, "dependencies").items():
        if name == "python":
            _bound(_poetry_text(value), f"{_WHERE} tool.poetry python", into)
            continue
        extra = in_extras.get(name, "")
        optional = isinstance(value, dict) and bool(value.get("optional"))
        kind: Kind = "extra" if optional else "package"
        _add_poetry(name, value, kind, extra, "tool.poetry.dependencies", into)
    groups = {"dev": _table(poetry, "dev-dependencies")} | {
        name: _table(group, "dependencies")
        for name, group in _table(poetry, "group").items()
        if isinstance(group, dict)
    }
    for group, dependencies in groups.items():
        for name, value in dependencies.items():
            _add_poetry(name, value, "developer", "", f"tool.poetry.group.{group}", into)


def _add_poetry(name: str, value: Any, kind: Kind, extra: str, where: str, into: Manifests) -> None:
    if isinstance(value, list) and value:
        value = value[0]
    if isinstance(value, dict) and "git" in value:
        requirement = parse(f"git+{value['git']}#egg={name}")
    else:
        try:
            specifier = poetry_specifier(_poetry_text(value))
        except InvalidSpecifier:
            into.faults.append(f"{_WHERE} {where}: {name} has a version that is none: {value}")
            return
        requirement = Requirement(f"{name}{specifier}")
        if isinstance(value, dict) and isinstance(value.get("extras"), list):
            requirement.extras = {str(one) for one in value["extras"]}
    if requirement is not None:
        into.declared.append(Declared(requirement, f"{_WHERE} {where}", kind, extra))


def _poetry_text(value: Any) -> str:
    if isinstance(value, dict):
        return str(value.get("version", "*"))
    return str(value)


def _bound(text: str, where: str, into: Manifests) -> None:
    if not text:
        return
    try:
        into.python_bounds.append((poetry_specifier(text), where))
    except InvalidSpecifier:
        into.faults.append(f"{where} is no version specifier: {text}")


def _list(
    lines: Any, kind: Kind, where: str, into: Manifests, *, extra: str = ""
) -> list[Declared]:
    found = []
    for line in lines if isinstance(lines, list) else []:
        requirement = parse(str(line))
        if requirement is None:
            into.faults.append(f"{_WHERE} {where}: no requirement: {line}")
        else:
            found.append(Declared(requirement, f"{_WHERE} {where}", kind, extra))
    return found


def _table(data: Any, key: str) -> dict[str, Any]:
    value = data.get(key) if isinstance(data, dict) else None
    return value if isinstance(value, dict) else {}


def _scripts(table: dict[str, Any]) -> dict[str, str]:
    return {name: str(target).split(":")[0].strip() for name, target in table.items()}
