"""Removes the byte code of tracked modules, which Python would run in place of their source.

A file in `__pycache__` says itself which source it was made from, and Python believes it
(PEP 3147, PEP 552). Nobody can tell one that was made from other code, so all of them go, in
the layer of a stage; the interpreter makes new ones as it imports.
"""

# pathlib would double the start-up time.

from __future__ import annotations

import os
import stat

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

_CACHE = "__pycache__"


def examine(order: dict[str, Any]) -> dict[str, Any]:
    """Remove what `files`, tracked paths below the tree `repo`, would be replaced by.

    Returns:
        `trouble`, why something could not be removed, or nothing.
    """
    stems: dict[str, set[str]] = {}
    for path in order["files"]:
        folder, _, name = path.rpartition("/")
        stems.setdefault(folder, set()).add(name.removesuffix(".py"))
    for folder, modules in stems.items():
        cache = f"{order['repo']}/{folder}/{_CACHE}" if folder else f"{order['repo']}/{_CACHE}"
        try:
            if stat.S_ISDIR(os.lstat(cache).st_mode):
                _clear(cache, modules)
            else:  # a link to a folder that lies elsewhere is one as well
                os.unlink(cache)
        except (FileNotFoundError, NotADirectoryError):
            continue
        except OSError as error:
            return {"trouble": f"{folder or '.'}/{_CACHE}: {error.strerror or error}"}
    return {"trouble": ""}


def _clear(cache: str, modules: set[str]) -> None:
    """By the open folder, which stays the same whatever is put in its place."""
    handle = os.open(cache, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC)
    try:
        for name in os.listdir(handle):
            if name.partition(".")[0] in modules:
                os.unlink(name, dir_fd=handle)
    finally:
        os.close(handle)
