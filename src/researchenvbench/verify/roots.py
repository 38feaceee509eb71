"""The files in which a missing import decides C0's verdict.

The task names them, or they are what its stages' entry points reach by imports: scripts of
the repository, modules that are run by `-m`, console scripts, drivers, README blocks.
"""

from __future__ import annotations

import configparser
import re
import tomllib
from contextlib import suppress
from typing import TYPE_CHECKING

from ..errors import TaskError
from ..task import fill
from .imports import import_closure
from .readme import code_block

if TYPE_CHECKING:
    from pathlib import Path

    from ..source import Snapshot
    from ..task import Stage, Task

#: `name = package.module:function`, as all manifests write a console script.
_ENTRY = r"""(?<![\w.-])['"]?{name}['"]?\s*=\s*['"]?(?P<module>[\w.]+)\s*(?::|['"])"""


def static_roots(task: Task | None, snapshot: Snapshot) -> list[str] | None:
    """Paths relative to the source; None for all tracked files."""
    if task is None or not task.stages:
        return None
    if task.c0.roots:
        roots = [root.rstrip("/") for root in task.c0.roots]
        return [
            path
            for path in snapshot.tracked
            if any(path == root or path.startswith(f"{root}/") for root in roots)
        ]
    scripts: list[str] = []
    modules: list[str] = []
    code: list[bytes] = []
    for stage in task.stages.values():
        scripts += [
            argument.removeprefix("{repo}/")
            for argument in stage.command
            if argument.startswith("{repo}/") and argument.endswith(".py")
        ]
        modules += _modules(stage, snapshot.tree, list(snapshot.tracked))
        code += _foreign_code(stage, task, snapshot.tree)
    closure = import_closure(
        snapshot.tree,
        scripts,
        files=list(snapshot.tracked),
        entry_modules=modules,
        code=code,
    )
    return sorted(closure) or None


def _modules(stage: Stage, tree: Path, tracked: list[str]) -> list[str]:
    """What `-m` runs, and what the console script that the command names imports."""
    command = stage.command
    modules = [command[i + 1] for i, part in enumerate(command[:-1]) if part == "-m"]
    if stage.launcher == "console_script" and command:
        module = console_script_module(command[0], tree, tracked)
        modules += [module] if module else []
    return modules


def _foreign_code(stage: Stage, task: Task, tree: Path) -> list[bytes]:
    """Python that is no file of the repository: a driver of the task, a README block."""
    code = []
    block = stage.readme_block
    if block is not None and block.language == "python":
        with suppress(TaskError):  # the stage itself says so
            code.append(code_block(tree, block).encode())
    for argument in stage.command:
        path = fill(argument, {"task": str(task.folder)})
        if argument.startswith("{task}/") and path.endswith(".py"):
            with suppress(OSError):  # likewise
                code.append((task.folder / argument.removeprefix("{task}/")).read_bytes())
    return code


def console_script_module(name: str, tree: Path, tracked: list[str]) -> str | None:
    """The module that the console script `name` imports, by the repository's manifests."""
    pattern = re.compile(_ENTRY.format(name=re.escape(name)))
    for path in ("pyproject.toml", "setup.cfg", "setup.py"):
        if path not in tracked:
            continue
        text = (tree / path).read_text(encoding="utf-8", errors="replace")
        declared = _declared(path, text, name)
        if declared is None and (match := pattern.search(text)):
            declared = match["module"]
        if declared:
            return declared.partition(":")[0].strip()
    for path in tracked:
        if path.endswith(".egg-info/entry_points.txt"):
            text = (tree / path).read_text(encoding="utf-8", errors="replace")
            if match := re.search(rf"^{re.escape(name)}\s*=\s*(?P<module>[\w.]+)", text, re.M):
                return match["module"]
    return None


def _declared(path: str, text: str, name: str) -> str | None:
    """What a manifest that is data says; None where it cannot be read as such."""
    try:
        if path == "pyproject.toml":
            data = tomllib.loads(text)
            scripts = data.get("project", {}).get("scripts", {})
            scripts = scripts or data.get("tool", {}).get("poetry", {}).get("scripts", {})
            found = scripts.get(name)
            return found if isinstance(found, str) else None
        if path == "setup.cfg":
            parser = configparser.ConfigParser(strict=False, interpolation=None)
            parser.read_string(text)
            listed = parser.get("options.entry_points", "console_scripts", fallback="")
            for line in listed.splitlines():
                script, _, target = line.partition("=")
                if script.strip() == name:
                    return target
    except (tomllib.TOMLDecodeError, configparser.Error, AttributeError):
        return None
    return None
