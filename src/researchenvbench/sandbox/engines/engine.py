"""podman and docker through their command lines, and what they say when they fail."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import time
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from typing import IO, TYPE_CHECKING, Any

from ...errors import HostError, SandboxError
from ...owner import own_folder
from .dialect import dialect_of

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from .dialect import Dialect

#: Prefix of all labels that are ours.
LABEL = "org.researchenvbench"
#: As podman and docker say that there is no such container or image, in lower case.
_ABSENT = re.compile(
    r"no such (container|image|object)|(image|container) not known|no container with (name|id)|"
    r'container "[^"]*" does not exist'
)
#: Commands whose archives podman copies to its temporary folder, where older ones leave them.
_COPYING = ("build", "commit", "cp", "import", "load", "save")
#: Where engines are started: what watches a container for podman leaves a file in the folder
#: that it was started from when memory runs out, and here none can be made.
NO_FOLDER = "/proc"
_MOST_READ, _HALF_SHOWN = 8000, 150
_LISTED_AGAIN = 9
_LISTED_AGAIN_S = 0.2
#: As they say of an image that a container is made of.
_IN_USE = re.compile(r"image is in use|is using its referenced image|image is being used by")


class AbsentError(SandboxError):
    """The engine has no such container, or no such image."""


class InUseError(SandboxError):
    """An image cannot be removed, since a container is made of it."""


@dataclass(frozen=True)
class State:
    """How a container is."""

    status: str  #: the engine's word; `gone` where there is none
    out_of_memory: bool  #: the kernel ended it, or something in it

    @property
    def running(self) -> bool:
        """Programs run in it."""
        return self.status == "running"

    @property
    def paused(self) -> bool:
        """Somebody has halted it; it can run on."""
        return self.status == "paused"


@dataclass(frozen=True)
class Engine:
    """One engine of this host, with the flags that its containers need."""

    name: str
    program: str
    version: str
    global_flags: tuple[str, ...] = ()  #: before the command, such as another runtime
    run_flags: tuple[str, ...] = ()  #: of every container
    limits: bool = True  #: memory, CPUs and processes can be limited
    why_outside: str = ""  #: why the networks of its containers cannot be entered; empty: they can
    notes: tuple[str, ...] = ()  #: what was added or left out, and why

    @property
    def dialect(self) -> Dialect:
        """What it has other words for than other engines."""
        return dialect_of(self.name)

    def argv(self, *arguments: str) -> list[str]:
        """The command line of a command of the engine."""
        return [self.program, *self.global_flags, *arguments]

    @contextmanager
    def variables(self, command: str) -> Iterator[dict[str, str]]:
        """What a command of the engine finds in its environment, while it runs.

        One that copies archives gets a temporary folder of its own, which is removed with all
        that the engine has left in it.

        Raises:
            HostError: that folder cannot be made.
        """
        scratch = self.dialect.scratch()
        if command not in _COPYING or scratch is None or not self.dialect.may_move_scratch():
            yield dict(os.environ)
            return
        with ExitStack() as stack:
            try:
                folder = stack.enter_context(own_folder("moving", scratch, _remove))
            except OSError as error:
                raise HostError(
                    f"no temporary folder can be made in {scratch}: {error.strerror}",
                    advice="free room there, or set TMPDIR to another folder",
                ) from error
            yield {**os.environ, "TMPDIR": str(folder)}

    def call(
        self,
        *arguments: str,
        stdin: bytes | IO[bytes] | None = None,
        time_limit_s: float = 600.0,
    ) -> bytes:
        """Run a command of the engine and return what it prints.

        Raises:
            AbsentError: there is no such container, or no such image.
            InUseError: the image is that of a container.
            HostError: it may not be used, or there is no room on its disk.
            SandboxError: it failed otherwise, with its own words.
        """
        given: dict[str, Any] = (
            {"input": stdin or b""} if isinstance(stdin, bytes | None) else {"stdin": stdin}
        )
        try:
            with self.variables(arguments[0]) as variables:
                done = subprocess.run(
                    self.argv(*arguments),
                    capture_output=True,
                    cwd=NO_FOLDER,
                    timeout=time_limit_s,
                    check=False,
                    start_new_session=True,  # Ctrl-C is for the harness
                    env=variables,
                    **given,
                )
        except subprocess.TimeoutExpired as error:
            raise SandboxError(
                f"{self.name} {arguments[0]} did not end within {time_limit_s:.0f} s"
            ) from error
        except OSError as error:
            raise HostError(f"{self.program} cannot be run: {error.strerror}") from error
        if done.returncode != 0:
            raise self.trouble(arguments[0], done.stderr)
        return bytes(done.stdout)

    def ask(self, *arguments: str) -> str:
        """What a command prints, as one text."""
        return self.call(*arguments).decode(errors="replace").strip()

    def listed(self, *arguments: str) -> list[str]:
        """The ids that a listing of images or containers prints, each once.

        Engines give up where something is removed while they list; then they are asked again.

        Raises:
            SandboxError: the engine does not answer.
        """
        for again in range(_LISTED_AGAIN, -1, -1):
            try:
                return list(dict.fromkeys(self.ask(*arguments, "--quiet", "--no-trunc").split()))
            except AbsentError:
                if not again:
                    raise
                time.sleep(_LISTED_AGAIN_S)
        raise AssertionError

    def state(self, container: str) -> State:
        """How a container is; one that there is not, or no longer, is `gone`.

        Raises:
            SandboxError: the engine does not answer.
        """
        try:
            said = self.ask(
                *("container", "inspect", "--format"),
                *("{{.State.Status}} {{.State.OOMKilled}}", container),
            )
        except AbsentError:
            return State("gone", out_of_memory=False)
        status, _, out_of_memory = said.partition(" ")
        return State(status, out_of_memory == "true")

    def remove(self, container: str) -> None:
        """Remove a container, running or not; one that is gone, or is just going, is removed.

        Raises:
            SandboxError: it stays.
            HostError: the engine does not answer.
        """
        try:
            self.call("rm", "--force", "--volumes", container)
        except SandboxError:
            if self.state(container).status not in ("gone", "removing"):
                raise

    def trouble(self, command: str, said: bytes) -> SandboxError | HostError:
        """What the engine said, as an error with advice."""
        text = said[-_MOST_READ:].decode(errors="replace")
        lines = [line for line in text.splitlines() if line.strip()]
        words = "; ".join(printable(line) for line in lines[-3:]) or "it said nothing"
        lower = "; ".join(lines[-3:]).lower()
        if "no space left" in lower or "disk quota exceeded" in lower:
            return HostError(
                f"{self.name} {command}: the disk is full: {words}",
                advice="free room where the engine keeps its images; reb env prune",
            )
        if "permission denied while trying to connect" in lower or (
            "daemon" in lower and "permission denied" in lower
        ):
            return HostError(
                f"{self.name} may not be used by this user: {words}",
                advice="add the user to the group docker, or use --sandbox podman",
            )
        if "cannot connect to the docker daemon" in lower or "is the docker daemon" in lower:
            return HostError(
                f"{self.name}'s daemon is not running: {words}", advice="start it: dockerd"
            )
        if _ABSENT.search(lower):
            return AbsentError(f"{self.name} {command}: {words}")
        if _IN_USE.search(lower):
            return InUseError(f"{self.name} {command}: {words}")
        return SandboxError(f"{self.name} {command}: {words}")


def printable(line: str) -> str:
    """One line of an engine as it can be shown: no control characters, and not too long."""
    shown = "".join(character if character.isprintable() else "?" for character in line.strip())
    if len(shown) <= 2 * _HALF_SHOWN:
        return shown
    return f"{shown[:_HALF_SHOWN]} … {shown[-_HALF_SHOWN:]}"


def _remove(folder: Path) -> None:
    # What cannot be removed now is found by `reb doctor --clean`.
    shutil.rmtree(folder, ignore_errors=True)
