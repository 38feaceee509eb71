"""Is an installed framework the real one? Against its RECORD, and against what it must have.

A framework that is a stub, or that differs from what its installer listed, fails C2. One
without any list, as a build from source has none, needs only the files that it cannot be
without: those are data, in `frameworks.toml`.
"""

from __future__ import annotations

import functools
import tomllib
from dataclasses import dataclass
from importlib import resources
from typing import TYPE_CHECKING, Any

from ...attempt import Finding

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence


@dataclass(frozen=True)
class Problem:
    """What is wrong with an installed framework."""

    framework: str
    kind: str  #: framework-stub or framework-changed
    what: str
    where: str

    @property
    def finding(self) -> Finding:
        """The problem, as records hold it."""
        return Finding(
            kind=self.kind,
            what=f"{self.framework}: {self.what}",
            where=self.where,
            why="what it computes says nothing of the framework; C2 fails",
        )


@functools.cache
def _known() -> dict[str, Any]:
    data = resources.files(__package__).joinpath("frameworks.toml").read_text(encoding="utf-8")
    return tomllib.loads(data)


def wanted(frameworks: Sequence[str] | None = None) -> dict[str, Any]:
    """What `standalone.look.prefix` is to look for; all that are known where none is named."""
    known = _known()
    return {name: known[name] for name in frameworks or known if name in known}


def problems(found: Mapping[str, Any]) -> list[Problem]:
    """What is wrong with the frameworks of which `standalone.look.prefix` tells."""
    told = (_problem(name, facts) for name, facts in found.items())
    return [problem for problem in told if problem is not None]


def outline(found: Mapping[str, Any]) -> dict[str, Any]:
    """Each framework's distributions, and how much of them was compared, as results hold it."""
    return {
        name: [
            {
                "distribution": f"{one['name']} {one['version']}",
                "listed_by": one.get("source") or "nothing",
                "files_compared": one.get("checked", 0),
            }
            for one in facts["distributions"]
        ]
        for name, facts in found.items()
    }


def _problem(name: str, facts: Mapping[str, Any]) -> Problem | None:
    if not facts["distributions"] and not any(facts["packages"].values()):
        return None  # it is not installed
    places = [place for place in facts["packages"].values() if place]
    places += [one["folder"] for one in facts["distributions"]]
    lacking = [group for group in facts["core"] if not group["found"]]
    if lacking:
        group = lacking[0]
        what = f"it is a stub: there is no {group['any_of'][0]} with the framework's code"
        if group["seen"]:
            what += f" ({group['seen']})"
        return Problem(name, "framework-stub", what, places[0])
    for one in facts["distributions"]:
        counts = one.get("counts", {})
        said = [
            f"{counts[kind]} {words} ({one[kind][0]})"
            for kind, words in _DIFFERENCES.items()
            if counts.get(kind)
        ]
        if said:
            what = f"{one['name']} {one['version']} differs from its {one['source']}"
            return Problem(name, "framework-changed", f"{what}: {', '.join(said)}", one["folder"])
    return None


_DIFFERENCES = {
    "changed": "changed",
    "missing": "missing",
    "extra": "added that it does not list",
}
