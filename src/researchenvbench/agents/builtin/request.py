"""What the environment is asked to hold, and how the request is relaxed when it cannot be had.

The request is data: requirements with their reasons, versions that are held, and switches.
`relax` applies one suggestion of a resolver; each can be applied a bounded number of times,
so that relaxing comes to an end.
"""

from __future__ import annotations

from copy import deepcopy
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from packaging.requirements import Requirement
from packaging.specifiers import SpecifierSet
from packaging.utils import canonicalize_name

if TYPE_CHECKING:
    from datetime import datetime
    from pathlib import Path

    from .messages import Suggestion


@dataclass
class Wish:
    """One requirement of the request."""

    requirement: Requirement
    why: str
    hashes: tuple[str, ...] = ()

    @property
    def name(self) -> str:
        """The distribution's normalised name."""
        return canonicalize_name(self.requirement.name)


@dataclass
class Request:
    """All that one resolution is asked for."""

    wishes: list[Wish] = field(default_factory=list)
    source: Path | None = None  #: where the repository is installed from; None: it is not
    source_name: str = ""
    source_extras: list[str] = field(default_factory=list)
    held: dict[str, str] = field(default_factory=dict)  #: name to the requirement that overrides
    excluded: set[str] = field(default_factory=set)
    without_isolation: set[str] = field(default_factory=set)
    wheelhouse: Path | None = None
    date: datetime | None = None
    prereleases: bool = False
    hashes: bool = True

    def add(self, requirement: Requirement, why: str, hashes: tuple[str, ...] = ()) -> bool:
        """Ask for something, unless the same is asked already."""
        name = canonicalize_name(requirement.name)
        for wish in self.wishes:
            if wish.name == name and str(wish.requirement) == str(requirement):
                return False
        self.wishes.append(Wish(requirement, why, hashes))
        self.excluded.discard(name)
        return True

    def copy(self) -> Request:
        """One that can be changed without changing this."""
        return deepcopy(self)

    def names(self) -> set[str]:
        """Distributions that are asked for by name."""
        return {wish.name for wish in self.wishes}

    def lines(self) -> list[str]:
        """The request as a requirements file for uv or pip."""
        lines = []
        if self.source is not None:
            extras = f"[{','.join(self.source_extras)}]" if self.source_extras else ""
            lines.append(f"{self.source}{extras}")
        for wish in self.wishes:
            if wish.name in self.excluded:
                continue
            hashes = wish.hashes if self.hashes else ()
            lines.append(str(wish.requirement) + "".join(f" --hash={one}" for one in hashes))
        return lines

    def overrides(self) -> list[str]:
        """Requirements that replace what anybody says of those distributions."""
        absent = [f"{name}; python_version < '0'" for name in sorted(self.excluded)]
        return [*(line for line in self.held.values() if line), *absent]

    # --- relaxing ----------------------------------------------------------------------

    def relax(self, suggestion: Suggestion) -> str | None:
        """Apply one suggestion; what was done, or None where it changes nothing."""
        name = suggestion.name
        match suggestion.remedy:
            case "drop_hashes" if self.hashes:
                self.hashes = False
                return "hashes dropped: the files at hand have others"
            case "drop_date" if self.date is not None:
                self.date = None
                return "index date dropped: what is asked for was not all uploaded by then"
            case "allow_prereleases" if not self.prereleases:
                self.prereleases = True
                return "pre-releases allowed"
            case "no_isolation" if name and name not in self.without_isolation:
                self.without_isolation.add(name)
                return f"{name} is built without isolation: its build misses {suggestion.needs}"
            case "drop_bound" if name:
                return self._drop_bound(name)
            case "leave_out_url":
                return self._leave_out_address(name)
            case "leave_out" if name and name != canonicalize_name(self.source_name or "-"):
                return self._leave_out(name)
        return None

    def _drop_bound(self, name: str) -> str | None:
        """Free a version, in the request and in what the repository's own metadata says."""
        dropped = []
        for wish in self.wishes:
            if wish.name == name and wish.requirement.specifier:
                dropped.append(f"{wish.requirement} ({wish.why})")
                wish.requirement.specifier = SpecifierSet()
                wish.hashes = ()
        if name not in self.held:
            self.held[name] = name
            dropped.append("all bounds that others set")
        elif self.held[name] != name and not dropped:
            return None  # held on purpose: the framework
        return f"bound of {name} dropped: {', '.join(dropped)}" if dropped else None

    def _leave_out(self, name: str) -> str | None:
        if name in self.excluded or (name in self.held and self.held[name] != name):
            return None
        self.excluded.add(name)
        self.held.pop(name, None)
        asked = [wish.why for wish in self.wishes if wish.name == name]
        return f"{name} left out (asked for by {', '.join(asked) or 'another distribution'})"

    def _leave_out_address(self, address: str) -> str | None:
        for wish in self.wishes:
            if wish.requirement.url and address in wish.requirement.url:
                return self._leave_out(wish.name)
        return None


def requirement_of(text: str) -> Requirement:
    """A requirement that this package wrote itself."""
    return Requirement(text)
