"""requirements.txt and its kin: which files count as what, and the lines in them."""

from __future__ import annotations

import posixpath
import re
from typing import TYPE_CHECKING

from .requirement import Declared, Kind, parse

if TYPE_CHECKING:
    from collections.abc import Mapping

_DEVELOPER = re.compile(r"dev|test|lint|doc|ci\b|build|format|type|notebook|release", re.IGNORECASE)
_MAIN = re.compile(
    r"^(requirements|requirements[-_](base|main|core|common|install|prod|cpu)"
    r"|requirements/(base|main|core|common|install|prod|default|requirements))\.(txt|in|pip)$",
    re.IGNORECASE,
)
_DEPTH_LIMIT = 8


def is_requirements_file(path: str) -> bool:
    """Whether a file's name says that it lists requirements."""
    name = posixpath.basename(path)
    return path.endswith((".txt", ".in", ".pip")) and (
        "requirements" in name.lower() or posixpath.dirname(path).lower() == "requirements"
    )


def role(path: str) -> Kind:
    """What the requirements in a file of that name are for."""
    if _DEVELOPER.search(posixpath.basename(path)):
        return "developer"
    if _MAIN.match(path):
        return "file"
    return "optional"


def read(
    path: str, texts: Mapping[str, str], kind: Kind, *, seen: frozenset[str] = frozenset()
) -> tuple[list[Declared], list[str]]:
    """The requirements in a file and those that it includes, and what could not be read.

    An included file counts as what the including one counts as. A constraint (`-c`) is no
    requirement, so it is left to the caller by name.
    """
    found: list[Declared] = []
    faults: list[str] = []
    if path in seen or len(seen) >= _DEPTH_LIMIT:
        return found, [f"{path} includes itself"]
    for number, line in logical_lines(texts[path]):
        where = f"{path}:{number}"
        include = re.match(r"(?:-r|--requirement)[ =]\s*(\S+)", line)
        if include:
            other = posixpath.normpath(posixpath.join(posixpath.dirname(path), include.group(1)))
            if other in texts:
                more, worse = read(other, texts, kind, seen=seen | {path})
                found += more
                faults += worse
            else:
                faults.append(f"{where} includes {other}, which is not there")
            continue
        if line == "." or line.startswith(("-", "./", "../", ".[")):
            continue
        requirement = parse(line)
        if requirement is None:
            faults.append(f"{where} is no requirement: {line[:80]}")
        else:
            hashes = tuple(re.findall(r"--hash[= ](\S+)", line))
            found.append(Declared(requirement, where, kind, hashes=hashes))
    return found, faults


def logical_lines(text: str) -> list[tuple[int, str]]:
    """Lines with their numbers, continued ones joined, comments and empty ones left out."""
    lines: list[tuple[int, str]] = []
    start, held = 0, ""
    for number, raw in enumerate(text.splitlines(), start=1):
        line = re.sub(r"(^|\s)#(?!egg=).*$", "", raw).strip()
        start = start if held else number
        if line.endswith("\\"):
            held += line[:-1] + " "
            continue
        whole = (held + line).strip()
        held = ""
        if whole:
            lines.append((start, whole))
    if held.strip():
        lines.append((start, held.strip()))
    return lines
