"""What a stage gets of an asset, or why it gets nothing."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

if TYPE_CHECKING:
    from pathlib import Path

    from ..asset import Asset

Choice = Literal["auto", "real", "stand-in"]
Origin = Literal["real", "stand-in", "made"]


@dataclass(frozen=True)
class Ready:
    """An asset in the cache."""

    name: str
    origin: Origin
    path: Path  #: file or folder in the cache, read-only; of `placed` hub or torch see `layouts`
    digest: str  #: of the content, however it is placed
    placed: str
    asset: Asset


@dataclass(frozen=True)
class Missing:
    """An asset that cannot be had."""

    name: str
    why: str
    advice: str
