"""Checks a task against itself and its source: what the schema alone cannot see."""

from __future__ import annotations

import ast
from contextlib import suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING

from ..asset import SourceAsset, scripts
from ..errors import SourceError, SourceNotAvailableError, TaskError
from ..source import fetch_source
from ..task import FolderSource
from ..verify.evidence import formats as evidence_formats
from ..verify.readers.installed import lacking
from ..verify.readme import code_block
from .check_options import unknown_options

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from pathlib import Path

    from ..source import Snapshot
    from ..task import Stage, Task

#: Folders of which a stage's program hears by an argument or a variable only.
_TOLD = ("{out}",)
#: What a driver, which calls what the repository offers, does not import.
_OURS = "researchenvbench"
#: A process group that the repository nowhere makes would be counted as its own.
_GROUP = "init_process_group"


@dataclass(frozen=True)
class Checked:
    """What a check has found, one line each."""

    problems: list[str]
    notes: list[str]  #: what else a reader should know
    not_compared: str = ""  #: why the source could not be had here, so that nobody looked


def check_with_source(task: Task, installs: Mapping[str, str]) -> Checked:
    """Check `task` by itself and against its source.

    The source is fetched where something in the task is about it. One that the task itself
    says is gone, or that this host cannot reach, is no fault of the task's.
    """
    problems, notes = check_alone(task), _open_ends(task)
    if not (task.stages or task.c0.roots):
        return Checked(problems, notes + ([_gone(task.unavailable)] if task.unavailable else []))
    try:
        found, more = check_task(task, fetch_source(task, installs=installs))
    except SourceNotAvailableError:
        return Checked(problems, [*notes, _gone(task.unavailable or "")])
    except TaskError as error:
        return Checked([*problems, str(error)], notes)
    except SourceError as error:
        if isinstance(task.source, FolderSource):
            return Checked([*problems, str(error)], notes)
        return Checked(problems, notes, not_compared=str(error))
    return Checked(problems + found, notes + more)


def check_alone(task: Task) -> list[str]:
    """What is wrong with the task by its own folder; one line each."""
    problems = []
    for name, stage in task.stages.items():
        problems += [f"stages.{name}.{line}" for line in _never_there(stage)]
        for number, text in enumerate(stage.command):
            driver = task.folder / text.removeprefix("{task}/")
            if not text.startswith("{task}/"):
                continue
            key = f"stages.{name}.command.{number}"
            if not driver.is_file():
                problems.append(f"{key}: {driver.name} is not a file in the task's folder")
            elif driver.suffix == ".py":
                problems += [f"{key}: {line}" for line in _imports_ours(driver)]
    for key, script in scripts(task.assets, task.folder).items():
        problems += [f"{key}: {line}" for line in _imports_ours(script)]
    return problems


def _open_ends(task: Task) -> list[str]:
    """What nobody has looked up yet, and what this host cannot judge yet."""
    assets = task.assets.items()
    open_ends = {
        "not pinned": [name for name, asset in assets if asset.why_not_pinned],
        "made without a digest to compare with": [
            name for name, asset in assets if asset.recipe and not asset.recipe.digest
        ],
        "no reader is installed here for": [
            f"{name} ({', '.join(missing)})"
            for name, missing in lacking(evidence_formats(task)).items()
        ],
    }
    return [f"{what}: {', '.join(names)}" for what, names in open_ends.items() if names]


def _never_there(stage: Stage) -> Iterator[str]:
    """Evidence that no run of the stage can leave."""
    texts = stage.argument_texts()
    told = "\0".join(text for key, text in texts if not key.startswith("evidence."))
    for key, pattern in texts:
        if not key.startswith("evidence.") or not key.endswith((".pattern", ".since")):
            continue
        if not pattern.startswith(("{", "/")):
            yield f"{key}: {pattern} is relative; begin it with {{work}}/ or {{out}}/"
        for folder in _TOLD:
            if folder in pattern and folder not in told:
                yield f"{key}: nothing tells the command of {folder}, so it puts nothing there"


def _imports_ours(path: Path) -> list[str]:
    try:
        names = _names(path)
    except (OSError, SyntaxError, ValueError, RecursionError) as error:
        return [f"{path.name} cannot be read as Python: {error}"]
    return [f"{path.name}: {_OURS} is the harness's own package"] if _OURS in names else []


def _names(path: Path) -> set[str]:
    """What a Python file imports, by the first part, and all attributes that it names.

    Raises:
        OSError, SyntaxError, ValueError, RecursionError: it cannot be read as Python.
    """
    names: set[str] = set()
    for node in ast.walk(ast.parse(path.read_bytes())):
        if isinstance(node, ast.Import):
            names |= {alias.name.partition(".")[0] for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            names |= {(node.module or "").partition(".")[0], *(a.name for a in node.names)}
        elif isinstance(node, ast.Attribute):
            names.add(node.attr)
    return names


def _makes_group(path: Path) -> bool:
    with suppress(OSError, SyntaxError, ValueError, RecursionError):
        return _GROUP in _names(path)
    return False


def _adds_group(stage: Stage, task: Task, snapshot: Snapshot) -> Iterator[str]:
    """Drivers that make a process group where no code of the repository does."""
    for number, text in enumerate(stage.command):
        driver = task.folder / text.removeprefix("{task}/")
        if not (text.startswith("{task}/") and text.endswith(".py") and _makes_group(driver)):
            continue
        code = (snapshot.tree / path for path in snapshot.tracked if path.endswith(".py"))
        if not any(_makes_group(path) for path in code):
            yield f"command.{number}: {driver.name} makes a process group, the repository does not"


def _gone(why: str) -> str:
    return f"source not available: {why}"


def check_task(task: Task, snapshot: Snapshot) -> tuple[list[str], list[str]]:
    """What is wrong against the source, and what else is to be known.

    One line each: key, what, and what was probably meant.
    """
    import difflib

    problems: list[str] = []
    unread = []
    for name, stage in task.stages.items():
        if stage.readme_block is not None:
            try:
                code_block(snapshot.tree, stage.readme_block)
            except TaskError as error:
                problems.append(f"stages.{name}.{error}")
        problems += [f"stages.{name}.{line}" for line in _adds_group(stage, task, snapshot)]
        lines, read = unknown_options(stage, snapshot)
        problems += [f"stages.{name}.{line}" for line in lines]
        unread += [] if read else [str(name)]
        for key, text in stage.argument_texts():
            # Only a command's own files must be there before it runs; evidence comes after.
            if not text.startswith("{repo}/") or not key.startswith(("command", "services")):
                continue
            path = text.removeprefix("{repo}/")
            if not _is_there(snapshot.tree, path):
                close = difflib.get_close_matches(path, list(snapshot.tracked), n=1)
                hint = f"; did you mean {close[0]!r}?" if close else ""
                problems.append(f"stages.{name}.{key}: {path} is not in the repository{hint}")
    for root in task.c0.roots:
        if not _is_there(snapshot.tree, root):
            problems.append(f"c0.roots: {root} is not in the repository")
    for asset_name, asset in task.assets.items():
        if isinstance(asset, SourceAsset) and not _is_there(snapshot.tree, asset.path):
            problems.append(f"assets.{asset_name}.path: {asset.path} is not in the repository")
    return problems, [f"options not read: {', '.join(unread)}"] if unread else []


def _is_there(tree: Path, path: str) -> bool:
    try:
        return (tree / path).exists()
    except (OSError, ValueError):
        return False  # no name that a file can have
