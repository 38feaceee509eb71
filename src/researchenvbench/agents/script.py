"""Agents that follow a recipe: the task's own gold recipe, or one in a file.

A recipe is a list of commands (`task.Recipe`). It makes no decisions, so it is what proves
a task, and the simplest way to bring an environment that somebody else worked out.
"""

from __future__ import annotations

import hashlib
import time
import tomllib
from pathlib import Path
from typing import TYPE_CHECKING

from pydantic import ValidationError

from ..diagnose import last_lines
from ..errors import RebError
from ..sandbox import Command
from ..task import Recipe, Task, fill
from . import AgentOutcome, Assignment
from .measure import measure

if TYPE_CHECKING:
    from collections.abc import Sequence

#: Of a step that failed, in characters: its command, and the end of what it printed. A line
#: about an attempt has room for both.
_COMMAND_SHOWN, _SAID_SHOWN = 100, 330


class ScriptAgent:
    """Follows one recipe, whatever the task."""

    name = "script"
    built_in = False
    needs_recipe = False
    sees_task = True

    def __init__(self, recipe: Recipe) -> None:
        self._recipe = recipe

    @classmethod
    def from_file(cls, recipe: str) -> ScriptAgent:
        """Read a recipe from a TOML file with the keys of a task's `[gold]` table.

        Raises:
            RebError: unreadable, or not a recipe.
        """
        try:
            data = tomllib.loads(Path(recipe).read_text(encoding="utf-8"))
            return cls(Recipe.model_validate(data))
        except OSError as error:
            raise RebError(f"{recipe}: cannot be read: {error.strerror}") from error
        except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
            raise RebError(f"{recipe}: not valid TOML: {error}") from error
        except ValidationError as error:
            faults = "; ".join(
                f"{'.'.join(map(str, fault['loc']))}: {fault['msg']}" for fault in error.errors()
            )
            raise RebError(f"{recipe}: not a recipe: {faults}") from error

    def digest(self, task: Task | None) -> str:  # noqa: ARG002  # the same for every task
        """Digest of the recipe."""
        return recipe_digest(self._recipe)

    def build(self, assignment: Assignment) -> AgentOutcome:
        """Make the environment, run the steps, measure, report."""
        return follow(self._recipe, assignment)


class GoldAgent:
    """Follows each task's own gold recipe."""

    name = "gold"
    built_in = True
    needs_recipe = True
    sees_task = False

    def digest(self, task: Task | None) -> str:
        """Digest of the task's recipe, and of the task's folder where the recipe names it."""
        recipe = task.gold if task else None
        digest = recipe_digest(recipe)
        if task is None or recipe is None or "{task}" not in recipe.model_dump_json():
            return digest
        # A step can read more there than the file that it names.
        total = hashlib.sha256(digest.encode())
        for path in sorted(task.folder.rglob("*")):
            if path.is_file() and "__pycache__" not in path.parts:
                content = hashlib.sha256(path.read_bytes()).hexdigest()
                total.update(f"{path.relative_to(task.folder)} {content}\n".encode())
        return total.hexdigest()

    def build(self, assignment: Assignment) -> AgentOutcome:
        """Follow the gold recipe; without one there is nothing to build."""
        if assignment.recipe is None:
            assignment.say("the task has no gold recipe")
            return AgentOutcome("finished", 1, "the task has no gold recipe")
        return follow(assignment.recipe, assignment)


def recipe_digest(recipe: Recipe | None) -> str:
    """Digest of a recipe; of nothing where there is none."""
    return hashlib.sha256(recipe.model_dump_json().encode() if recipe else b"").hexdigest()


def _shortened(argv: Sequence[str]) -> str:
    command = " ".join(" ".join(argv).split())
    return command if len(command) <= _COMMAND_SHOWN else f"{command[: _COMMAND_SHOWN - 1]}…"


def _end(said: str) -> str:
    """The end of what a step printed: its last words name the cause."""
    return said if len(said) <= _SAID_SHOWN else f"…{said[1 - _SAID_SHOWN :]}"


def follow(recipe: Recipe, assignment: Assignment) -> AgentOutcome:
    """Run a recipe's steps in an environment made for it, then report what is there."""
    box, layout = assignment.box, assignment.box.layout
    python = layout.env / "bin" / "python"
    values = {
        "uv": box.uv,
        "python": str(python),
        "prefix": str(layout.env),
        "repo": str(layout.repo),
        "work": str(layout.tmp),
        "task": str(assignment.task.folder) if assignment.task else "",
    }
    environment = {
        **assignment.environment,
        "VIRTUAL_ENV": str(layout.env),
        "PATH": f"{layout.env / 'bin'}:{assignment.environment['PATH']}",
        **{key: fill(text, values) for key, text in recipe.env.items()},
    }
    for name, content in recipe.files.items():
        box.put(layout.tmp / name, fill(content, values).encode())
    steps: list[tuple[str, ...]] = [
        ("{uv}", "venv", "--python", recipe.python, "{prefix}"),
        *([("{uv}", "pip", "install", *recipe.seed)] if recipe.seed else []),
        *recipe.steps,
    ]
    for number, step in enumerate(steps, start=1):
        argv = [fill(argument, values) for argument in step]
        left_s = assignment.deadline - time.monotonic()
        if left_s <= 0:
            return AgentOutcome("time_limit", None, f"out of time before step {number}")
        assignment.say(f"step {number} of {len(steps)}: {' '.join(argv)}")
        begin = assignment.log.stat().st_size if assignment.log.exists() else 0
        finished = box.run(
            Command(argv, cwd=layout.repo, env=environment, time_limit_s=left_s),
            assignment.log,
            append=True,
        )
        if not finished.timed_out and finished.ok:
            continue
        which = f"step {number} of {len(steps)} (`{_shortened(argv)}`)"
        said = last_lines(assignment.log, since=begin)
        said = f"; it printed: {_end(said)}" if said else "; it printed nothing"
        if finished.timed_out:
            return AgentOutcome("time_limit", None, f"out of time in {which}{said}")
        how = finished.start_error or finished.signal or f"exit status {finished.exit_code}"
        return AgentOutcome("finished", 1, f"{which} failed: {how}{said}")
    report = measure(
        box,
        python,
        environment,
        assignment.log,
        tool="uv",
        notes=f"built by a recipe of {len(recipe.steps)} steps",
        deadline=assignment.deadline,
    ).model_copy(update={"env": dict(recipe.report_env)})
    box.put(layout.report, report.model_dump_json(indent=1).encode())
    return AgentOutcome("finished", 0)
