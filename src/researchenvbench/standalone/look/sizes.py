"""How much disk a tree takes, each file once."""

from __future__ import annotations

import os
import stat

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any


def examine(order: dict[str, Any]) -> dict[str, Any]:
    """Bytes of all regular files below the folder `root`: hard links once, no link followed."""
    total_bytes, seen = 0, set()
    folders = [order["root"]]
    while folders:
        try:
            with os.scandir(folders.pop()) as listing:
                entries = list(listing)
        except OSError:
            continue  # unreadable, or gone: not ours to count
        for entry in entries:
            if entry.is_dir(follow_symlinks=False):
                folders.append(entry.path)
                continue
            status = entry.stat(follow_symlinks=False)
            key = (status.st_dev, status.st_ino)
            if stat.S_ISREG(status.st_mode) and key not in seen:
                seen.add(key)
                total_bytes += status.st_size
    return {"bytes": total_bytes}
