"""How much an asset takes: in the cache, and on its way there."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ..asset import HubAsset, UrlAsset
from .store import Store

if TYPE_CHECKING:
    from .ready import Ready


def cached_bytes(ready: Ready) -> int | None:
    """What it takes in the cache; None where it is no more there."""
    found = Store().object(ready.digest)
    return found.manifest.size_bytes if found else None


def fetched_bytes(ready: Ready) -> int | None:
    """What came over a network to get it: nothing of what is made or lies on this host.

    None where that is not known: an archive that was unpacked is not kept.
    """
    if ready.origin != "real" or not isinstance(ready.asset, HubAsset | UrlAsset):
        return 0
    if isinstance(ready.asset, UrlAsset) and ready.asset.unpack:
        return ready.asset.size_bytes
    return cached_bytes(ready)
