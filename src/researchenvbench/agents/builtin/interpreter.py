"""Which Python the environment gets: one that the repository allows and the host has."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

from packaging.specifiers import InvalidSpecifier, SpecifierSet
from packaging.version import Version

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from .manifests import Manifests

#: Years after which a Python is served by the wheels of nearly everything.
_SETTLED_YEARS = 2.0
_RELEASED_AHEAD_OF_SOURCE_YEARS = 0.5


@dataclass(frozen=True)
class Python:
    """An interpreter of the host."""

    path: str
    version: Version
    headers: bool

    @property
    def minor(self) -> str:
        """Such as `3.11`."""
        return f"{self.version.major}.{self.version.minor}"

    @property
    def tag(self) -> str:
        """Such as `cp311`."""
        return f"cp{self.version.major}{self.version.minor}"


def usable(answers: Sequence[Mapping[str, Any]]) -> list[Python]:
    """The host's interpreters that can make an environment, one for each minor version.

    Of several builds of a minor version the one with headers is taken, then the newest.
    """
    best: dict[str, Python] = {}
    for answer in answers:
        if answer["implementation"] != "cpython" or not answer["final"] or not answer["venv"]:
            continue
        python = Python(str(answer["path"]), Version(answer["version"]), bool(answer["headers"]))
        other = best.get(python.minor)
        if other is None or (python.headers, python.version) > (other.headers, other.version):
            best[python.minor] = python
    return sorted(best.values(), key=lambda python: python.version, reverse=True)


def choose(
    pythons: Sequence[Python],
    manifests: Manifests,
    *,
    stated: str = "",
    date: datetime | None = None,
    framework_at_hand: Callable[[Python], bool] | None = None,
    wheels_exist: Callable[[Python], bool] | None = None,
    decide: Callable[[str], None],
) -> Python | None:
    """The Python to use, its reason said; None where the host has none at all."""
    if not pythons:
        return None
    allowed, bound = _allowed(pythons, manifests, stated, decide)
    at_hand = [python for python in allowed if framework_at_hand and framework_at_hand(python)]
    why = bound
    if at_hand:
        allowed, why = at_hand, f"{why}, and there is a build of the framework for it at hand"
    ranked = sorted(allowed, key=lambda python: _rank(python, manifests, date))
    if wheels_exist and len(ranked) > 1:
        for python in ranked[:4]:
            if wheels_exist(python):
                ranked = [python]
                why += ", and the pinned versions have wheels for it"
                break
    chosen = ranked[0]
    if chosen.minor in manifests.classified_pythons:
        why += f", and the classifiers name {chosen.minor}"
    decide(f"python {chosen.version} ({chosen.path}): {why}")
    return chosen


def _allowed(
    pythons: Sequence[Python], manifests: Manifests, stated: str, decide: Callable[[str], None]
) -> tuple[list[Python], str]:
    bounds = list(manifests.python_bounds)
    if stated:
        try:
            bounds.insert(0, (SpecifierSet(stated), "the task"))
        except InvalidSpecifier:
            decide(f"the task's Python {stated!r} is no version specifier: not heeded")
    allowed, kept = list(pythons), []
    for specifier, where in bounds:
        fitting = [python for python in allowed if specifier.contains(python.version)]
        if fitting:
            allowed = fitting
            kept.append(f"{where} {specifier}")
        else:
            have = ", ".join(python.minor for python in pythons)
            decide(
                f"{where} asks for Python {specifier}, which this host does not have beside "
                f"what else is asked (it has {have}): going on without that bound"
            )
    return allowed, f"{' and '.join(kept)} allows it" if kept else "the repository sets no bound"


def is_older(python: Python, date: datetime) -> bool:
    """Whether distributions of that date can have been made for that Python."""
    return _year(date) - _released(python) >= 0


def _released(python: Python) -> float:
    """The year of a minor version: one comes each October, 3.8 in 2019 (PEP 602)."""
    return 2011 + python.version.minor + 0.78


def _rank(python: Python, manifests: Manifests, date: datetime | None) -> tuple[Any, ...]:
    """Smaller is better: named by the classifiers, settled at the time, then the newest."""
    named = manifests.classified_pythons
    age = _year(date or datetime.now(UTC)) - _released(python)
    wanted = _RELEASED_AHEAD_OF_SOURCE_YEARS if date else _SETTLED_YEARS
    return (
        bool(named) and python.minor not in named,
        age < wanted,
        not python.headers,
        -python.version.minor if age >= wanted else python.version.minor,
    )


def _year(moment: datetime) -> float:
    return moment.year + moment.timetuple().tm_yday / 366
