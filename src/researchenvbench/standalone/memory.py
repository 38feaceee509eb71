"""Whether a program was ended by the memory limit of its own control group, or by the host.

The kernel counts what it ended in both cases; how often a group was at its limit it counts
apart (cgroups(7): `oom` in `memory.events` of version 2, `memory.failcnt` of version 1).
"""

from __future__ import annotations

_GROUPS = "/sys/fs/cgroup"


def times_at_limit() -> int:
    """How often our control group had no memory left to give; 0 where that is not told."""
    try:
        with open("/proc/self/cgroup", encoding="ascii", errors="replace") as stream:
            lines = stream.read().splitlines()
    except OSError:
        return 0
    for line in lines:
        number, controllers, path = line.split(":", 2)
        if "memory" in controllers.split(","):
            files = [f"{_GROUPS}/memory{path}/memory.failcnt", f"{_GROUPS}/memory/memory.failcnt"]
        elif number == "0":
            files = [f"{_GROUPS}{path}/memory.events", f"{_GROUPS}/memory.events"]
        else:
            continue
        for file in files:  # within a container its own group may be the root of what is seen
            count = _count(file, "oom")
            if count is not None:
                return count
    return 0


def ended_by_host() -> int:
    """How many programs the kernel has ended on this machine for want of memory, by any limit."""
    return _count("/proc/vmstat", "oom_kill") or 0


def _count(file: str, wanted: str) -> int | None:
    try:
        with open(file, encoding="ascii", errors="replace") as stream:
            words = [line.split() for line in stream]
    except OSError:
        return None
    for line in words:
        if len(line) == 1 or line[0] == wanted:
            return int(line[-1]) if line[-1].isdigit() else None
    return None
