"""One requirement, as anybody may have written it, and where it was found."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import Literal

from packaging.requirements import InvalidRequirement, Requirement
from packaging.specifiers import SpecifierSet
from packaging.utils import canonicalize_name
from packaging.version import InvalidVersion, Version

#: How binding a declaration is: what an installer enforces, what a file lists, what a page
#: tells people to type, what an extra offers, what only developers need.
Kind = Literal["package", "file", "conda", "readme", "extra", "developer", "optional", "build"]

_OPTIONS = re.compile(r"\s+--(?:hash|global-option|install-option|config-settings)[= ]\S+")
_URL = re.compile(r"^(?:git|hg|svn|bzr)\+|^https?://|^file:", re.IGNORECASE)


@dataclass(frozen=True)
class Declared:
    """A requirement and where it stands."""

    requirement: Requirement
    where: str
    kind: Kind
    extra: str = ""
    hashes: tuple[str, ...] = field(default=(), compare=False)

    @property
    def name(self) -> str:
        """The distribution's normalised name."""
        return canonicalize_name(self.requirement.name)


def parse(text: str) -> Requirement | None:
    """A requirement from one line of anybody's, or None where it is none.

    Comments, hashes, options and the old way to write versions in parentheses or with one
    equals sign are understood. A URL gets the name that its `egg=` or last part gives.
    """
    line = re.sub(r"(^|\s)#(?!egg=).*$", "", text).strip().rstrip("\\").strip()
    line = _OPTIONS.sub("", line).strip()
    if len(line) > 1 and line[0] == line[-1] and line[0] in "'\"":
        line = line[1:-1].strip()
    if not line or line.startswith("-"):
        return None
    if _URL.match(line):
        named = re.search(r"[#&]egg=([A-Za-z0-9._-]+)", line)
        last = line.split("#")[0].rstrip("/").rsplit("/", 1)[-1].split("@")[0]
        name = named.group(1) if named else _project_of(last)
        return _requirement(f"{name} @ {line}")
    line = re.sub(r"(?<![=<>!~])=(?!=)(?=\s*[\w.*]+\s*$)", "==", line) if "@" not in line else line
    return _requirement(line)


def _project_of(file_name: str) -> str:
    """The project's name in the name of an archive, a wheel or a repository."""
    stem = re.sub(r"\.(git|whl|zip|tar\.gz|tgz|tar\.bz2)$", "", file_name)
    return re.split(r"-\d", stem, maxsplit=1)[0] or stem


def _requirement(text: str) -> Requirement | None:
    try:
        return Requirement(text)
    except InvalidRequirement:
        return None


def applies(requirement: Requirement, python: str) -> bool:
    """Whether its marker holds on this platform for a Python of that version."""
    if requirement.marker is None:
        return True
    major_minor = ".".join(python.split(".")[:2])
    return requirement.marker.evaluate(
        {"python_version": major_minor, "python_full_version": python, "extra": ""}
    )


def pins(specifier: SpecifierSet) -> list[Version]:
    """The exact versions that a specifier names."""
    found = []
    for one in specifier:
        if one.operator in ("==", "===") and not one.version.endswith(".*"):
            try:
                found.append(Version(one.version))
            except InvalidVersion:
                continue
    return found


def poetry_specifier(text: str) -> SpecifierSet:
    """Poetry's caret and tilde constraints as PEP 440 has them.

    Source of the rules: the chapter "Dependency specification" of Poetry's documentation.
    """
    parts = []
    for part in re.split(r"\s*,\s*", text.strip()):
        if part in ("", "*"):
            continue
        caret = re.fullmatch(r"\^\s*v?(\d+(?:\.\d+)*)\S*", part)
        tilde = re.fullmatch(r"~\s*v?(\d+(?:\.\d+)*)", part)
        if caret:
            numbers = [int(number) for number in caret.group(1).split(".")]
            fixed = next((at for at, number in enumerate(numbers) if number), len(numbers) - 1)
            upper = [*numbers[:fixed], numbers[fixed] + 1]
            parts += [f">={part.lstrip('^ v')}", "<" + ".".join(map(str, upper))]
        elif tilde:
            numbers = [int(number) for number in tilde.group(1).split(".")]
            upper = [numbers[0] + 1] if len(numbers) == 1 else [numbers[0], numbers[1] + 1]
            parts += [f">={tilde.group(1)}", "<" + ".".join(map(str, upper))]
        elif re.match(r"\d", part):
            parts.append(f"=={part}")
        else:
            parts.append(part)
    return SpecifierSet(",".join(parts))
