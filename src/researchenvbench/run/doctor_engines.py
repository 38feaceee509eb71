"""What the container engines of this host can do, and what their containers are given.

What is said here is what runs use: the engine is tried by the same function, and what it
finds is kept for them.
"""

from __future__ import annotations

import json
import shutil
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from ..errors import HostError, RebError
from ..gpu.inventory import inventory
from ..sandbox.containers.given import needs_host_network, package_places
from ..sandbox.containers.gpus import CDI_FOLDERS, CDI_KIND, cdi_files, cdi_names
from ..sandbox.containers.options import Options
from ..sandbox.engines import ENGINES
from ..sandbox.engines.finding import find_engine
from ..sandbox.engines.storage import storage_of
from ..sandbox.images.base import base_images
from .doctor_line import Line

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from pathlib import Path

    from ..sandbox import HostEnvironment
    from ..sandbox.engines.engine import Engine

_ENOUGH_GB = 20
_SMALL_SHM_BYTES = 1 << 30
_SHM = "/dev/shm"  # noqa: S108 - where the system has it
#: Drivers of storage by which layers are not shared.
_COPYING_DRIVERS = ("vfs",)


def engine_lines(host: HostEnvironment, names: Sequence[str] = ENGINES) -> Iterator[Line]:
    """Each engine, tried anew; then what containers of this host are given."""
    usable = []
    for name in names:
        try:
            engine = find_engine(name, anew=True)
        except HostError as error:
            yield Line(name, str(error.args[0]), "note", error.advice)
        except RebError as error:
            yield Line(name, f"cannot be used: {error.args[0]}", "note", error.advice)
        else:
            usable.append(engine)
            yield from _engine(engine)
    yield from gpu_lines(usable)
    yield _shared_memory()
    if usable:
        yield from _given(host)


def _engine(engine: Engine) -> Iterator[Line]:
    name = engine.name
    storage = None
    try:
        facts = _facts(engine)
        storage = storage_of(engine)
    except (RebError, ValueError, LookupError) as error:
        facts = _Facts(f"does not say more ({error})")
    found, state = f"{engine.version}, {facts.who}", "good"
    if storage is None:
        found += "; its images are not on this host"
    else:
        free_gb = shutil.disk_usage(storage).free / 1e9
        found += f"; images in {storage}, {free_gb:.0f} GB free"
        state = "good" if free_gb > _ENOUGH_GB else "note"
    advice = "" if state == "good" else "reb env prune removes environments without a run"
    yield Line(name, found, "good" if state == "good" else "note", advice)
    if facts.driver in _COPYING_DRIVERS:
        yield Line(
            f"{name} storage",
            f"{facts.driver}, by which each container is a whole copy of its image",
            "note",
            "each start takes seconds and each environment all its room; keep the images on a "
            "file system that carries overlay, or install fuse-overlayfs and name it as "
            "mount_program in /etc/containers/storage.conf",
        )
    flags = [note for note in engine.notes if not note.startswith("no ")]
    for note in flags:
        yield Line(f"{name} gets", note, "note")
    if not flags:
        yield Line(f"{name} gets", f"no flags for this host; runtime {facts.runtime or 'its own'}")
    yield _limits(engine, facts.cgroups)
    yield _reaching(engine)
    yield _base_image(engine)


def _limits(engine: Engine, cgroups: str) -> Line:
    what = f"{engine.name} limits"
    if engine.limits:
        return Line(what, f"memory, CPUs and processes{f' ({cgroups})' if cgroups else ''}")
    return Line(
        what,
        next((note for note in engine.notes if note.startswith("no limits")), "none"),
        "note",
        "a build can take all of this host; cgroups v2 with delegation would allow limits",
    )


def _reaching(engine: Engine) -> Line:
    what = f"{engine.name} networks"
    if not engine.why_outside:
        return Line(what, "can be entered: builds reach the harness without a network")
    return Line(
        what,
        f"{engine.why_outside}; one with a network reaches it at its gateway",
        "note",
        "for --network registries run reb as root, or use podman",
    )


