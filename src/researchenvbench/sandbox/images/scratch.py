"""What making an image needs: to be alone, and a folder that leaves nothing mounted."""

from __future__ import annotations

import os
import re
import shlex
import shutil
import subprocess
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import quote

from filelock import FileLock, Timeout

from ...errors import SandboxError
from ...owner import own_folder
from ...places import default_cache

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator


@contextmanager
def scratch_folder() -> Iterator[Path]:
    """A folder that is gone afterwards, with whatever was mounted in it."""
    with own_folder("image", remove=remove_with_mounts) as folder:
        yield folder


def remove_with_mounts(folder: Path) -> None:
    """Remove a folder in which something may still be mounted.

    Raises:
        SandboxError: something stays mounted, and so the folder.
        OSError: something in it cannot be removed.
    """
    _unmount_below(folder)
    shutil.rmtree(folder)


def _unmount_below(folder: Path) -> None:
    """Unmount what debootstrap had no time to; a folder must not be removed through a mount.

    Raises:
        SandboxError: something stays mounted.
    """
    for options in ([], ["--lazy"]):
        for place in reversed(_mounted_below(folder)):
            subprocess.run(["umount", *options, place], capture_output=True, check=False)
    left = _mounted_below(folder)
    if left:
        raise SandboxError(
            f"{left[0]} cannot be unmounted, so {folder} was not removed",
            advice=f"unmount it (umount {shlex.quote(str(left[0]))}), then remove the folder",
        )


def _mounted_below(folder: Path) -> list[Path]:
    """See proc_pid_mountinfo(5): the fifth field, with octal escapes for white space."""
    lines = Path("/proc/self/mountinfo").read_bytes().splitlines()
    places = [
        Path(os.fsdecode(re.sub(rb"\\([0-7]{3})", lambda code: bytes([int(code[1], 8)]), field)))
        for field in (line.split()[4] for line in lines)
    ]
    return [place for place in places if place.is_relative_to(folder)]


@contextmanager
def alone(engine: str, name: str, say: Callable[[str], None]) -> Iterator[None]:
    """Nobody else with this cache makes an image of that name meanwhile.

    Two that need the same base at once would make it twice, each with gigabytes of disk.
    """
    locks = default_cache() / "images"
    locks.mkdir(parents=True, exist_ok=True)
    lock = FileLock(locks / f"{quote(f'{engine} {name}', safe='')}.lock")
    try:
        lock.acquire(blocking=False)
    except Timeout:
        say(f"waiting for another process, which is making {name}")
        lock.acquire()
    try:
        yield
    finally:
        lock.release()
