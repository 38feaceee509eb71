"""Namespaces of their own for a stage, as far as this host allows them.

`open_namespaces` starts a holder (`standalone.holder`) that keeps a writable layer over given
folders, in mount, process, IPC and network namespaces of its own. Where the host forbids
one of those it is done without, and the answer says so in words; where it forbids the layer
itself there is nothing to enter, and the caller works in place.
"""

from __future__ import annotations

import ast
import functools
import os
import subprocess
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from ...owner import own_folder
from ...process import STAND_ALONE_ENV, stand_alone
from ...standalone.orders import encode_order
from ..removing import remove_tree

if TYPE_CHECKING:
    from collections.abc import Sequence

_PURPOSES = {
    "user": "user namespace",
    "mounts": "private mounts",
    "overlay": "overlay over the environment",
    "bind": "private folders",
    "read-only": "read-only assets",
    "ipc": "private shared memory",
    "network": "network of its own",
    "pid": "process namespace",
    "memory": "layer in memory",
    "folders": "folders for the layer",
}


@dataclass
class Namespaces:
    """The namespaces of an open box."""

    pid: int  #: of the process whose namespaces programs join
    network: Literal["none", "host"]
    why: str  #: what the host did not allow, in words; empty where all was allowed
    _process: subprocess.Popen[bytes] = field(repr=False)
    _control: int = field(repr=False)
    _open: bool = field(default=True, repr=False)

    @property
    def root(self) -> Path:
        """Where the harness sees the files as programs in the box do."""
        return Path(f"/proc/{self.pid}/root")

    def close(self) -> None:
        """End everything that is in it."""
        if self._open:
            self._open = False
            os.close(self._control)
            self._process.wait()


@dataclass(frozen=True)
class Refusal:
    """Why no layer can be laid over a folder on this host."""

    why: str


def open_namespaces(
    folders: Sequence[Path],
    scratch: Path,
    *,
    network: bool,
    binds: Sequence[tuple[Path, Path]] = (),
    read_only: Sequence[tuple[Path, Path]] = (),
) -> Namespaces | Refusal:
    """Lay a writable layer over each of `folders`, seen by programs that join.

    Args:
        folders: Must not contain one another, nor `scratch`.
        scratch: An empty folder for what programs write; the caller removes it.
        network: Whether programs share the host's network.
        binds: (folder, where programs see it).
        read_only: (file or folder, where programs see it and cannot change it).
    """
    wanted: dict[str, Any] = {
        "user": os.geteuid() != 0,
        "pid": True,
        "ipc": True,
        "network": not network,
        "memory": "",
        "overlays": _overlays(folders, scratch),
        "binds": [(str(source), str(target)) for source, target in binds],
        "read_only": [(str(source), str(target)) for source, target in read_only],
    }
    given_up: list[str] = []
    while True:
        opened = _open(wanted)
        if isinstance(opened, tuple):
            process, control, pid = opened
            return Namespaces(
                pid=pid,
                network="host" if network or not wanted["network"] else "none",
                why="; ".join(given_up),
                _process=process,
                _control=control,
            )
        step = opened.get("step", "")
        sentence = f"no {_PURPOSES.get(step, step)}: {opened.get('why')}"
        if step in ("pid", "ipc", "network") and wanted[step]:
            wanted[step] = False
        elif step == "mounts" and not wanted["user"]:
            wanted["user"] = True  # root without the right to mount, as in a container
        elif step == "overlay" and not wanted["memory"]:
            # The layer's own file system does not carry one (it is an overlay or a network's).
            memory = scratch / "memory"
            memory.mkdir(parents=True)
            wanted["memory"] = str(memory)
            wanted["overlays"] = _overlays(folders, memory)
            sentence += " on the disk, so what the stage changes is kept in memory"
        else:
            return Refusal("; ".join([*given_up, sentence + _hint()]))
        given_up.append(sentence)


def _overlays(folders: Sequence[Path], scratch: Path) -> list[dict[str, str]]:
    return [
        {
            "lowerdir": str(folder),
            "upperdir": str(scratch / f"{number}" / "upper"),
            "workdir": str(scratch / f"{number}" / "work"),
        }
        for number, folder in enumerate(folders)
    ]


def _open(order: dict[str, Any]) -> tuple[subprocess.Popen[bytes], int, int] | dict[str, Any]:
    control_read, control = os.pipe()
    status, status_write = os.pipe()
    process = subprocess.Popen(
        [*stand_alone("holder"), str(control_read), str(status_write)],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        pass_fds=(control_read, status_write),
        cwd="/",
        env=STAND_ALONE_ENV,
        start_new_session=True,
    )
    os.close(control_read)
    os.close(status_write)
    with suppress(BrokenPipeError):  # it has died already, and will not answer
        os.write(control, encode_order(order))
    text = b""
    while chunk := os.read(status, 65536):
        text += chunk
    os.close(status)
    answer: dict[str, Any] = (
        ast.literal_eval(text.decode("ascii")) if text else {"step": "", "why": "it has died"}
    )
    if "pid" in answer:
        return process, control, answer["pid"]
    os.close(control)
    process.wait()
    return answer


def _hint() -> str:
    """The setting of this host that explains a refusal, where there is one."""
    if os.geteuid() == 0:
        return ""
    for file, forbidding, name in (
        ("/proc/sys/kernel/unprivileged_userns_clone", "0", "kernel.unprivileged_userns_clone=0"),
        ("/proc/sys/user/max_user_namespaces", "0", "user.max_user_namespaces=0"),
        (
            "/proc/sys/kernel/apparmor_restrict_unprivileged_userns",
            "1",
            "kernel.apparmor_restrict_unprivileged_userns=1",
        ),
    ):
        with suppress(OSError):
            if Path(file).read_text().strip() == forbidding:
                return f" (this host sets {name})"
    return ""


@functools.cache
def namespace_support(folder: Path | None = None) -> tuple[str, str, str]:
    """What this host gives stages: (overlay or in-place, network none or host, why not more).

    Tried for real, below `folder` or the temporary folder, once per process.
    """
    with own_folder("probe", folder, remove_tree) as scratch:
        (scratch / "box").mkdir()
        opened = open_namespaces([scratch / "box"], scratch / "layer", network=False)
        if isinstance(opened, Refusal):
            return "in-place", "host", opened.why
        opened.close()
        return "overlay", opened.network, opened.why