def _base_image(engine: Engine) -> Line:
    what = f"{engine.name} base image"
    how = "reb image build, or reb image build --from-debian bookworm"
    try:
        images = base_images(engine)
    except RebError as error:
        return Line(what, str(error.args[0]), "note", error.advice)
    named = [image for image in images if image.name != image.id]
    if not named:
        return Line(what, "none yet", "note", f"make one: {how}")
    return Line(what, f"{named[0].name}, {named[0].base or 'of its own'}, {named[0].created}")


@dataclass(frozen=True)
class _Facts:
    """What an engine says of itself, in words."""

    who: str
    cgroups: str = ""
    runtime: str = ""
    driver: str = ""  #: of its storage


def _facts(engine: Engine) -> _Facts:
    if engine.name == "podman":
        said: dict[str, Any] = json.loads(engine.ask("info", "--format", "json"))
        facts, driver = said["host"], said["store"]["graphDriverName"]
        rootless = bool(facts["security"]["rootless"])
        version, runtime = facts["cgroupVersion"], facts["ociRuntime"]["name"]
    else:
        facts = json.loads(engine.ask("info", "--format", "{{json .}}"))
        driver = facts.get("Driver", "")
        rootless = any("rootless" in option for option in facts.get("SecurityOptions") or ())
        version, runtime = facts.get("CgroupVersion", ""), facts.get("DefaultRuntime", "")
        if server := facts.get("ServerVersion"):
            rootless_words = "rootless" if rootless else "as root"
            return _Facts(
                f"{rootless_words}, server {server}", f"cgroup v{version}", runtime, driver
            )
    version = str(version).removeprefix("v")
    return _Facts("rootless" if rootless else "as root", f"cgroup v{version}", runtime, driver)


def gpu_lines(engines: Sequence[Engine], folders: Sequence[Path] = CDI_FOLDERS) -> Iterator[Line]:
    """How GPUs get into containers, where there are any."""
    gpus = inventory().gpus
    if not engines:
        return
    if not gpus:
        yield Line("GPUs in containers", "not needed: this host has none")
        return
    specifications = cdi_files(folders)
    for engine in engines:
        what = f"GPUs in {engine.name}"
        if engine.name == "podman" and specifications:
            names = cdi_names(folders)
            unknown = [one for one in gpus if not {one.uuid, one.number} & names]
            found = f"by {', '.join(map(str, specifications))}"
            if not unknown:
                yield Line(what, found)
                continue
            lacking = ", ".join(one.number for one in unknown)
            why = f"they do not name GPU {lacking}: nvidia-ctk cdi generate makes them anew"
            yield Line(what, found, "missing", why)
        elif engine.name == "podman":
            yield Line(
                what,
                f"no CDI file names {CDI_KIND} in {' or '.join(map(str, folders))}",
                "missing",
                "nvidia-ctk cdi generate --output=/etc/cdi/nvidia.yaml",
            )
        elif "nvidia" in _runtimes(engine):
            yield Line(what, "by the runtime nvidia")
        else:
            yield Line(
                what,
                "docker has no runtime nvidia",
                "missing",
                "nvidia-ctk runtime configure --runtime=docker, then restart docker",
            )


def _runtimes(engine: Engine) -> list[str]:
    try:
        return list(json.loads(engine.ask("info", "--format", "{{json .Runtimes}}")) or ())
    except (RebError, ValueError):
        return []


def _shared_memory() -> Line:
    own = Options().shm
    try:
        size_bytes = shutil.disk_usage(_SHM).total
    except OSError:
        return Line("shared memory", f"{_SHM} is not there", "note", "mount it: tmpfs")
    return Line(
        "shared memory",
        f"{_SHM} has {size_bytes / 1e9:.1f} GB; a container gets {own} of its own",
        "good" if size_bytes >= _SMALL_SHM_BYTES else "note",
        "" if size_bytes >= _SMALL_SHM_BYTES else "data loaders and NCCL need some GB in `local`",
    )


def _given(host: HostEnvironment) -> Iterator[Line]:
    for place, inside in package_places(host):
        yield Line("builds see", f"{place}{f' as {inside}' if inside != place else ''}, read-only")
    if needs_host_network(host):
        yield Line(
            "network of builds",
            "this host's own, since an index or a proxy is on its loopback",
            "note",
        )
