"""Which older release of a distribution still has a name that code imports from it.

Releases are looked at without installing them: one of each minor line, newest first.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from packaging.version import InvalidVersion, Version

from . import old_tools

if TYPE_CHECKING:
    from .workbench import Workbench

_STEPS = 8


def last_with(
    bench: Workbench, distribution: str, version: str, module: str, name: str
) -> str | None:
    """The newest release before `version` whose `module` has `name`; None where none does."""
    bench.decide(
        f"{module} of {distribution} {version} has no {name or 'such module'}: looking through "
        "older releases"
    )
    bound = version
    for _ in range(_STEPS):
        if old_tools.build(bench, f"{distribution}<{bound}", "releases") is None:
            return None
        found = bench.probe(
            str(bench.python), "names_in_wheels", str(old_tools.folder(bench, "releases")),
            distribution, bound, module, name,
        )  # fmt: skip
        if not isinstance(found, dict) or not found.get("version"):
            return None
        if found["has"]:
            return str(found["version"])
        try:
            release = Version(str(found["version"])).release
        except InvalidVersion:
            return None
        bound = ".".join(map(str, release[:2])) if len(release) > 1 else str(release[0])
        if bound == str(found["version"]):
            bound = str(found["version"])
    return None
