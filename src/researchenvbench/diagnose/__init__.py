"""What went wrong, whose fault it is, and how to mend it.

One small engine over rules that are data (`rules.toml`, in the order in which they are
tried). It reads the end of a log and knows nothing of stages or verdicts; whoever asks
decides what an answer means for a verdict.
"""

from __future__ import annotations

import re
import tomllib
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from typing import TYPE_CHECKING, Any

from ..attempt import Owner, Want

if TYPE_CHECKING:
    from pathlib import Path

#: How much of the end of a log is read; causes stand near the end.
TAIL_BYTES = 256_000


@dataclass(frozen=True)
class Diagnosis:
    """The cause that a log shows."""

    rule: str  #: the rule's name, such as missing-module
    owner: Owner
    cause: str  #: one sentence
    advice: str = ""
    system_packages: tuple[str, ...] = ()  #: Debian packages that would mend it
    want: Want | None = None  #: what the host lacks, by which the host can be asked itself
    key: str = ""  #: the name of the library or program that is lacking


@dataclass(frozen=True)
class _Rule:
    name: str
    owner: Owner
    pattern: re.Pattern[str]
    cause: str
    advice: str
    table: dict[str, str]
    want: Want | None
    key: str  #: where it is not the group `key` of the pattern
    general: bool  #: names the error and no cause


#: What a line says in front of something that its program went on without.
_WARNED = re.compile(r"\b\w*Warning\b|\bWARN(?:ING)?\b")
#: How Python joins two tracebacks when an exception was raised `from` another.
_DIRECT_CAUSE = "The above exception was the direct cause of the following exception:"


def diagnose(text: str) -> Diagnosis | None:
    """The last thing in `text` that a rule knows, or None.

    A rule's pattern is matched line by line. Among matches the one furthest down wins,
    since a program's last words name what ended it; on one line the earlier rule wins. An
    exception that only wraps another one gives way to the cause that it names.
    """
    lines = text.splitlines()
    number, diagnosis, general = _last_known(lines)
    while general:
        cause = _end_of_cause(lines[:number])
        if cause is None:
            break
        lines = cause
        number, of_cause, general = _last_known(lines)
        if of_cause is not None and not general:
            return of_cause
    return diagnosis


def _last_known(lines: list[str]) -> tuple[int, Diagnosis | None, bool]:
    """(line, diagnosis, whether it is a general one) of the last line that a rule knows."""
    for number in range(len(lines) - 1, -1, -1):
        for rule in _rules():
            match = rule.pattern.search(lines[number][:2000])
            before = match.string[: match.start()] if match else ""
            if rule.want is Want.LIBRARY and _WARNED.search(before):
                break  # an extension that nobody needs: another thing has ended the program
            diagnosis = _apply(rule, match) if match else None
            if diagnosis is not None:
                return number, diagnosis, rule.general
    return -1, None, False


def _end_of_cause(lines: list[str]) -> list[str] | None:
    """The lines up to the direct cause of the exception that follows `lines`, if it has one."""
    for number in range(len(lines) - 1, -1, -1):
        if _DIRECT_CAUSE in lines[number]:
            return lines[:number]
        if lines[number].startswith("Traceback (") and _DIRECT_CAUSE not in "".join(
            lines[max(0, number - 3) : number]
        ):
            return None  # its own traceback begins here, and nothing came before
    return None


def diagnose_log(log: Path) -> Diagnosis | None:
    """`diagnose` of the end of a log file; None where there is no log."""
    return diagnose(tail(log))


def tail(log: Path, size_bytes: int = TAIL_BYTES) -> str:
    """The last bytes of a log as text; carriage returns end lines; empty where absent."""
    try:
        with log.open("rb") as stream:
            stream.seek(0, 2)
            stream.seek(max(0, stream.tell() - size_bytes))
            return stream.read().decode(errors="replace").replace("\r", "\n")
    except FileNotFoundError:
        return ""


def last_lines(log: Path, count: int = 3, *, since: int = 0) -> str:
    """The last lines of a log that are not empty, joined by ` / `; of what follows byte `since`."""
    try:
        size_bytes = max(0, min(16_000, log.stat().st_size - since))
    except FileNotFoundError:
        return ""
    lines = [line.strip() for line in tail(log, size_bytes).splitlines() if line.strip()]
    return " / ".join(line[:300] for line in lines[-count:])


def _apply(rule: _Rule, match: re.Match[str]) -> Diagnosis | None:
    found = {key: value or "" for key, value in match.groupdict().items()}
    packages: tuple[str, ...] = ()
    if rule.table:
        # A table maps what was matched to the package that brings it; what it does not
        # name is not this rule's business.
        package = rule.table.get(found["key"])
        if package is None:
            return None
        found["package"] = package
        packages = (package,)
    return Diagnosis(
        rule=rule.name,
        owner=rule.owner,
        cause=rule.cause.format(**found),
        advice=rule.advice.format(**found),
        system_packages=packages,
        want=rule.want,
        key=rule.key or found.get("key", ""),
    )


@cache
def _rules() -> tuple[_Rule, ...]:
    data: dict[str, Any] = tomllib.loads(
        files(__package__).joinpath("rules.toml").read_text(encoding="utf-8")
    )
    return tuple(
        _Rule(
            name=rule["name"],
            owner=Owner(rule["owner"]),
            pattern=re.compile(rule["pattern"]),
            cause=rule["cause"],
            advice=rule.get("advice", ""),
            table=rule.get("table", {}),
            want=Want(rule["want"]) if "want" in rule else None,
            key=rule.get("key", ""),
            general=rule.get("general", False),
        )
        for rule in data["rules"]
    )
