"""Whether a command's options are ones that its entry point has, read and not run.

A parser that is written out (argparse, click) names its options as text in the source. One
that is made from classes, functions or files (Hydra, Fire, HfArgumentParser, …) cannot be
read this way, and nothing is said of it.
"""

from __future__ import annotations

import ast
import difflib
from typing import TYPE_CHECKING

from ..verify.imports import import_closure
from ..verify.roots import console_script_module
from ..verify.tree import Tree

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator
    from pathlib import Path

    from ..source import Snapshot
    from ..task import Stage

#: Calls that declare an option, by the last part of their name.
_DECLARING = {"add_argument", "option"}
#: What makes a parser of something else, or lets options through that nobody declared.
_OTHERWISE = {
    *("HfArgumentParser", "LightningCLI", "OmegaConf", "absl", "chz", "draccus", "fire", "gin"),
    *("hydra", "jsonargparse", "simple_parsing", "typer", "tyro", "add_dataclass_arguments"),
    *("parse_known_args", "parse_known_intermixed_args", "ignore_unknown_options"),
}


def unknown_options(stage: Stage, snapshot: Snapshot) -> tuple[list[str], bool]:
    """What is wrong with the options of a stage's command, and whether they could be read.

    Each line begins with the key within the stage. A stage without options, or without an
    entry point of the repository, counts as read.
    """
    tracked = list(snapshot.tracked)
    start, entry = _entry_point(stage, snapshot.tree, tracked)
    given = [
        (number, text.partition("=")[0])
        for number, text in enumerate(stage.command)
        if number > start and text.startswith("--") and len(text) > len("--")
    ]
    if entry is None or not given:
        return [], True
    closure = import_closure(snapshot.tree, [entry], files=tracked)
    known = _declared(snapshot.tree, entry, sorted(closure))
    if not known:
        return [], False
    lines = []
    for number, option in given:
        if option in known or any(name.startswith(option) for name in known):
            continue  # argparse takes the beginning of a name for it
        close = difflib.get_close_matches(option, known, n=1)
        hint = f"; did you mean {close[0]}?" if close else ""
        lines.append(f"command.{number}: {option} is no option of {entry}{hint}")
    return lines, True


def _entry_point(stage: Stage, tree: Path, tracked: list[str]) -> tuple[int, str | None]:
    """Where in the command the entry point is named, and its file in the repository."""
    command = stage.command
    if stage.launcher == "console_script" and command:
        module = console_script_module(command[0], tree, tracked)
        return 0, Tree(tracked).file_of(module) if module else None
    for number, text in enumerate(command):
        if text.startswith("{repo}/") and text.endswith(".py"):
            path = text.removeprefix("{repo}/")
            return number, path if path in tracked else None
        if text == "-m" and number + 1 < len(command):
            found = Tree(tracked).file_of(command[number + 1])
            if found is not None:
                return number + 1, found
    return 0, None


def _declared(tree: Path, entry: str, files: list[str]) -> set[str]:
    """The options that these files declare; empty where that is not all there may be."""
    known: set[str] = set()
    for file in files:
        try:
            parsed = ast.parse((tree / file).read_bytes())
        except (OSError, SyntaxError, ValueError, RecursionError):
            if file == entry:
                return set()
            continue
        if file == entry and any(name in _OTHERWISE for name in _names(parsed)):
            return set()
        for call in ast.walk(parsed):
            if isinstance(call, ast.Call) and _last_name(call.func) in _DECLARING and call.args:
                texts = [arg.value for arg in call.args if isinstance(arg, ast.Constant)]
                if len(texts) < len(call.args) and _last_name(call.func) == "add_argument":
                    return set()  # a name that is put together at run time
                known |= _options(text for text in texts if isinstance(text, str))
    return known | {"--help"} if known else known


def _options(texts: Iterable[str]) -> set[str]:
    """Names of options among these; click writes a switch as `--on/--off`."""
    found = {part.strip() for text in texts for part in text.split("/")}
    found = {name for name in found if name.startswith("--")}
    # argparse.BooleanOptionalAction declares the other one, too.
    return found | {f"--no-{name.removeprefix('--')}" for name in found}


def _names(parsed: ast.AST) -> Iterator[str]:
    for node in ast.walk(parsed):
        if isinstance(node, ast.Name):
            yield node.id
        elif isinstance(node, ast.Attribute):
            yield node.attr
        elif isinstance(node, ast.alias):
            yield from node.name.split(".")
        elif isinstance(node, ast.ImportFrom) and node.module:
            yield from node.module.split(".")
        elif isinstance(node, ast.keyword) and node.arg:
            yield node.arg


def _last_name(function: ast.expr) -> str:
    if isinstance(function, ast.Attribute):
        return function.attr
    return function.id if isinstance(function, ast.Name) else ""
