"""environment.yml of conda: the part of YAML that such files use, and its names on the index."""

from __future__ import annotations

import re
import tomllib
from functools import cache
from importlib.resources import files
from typing import TYPE_CHECKING

from packaging.specifiers import InvalidSpecifier, SpecifierSet

from .requirement import Declared, Kind, parse

if TYPE_CHECKING:
    from . import Manifests

_ITEM = re.compile(r"^(\s*)-\s+(.*)$")


@cache
def _names() -> dict[str, str]:
    """conda's name to the index's; empty for what is no Python distribution."""
    text = (files(__package__ or "").joinpath("..", "conda_names.toml")).read_text("utf-8")
    return {str(key): str(value) for key, value in tomllib.loads(text)["names"].items()}


def read(text: str, path: str, into: Manifests) -> None:
    """Add what the file asks for to `into`."""
    section, pip_depth = "", -1
    for number, raw in enumerate(text.splitlines(), start=1):
        line = re.sub(r"(^|\s)#.*$", "", raw).rstrip()
        heading = re.match(r"^([A-Za-z_-]+)\s*:", line)
        if heading:
            section, pip_depth = heading.group(1), -1
            continue
        item = _ITEM.match(line)
        if section != "dependencies" or item is None:
            continue
        depth, value = len(item.group(1)), item.group(2).strip().strip("'\"")
        where = f"{path}:{number}"
        if value.rstrip() in ("pip:", "pip :"):
            pip_depth = depth
        elif pip_depth >= 0 and depth > pip_depth:
            _add_pip(value, where, into)
        else:
            pip_depth = -1
            add(value, where, into)


def _add_pip(value: str, where: str, into: Manifests) -> None:
    requirement = parse(value)
    if requirement is not None:
        into.declared.append(Declared(requirement, f"{where} (pip)", "conda"))
    elif not value.startswith("-") and not value.startswith("."):
        into.faults.append(f"{where} is no requirement: {value[:80]}")


def add(value: str, where: str, into: Manifests, kind: Kind = "conda") -> None:
    """Add one match specification of conda: name, version, build."""
    spec = value.rsplit("::", 1)[-1]
    matched = re.match(r"^([A-Za-z0-9._-]+)\s*(.*)$", spec)
    if matched is None:
        into.faults.append(f"{where} is no conda package: {value[:80]}")
        return
    name, version = matched.group(1).lower(), _version(matched.group(2))
    if name == "python":
        if version:
            into.python_bounds.append((SpecifierSet(version), where))
        return
    mapped = _names().get(name, name)
    if not mapped:
        into.conda_only.append(name)
        return
    requirement = parse(f"{mapped}{version}")
    if requirement is not None:
        into.declared.append(Declared(requirement, where, kind))


def _version(text: str) -> str:
    """conda's version as PEP 440 has it: one equals sign matches a prefix; builds are left out."""
    text = re.sub(r"\s+", "", re.sub(r"^\s*([^=<>!~]\S*)\s.*$", r"=\1", text.strip()))
    exact = re.match(r"^(==?)([\w.]+?)(\.?\*)?(?:=.*)?$", text)
    if exact:
        operator, version, _ = exact.groups()
        text = f"=={version}" if operator == "==" or version.count(".") >= 2 else f"=={version}.*"
    try:
        return str(SpecifierSet(text))
    except InvalidSpecifier:
        return ""
