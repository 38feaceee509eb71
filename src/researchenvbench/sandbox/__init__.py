"""Where it happens: the protocol that every sandbox speaks.

A sandbox has two kinds of place. A *build box* is where the agent works; when the agent
has ended it is frozen. A *stage box* starts from the frozen state, at the same absolute
paths, in a layer that is thrown away when it closes. Both are a `Box`: run a command, start
one beside it, look at what it made. Paths given to `run` are paths inside the box, and
files leave by `collect` and `read`.

The harness's own interpreter, its probes, uv and node are run inside boxes by the paths that
they have on this host, and the frozen work tree is compared where it lies: a sandbox that is
not on this host has to bring those in at the same paths, and to offer the tree.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Protocol

from ..errors import SandboxError
from ..process import Command, Finished, Running

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from contextlib import AbstractContextManager
    from pathlib import Path

    from ..attempt import Environment, Freshness

__all__ = [
    "SANDBOXES",
    "Box",
    "Collected",
    "Command",
    "Finished",
    "HostEnvironment",
    "Layout",
    "Running",
    "Sandbox",
    "StageBox",
    "make_sandbox",
]


@dataclass(frozen=True)
class Layout:
    """Absolute paths inside a box.

    They are the same in every stage, and the same while building but for `home`, `tmp` and
    `cache`: a stage has fresh ones of its own, and what the build left in its own stays
    visible at the old place, since an interpreter may live there. So ask the box for its
    layout.
    """

    root: Path
    repo: Path  #: the source; the agent may add files but not change tracked ones
    home: Path
    tmp: Path
    cache: Path
    env: Path  #: where an environment is best put
    report: Path  #: where the agent leaves its report
    work: Path  #: a stage's fresh empty working folder; not part of the frozen state
    out: Path  #: a stage's fresh empty folder for products; likewise
    tools: Path  #: a stage's folder for what the harness brings (probes, code blocks, assets)


@dataclass(frozen=True)
class Collected:
    """A file that left a box by copy."""

    inside: Path  #: its path in the box
    copy: Path  #: where it is now
    size_bytes: int
    fresh: bool  #: made or changed since the box was opened


class Box(Protocol):
    """A place in which programs run."""

    layout: Layout

    def run(
        self,
        command: Command,
        log: Path,
        *,
        on_line: Callable[[str], None] | None = None,
        append: bool = False,
    ) -> Finished:
        """Run to the end, output streamed to `log`; never raises for what the program does.

        `on_line` is for showing progress: it is told the newest line, some five times a
        second, and not every line. What a program answers is read from its log.
        """
        ...

    def start(self, command: Command, log: Path) -> Running:
        """Start beside others."""
        ...

    def read(self, path: Path, limit_bytes: int) -> bytes:
        """The content of a regular file; links are not followed.

        Raises:
            SandboxError: absent, not a regular file (named what it is), or over the limit.
        """
        ...

    def collect(self, pattern: str, into: Path, *, limit: int = 200) -> list[Collected]:
        """Copy the regular files that match an absolute glob out of the box.

        Links and special files are never followed; at most `limit` files are taken, those
        that this box made first.
        """
        ...

    def put(self, path: Path, content: bytes, *, mode: int = 0o644) -> None:
        """Write a file of the harness into the box (tools, assets, a report)."""
        ...


class Sandbox(Protocol):
    """One kind of place, and the life of an attempt's environment in it."""

    name: str

    def layout(self, attempt: Path) -> Layout:
        """The paths inside the boxes of the attempt whose folder is `attempt`."""
        ...

    def build_box(self, attempt: Path, source: Path) -> AbstractContextManager[Box]:
        """A new box for the agent, with its own copy of `source` as the repository."""
        ...

    def freeze(self, attempt: Path) -> Environment:
        """End what the build left running and fix the state that stages start from."""
        ...

    def environment(self, attempt: Path) -> Environment:
        """The state as it is now, digested again where files differ from the frozen ones."""
        ...

    def stage_box(
        self, attempt: Path, *, network: bool, gpus: Sequence[str]
    ) -> AbstractContextManager[StageBox]:
        """A box that starts from the frozen state and is thrown away when it closes."""
        ...


class StageBox(Box, Protocol):
    """A stage's box, which knows how fresh it is."""

    def interactive_argv(self, command: Command) -> list[str]:
        """What to run on this host so that `command` has the terminal and is in the box."""
        ...

    @property
    def freshness(self) -> Freshness:
        """How it was kept apart from other stages; final once the box is closed."""
        ...


@dataclass(frozen=True)
class HostEnvironment:
    """What of the host's environment reaches programs in a box, and why."""

    variables: dict[str, str] = field(default_factory=dict)  #: declared; in the record
    installs: dict[str, str] = field(default_factory=dict)  #: index, certificates, proxy
    path: str = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"


#: Names that `make_sandbox` knows.
SANDBOXES = ("local",)


def make_sandbox(name: str, options: Mapping[str, object] | None = None) -> Sandbox:
    """The sandbox of that name. A new kind is a module of this package, named here.

    Raises:
        SandboxError: there is none of that name.
    """
    if name == "local":
        from .local import LocalSandbox

        return LocalSandbox(**dict(options or {}))  # type: ignore[arg-type]  # checked there
    raise SandboxError(
        f"there is no sandbox {name!r}", advice=f"sandboxes of this version: {', '.join(SANDBOXES)}"
    )
