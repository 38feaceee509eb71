"""Entry points of a repository that has no task file: found, proposed, never assumed.

A proposal comes from the repository's own documentation: the first command there that runs
a script of the repository with arguments that are all spelled out. Whether it is run is the
user's decision.
"""

from __future__ import annotations

import re
import shlex
from typing import TYPE_CHECKING

from ..errors import RebError
from ..evidence import OutputEvidence
from ..task import FolderSource, Stage, StageName, Task
from ..verify.readme import fenced_blocks

if TYPE_CHECKING:
    from pathlib import Path

_DOCUMENTS = ("README.md", "README.rst", "README.txt", "README", "docs/README.md")
_COMMAND = re.compile(r"^\s*(?:\$ )?(python3? [\w./-]+\.py(?: .*)?)$", re.MULTILINE)
#: What a reader is meant to replace: <path>, [options], ..., $VARIABLE, /path/to/.
_TO_FILL_IN = re.compile(r"[<>\[\]{}$*|&;`\\]|\.\.\.|path/to|your[_-]")


def propose(repo: Path) -> str | None:
    """A command of the documentation that could be run as it stands, or None."""
    for name in _DOCUMENTS:
        path = repo / name
        if not path.is_file():
            continue
        text = path.read_text(encoding="utf-8", errors="replace")
        blocks = [body for _, body in fenced_blocks(text)] or [text]
        for block in blocks:
            for match in _COMMAND.finditer(block):
                command = match[1].strip()
                if not _TO_FILL_IN.search(command) and _script_of(command, repo):
                    return command
    return None


def task_of_entry(repo: Path, command: str) -> Task:
    """A task whose `cpu` stage is the given command, run in the repository's folder.

    Nothing is known of what the command should produce, so that it prints something and
    exits with 0 is all that is asked.

    Raises:
        RebError: the command is empty or cannot be split.
    """
    try:
        argv = shlex.split(command)
    except ValueError as error:
        raise RebError(f"--entry {command!r}: {error}") from error
    if not argv:
        raise RebError("--entry is empty", advice="for example: --entry 'python train.py'")
    if argv[0] in ("python", "python3"):
        argv[0] = "{python}"
    return Task(
        schema=1,
        name=re.sub(r"[^A-Za-z0-9._-]", "-", repo.resolve().name).strip("-._") or "repository",
        domain="",
        source=FolderSource(kind="folder", path=str(repo.resolve())),
        stages={
            StageName.CPU: Stage(
                command=tuple(argv),
                folder="{repo}",
                evidence=(OutputEvidence(kind="output", pattern=r"\S"),),
            )
        },
        folder=repo.resolve(),
    )


def _script_of(command: str, repo: Path) -> bool:
    try:
        script = shlex.split(command)[1]
    except (ValueError, IndexError):
        return False
    return not script.startswith("/") and (repo / script).is_file()
