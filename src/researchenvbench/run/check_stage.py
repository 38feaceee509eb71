"""What is wrong with a stage by its own words: evidence that shows nothing, commands for a shell.

A mistake that no run would show for what it is: evidence that is there anyway, or never, and
an argument that only a shell would have read.
"""

from __future__ import annotations

import posixpath
import re
from typing import TYPE_CHECKING

from ..evidence import ChangeEvidence, FileEvidence, OutputEvidence, with_placeholders
from ..schema import shorten

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from ..evidence import Evidence
    from ..task import Recipe, Stage

#: Folders in which a stage can leave something. Of `{out}` its program hears by an argument
#: or a variable only.
_FOLDERS = ("{out}", "{work}", "{repo}", "{prefix}")
_TOLD = ("{out}",)
_WHERE = "begin it with {out}/, {work}/ or {repo}/"
#: Lines that have nothing in common: a pattern for something is not found in all of them.
_ANY_LINE = ("a", "0", "-")
#: Arguments that a shell alone has a use for.
_OPERATOR = re.compile(r"&&|\|\||\||;|&|[0-9]?(?:<|>>?)|&>>?|[0-9]?>>?(?:&[0-9]|[^\s>&=\d.].*)")
_VARIABLE = re.compile(r"\$(?:\(|[A-Z_][A-Z0-9_]*|\{[A-Z_][A-Z0-9_]*\})")
#: What looks like a variable of a shell, and is one of the loader's: see ld.so(8).
_OF_THE_LOADER = ("$ORIGIN", "$LIB", "$PLATFORM")
_SHELLS = ("sh", "bash")
_NO_SHELL = "would be passed on as text, since no shell runs a command"


def stage_faults(stage: Stage) -> Iterator[str]:
    """What is wrong in a stage, one line each, which begins with the key within the stage."""
    texts = stage.argument_texts()
    told = "\0".join(text for key, text in texts if not key.startswith("evidence."))
    for number, entry in enumerate(stage.evidence):
        for key, line in _evidence_faults(entry, told):
            yield f"evidence.{number}.{key}: {line}"
    for key, command in _commands(stage):
        for number in _operators(command, values=False):
            yield (
                f"{key}.{number}: {shorten(command[number])} {_NO_SHELL}; let a driver do it: "
                '["{python}", "{task}/drivers/NAME.py"]'
            )


def stage_notes(stage: Stage) -> Iterator[str]:
    """What in a stage is probably a mistake, and can be meant; one line each, as above."""
    for key, command in _commands(stage):
        for number in _operators(command, values=True):
            yield (
                f"{key}.{number}: {shorten(command[number])} is given to {command[number - 1]} as "
                "its value, since no shell runs a command; if more commands are meant, let a "
                "driver run them"
            )
        for number, name in _variables(command):
            yield (
                f"{key}.{number}: {name} {_NO_SHELL}; if its value is meant, write a placeholder "
                "such as {work}, or let a driver read the variable"
            )


def recipe_faults(recipe: Recipe) -> Iterator[str]:
    """The same of the steps of a recipe."""
    for at, step in enumerate(recipe.steps):
        for number in _operators(step, values=False):
            yield (
                f"steps.{at}.{number}: {shorten(step[number])} {_NO_SHELL}; make each command a "
                "step of its own"
            )


def recipe_notes(recipe: Recipe) -> Iterator[str]:
    """The same of the steps of a recipe."""
    for at, step in enumerate(recipe.steps):
        for number, name in _variables(step):
            yield f"steps.{at}.{number}: {name} {_NO_SHELL}; if its value is meant, write it"


def _evidence_faults(entry: Evidence, told: str) -> Iterator[tuple[str, str]]:
    """(key, fault) of one entry; `told` is all that the stage's programs are given to read."""
    if isinstance(entry, FileEvidence | ChangeEvidence):
        for key, pattern in with_placeholders(entry):
            for line in _place_faults(pattern, told):
                yield key, line
    # Where a group holds a number within bounds, that is what is asked of the line.
    elif isinstance(entry, OutputEvidence) and not entry.groups:
        found = re.compile(entry.pattern).search
        if found(""):
            what = "an empty line"
        elif all(map(found, _ANY_LINE)):
            what = "any line that is not empty"
        else:
            return
        yield (
            "pattern",
            (
                f"{shorten(entry.pattern)} matches {what}, which shows no work; write what only "
                "the work prints"
            ),
        )


def _place_faults(pattern: str, told: str) -> Iterator[str]:
    """Of a glob of files that the stage must make."""
    folder = posixpath.normpath(pattern).partition("/")[0]
    if not pattern.startswith(("{", "/")):
        yield f"{pattern} is relative; {_WHERE}"
    elif folder not in _FOLDERS:
        yield (
            f"{pattern} lies outside the folders that a stage has to itself, so what "
            f"is there need not be of this run; {_WHERE}"
        )
    for name in _TOLD:
        if name == folder and name not in told:
            yield f"nothing tells the command of {name}, so it puts nothing there"


def _commands(stage: Stage) -> Iterator[tuple[str, Sequence[str]]]:
    """By their keys, the commands of a stage and its services."""
    yield "command", stage.command
    for service in stage.services:
        yield f"services.{service.name}.command", service.command


def _operators(command: Sequence[str], *, values: bool) -> list[int]:
    """Where in a command stands what only a shell would read.

    One character after an option can be its value, such as the separator of a table: those
    alone are found with `values`, and all others without.
    """
    found = []
    for number, text in enumerate(command):
        if not _OPERATOR.fullmatch(text) or (text == ";" and "-exec" in command):
            continue
        value = len(text) == 1 and number > 0 and command[number - 1].startswith("-")
        if value == values:
            found.append(number)
    return found


def _variables(command: Sequence[str]) -> Iterator[tuple[int, str]]:
    """Where in a command a variable of the shell stands; a script for one is none of these."""
    if any(posixpath.basename(text) in _SHELLS for text in command):
        return
    for number, text in enumerate(command):
        names = [name for name in _VARIABLE.findall(text) if name not in _OF_THE_LOADER]
        if names:
            yield number, names[0]
