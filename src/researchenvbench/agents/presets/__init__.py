"""Agents with models as somebody has used them, by name: `paper/codex`.

agents/presets/GROUP.toml       a table for each preset
"""

from __future__ import annotations

import tomllib
from pathlib import Path

from pydantic import Field

from ...errors import RebError
from ...schema import Model, suggest

_FOLDER = Path(__file__).parent


class Preset(Model):
    """What a preset stands for; each option of the command line takes its place."""

    agent: str
    model: str
    upstream: str = Field("", description="Empty: the one that belongs to the agent's protocol.")
    key: str = Field("", description="Empty: likewise.")
    build_minutes: float = 60.0
    differs: tuple[str, ...] = Field(
        (), description="Where it is not as in the publication it is named after, and why."
    )


def presets() -> dict[str, Preset]:
    """All presets, by their names."""
    found = {}
    for path in sorted(_FOLDER.glob("*.toml")):
        for name, data in tomllib.loads(path.read_text(encoding="utf-8")).items():
            found[f"{path.stem}/{name}"] = Preset.model_validate(data)
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
