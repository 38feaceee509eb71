"""From the name that code imports to the distribution that brings it."""

from __future__ import annotations

import re
import tomllib
from functools import cache
from importlib.resources import files
from typing import Any

from packaging.utils import canonicalize_name


@cache
def _data() -> dict[str, dict[str, Any]]:
    text = (files(__package__ or "") / "import_names.toml").read_text("utf-8")
    return tomllib.loads(text)


def _table() -> dict[str, str]:
    """Names of modules and of the distributions that bring them."""
    table: dict[str, str] = _data()["names"]
    return table


def known(module: str) -> str | None:
    """The distribution that is known to bring a module, `""` for none, None if not known."""
    return _table().get(module)


def same_name(module: str) -> str | None:
    """The distribution of the same name, where it is safe to try it."""
    if len(module) < 3 or module.lower() in _data()["common"]["words"] or not module.isascii():
        return None
    if not re.fullmatch(r"[A-Za-z][A-Za-z0-9_]*", module):
        return None
    return canonicalize_name(module)


def modules_of(distribution: str) -> set[str]:
    """Modules that a distribution may bring, as far as its name and the table tell."""
    name = canonicalize_name(distribution)
    found = {module for module, brings in _table().items() if canonicalize_name(brings) == name}
    found.add(name.replace("-", "_"))
    found |= set(_data()["also"].get(name, ()))
    found.add(distribution)
    found.add(re.sub(r"^py[-_]?|[-_]?(py|python)$", "", name).replace("-", "_") or name)
    return found
