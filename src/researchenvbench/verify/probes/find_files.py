"""Tells what matches a glob, or comes near it: `find_files.py PATTERN`, stand-alone.

Standard library only. It runs inside a stage's box after a pattern matched no file that
could be taken, so that a person learns what was there instead. It opens nothing.
"""

import difflib
import glob
import itertools
import json
import os
import re
import stat
import sys
from pathlib import Path
from typing import Any

#: How `glob.escape` writes a character that would be magic.
_ESCAPED = re.compile(r"\[([?*[])\]")
_LOOKED_AT = 5000
_TOLD = 6
_KINDS = (
    (stat.S_ISREG, "file"),
    (stat.S_ISLNK, "symbolic link"),
    (stat.S_ISDIR, "folder"),
    (stat.S_ISFIFO, "named pipe"),
    (stat.S_ISSOCK, "socket"),
)


def describe(path: str) -> dict[str, Any]:
    """Path, kind and size of what is there, links not followed."""
    try:
        status = os.lstat(path)
    except OSError as error:
        return {"path": path, "kind": error.strerror or "not to be seen", "size_bytes": 0}
    kind = next((name for test, name in _KINDS if test(status.st_mode)), "device")
    return {"path": path, "kind": kind, "size_bytes": status.st_size}


def files_below(folder: Path) -> list[str]:
    """Paths of what is no folder, as far as time allows."""
    found: list[str] = []
    for parent, _, names in itertools.islice(os.walk(folder), _LOOKED_AT):
        found += [os.path.join(parent, name) for name in names]  # noqa: PTH118 - many of them
        if len(found) > _LOOKED_AT:
            break
    return found


def plain_part(pattern: str) -> Path:
    """The folders of a pattern up to the first that may be several, as they are called."""
    parts = []
    for part in Path(pattern).parts:
        if glob.has_magic(_ESCAPED.sub("", part)):
            break
        parts.append(_ESCAPED.sub(r"\1", part))
    return Path(*parts)


def main(pattern: str) -> dict[str, Any]:
    """What matches, the folder that was looked in, and what comes nearest."""
    matches = list(itertools.islice(glob.iglob(pattern, recursive=True), _TOLD))  # noqa: PTH207 - absolute
    folder = plain_part(pattern)
    while not folder.is_dir():
        folder = folder.parent
    # Not from a folder far above, which would list the whole host.
    near = files_below(folder) if len(folder.parts) > 2 else []
    name = Path(pattern).name

    def likeness(path: str) -> float:
        return difflib.SequenceMatcher(None, Path(path).name, name).ratio()

    nearest = sorted(near, key=likeness, reverse=True)[:_TOLD]
    return {
        "matches": [describe(path) for path in matches],
        "folder": str(folder),
        "near": [describe(path) for path in nearest],
    }


if __name__ == "__main__":
    sys.stdout.write(json.dumps(main(sys.argv[1])))
