"""Checks a task against its source: what the schema alone cannot see."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ..errors import TaskError
from ..verify.readme import code_block

if TYPE_CHECKING:
    from pathlib import Path

    from ..source import Snapshot
    from ..task import Task


def check_task(task: Task, snapshot: Snapshot) -> list[str]:
    """What is wrong, one line each: key, what, and what was probably meant."""
    import difflib

    problems = []
    for name, stage in task.stages.items():
        if stage.readme_block is not None:
            try:
                code_block(snapshot.tree, stage.readme_block)
            except TaskError as error:
                problems.append(f"stages.{name}.{error}")
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
    return problems


def _is_there(tree: Path, path: str) -> bool:
    try:
        return (tree / path).exists()
    except (OSError, ValueError):
        return False  # no name that a file can have
