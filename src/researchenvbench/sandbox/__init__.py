"""Where it happens: the protocol that every sandbox speaks.

A sandbox has two kinds of place. A *build box* is where the agent works; when the agent
has ended it is frozen. A *stage box* starts from the frozen state, at the same absolute
paths, in a layer that is thrown away when it closes. Both are a `Box`: run a command, put
and read files. In a stage programs also run beside others, and files are collected. Paths
are paths inside the box.

A stage box brings the harness's own programs (`Tools`), which the judged environment has no
part in. What lies in a box is looked at by those too, from within (`examine`): a sandbox need
not be on this host. A build box has none of them.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, Protocol

from ..errors import RebError, SandboxError
from ..network_use import FULL
from ..process import Command, Finished, Running
from .assets import NO_ASSETS
from .engines import ENGINES
from .tools import Tools

if TYPE_CHECKING:
    import socket
    from collections.abc import Callable, Mapping, Sequence
    from contextlib import AbstractContextManager
    from pathlib import Path

    from ..attempt import Environment, Freshness
    from ..gpu.inventory import Gpu
    from ..network_use import Reach

__all__ = [
    "NO_ASSETS",
    "SANDBOXES",
    "Box",
    "Collected",
    "Command",
    "Finished",
    "HostEnvironment",
    "Layout",
    "Program",
    "Running",
    "Sandbox",
    "StageBox",
    "Tools",
    "make_sandbox",
]


@dataclass(frozen=True)
class Layout:
    """Absolute paths inside a box.

    They are the same in every stage, and the same while building but for `home`, `tmp` and
    `cache`: a stage has fresh ones of its own, and what the build left in its own stays
    visible at the old place, since an interpreter may live there. `assets` may be another in
    each stage. So ask the box for its layout.
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
    tools: Path  #: a stage's folder for what the harness brings (probes, code blocks)
    assets: Path  #: below which a stage sees the data that it reads, read-only

    def of_stage(self, stage: Path) -> Layout:
        """A stage's: fresh folders of its own, below `stage`, in place of the build's."""
        return replace(
            self,
            home=stage / "home",
            tmp=stage / "tmp",
            cache=stage / "cache",
            assets=stage / "assets",
        )


@dataclass(frozen=True)
class Program:
    """An agent's program that a build box is to have, from a folder of this host."""

    name: str
    version: str
    digest: str
    folder: Path


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

    @property
    def uv(self) -> str:
        """The uv by which packages are installed here."""
        ...

    def variables(self, host: HostEnvironment, *, installs: bool) -> dict[str, str]:
        """The environment of a program here, before the prefix, the report and the task.

        Args:
            host: What the host hands to boxes.
            installs: Whether it gets the settings by which packages are installed, and the
                proxy: while building, and in a stage that has a network.
        """
        ...

    def gpu_indices(self, gpus: Sequence[Gpu]) -> list[str]:
        """By what programs here know each GPU that was asked for: a number, of a slice its UUID."""
        ...

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

    def read(self, path: Path, limit_bytes: int) -> bytes:
        """The content of a regular file; links are not followed.

        Raises:
            SandboxError: absent, not a regular file (named what it is), or over the limit.
        """
        ...

    def put(self, path: Path, content: bytes, *, mode: int = 0o644) -> None:
        """Write a file of the harness into the box (tools, a report)."""
        ...

    def put_all(self, files: Mapping[Path, bytes]) -> None:
        """Write many at once, which a container takes much faster than one by one."""
        ...


class Sandbox(Protocol):
    """One kind of place, and the life of an attempt's environment in it."""

    name: str
    reach: Reach  #: what builds may reach; beyond the loopback its user has to serve it

    def check(self) -> None:
        """Look whether attempts can be made here at all.

        Raises:
            RebError: they cannot, and why.
        """
        ...

    def layout(self, attempt: Path) -> Layout:
        """The paths inside the boxes of the attempt whose folder is `attempt`."""
        ...

    def resumes(self, attempt: Path, key: str) -> bool:
        """Whether a build of that key was interrupted in a way that it can be gone on with."""
        ...

    def build_box(
        self,
        attempt: Path,
        source: Path,
        *,
        key: str = "",
        gpus: Sequence[str] = (),
        program: Program | None = None,
    ) -> AbstractContextManager[BuildBox]:
        """A box for the agent, with its own copy of `source` as the repository.

        Args:
            attempt: Its folder.
            source: The pristine source.
            key: Of what the build is for; a box of the same key may be gone on with.
            gpus: UUIDs of the GPUs that the build is shown.
            program: What the agent's own program is, where it is to be brought.
        """
        ...

    def freeze(self, attempt: Path) -> Environment:
        """End what the build left running and fix the state that stages start from."""
        ...

    def environment(self, attempt: Path) -> Environment:
        """The state as it is now, digested again where files differ from the frozen ones."""
        ...

    def holds(self, attempt: Path) -> bool:
        """Whether the frozen state is there, and was not removed meanwhile.

        Raises:
            HostError: the engine that would have it cannot be asked.
        """
        ...

    def stage_box(
        self,
        attempt: Path,
        *,
        network: bool,
        gpus: Sequence[str],
        assets: Mapping[str, Path] = NO_ASSETS,
    ) -> AbstractContextManager[StageBox]:
        """A box that starts from the frozen state and is thrown away when it closes.

        Args:
            attempt: Its folder.
            network: Whether programs in it have one.
            gpus: UUIDs of the GPUs that it is shown.
            assets: Files and folders of this host that it is shown, by their places below
                the layout's `assets`. Nothing in the box can change them; where a host
                allows no mounts that is a promise of their permissions only.
        """
        ...

    def discard(self, attempt: Path) -> None:
        """Remove what the attempt has built, where there is anything."""
        ...


