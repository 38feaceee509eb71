"""What a folder of `tricks/` or `honest/` says: what is tried, and what must come of it."""

from __future__ import annotations

import tomllib
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

HERE = Path(__file__).parent
SANDBOXES = ("local", "container")


@dataclass(frozen=True)
class Expected:
    """What a level must say."""

    verdict: str
    owner: str | None = None
    reason: str = ""  #: a regular expression that is found in the reason


#: Where this host has its pyenv, if it has one.
PYENV = Path.home() / ".pyenv"


@dataclass(frozen=True)
class Trick:
    """One change to a finished environment, made by `plant.sh` where the agent would make it."""

    folder: Path
    tries: str  #: one sentence
    why: str  #: what it would gain, or why somebody honest does it
    sandboxes: tuple[str, ...] = SANDBOXES
    task: str = "line"  #: the variant of the task, see `TASKS` in `layers`
    status: str = "ok"
    findings: tuple[str, ...] = ()  #: kinds that must be found, and no others
    where: dict[str, str] = field(default_factory=dict)  #: regular expression, by kind
    #: Whether C0 is judged anew, which costs most of the time. If not, the verdict of the base is
    #: kept: for what the checker of imports neither reads nor starts, since it has a clean copy
    #: of the tracked files, and for what disqualifies, since then no level counts.
    imports: bool = True
    levels: dict[str, Expected] = field(default_factory=dict)  #: the others are as untouched
    claims: dict[str, str] = field(default_factory=dict)  #: outcome by claim
    but: str = ""  #: what it gains all the same
    needs_pyenv: bool = False  #: whether it takes this host's pyenv

    @property
    def name(self) -> str:
        """The folder's."""
        return self.folder.name

    @property
    def plant(self) -> Path:
        """The script that makes the change."""
        return self.folder / "plant.sh"


def read_trick(folder: Path) -> Trick:
    """The trick of a folder; a key that is not known is an error."""
    told: dict[str, Any] = tomllib.loads((folder / "trick.toml").read_text())
    told["levels"] = {name: Expected(**level) for name, level in told.get("levels", {}).items()}
    for name in ("sandboxes", "findings"):
        if name in told:
            told[name] = tuple(told[name])
    return Trick(folder, **told)


def all_of(kind: str) -> list[Trick]:
    """The tricks of `tricks` or `honest`, by name."""
    return [read_trick(file.parent) for file in sorted((HERE / kind).glob("*/trick.toml"))]
