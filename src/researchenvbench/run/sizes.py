"""How much disk a tree takes, each file once."""

from __future__ import annotations

import os
import stat
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pathlib import Path


def tree_size(root: Path) -> int:
    """Bytes of all regular files below `root`: hard links once, links not followed."""
    total, seen = 0, set[tuple[int, int]]()
    folders = [str(root)]
    while folders:
        try:
            entries = list(os.scandir(folders.pop()))
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
                total += status.st_size
    return total
