"""A build's container: what an agent works in, and what survives a crash of the harness.

Nothing of the harness is in it. Each command is started in a session of its own and
followed from outside, so that it runs on when the harness dies. What was started, and how
it ended, is journalled in the attempt's folder: a harness that comes back asks for the same
commands in the same order, is told at once how those ended that have ended, and follows the
one that still runs. One that comes back when the container was stopped to be frozen is told
about all of them.
"""

from __future__ import annotations

import hashlib
import json
import os
import secrets
import time
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from ... import process
from ...errors import LimitReachedError, SandboxError
from ..engines.reaching import listen_in_container
from . import copies
from .clock import now
from .disk import DiskWatch
from .following import END, ENDED_AT, FOLLOW, VARIABLE
from .given import container_variables
from .gpus import in_container
from .journal import Started, WasRead
from .keepable import names_trouble

if TYPE_CHECKING:
    import socket
    from collections.abc import Callable, Mapping, Sequence

    from ...gpu.inventory import Gpu
    from ...process import Command, Finished
    from .. import HostEnvironment, Layout
    from ..engines.engine import Engine, State
    from .journal import Journal

_ENDING_S = 60.0
_GONE = ("gone", "removing")
#: Who removes a container kills it first, and then takes away its files.
_REMOVING_S = 4.0


