"""How a stage is shown the files and folders of its assets: each in its place, read-only.

Everything lies below one folder, `Layout.assets`. Of it a frame of empty files and folders is
made, and each asset is laid over its own. Both are mounted read-only, so that a stage can
neither write to an asset nor put something else beside it or in its stead.
"""

from __future__ import annotations

from pathlib import Path, PurePosixPath
from types import MappingProxyType
from typing import TYPE_CHECKING

from ..errors import SandboxError

if TYPE_CHECKING:
    from collections.abc import Mapping

#: What a stage that reads no asset is shown.
NO_ASSETS: Mapping[str, Path] = MappingProxyType({})


def make_frame(folder: Path, assets: Mapping[str, Path]) -> None:
    """Make `folder`, with an empty file or folder at the place of each asset.

    Args:
        folder: Where; not there yet.
        assets: Place below the folder, such as `data/train.csv`, by which file or folder of
            this host is shown there.

    Raises:
        SandboxError: one lies in another, or is not there.
    """
    folder.mkdir(parents=True)
    for place, source in _checked(assets).items():
        point = folder / place
        point.parent.mkdir(parents=True, exist_ok=True)
        if source.is_dir():
            point.mkdir()
        else:
            point.touch()


def make_links(folder: Path, assets: Mapping[str, Path]) -> None:
    """Make `folder`, with a link to each asset: where this host allows no mounts.

    Raises:
        SandboxError: one lies in another, or is not there.
    """
    folder.mkdir(parents=True, exist_ok=True)
    for place, source in _checked(assets).items():
        link = folder / place
        link.parent.mkdir(parents=True, exist_ok=True)
        link.symlink_to(source)


def mounts(frame: Path, at: Path, assets: Mapping[str, Path]) -> list[tuple[Path, Path]]:
    """(what of this host, where a stage sees it), in the order in which they are mounted."""
    if not assets:
        return []
    return [(frame, at), *((source, at / place) for place, source in assets.items())]


def _checked(assets: Mapping[str, Path]) -> Mapping[str, Path]:
    places = {PurePosixPath(place) for place in assets}
    for place in places:
        if place.is_absolute() or ".." in place.parts or not place.parts:
            raise SandboxError(f"{place}: is no place for an asset")
        if any(above in places for above in place.parents):
            raise SandboxError(f"{place}: lies in another asset")
    for source in assets.values():
        if not source.exists():
            raise SandboxError(
                f"{source}: is gone, and a stage reads it",
                advice="run the same command again: what is not there is fetched or made anew",
            )
    return assets
