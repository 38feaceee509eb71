"""Loads suites and tasks from their folders, and says clearly what is wrong with a file.

A task file is data that anybody may have written: it can be truncated, huge, binary or no
file at all. Each fault is one line with the file, the key and what was probably meant.
"""

from __future__ import annotations

import json
import re
import tomllib
from pathlib import Path
from typing import TypeVar

from pydantic import ValidationError

from .asset import missing_files
from .errors import TaskError
from .schema import Model, explain, shorten, suggest, suggest_path
from .task import Suite, SuiteFacts, Task

_MAX_FILE_BYTES = 1_000_000
#: Parsing a dotted key takes the square of its length; a key of the schema has five parts.
_MAX_KEY_DOTS = 50
#: Strings, which may be left open at the end, and comments: dots in them are no key's.
_STRING_OR_COMMENT = re.compile(
    r'''"""(?:\\?.)*?(?:"{3,5}|\Z)'''
    r"""|'''.*?(?:'{3,5}|\Z)"""
    r"""|"(?:\\[^\n]|[^"\\\n])*"?|'[^'\n]*'?|\#[^\n]*""",
    re.DOTALL,
)
_BETWEEN_KEYS = re.compile(r"[\n,=\[\]{}]")
_M = TypeVar("_M", bound=Model)
_BUNDLED = Path(__file__).parent / "suites"


def bundled_suites() -> list[str]:
    """Names of the suites that come with the package."""
    return sorted(path.name for path in _BUNDLED.iterdir() if any(path.glob("*/task.toml")))


def load_suite(name: str | Path) -> Suite:
    """Load a bundled suite by its name, or any folder that holds task folders.

    Raises:
        TaskError: there is no such suite, or tasks of it do not load; all faults are named.
    """
    folder = next(filter(_holds_tasks, (Path(name), _BUNDLED / str(name))), None)
    if folder is None:
        raise _no_suite(str(name))
    tasks: dict[str, Task] = {}
    faults = []
    for path in sorted(folder.glob("*/task.toml")):
        try:
            task = load_task(path)
        except TaskError as error:
            faults.append(str(error))
            continue
        if task.name in tasks:
            faults.append(f"{path}: name: {task.name!r} is also that of {tasks[task.name].folder}")
        tasks[task.name] = task
    facts = SuiteFacts()
    if (folder / "suite.toml").exists():
        try:
            facts = _read_model(folder / "suite.toml", SuiteFacts)
        except TaskError as error:
            faults.append(str(error))
    if faults:
        raise TaskError("\n".join(faults))
    place = folder.resolve()
    return Suite(name=place.name, folder=place, tasks=tuple(tasks.values()), facts=facts)


def _no_suite(name: str) -> TaskError:
    """What is wrong with the name of a suite, and what was probably meant."""
    known = bundled_suites()
    advice = f"bundled suites: {', '.join(known)}; or give a folder of task folders"
    wrong = f"there is no suite {shorten(name)}"
    suite, slash, task = name.partition("/")
    if slash and suite in known:
        try:
            load_suite(suite).task(task)
        except TaskError as error:
            return error
        return TaskError(f"{wrong}: it is a task of {suite}", advice=f"give {suite} --only {task}")
    place = Path(name)
    try:
        if (place / "task.toml").is_file():
            return TaskError(f"{wrong}: it is a task", advice=f"give the folder it is in: {advice}")
        if slash and place.is_dir():
            return TaskError(f"{wrong}: no folder in it has a task.toml", advice=advice)
        if slash:
            return TaskError(f"{wrong}: {suggest_path(place)}", advice=advice)
    except (OSError, ValueError):
        pass  # no name that a folder can have
    return TaskError(f"{wrong}{suggest(name, known)}", advice=advice)


def find_task(name: str) -> Task:
    """The task that is meant by its folder, or by SUITE/NAME.

    Raises:
        TaskError: there is none, or it does not load; says what was probably meant.
    """
    folder = Path(name)
    try:
        if (folder / "task.toml").is_file():
            return load_task(folder)
        suite, _, task = name.rpartition("/")
        if suite in bundled_suites() or _holds_tasks(Path(suite or "/")):
            return load_suite(suite or "/").task(task)
        there = folder.is_dir()
        why = "it has no task.toml" if there else suggest_path(folder)
    except (OSError, ValueError):
        why = "no folder can have such a name"
    raise TaskError(
        f"there is no task {shorten(name)}: {why}", advice="give SUITE/TASK, or a task's folder"
    )


def _holds_tasks(place: Path) -> bool:
    try:
        return any(place.glob("*/task.toml"))
    except (OSError, ValueError):
        return False  # no name that a folder can have


def load_task(folder: Path) -> Task:
    """Load the task in `folder` (or the `task.toml` itself), checked against the schema.

    Raises:
        TaskError: unreadable, no TOML, or not a task; one line a fault, each with the
            file, the key and, where one is near, what was probably meant.
    """
    path = folder if folder.name.endswith(".toml") else folder / "task.toml"
    task = _read_model(path, Task, hidden=("folder",))
    missing = [f"{path}: {line}" for line in missing_files(task.assets, path.parent)]
    if missing:
        raise TaskError("\n".join(missing))
    return task.model_copy(update={"folder": path.parent.resolve()})


def _read_model(path: Path, model: type[_M], *, hidden: tuple[str, ...] = ()) -> _M:
    """The file at `path`, checked; `hidden` are fields of the model that no file has."""
    content = _read_text(path)
    if any(part.count(".") > _MAX_KEY_DOTS for part in _keys_and_values(content)):
        raise TaskError(f"{path}: a key has more than {_MAX_KEY_DOTS} dots, which no task file has")
    try:
        data = tomllib.loads(content)
        # As JSON, since pydantic is strict there without asking for tuples: a number that
        # is written as text is a mistake, and not a number.
        text = json.dumps(data, default=lambda moment: {"a date or time": str(moment)})
    except (tomllib.TOMLDecodeError, RecursionError) as error:
        raise TaskError(f"{path}: not valid TOML: {error}") from error
    for key in hidden:
        if key in data:
            raise TaskError(f"{path}: {key}: unknown key")
    try:
        return model.model_validate_json(text, strict=True)
    except ValidationError as error:
        raise TaskError("\n".join(explain(path, error, model))) from error


def _keys_and_values(content: str) -> list[str]:
    """What stands between the signs of a TOML text, without strings and comments."""
    return _BETWEEN_KEYS.split(_STRING_OR_COMMENT.sub("", content))


def _read_text(path: Path) -> str:
    try:
        if not path.is_file():
            # A pipe or a device is never opened: it would not end.
            there = path.exists() or path.is_symlink()
            raise TaskError(
                f"{path}: {'is not a file' if there else 'there is no such file'}",
                advice="reb tasks new NAME writes a commented template",
            )
        with path.open("rb") as stream:
            raw = stream.read(_MAX_FILE_BYTES + 1)
    except OSError as error:
        raise TaskError(f"{path}: cannot be read: {error.strerror}") from error
    if len(raw) > _MAX_FILE_BYTES:
        raise TaskError(f"{path}: is larger than 1 MB, which no task file is")
    try:
        return raw.decode()
    except UnicodeDecodeError as error:
        raise TaskError(f"{path}: not UTF-8 text (byte {error.start})") from error
