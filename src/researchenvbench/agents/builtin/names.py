"""From the name that code imports to the distribution that brings it."""

from __future__ import annotations

import re
import tomllib
from functools import cache
from importlib.resources import files
from typing import Any

from packaging.utils import canonicalize_name

#: Names that people give to modules of their own. A distribution of such a name on an index
#: is somebody else's, so none is installed by that name alone.
_COMMON_WORDS = frozenset(
    "agent agents algorithm algorithms api app args base bin callbacks cli cmd code common conf "
    "config configs constants core data dataloader dataset datasets_utils demo engine env envs "
    "eval evaluate evaluation evaluator example examples experiment experiments feature features "
    "func functions general global helper helpers infer inference init input io job layers lib "
    "libs loader local log logger logging_utils loss losses main metric metrics misc model "
    "modeling models module modules my net nets network networks nn ops opt optim optimizer "
    "options output paths plot plots policy preprocess process processing project resources "
    "runner runners sample samplers schedule scheduler script scripts server service settings "
    "setup src stopwatch task tasks temp template test tests tmp tool tools train trainer "
    "trainers training tuner types util utilities utility utils version vis visualize worker "
    "workers".split()
)


@cache
def _data() -> dict[str, dict[str, Any]]:
    text = (files(__package__ or "") / "import_names.toml").read_text("utf-8")
    return tomllib.loads(text)


def _table() -> dict[str, str]:
    return _data()["names"]


def known(module: str) -> str | None:
    """The distribution that is known to bring a module, `""` for none, None if not known."""
    return _table().get(module)


def same_name(module: str) -> str | None:
    """The distribution of the same name, where it is safe to try it."""
    if len(module) < 3 or module.lower() in _COMMON_WORDS or not module.isascii():
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
