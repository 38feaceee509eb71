"""Agents with models as somebody has used them, by name: `paper/codex`.

agents/presets/GROUP.toml       a table for each preset
"""

from __future__ import annotations

import tomllib
from pathlib import Path

from pydantic import Field

from ...errors import RebError
from ...model_use import Wire  # noqa: TC001  # presets are checked by it
from ...schema import Model, suggest

_FOLDER = Path(__file__).parent


class Preset(Model):
    """What a preset stands for; each option of the command line takes its place."""

    name: str = Field(description="With its group, such as paper/codex.")
    agent: str
    version: str = Field(
        description="Of the agent's program: the one that its definition pins. Empty: as found."
    )
    model: str
    wire: Wire = Field(description="The protocol; that of the agent's definition.")
    upstream: str = Field(description="The provider's address. Empty: nobody promises one.")
    key: str = Field(description="Where its key is; goes to that address and to no other.")
    build_minutes: float = Field(description="For a build.")
    verify_minutes: float = Field(
        description="That the publication gives to verification in all; here each stage has its "
        "own limit, from its task."
    )
    differs: tuple[str, ...] = Field(
        (), description="Where it is not as in the publication it is named after, and why."
    )


def presets() -> dict[str, Preset]:
    """All presets, by their names."""
    found = {}
    for path in sorted(_FOLDER.glob("*.toml")):
        for name, data in tomllib.loads(path.read_text(encoding="utf-8")).items():
            full = f"{path.stem}/{name}"
            found[full] = Preset.model_validate({"name": full, **data})
    return found


def preset(name: str) -> Preset:
    """The preset of that name.

    Raises:
        RebError: there is none.
    """
    known = presets()
    if name not in known:
        raise RebError(
            f"there is no preset {name!r}{suggest(name, known)}",
            advice=f"presets of this version: {', '.join(known)}",
        )
    return known[name]
