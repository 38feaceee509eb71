"""Whether the kernel ended a program for want of memory.

It does not say so to whom it happens; it counts. A count that rose while a program ran,
together with how that program ended, is as much as can be known without privileges.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True)
class OutOfMemoryKills:
    """How many processes the kernel has ended for want of memory until now."""

    here: int | None  #: in the control group of the harness
    anywhere: int | None  #: on this machine


def out_of_memory_kills() -> OutOfMemoryKills:
    """The counts as they are now."""
    return OutOfMemoryKills(_group_count(), _count_in(Path("/proc/vmstat")))


def _group_count() -> int | None:
    """From the control group's own count, of either version."""
    try:
        lines = Path("/proc/self/cgroup").read_text().splitlines()
    except OSError:
        return None
    for line in lines:
        number, controllers, path = line.split(":", 2)
        if "memory" in controllers.split(","):
            file = Path(f"/sys/fs/cgroup/memory{path}/memory.oom_control")
        elif number == "0":
            file = Path(f"/sys/fs/cgroup{path}/memory.events")
        else:
            continue
        count = _count_in(file)
        if count is not None:
            return count
    return None


def _count_in(file: Path) -> int | None:
    try:
        lines = file.read_text().splitlines()
    except OSError:
        return None
    for line in lines:
        name, _, value = line.partition(" ")
        if name == "oom_kill":
            return int(value)
    return None


def ran_out_of_memory(before: OutOfMemoryKills, exit_code: int | None, *, killed: bool) -> bool:
    """Whether the kernel's count rose and the program ended as if it was by that.

    A count of our own group is evidence against any program that did not end well; that of
    the whole machine only against one that was killed.
    """
    if exit_code == 0:
        return False
    after = out_of_memory_kills()
    if before.here is not None and after.here is not None and after.here > before.here:
        return True
    return (
        killed
        and before.anywhere is not None
        and after.anywhere is not None
        and after.anywhere > before.anywhere
    )
