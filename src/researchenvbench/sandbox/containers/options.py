"""What a user may choose of containers, and whether a host has it."""

from __future__ import annotations

import os
import re
from dataclasses import dataclass, fields
from typing import TYPE_CHECKING

from ...errors import SandboxError

if TYPE_CHECKING:
    from collections.abc import Mapping

    from ..engines.engine import Engine

_SIZE = re.compile(r"(?P<number>\d{1,15}(\.\d{1,9})?)(?P<unit>[kmgt]?)b?", re.IGNORECASE | re.ASCII)
_NUMBER = re.compile(r"\d{1,9}(\.\d{1,9})?", re.ASCII)
#: With less neither the harness's own programs in a container nor a shell of an agent start.
_LEAST_PIDS, _LEAST_MEMORY_BYTES = 64, 64 << 20
_UNITS = {"": 1, "k": 1 << 10, "m": 1 << 20, "g": 1 << 30, "t": 1 << 40}
_NETWORK_WORDS = ("bridge", "default", "host", "none", "pasta", "private", "slirp4netns")
#: Of this host's memory; the rest is for the harness and the engine.
_SHARE_OF_MEMORY = 0.9


@dataclass(frozen=True)
class Options:
    """What a user may choose of containers; all may be left empty."""

    image: str = ""  #: name or id of the base image; the newest of `reb image list`
    memory: str = ""  #: such as 16g; default: nine tenths of this host's
    cpus: str = ""  #: such as 4; default: all
    pids: str = "16384"  #: processes and threads
    disk: str = "200g"  #: what a build, or a stage, may add to its image
    shm: str = "8g"  #: shared memory, of which NCCL and data loaders need some GiB
    network: str = ""  #: of the build: a network of the engine; default: its own choice

    @classmethod
    def of(cls, given: Mapping[str, object]) -> Options:
        """The options of a run.

        Raises:
            SandboxError: one is not known, or has no such value.
        """
        known = {field.name for field in fields(cls)}
        if unknown := sorted(given.keys() - known):
            raise SandboxError(
                f"a container has no option {unknown[0]!r}",
                advice=f"options: {', '.join(sorted(known))}",
            )
        options = cls(**{name: str(value) for name, value in given.items()})
        for name in ("memory", "disk", "shm"):
            value = getattr(options, name)
            least = _LEAST_MEMORY_BYTES if name == "memory" else 1
            if (value or name in given) and bytes_of(value, name) < least:
                raise SandboxError(
                    f"{name}={value} is too little"
                    + (": 64m is the least with which a container starts" if least > 1 else ""),
                    advice=f"give more, or leave {name} out",
                )
        options._check_numbers()
        for name in ("image", "network"):
            if name in given:
                _require_word(name, getattr(options, name))
        return options

    def _check_numbers(self) -> None:
        if self.cpus and (not _NUMBER.fullmatch(self.cpus) or float(self.cpus) <= 0):
            raise SandboxError(f"cpus is a number over 0, not {self.cpus!r}")
        if not (_NUMBER.fullmatch(self.pids) and self.pids.isdigit()):
            raise SandboxError(f"pids is a whole number, not {self.pids!r}")
        if int(self.pids) < _LEAST_PIDS:
            raise SandboxError(
                f"pids={self.pids} is too few: the harness's own programs in the container need "
                f"{_LEAST_PIDS}",
                advice=f"give at least pids={_LEAST_PIDS}, or leave it out",
            )

    def check(self, engine: Engine) -> None:
        """See that this host has what was chosen, before anything is built.

        Raises:
            SandboxError: it has not.
            HostError: the engine does not answer.
        """
        has_cpus = os.cpu_count() or 1
        if self.cpus and float(self.cpus) > has_cpus:
            raise SandboxError(
                f"cpus={self.cpus} is more than this host has: {has_cpus}",
                advice="give fewer, or leave cpus out for all",
            )
        for name, asked in (("memory", self.memory), ("shm", self.shm)):
            if asked != getattr(Options(), name) and bytes_of(asked, name) > _memory_bytes():
                raise SandboxError(
                    f"{name}={asked} is more than the memory of this host: "
                    f"{_memory_bytes() / (1 << 30):.1f} GiB",
                    advice=f"give less, or leave {name} out",
                )
        # Words such as `host` and `none` are no networks that an engine could show.
        if self.network and self.network.partition(":")[0] not in _NETWORK_WORDS:
            try:
                engine.call("network", "inspect", self.network)
            except SandboxError as error:
                raise SandboxError(
                    f"{engine.name} has no network {self.network}",
                    advice=f"see `{engine.name} network ls`; or leave network out",
                ) from error

    def limits(self, engine: Engine) -> list[str]:
        """Flags that limit memory, processors, processes and shared memory."""
        flags = [f"--shm-size={self.shm}"]
        if engine.limits:
            memory = self.memory or f"{int(_memory_bytes() * _SHARE_OF_MEMORY)}b"
            flags += [f"--memory={memory}", f"--pids-limit={self.pids}"]
            if self.cpus:
                flags.append(f"--cpus={self.cpus}")
        return flags


def bytes_of(text: str, name: str) -> int:
    """A size such as 16g, in bytes.

    Raises:
        SandboxError: it is none.
    """
    match = _SIZE.fullmatch(text)
    if match is None:
        raise SandboxError(
            f"{name} is a size, not {text!r}", advice=f"write it as {name}=16g or {name}=500m"
        )
    return int(float(match["number"]) * _UNITS[match["unit"].lower()])


def _require_word(name: str, value: str) -> None:
    """Refuse what the engine would take for an option of its own."""
    if not value or value.startswith("-") or not value.isprintable() or " " in value:
        raise SandboxError(f"{name}={value}: no {name} can be called {value!r}")


def _memory_bytes() -> int:
    return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