class BuildBox(Box, Protocol):
    """An agent's box."""

    def run(
        self,
        command: Command,
        log: Path,
        *,
        on_line: Callable[[str], None] | None = None,
        append: bool = False,
        stop: Callable[[], bool] | None = None,
    ) -> Finished:
        """As in every box; `stop` is asked about once a second whether to end it."""
        ...

    @property
    def program(self) -> Path | None:
        """Where in the box the folder of the agent's program is; None: none was brought."""
        ...

    @property
    def spent_s(self) -> float:
        """Seconds since the build began, also where it was interrupted and is gone on with."""
        ...

    def listen(self, port: int) -> socket.socket:
        """A socket on which the harness accepts what programs in the box connect to.

        Its `getsockname` is where they reach it: 127.0.0.1 as they see it, whatever network
        they have; where that is not allowed, the gateway of their network. Port 0 lets the
        system choose; a build that is gone on with can have the same again. Close it first.

        Raises:
            HostError: the port is taken, or this user may not have it.
            SandboxError: the box has ended.
        """
        ...


class StageBox(Box, Protocol):
    """A stage's box: it brings the harness's programs, and knows how fresh it is."""

    tools: Tools

    @property
    def shares_system(self) -> bool:
        """Whether its system is this host's, of which no agent can install libraries."""
        ...

    @property
    def disk(self) -> Path | None:
        """A folder of the disk on which lies what is written in it; None: not of this host."""
        ...

    def has_process(self, pid: int) -> bool | None:
        """Whether a living process of this host, by its id here, runs in the box.

        None where that cannot be told: it has ended, or this process namespace does not show it.
        """
        ...

    def start(self, command: Command, log: Path) -> Running:
        """Start beside others."""
        ...

    def collect(self, pattern: str, into: Path, *, limit: int = 200) -> list[Collected]:
        """Copy the regular files that match an absolute glob out of the box.

        Links and special files are never followed; at most `limit` files are taken, those
        that this box made first.
        """
        ...

    def examine(
        self, module: str, order: Mapping[str, object], *, time_limit_s: float = 600.0
    ) -> dict[str, Any]:
        """What `standalone.look.MODULE.examine(order)` answers, run in this box by our own Python.

        The judged environment has no part in it. Order and answer are what `marshal` and
        JSON can carry; names of files are text with surrogates for bytes that are no UTF-8.

        Raises:
            SandboxError: it did not end well, or its answer cannot be read.
        """
        ...

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
SANDBOXES = ("local", *ENGINES)


def choose_sandbox() -> tuple[str, str]:
    """The best that this host can do, and in words why it is not better."""
    reasons = []
    for name in ENGINES:
        try:
            make_sandbox(name).check()
        except RebError as error:
            reasons.append(str(error.args[0]))
        else:
            return name, ""
    return "local", "; ".join(reasons)


def make_sandbox(
    name: str, options: Mapping[str, object] | None = None, reach: Reach = FULL
) -> Sandbox:
    """The sandbox of that name, whose builds may reach so much; a new kind is named here.

    Raises:
        SandboxError: there is none of that name, or it cannot keep builds from the network.
    """
    if name == "local":
        from .local.sandbox import LocalSandbox

        unknown = sorted((options or {}).keys() - {"fresh"})
        if unknown:
            raise SandboxError(
                f"the local sandbox has no option {unknown[0]!r}",
                advice="options such as memory and image are of containers: --sandbox podman",
            )
        if reach.policy != "full":
            raise SandboxError(
                f"--network {reach.policy} cannot be had in the local sandbox: its programs have "
                "this host's network",
                advice="add --sandbox podman, or leave --network out",
            )
        return LocalSandbox(**dict(options or {}))  # type: ignore[arg-type]  # checked there
    if name in ENGINES:
        from .containers.sandbox import ContainerSandbox

        return ContainerSandbox(name, options, reach)
    raise SandboxError(
        f"there is no sandbox {name!r}", advice=f"sandboxes of this version: {', '.join(SANDBOXES)}"
    )
