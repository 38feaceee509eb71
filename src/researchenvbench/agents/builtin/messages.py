"""What resolvers say when they fail, as remedies. Pure: text in, suggestions out.

The sentences are those of uv (0.5 to 0.13) and pip (23 to 26).
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Literal

from packaging.utils import canonicalize_name

Remedy = Literal[
    "leave_out_url",  #: it is fetched from an address that cannot be reached
    "leave_out",  #: no such distribution on the index, or it cannot be built here
    "drop_bound",  #: its version cannot be had, or contradicts another's
    "no_isolation",  #: its build needs what is in the environment
    "old_tools",  #: its metadata or setup script predates today's build tools
    "drop_hashes",
    "drop_date",
    "allow_prereleases",
    "unreachable",
    "no_compiler",
]


@dataclass(frozen=True)
class Suggestion:
    """What to try next, about which distribution, and the words that suggest it."""

    remedy: Remedy
    name: str
    words: str
    needs: str = ""  #: a module that a build missed
    version: str = ""  #: the version that was tried


_NAME = r"([A-Za-z0-9][A-Za-z0-9._-]*)"


def suggestions(text: str) -> list[Suggestion]:
    """Remedies for a failed resolution or installation, the most telling first."""
    flat = re.sub(r"\s*\n\s*(?:│|╰─▶|├─▶|·)?\s*", " ", text)
    flat = re.sub(r"\s{2,}", " ", flat)
    found = [
        *_addresses(flat),
        *_network(flat),
        *_hashes(flat),
        *_builds(text, flat),
        *_absent(flat),
        *_bounds(flat),
    ]
    unique: dict[tuple[str, str], Suggestion] = {}
    for one in found:
        unique.setdefault((one.remedy, one.name), one)
    return list(unique.values())


def _addresses(flat: str) -> list[Suggestion]:
    """Repositories that cannot be cloned: named by their address, since uv names no package."""
    if "Git operation failed" not in flat and "git clone" not in flat:
        return []
    cloned = re.search(r"git (?:fetch|clone)[^`\n]*?'?((?:https?|ssh|git|file)://[^\s'`]+)", flat)
    return [Suggestion("leave_out_url", cloned[1], flat[:160])] if cloned else []


def _network(flat: str) -> list[Suggestion]:
    unreachable = re.search(
        r"(error sending request for url|Failed to fetch|dns error|Connection refused"
        r"|Could not connect|client error \(Connect\)|Network is unreachable"
        r"|Temporary failure in name resolution|NewConnectionError"
        r"|Received HTML|Unsupported Content-Type|content type text/html)[^.]{0,120}",
        flat,
    )
    return [Suggestion("unreachable", "", unreachable[0])] if unreachable else []


def _hashes(flat: str) -> list[Suggestion]:
    hashes = re.search(
        r"(Hash mismatch|--require-hashes|hashes are required|HASHES DO NOT MATCH|THESE PACKAGES "
        r"DO NOT MATCH)[^.]{0,80}",
        flat,
        re.IGNORECASE,
    )
    return [Suggestion("drop_hashes", "", hashes[0])] if hashes else []


def _builds(text: str, flat: str) -> list[Suggestion]:
    """Distributions whose build failed, and what the build's own output says of it."""
    failed = re.search(
        rf"(?:Failed to (?:build|download and build|prepare) (?:editable )?`?{_NAME}"
        rf"(?:==(?P<version>[^`\s]+))?(?: @ [^`]+)?`?|Failed building wheel for {_NAME}"
        rf"|Failed to parse metadata from built wheel)",
        flat,
    )
    if failed is None and "metadata-generation-failed" not in flat:
        return []
    named = (failed[1] or failed[3]) if failed else ""
    name, version = canonicalize_name(named or ""), (failed["version"] or "") if failed else ""
    if re.search(
        r"Failed to parse metadata|invalid metadata|must be a dictionary|Invalid version"
        r"|use_2to3 is invalid|Expected end or semicolon|is an invalid requirement",
        flat,
    ):
        return [Suggestion("old_tools", name, _last_error(text), version=version)]
    missing = re.search(r"No module named ['\"]?([\w.]+)", flat)
    if missing:
        module = missing[1].split(".")[0]
        if module == "pkg_resources":
            return [Suggestion("old_tools", name, missing[0], version=version)]
        return [Suggestion("no_isolation", name, missing[0], module, version)]
    compiler = re.search(
        r"(command '[^']*(?:gcc|g\+\+|cc|c\+\+|clang)[^']*' failed: No such file"
        r"|unable to execute '[^']+': No such file|Unknown compiler\(s\)"
        r"|(?:CMAKE_C(?:XX)?_COMPILER|No CMAKE_C(?:XX)?_COMPILER)[^.]*)",
        flat,
    )
    if compiler:
        return [Suggestion("no_compiler", name, compiler[0]), Suggestion("leave_out", name, "")]
    last = _last_error(text)
    old = Suggestion("old_tools", name, last, version=version)
    return [old, Suggestion("leave_out", name, last)]


def _absent(flat: str) -> list[Suggestion]:
    return [
        Suggestion("leave_out", canonicalize_name(match[1]), match[0])
        for pattern in (
            rf"{_NAME} was not found in the package registry",
            rf"{_NAME} was not found in the provided package locations",
            rf"No matching distribution found for {_NAME} ?$",
            rf"Because {_NAME} was not found",
            rf"all versions of {_NAME} have no (?:usable )?wheels",
        )
        for match in re.finditer(pattern, flat)
    ]


def _bounds(flat: str) -> list[Suggestion]:
    """Whose bound stands in the way: names that uv's derivation requires of the request."""
    found = []
    if re.search(r"pre-?releases? (?:were|was|is|are)(?:n't| not) (?:enabled|allowed)", flat):
        found.append(Suggestion("allow_prereleases", "", "only pre-releases would do"))
    if "was filtered by" in flat and "exclude-newer" in flat:
        found.append(Suggestion("drop_date", "", "exclude-newer leaves no version"))
    derivation = flat.partition("No solution found")[2]
    if not derivation:
        pip = re.search(rf"No matching distribution found for {_NAME}[<>=!~]", flat)
        return (
            [*found, Suggestion("drop_bound", canonicalize_name(pip[1]), pip[0])] if pip else found
        )
    required = re.findall(rf"you require {_NAME}(?:\[[^\]]*\])?[<>=!~]\S*", derivation)
    required += re.findall(
        rf" and {_NAME}(?:\[[^\]]*\])?[<>=!~]\S*, we can conclude that your", derivation
    )
    absent = re.findall(
        rf"there (?:is|are) no versions? of {_NAME}(?:\[[^\]]*\])?[<>=!~]", derivation
    )
    depends = re.findall(rf"depends on {_NAME}(?:\[[^\]]*\])?[<>=!~]", derivation)
    depends += re.findall(rf"{_NAME}[<>=!~]=?\S* depends on Python", derivation)
    for name in dict.fromkeys([*absent, *required, *depends]):
        found.append(Suggestion("drop_bound", canonicalize_name(name), derivation[:300]))
    return found


def _last_error(text: str) -> str:
    """The line of a build's output that reads like its reason."""
    lines = [line.strip(" │╰─▶├·") for line in text.splitlines()]
    errors = [line for line in lines if re.match(r"^[A-Za-z_.]*(Error|Exception)\b", line)]
    errors += [
        line
        for line in lines
        if line.lower().startswith("error") and not line.startswith("error: Failed to")
    ]
    return (errors[0] if errors else next((line for line in reversed(lines) if line), ""))[:300]
