"""Does the research code really run here?

The public interface, each name loaded when it is first used:

- `verify(path, python=…)` judges an environment and returns its `Record`;
- `Episode(task, sandbox)` lets a program build one, command by command, and judges it;
- `reward(record)` makes one number of a record;
- `load_suite(name)` loads the tasks of a suite;
- `read_run(path)` reads the records of a run.
"""

from __future__ import annotations

import sys
from types import ModuleType
from typing import TYPE_CHECKING, Any

__version__ = "0.1.0"
__all__ = [
    "Episode",
    "Record",
    "__version__",
    "load_suite",
    "read_run",
    "reward",
    "verify",
]

if TYPE_CHECKING:
    from .attempt import Record
    from .results.reward import reward
    from .run.episode import Episode
    from .run.store import read_run
    from .run.verification import verify
    from .taskfile import load_suite

_HOMES = {
    "Episode": "run.episode",
    "Record": "attempt",
    "load_suite": "taskfile",
    "read_run": "run.store",
    "reward": "results.reward",
    "verify": "run.verification",
}


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from importlib import import_module

    return getattr(import_module(f"{__name__}.{_HOMES[name]}"), name)


class _Package(ModuleType):
    """Keeps `verify` the function.

    Whoever imports anything of the subpackage of that name has the import system put the
    subpackage there.
    """

    def __setattr__(self, name: str, value: object) -> None:
        if not (name in _HOMES and isinstance(value, ModuleType)):
            super().__setattr__(name, value)


sys.modules[__name__].__class__ = _Package
