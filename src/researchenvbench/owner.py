"""Which process something belongs to, written so that it can be asked later whether it lives.

Numbers of processes are given again, so a process is known by its number, the tick at which
it started, its namespace of processes, and the boot of the system.

Temporary folders say it by their names. All that can outlive a killed harness are made by
`own_folder`, so that `reb doctor --clean` knows each of them.
"""

from __future__ import annotations

import os
import re
import shutil
import tempfile
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Literal, NamedTuple, get_args

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

State = Literal["alive", "dead", "unknown"]
#: What such a folder can be for: no other is removed by its name alone.
Purpose = Literal[
    "agent",
    "answer",
    "asset",
    "build",
    "bundle",
    "episode",
    "image",
    "look",
    "moving",
    "probe",
    "stage",
]
_FOLDER = re.compile(
    rf"reb-(?P<purpose>{'|'.join(get_args(Purpose))})"
    r"-(?P<owner>[0-9a-f]+\.\d+\.\d+\.\d+)-\w+"
)
_BOOT = Path("/proc/sys/kernel/random/boot_id")
_STATE_FIELD, _START_FIELD = 0, 19  #: of /proc/PID/stat, counted after the name: see proc(5)


def this_owner() -> str:
    """This process, as one word of letters, digits, dots and dashes."""
    pid = os.getpid()
    found = _fields(pid)
    return f"{_boot()}.{_namespace()}.{pid}.{found[_START_FIELD] if found else 0}"


def owner_state(owner: str) -> State:
    """Whether the process lives; unknown where this process could not see it if it did."""
    boot, _, rest = owner.partition(".")
    namespace, _, rest = rest.partition(".")
    pid, _, started = rest.partition(".")
    if not (pid.isdigit() and started.isdigit()):
        return "unknown"
    if (boot, namespace) != (_boot(), _namespace()):
        return "unknown"  # of another host, of a container, or of before a restart
    found = _fields(int(pid))
    same = found is not None and found[_START_FIELD] == started and found[_STATE_FIELD] != "Z"
    return "alive" if same else "dead"


def before_restart(owner: str) -> bool:
    """Whether it is of another boot than this system's, so of before a restart if of this host."""
    return bool(owner) and owner.partition(".")[0] != _boot()


class OwnFolder(NamedTuple):
    """What the name of a temporary folder says."""

    purpose: str
    owner: str


@contextmanager
def own_folder(
    purpose: Purpose,
    below: Path | None = None,
    remove: Callable[[Path], None] = shutil.rmtree,
) -> Iterator[Path]:
    """A temporary folder of this process, which is gone afterwards.

    Args:
        purpose: What it is for.
        below: Where to make it; default: the system's temporary folder.
        remove: What removes it in the end; it may have been moved away by then.
    """
    prefix = f"reb-{purpose}-{this_owner()}-"
    folder = Path(tempfile.mkdtemp(prefix=prefix, dir=below)).resolve()
    try:
        yield folder
    finally:
        if folder.exists():
            remove(folder)


def of_own_folder(name: str) -> OwnFolder | None:
    """What the name of a folder that `own_folder` has made says; None for that of another."""
    match = _FOLDER.fullmatch(name)
    return OwnFolder(match["purpose"], match["owner"]) if match else None


def _fields(pid: int) -> list[str] | None:
    try:
        said = Path(f"/proc/{pid}/stat").read_text(encoding="utf-8", errors="replace")
    except OSError:
        return None
    return said.rpartition(")")[2].split()


def _boot() -> str:
    return _BOOT.read_text().strip().replace("-", "")[:12]


def _namespace() -> str:
    return str(Path("/proc/self/ns/pid").stat().st_ino)
