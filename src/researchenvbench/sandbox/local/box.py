"""The boxes of this host: where programs run, and how the harness looks at what they made."""

from __future__ import annotations

import functools
import marshal
import os
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING

from ... import process
from ...errors import SandboxError
from ...standalone.tree import descends
from ..host_environment import base_environment
from ..listening import listen_on_host, listen_within
from ..tools import host_tools
from . import inside
from .examine import Examines

if TYPE_CHECKING:
    import socket
    from collections.abc import Callable, Mapping, Sequence

    from ...attempt import Freshness
    from ...gpu.inventory import Gpu
    from ...process import Command, Finished, Running
    from .. import Collected, HostEnvironment, Layout
    from .namespace import Namespaces


class LocalBox:
    """A place on this host, in namespaces of its own or not."""

    shares_system = True
    spent_s = 0.0  #: a build here ends with the harness, and begins anew

    def __init__(
        self,
        layout: Layout,
        namespaces: Namespaces | None = None,
        program: Path | None = None,
    ) -> None:
        self.layout = layout
        self.program = program  #: of an agent; it is used where it lies on this host
        self._namespaces = namespaces

    @functools.cached_property
    def uv(self) -> str:
        """The one that was installed with the harness."""
        import uv

        return uv.find_uv_bin()

    def variables(self, host: HostEnvironment, *, installs: bool) -> dict[str, str]:
        """The environment of a program here, before the prefix, the report and the task."""
        return base_environment(self.layout, host, installs=installs)

    def gpu_indices(self, gpus: Sequence[Gpu]) -> list[str]:
        """This host's."""
        return [gpu.shown_as for gpu in gpus]

    def run(
        self,
        command: Command,
        log: Path,
        *,
        on_line: Callable[[str], None] | None = None,
        append: bool = False,
        stop: Callable[[], bool] | None = None,
    ) -> Finished:
        """Run to the end, output streamed to `log`; never raises for what the program does."""
        return process.run(
            command.argv,
            cwd=command.cwd,
            env=command.env,
            log=log,
            time_limit_s=command.time_limit_s,
            on_line=on_line,
            append=append,
            namespaces_of=self._holder,
            stop=stop,
        )

    def read(self, path: Path, limit_bytes: int) -> bytes:
        """The content of a regular file; links are not followed."""
        return inside.read(self._root, path, limit_bytes)

    def put(self, path: Path, content: bytes, *, mode: int = 0o644) -> None:
        """Write a file of the harness into the box: tools, a restored file."""
        own = (self.layout.root, self.layout.work.parent, self.layout.report.parent)
        if not any(path.is_relative_to(folder) for folder in own):
            raise SandboxError(f"{path}: the harness writes inside of the box only")
        inside.write(self._root, path, content, mode)

    def put_all(self, files: Mapping[Path, bytes]) -> None:
        """Write many."""
        for path, content in files.items():
            self.put(path, content)

    def listen(self, port: int) -> socket.socket:
        """A socket that listens at 127.0.0.1, as programs in the box see it."""
        return listen_on_host(port) if self._holder is None else listen_within(self._holder, port)

    @property
    def _holder(self) -> int | None:
        return self._namespaces.pid if self._namespaces else None

    @property
    def _root(self) -> Path:
        return self._namespaces.root if self._namespaces else Path("/")


class LocalStageBox(Examines, LocalBox):
    """A stage's box, thrown away when it closes."""

    def __init__(
        self,
        layout: Layout,
        namespaces: Namespaces | None,
        freshness: Freshness,
        scratch: Path,
    ) -> None:
        super().__init__(layout, namespaces)
        marker = scratch / "opened"
        marker.touch()
        # The file system's own clock, by which the files of the box will be dated.
        self._opened_ns = marker.stat().st_ctime_ns
        self._started: list[Running] = []
        self.freshness = freshness
        self.tools = host_tools()
        self._scratch = self.disk = scratch

    def has_process(self, pid: int) -> bool | None:
        """Whether a process is in this box's namespaces, or was started from here without any."""
        if not Path(f"/proc/{pid}").exists():
            return None
        if self._holder is None:
            return pid != os.getpid() and descends(pid, os.getpid())
        try:
            ours = Path(f"/proc/{self._holder}/ns/mnt").stat()
            theirs = Path(f"/proc/{pid}/ns/mnt").stat()
        except PermissionError:
            return False  # another user's; those of a box are ours
        except OSError:
            return None
        return theirs.st_ino == ours.st_ino

    def start(self, command: Command, log: Path) -> Running:
        """Start beside others; what still runs when the box closes is ended then."""
        running = process.start(
            command.argv,
            cwd=command.cwd,
            env=command.env,
            log=log,
            time_limit_s=command.time_limit_s,
            namespaces_of=self._holder,
        )
        self._started.append(running)
        return running

    def collect(self, pattern: str, into: Path, *, limit: int = 200) -> list[Collected]:
        """Copy the regular files that match an absolute glob out of the box."""
        return inside.collect(self._root, pattern, into, limit=limit, opened_ns=self._opened_ns)

    def interactive_argv(self, command: Command) -> list[str]:
        """What to run so that `command` has this terminal and sees the box as a stage does."""
        handle, name = tempfile.mkstemp(dir=self._scratch, prefix="order-")
        with os.fdopen(handle, "wb") as stream:
            marshal.dump(
                {
                    "argv": list(command.argv),
                    "env": dict(command.env),
                    "cwd": str(command.cwd),
                },
                stream,
            )
        return [
            *process.stand_alone("interactive"),
            str(self._holder or 0),
            name,
        ]

    def close(self) -> None:
        """End what was started here."""
        for running in self._started:
            if running.poll() is None:
                running.stop()
