"""Looks an original up where it lies, and fetches nothing of it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

from ..asset import HubAsset, UrlAsset
from . import hub, url

if TYPE_CHECKING:
    from collections.abc import Callable

    from ..asset import Asset


@dataclass(frozen=True)
class Original:
    """What a hub or a server says of an asset's original; None where it says nothing."""

    revision: str | None = None  #: of a hub's repository: what was asked for, else today's
    size_bytes: int | None = None  #: of the files that the asset names
    licence: str | None = None
    gated: bool | None = None


def look_up(asset: Asset, say: Callable[[str], None]) -> Original | None:
    """What is said of the original; None where it lies with the task.

    Raises:
        AssetError: it is not there any more, not for everybody, or cannot be reached.
    """
    if isinstance(asset, HubAsset):
        return _of_hub(hub.described(asset, say))
    if isinstance(asset, UrlAsset):
        return Original(size_bytes=url.size_of(asset, say))
    return None


def host_of(asset: Asset) -> str:
    """The host that is asked for the original; empty where none is."""
    if isinstance(asset, HubAsset):
        address = hub.endpoint()
    elif isinstance(asset, UrlAsset):
        address = asset.url
    else:
        return ""
    return urlsplit(address).netloc.rpartition("@")[2]


def _of_hub(described: tuple[list[hub.HubFile], dict[str, Any]]) -> Original:
    files, said = described
    card = said.get("cardData")
    licence = card.get("license") if isinstance(card, dict) else None
    if isinstance(licence, list):  # several apply
        licence = " and ".join(map(str, licence))
    return Original(
        revision=str(said["sha"]),
        size_bytes=sum(file.size_bytes for file in files),
        licence=str(licence) if licence else None,
        gated=bool(said.get("gated", False)),
    )