class ContainerBuildBox:
    """A place in which an agent works."""

    uv = "uv"

    def __init__(
        self,
        engine: Engine,
        journal: Journal,
        layout: Layout,
        image_variables: Mapping[str, str],
        disk_limit_bytes: int,
        program: Path | None = None,
    ) -> None:
        self.layout = layout
        self.program = program
        self._engine, self._journal = engine, journal
        self._image_variables = image_variables
        self._disk = DiskWatch(engine, journal.container, disk_limit_bytes)
        self._since = _started(engine)
        self._next = self._next_read = 0
        self._ended_at: float | None = None  #: of the command that ran while nobody was there

    def gpu_indices(self, gpus: Sequence[Gpu]) -> list[str]:
        """Those that were asked for are all that are there."""
        return in_container(gpus)

    @property
    def spent_s(self) -> float:
        """Seconds since the build began in which it was worked at."""
        return max(0.0, now() - self._journal.began - self._journal.idle_s)

    def variables(self, host: HostEnvironment, *, installs: bool) -> dict[str, str]:
        """The environment of a program here, before the prefix, the report and the task."""
        return container_variables(self._image_variables, self.layout, host, installs=installs)

    def listen(self, port: int) -> socket.socket:
        """A socket that listens where programs in the container reach it."""
        return listen_in_container(self._engine, self._journal.container, port)

    def resume(self) -> None:
        """Take the build up again where an earlier life of the harness was ended.

        Time in which nothing ran, since nobody was there to start it, is not the build's.
        """
        kept, back = self._journal, now()
        last = kept.commands[-1] if kept.commands else None
        known = max(kept.began, kept.resumed)
        if last is not None:
            known = max(known, last.began + (last.end["seconds"] if last.end else 0.0))
        if kept.freezing:
            kept.idle_s += max(0.0, back - max(kept.freezing, kept.resumed))
        elif last is None or last.end is not None:
            kept.idle_s += max(0.0, back - known)
        elif not kept.limit:
            self._ended_at = self._ended_while_away(last, back)
            if self._ended_at is not None:
                kept.idle_s += max(0.0, back - max(known, self._ended_at))
        kept.keep_outputs()
        kept.resumed = back
        kept.save()

    def run(
        self,
        command: Command,
        log: Path,
        *,
        on_line: Callable[[str], None] | None = None,
        append: bool = False,
        stop: Callable[[], bool] | None = None,
    ) -> Finished:
        """Run to the end, output streamed to `log`; never raises for what the program does.

        Raises:
            SandboxError: the container has ended, or what runs in it is something else.
            LimitReachedError: the build has taken more of the disk or of memory than it may.
        """
        number, self._next = self._next, self._next + 1
        commands = self._journal.commands
        told = [*map(str, command.argv), str(command.cwd)]
        digest = hashlib.sha256(json.dumps(told).encode()).hexdigest()
        entry = commands[number] if number < len(commands) else None
        if entry is not None and entry.digest != digest:
            raise SandboxError(
                "the build that was interrupted had come to another command, so it cannot "
                "be gone on with",
                advice="run the same command again: it builds from the beginning",
            )
        if entry is not None and (known := entry.finished(log)) is not None:
            output = self._journal.kept(f"output-{number}") or b""
            with log.open("ab" if append else "wb") as stream:
                stream.write(output)
            return known
        if self._journal.limit:
            raise LimitReachedError(self._journal.limit)
        log_at = log.stat().st_size if append and log.exists() else 0
        place = os.path.relpath(log, self._folder)
        resumed = entry is not None
        if entry is None:
            entry = Started(digest, secrets.token_hex(8), now(), place, log_at, log_at)
            commands.append(entry)
        entry.log, entry.log_at, entry.log_end = place, log_at, log_at
        self._journal.save()
        before = commands[number - 1].token if number else ""
        finished = self._follow(command, entry.token, before, log, on_line, stop, append=append)
        if resumed:
            ended_at = self._ended_at or now()
            finished = replace(finished, seconds=max(0.0, ended_at - entry.began))
        entry.ended(finished)
        entry.log_end = log.stat().st_size
        self._journal.save()
        return finished

    def read(self, path: Path, limit_bytes: int) -> bytes:
        """The content of a regular file."""
        number, self._next_read = self._next_read, self._next_read + 1
        reads, name = self._journal.reads, f"read-{number}"
        if number < len(reads) and reads[number].path == str(path):
            if refused := reads[number].refused:
                raise SandboxError(refused)
            content = self._journal.kept(name)
            if content is not None:
                return content
        self._need_names()
        entry = WasRead(str(path))
        try:
            content = copies.read(self._engine, self._journal.container, path, limit_bytes)
            self._journal.keep(name, content)
            return content
        except SandboxError as error:
            entry.refused = str(error.args[0])
            raise
        finally:
            reads[number:] = [entry]
            self._journal.save()

    def put(self, path: Path, content: bytes, *, mode: int = 0o644) -> None:
        """Write a file of the harness into the box."""
        self._put({path: content}, mode)

    def put_all(self, files: Mapping[Path, bytes]) -> None:
        """Write many."""
        self._put(files, 0o644)

    def _put(self, files: Mapping[Path, bytes], mode: int) -> None:
        """Write. What was put before a command that was started already is there."""
        if self._next < len(self._journal.commands) or self._journal.freezing:
            return
        if self._next:
            self._need_names()
        known = (self.layout.repo.parent, self.layout.repo)
        copies.put(self._engine, self._journal.container, files, mode, known)

    @property
    def _folder(self) -> Path:
        assert self._journal.path is not None  # noqa: S101 - those that are kept have one
        return self._journal.path.parent

    def _follow(
        self,
        command: Command,
        token: str,
        before: str,
        log: Path,
        on_line: Callable[[str], None] | None,
        stop: Callable[[], bool] | None,
        *,
        append: bool,
    ) -> Finished:
        if before:
            self._need_names()
        variables = self._journal.beside("variables")
        given = {**command.env, VARIABLE: token}
        try:
            with self._disk.watching():
                finished = process.run(
                    self._engine.argv(
                        *("exec", "--workdir", str(command.cwd)),
                        # By its name, since engines split a path at commas.
                        *environment_flags(given, variables, variables.name),
                        *(self._journal.container, "/bin/sh", "-c", FOLLOW, "sh", token, before),
                        *(str(argument) for argument in command.argv),
                    ),
                    cwd=variables.parent,
                    env=dict(os.environ),
                    log=log,
                    time_limit_s=command.time_limit_s,
                    on_line=on_line,
                    append=append,
                    stop=stop,
                )
        except LimitReachedError as reached:
            raise self._limited(str(reached.args[0])) from reached
        finally:
            variables.unlink(missing_ok=True)  # there may be passwords in it
        # What follows it on this host is the engine's, and ends when it likes.
        finished = replace(finished, leftovers=())
        if not finished.ok:
            state = self._engine.state(self._journal.container)
            if state.out_of_memory and not state.running:
                raise self._limited("the build's container ran out of memory")
            if not (state.running or state.paused):
                raise self._over(state)
        if finished.timed_out or finished.stopped:
            self._end(token, command)
            return replace(finished, exit_code=None, signal="SIGKILL")
        return finished

    def _over(self, state: State) -> LimitReachedError | SandboxError:
        """Why the container has ended, which we have not done."""
        until = time.monotonic() + _REMOVING_S
        while state.status not in _GONE and time.monotonic() < until:
            time.sleep(_REMOVING_S / 20)
            state = self._engine.state(self._journal.container)
        if state.status in _GONE or self._since != _started(self._engine):
            return SandboxError(
                "the build's container was ended from outside",
                advice="run the same command again",
            )
        return self._limited(
            "the build's container has ended while the agent worked: its first process, which "
            "no signal from within ends, was ended"
        )

    def _need_names(self) -> None:
        """See that users can be looked up, without which the engine waits for ever.

        Raises:
            LimitReachedError: they cannot any more.
            SandboxError: the container is gone, or the engine fails.
        """
        journal = self._journal
        if trouble := names_trouble(self._engine, journal.container, journal.image):
            raise self._limited(f"nothing can be run in the build's container: {trouble}")

    def _end(self, token: str, command: Command) -> None:
        """End a command's processes; where that cannot be done, the container."""
        container = self._journal.container
        with suppress(SandboxError):
            self._engine.call(
                *("exec", container, "/bin/sh", "-c", END, "sh", token), time_limit_s=_ENDING_S
            )
            return
        try:
            self._engine.call("kill", container)
        except SandboxError:
            if self._engine.state(container).running:
                raise  # else it has ended, which is as good
        raise self._limited(
            f"{Path(command.argv[0]).name} could not be ended at its time limit, so the "
            "build's container was"
        )

    def _limited(self, reason: str) -> LimitReachedError:
        self._journal.limit = reason
        self._journal.save()
        return LimitReachedError(reason)

    def _ended_while_away(self, last: Started, back: float) -> float | None:
        """When the last command ended, by the build's clock; None where it still runs."""
        container = self._journal.container
        with suppress(SandboxError, ValueError):
            said = self._engine.call(
                *("exec", container, "/bin/sh", "-c", ENDED_AT, "sh", last.token),
                time_limit_s=_ENDING_S,
            )
            return min(back, max(last.began, float(said)))
        return None


def _started(engine: Engine) -> int:
    """When the engine's daemon was started, in ns: its containers end with it; 0 without one."""
    with suppress(OSError):
        if engine.name == "docker":
            return Path("/run/docker.pid").stat().st_mtime_ns
    return 0


def environment_flags(variables: Mapping[str, str], file: Path, name: str = "") -> list[str]:
    """Flags that give a program its variables: by a file, in which no line may be split.

    Args:
        variables: By name.
        file: Where to write them.
        name: What the engine is to call the file; default: its path.
    """
    flags = ["--env-file", name or str(file)]
    lines = []
    for variable, value in variables.items():
        line = os.fsencode(f"{variable}={value}")
        if b"\n" in line or b"\r" in line:
            flags += ["--env", f"{variable}={value}"]
        else:
            lines.append(line + b"\n")
    file.touch(0o600)
    file.write_bytes(b"".join(lines))
    return flags
