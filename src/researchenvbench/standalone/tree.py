"""Process trees: who descends from whom, and how they all are ended."""

from __future__ import annotations

import os
import signal
import time

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

#: How a process tree is asked, told and forced to end: each signal, and how long it may take.
LADDER: tuple[tuple[str, float], ...] = (("SIGINT", 2.0), ("SIGTERM", 3.0), ("SIGKILL", 5.0))


def parents() -> dict[int, tuple[int, str]]:
    """Every living process in /proc: its parent and its name. Zombies are not living."""
    found: dict[int, tuple[int, str]] = {}
    for entry in os.listdir("/proc"):
        if not entry.isdecimal():
            continue
        try:
            with open(f"/proc/{entry}/stat", "rb") as stream:
                line = stream.read()
        except OSError:
            continue  # it has ended since the listing
        # The name may hold spaces and parentheses; the fields after the last one do not.
        name = line[line.index(b"(") + 1 : line.rindex(b")")]
        state, parent = line[line.rindex(b")") + 2 :].split(maxsplit=2)[:2]
        if state not in (b"Z", b"X"):
            found[int(entry)] = (int(parent), os.fsdecode(name))
    return found


def descends(pid: int, root: int) -> bool:
    """Whether a living process is `root`, or was started by it or by one that it started."""
    living = parents()
    seen: set[int] = set()
    while pid != root:
        if pid in seen or pid not in living:
            return False
        seen.add(pid)
        pid = living[pid][0]
    return True


def descendants(root: int) -> dict[int, str]:
    """The living processes below `root`, by id, with their names."""
    living = parents()
    children: dict[int, list[int]] = {}
    for pid, (parent, _) in living.items():
        children.setdefault(parent, []).append(pid)
    found: dict[int, str] = {}
    waiting = list(children.get(root, ()))
    while waiting:
        pid = waiting.pop()
        if pid not in found:
            found[pid] = living[pid][1]
            waiting.extend(children.get(pid, ()))
    return found


def end_all(
    find: Callable[[], dict[int, str]],
    ladder: Iterable[tuple[str, float]] = LADDER,
    *,
    groups: bool = False,
) -> dict[int, str]:
    """End all processes that `find` finds, and those that they make meanwhile.

    Args:
        find: Looks for those that are living.
        ladder: Signals and graces.
        groups: Their process groups hold nobody else, and may be killed as a whole. That
            reaches those that fork faster than /proc can be read.

    Returns:
        What is still there after the last step: it could not be ended.
    """
    for name, grace_s in ladder:
        number = signal.Signals[name]
        signalled: set[int] = set()
        until = time.monotonic() + grace_s
        pause_s = 0.002
        while True:
            living = find()
            if not living:
                return {}
            if number == signal.SIGKILL:
                _kill_all(find, groups=groups)
            else:
                for pid in living.keys() - signalled:
                    # A stopped process sees no signal before it is continued.
                    send(pid, number)
                    send(pid, signal.SIGCONT)
                    signalled.add(pid)
            if time.monotonic() > until:
                break
            time.sleep(pause_s)
            pause_s = min(0.05, pause_s * 1.5)
    return find()


def _kill_all(find: Callable[[], dict[int, str]], *, groups: bool) -> None:
    """Stop first, so that nothing forks faster than it is killed."""
    stopped: set[int] = set()
    for _ in range(50):
        new = find().keys() - stopped
        if not new:
            break
        for pid in new:
            send(pid, signal.SIGSTOP)
        stopped |= new
    for pid in stopped:
        group = _group_of(pid) if groups else 0
        if group > 1 and group != os.getpgrp():
            send(-group, signal.SIGKILL)
        send(pid, signal.SIGKILL)


def _group_of(pid: int) -> int:
    try:
        return os.getpgid(pid)
    except ProcessLookupError:
        return 0


def send(pid: int, number: int) -> None:
    """Send a signal; a process that has ended, or is not ours to signal, is left."""
    try:
        os.kill(pid, number)
    except (ProcessLookupError, PermissionError):
        return
