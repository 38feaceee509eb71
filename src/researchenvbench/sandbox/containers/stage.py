"""A stage's container: started from a frozen image, thrown away when it closes.

Its first process is our attendant, through which files are put, read and collected; programs
are started in it under the same supervisor as everywhere. All of these are the harness's own
programs from a read-only mount.
"""

from __future__ import annotations

import dataclasses
import os
import re
import time
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ... import process
from ...errors import EnvironmentUnusableError, LimitReachedError, RefusedError, SandboxError
from ...owner import own_folder
from ..assets import make_frame, mounts
from ..engines.bundle import bundled_tools, new_place
from ..engines.engine import AbsentError
from ..engines.finding import starts_containers
from ..engines.mounts import shown
from ..engines.storage import storage_of
from .attended import START_S, Attended, LateError
from .build import environment_flags
from .disk import DiskWatch
from .given import container_variables, labels, package_mounts
from .gpus import devices, in_container
from .options import Options, bytes_of

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

    from ...attempt import Freshness
    from ...gpu.inventory import Gpu
    from ...process import Command, Finished, Running
    from .. import Collected, HostEnvironment, Layout, Tools
    from ..engines.engine import Engine


#: A container is hindered from starting if it takes this many times as long as an empty one.
_TIMES_SLOWER = 20
_TRIES = 4
#: As engines say that a container has as many processes as it may.
_NO_ROOM_FOR_PROCESSES = re.compile(r"resource temporarily unavailable|fork/exec|cannot fork", re.I)


@dataclasses.dataclass(frozen=True)
class Start:
    """What a stage's container is started from, and with."""

    engine: Engine
    image: str  #: id of the frozen image
    image_variables: Mapping[str, str]
    layout: Layout
    tools: Path  #: the bundle on this host
    options: Options
    attempt: Path  #: whose it is
    network: Sequence[str]  #: flags
    host: HostEnvironment
    gpus: Sequence[str]
    assets: Mapping[str, Path]  #: shown read-only, by place below the layout's `assets`


@contextmanager
def open_container(start: Start, freshness: Freshness) -> Iterator[ContainerStageBox]:
    """A container of the frozen image, with its own empty folders.

    Raises:
        EnvironmentUnusableError: it does not start, and that is the image's doing.
        RefusedError: its programs have taken more of the disk than they may.
        SandboxError: it does not start.
        HostError: the engine cannot be used.
    """
    engine, place = start.engine, new_place()
    tools = bundled_tools(start.tools, place)
    certificates = new_place() / "certificates.pem"
    with own_folder("stage") as scratch:
        cid = scratch / "cid"
        flags = shown(start.tools, place)
        if freshness.network != "none":
            flags += package_mounts(start.host, certificates)
        # At a place of its own too: where it were known before, an agent could leave something
        # there with which no container starts.
        start = dataclasses.replace(
            start, layout=dataclasses.replace(start.layout, assets=new_place())
        )
        frame = scratch / "assets"
        make_frame(frame, start.assets)
        for source, target in mounts(frame, start.layout.assets, start.assets):
            flags += shown(source, target)
        argv = engine.argv(
            *("run", "--interactive", "--rm", "--pull", "never", "--cidfile", str(cid)),
            *start.network,
            *engine.run_flags,
            *start.options.limits(engine),
            *labels("stage", start.attempt),
            *devices(engine, start.gpus),
            *flags,
            *("--workdir", "/", "--entrypoint", "", start.image),
            *process.stand_alone("attendant", tools.python, tools.package),
        )
        layout = start.layout
        folders = [layout.work, layout.out, layout.tools, layout.home, layout.tmp, layout.cache]
        errors = scratch / "errors"
        try:
            attended = _attended(start, argv, folders, errors, cid)
        except SandboxError as error:
            _remove(engine, cid)
            said = errors.read_bytes()
            trouble = engine.trouble("run", said) if said.strip() else error
            if isinstance(trouble, AbsentError):
                raise image_gone(engine, start.image) from error
            if isinstance(trouble, SandboxError) and starts_containers(engine, start.tools):
                raise EnvironmentUnusableError(
                    f"no container starts from what the build left: {trouble.args[0]}"
                ) from error
            raise trouble from error
        name = cid.read_text().strip()
        box = ContainerStageBox(start, tools, name, attended, freshness, scratch, certificates)
        limit_bytes = bytes_of(start.options.disk, "disk")
        try:
            with DiskWatch(engine, name, limit_bytes, writer="the stage").watching():
                yield box
        except LimitReachedError as error:
            _remove(engine, cid)
            raise RefusedError(str(error.args[0]), advice=error.advice) from error
        finally:
            box.close()
            if attended.forced:
                _remove(engine, cid)


