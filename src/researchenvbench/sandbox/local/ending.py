"""Ending whatever a build has left running, wherever it has gone.

Supervisors end the trees of what they start, so normally nothing is left. What has escaped
one, because the supervisor itself was killed, is known by the variable that every program
of a box inherits, by the program file or by the working folder.
"""

from __future__ import annotations

import os
from contextlib import suppress
from pathlib import Path

from ...standalone.tree import LADDER, end_all, parents

#: Set for every program of a box to the box's root.
MARKER = "REB_BOX"


def end_processes_of(root: Path, ladder: tuple[tuple[str, float], ...] = LADDER) -> tuple[str, ...]:
    """End every process that belongs to the box at `root`; returns them as "pid name"."""
    ended: dict[int, str] = {}

    def find() -> dict[int, str]:
        # One that is just born can be missed by a listing, and be all that is left.
        found = _processes_of(root) or _processes_of(root)
        ended.update(found)
        return found

    surviving = end_all(find, ladder)
    return tuple(
        f"{pid} {name}" + (" (could not be ended)" if pid in surviving else "")
        for pid, name in sorted(ended.items())
    )


def _processes_of(root: Path) -> dict[int, str]:
    living = parents()
    spared = {os.getpid()}
    above = os.getpid()
    while above in living and above > 1:
        above = living[above][0]
        spared.add(above)
    return {
        pid: name for pid, (_, name) in living.items() if pid not in spared and _belongs(pid, root)
    }


def _belongs(pid: int, root: Path) -> bool:
    folder = Path(f"/proc/{pid}")
    with suppress(OSError):
        marker = os.fsencode(f"{MARKER}={root}")
        if marker in (folder / "environ").read_bytes().split(b"\0"):
            return True
    with suppress(OSError):
        if _below((folder / "exe").readlink(), root):
            return True
    with suppress(OSError):
        # A person's shell or editor may stand in the folder; it has a terminal.
        if _below((folder / "cwd").readlink(), root):
            fields = (folder / "stat").read_bytes().rpartition(b")")[2].split()
            return fields[4] == b"0"
    return False


def _below(path: Path, root: Path) -> bool:
    return path.is_relative_to(root)