def _attended(
    start: Start, argv: Sequence[str], folders: Sequence[Path], errors: Path, cid: Path
) -> Attended:
    """The container, started; where the host is slow with any, that is waited for.

    Raises:
        SandboxError: it does not start, or it has not where others do.
        HostError: the engine cannot be used.
    """
    patience_s = START_S
    tries = 0
    while True:
        try:
            return Attended(argv, folders, errors, patience_s)
        except LateError:
            tries += 1
            began = time.monotonic()
            if not starts_containers(start.engine, start.tools):
                raise
            wanted_s = _TIMES_SLOWER * (time.monotonic() - began)
            if tries >= _TRIES or (tries > 1 and wanted_s <= patience_s):
                raise
            patience_s = max(START_S, wanted_s)
            _remove(start.engine, cid)
            cid.unlink(missing_ok=True)  # an engine does not write over it


def _remove(engine: Engine, cid: Path) -> None:
    """Remove a container that has not ended by itself, as one that was asked for too much."""
    if not cid.exists():
        return
    engine.remove(cid.read_text().strip())


def image_gone(engine: Engine, image: str) -> SandboxError:
    """What is to be said where an environment's image was removed."""
    return SandboxError(
        f"{engine.name} has no image {image} in the storage that this user has here: it was "
        "removed, or is another user's",
        advice=f"look as the user who built it ({engine.name} image ls); else remove the "
        "attempt's folder, then run the same command again: it builds anew",
    )


class ContainerStageBox:
    """A place in a container that nothing of survives."""

    uv = "uv"
    shares_system = False

    def __init__(
        self,
        start: Start,
        tools: Tools,
        name: str,
        attended: Attended,
        freshness: Freshness,
        scratch: Path,
        certificates: Path,
    ) -> None:
        self.layout = start.layout
        self.freshness = freshness
        self.tools = tools
        self._start, self._engine, self._name = start, start.engine, name
        self._attended, self._scratch = attended, scratch
        self._certificates = certificates
        self._started: list[_InContainer] = []

    def variables(self, host: HostEnvironment, *, installs: bool) -> dict[str, str]:
        """The environment of a program here, before the prefix, the report and the task."""
        return container_variables(
            self._start.image_variables,
            self.layout,
            host,
            installs=installs,
            certificates=self._certificates,
        )

    @property
    def disk(self) -> Path | None:
        """Where the engine keeps what containers write."""
        return storage_of(self._engine)

    def gpu_indices(self, gpus: Sequence[Gpu]) -> list[str]:
        """Those that were asked for are all that are there."""
        return in_container(gpus)

    def run(
        self,
        command: Command,
        log: Path,
        *,
        on_line: Callable[[str], None] | None = None,
        append: bool = False,
    ) -> Finished:
        """Run to the end, output streamed to `log`; never raises for what the program does."""
        finished = process.run(
            command.argv,
            cwd=command.cwd,
            env=command.env,
            log=log,
            time_limit_s=command.time_limit_s,
            on_line=on_line,
            append=append,
            via=self._supervisor(),
        )
        return self._explained(finished)

    def has_process(self, pid: int) -> bool | None:
        """Whether a process is in the container: by its control group, which all may read."""
        try:
            return self._name in Path(f"/proc/{pid}/cgroup").read_text()
        except OSError:
            return None

    def start(self, command: Command, log: Path) -> Running:
        """Start beside others; what still runs when the box closes ends with it."""
        running = process.start(
            command.argv,
            cwd=command.cwd,
            env=command.env,
            log=log,
            time_limit_s=command.time_limit_s,
            via=self._supervisor(),
        )
        self._started.append(_InContainer(running, self._explained))
        return self._started[-1]

    def read(self, path: Path, limit_bytes: int) -> bytes:
        """The content of a regular file; links are not followed."""
        return self._attended.read(path, limit_bytes)

    def collect(self, pattern: str, into: Path, *, limit: int = 200) -> list[Collected]:
        """Copy the regular files that match an absolute glob out of the box."""
        return self._attended.collect(pattern, into, limit)

    def put(self, path: Path, content: bytes, *, mode: int = 0o644) -> None:
        """Write a file of the harness into the box."""
        self._attended.put({path: content}, mode)

    def put_all(self, files: Mapping[Path, bytes]) -> None:
        """Write many."""
        self._attended.put(files, 0o644)

    def examine(
        self, module: str, order: Mapping[str, object], *, time_limit_s: float = 600.0
    ) -> dict[str, Any]:
        """What a module of the harness that stands alone finds here.

        Raises:
            RefusedError: what lies here cannot be looked at, and the host is well.
            SandboxError: nothing can be looked at.
        """
        try:
            return self._attended.examine(module, order, time_limit_s)
        except LateError as error:
            if not starts_containers(self._engine, self._start.tools):
                raise
            raise RefusedError(
                f"the box cannot be looked at ({module}): it took more than {time_limit_s:.0f} s"
            ) from error

    def interactive_argv(self, command: Command) -> list[str]:
        """What to run so that `command` has this terminal and is in the container."""
        flags = environment_flags(command.env, self._scratch / "variables")
        terminal = ("-it",) if os.isatty(0) else ("-i",)
        return self._engine.argv(
            *("exec", *terminal, "--workdir", str(command.cwd), *flags),
            *(self._name, *command.argv),
        )

    def close(self) -> None:
        """End the container and all that runs in it."""
        for running in self._started:
            if running.poll() is None:
                running.stop()
        self._attended.close()

    def _supervisor(self) -> list[str]:
        supervise = process.stand_alone("supervise", self.tools.python, self.tools.package)
        return self._engine.argv("exec", "--interactive", self._name, *supervise, "0", "2")

    def _explained(self, finished: Finished) -> Finished:
        """How a program ended whose supervisor did not report.

        Raises:
            SandboxError: the engine failed, or the container was ended from outside.
        """
        if finished.overdue:
            # Somebody in there has halted the supervisor, and may have halted others.
            self._attended.end_others()
            return finished
        if finished.lost is None:
            return finished
        # One that has ended has removed itself, and cannot be asked any more.
        state = self._engine.state(self._name)
        if state.out_of_memory or finished.out_of_memory:
            return dataclasses.replace(finished, out_of_memory=True)
        if not state.running:
            raise SandboxError(
                "the stage's container was ended from outside",
                advice="run the same command again",
            )
        said = finished.lost.strip()
        if said and not _NO_ROOM_FOR_PROCESSES.search(said):
            raise SandboxError(f"{self._engine.name} exec: {said[-1000:]}")
        return finished  # whoever runs in there has killed the supervisor, or left it no room


class _InContainer:
    """A program beside others, whose end is explained as that of any other."""

    def __init__(self, running: Running, explain: Callable[[Finished], Finished]) -> None:
        self.log = running.log
        self._running, self._explain = running, explain

    def poll(self) -> Finished | None:
        """How it ended, or None while it runs."""
        finished = self._running.poll()
        return self._explain(finished) if finished else None

    def stop(self) -> Finished:
        """End its whole process tree."""
        return self._running.stop()
