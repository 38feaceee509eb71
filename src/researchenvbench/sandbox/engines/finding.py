"""Which engines this host has, and which flags their containers need here.

What a container can be started with differs between hosts: the runtime, limits that a root
in a sandbox of its own may not raise, cgroups. It is found by starting one, once, and kept
in the cache for as long as engine, kernel and user stay the same.
"""

from __future__ import annotations

import hashlib
import io
import json
import os
import platform
import resource
import shutil
import tarfile
from dataclasses import asdict, replace
from typing import TYPE_CHECKING, Any

from ...errors import HostError, RebError, SandboxError
from ...owner import this_owner
from ...places import default_cache
from . import ENGINES
from .bundle import bundle, bundled_tools, new_place
from .dialect import dialect_of
from .engine import LABEL, AbsentError, Engine, printable
from .mounts import shown
from .reaching import listen_in_container

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

#: An image without a file, in which the bundle can be tried.
_PROBE_IMAGE = "localhost/researchenvbench/probe:1"
_ANSWER = "a container of reb"
_MOST_FILES = 1 << 20
#: Of what is kept of an engine; another one is not understood.
_KEPT = 2
#: A probe that is entered ends by itself where nobody ends it.
_PROBE_S = 120
#: Limits that no probe comes near.
_LIMITS_TRIED = ("--memory", "512m", "--cpus", "1", "--pids-limit", "100")


def find_engine(name: str, *, anew: bool = False) -> Engine:
    """The engine of that name, tried by starting a container unless that was done before.

    Raises:
        HostError: it is not installed, may not be used, or starts no container.
        SandboxError: it fails otherwise, with its own words.
    """
    program = shutil.which(name)
    if program is None:
        raise HostError(
            f"{name} is not installed", advice=f"apt-get install {dialect_of(name).package}"
        )
    engine = Engine(name, program, "")
    known = default_cache() / "engines" / f"{name}.json"
    key = _key(engine)
    if not anew:
        try:
            kept = json.loads(known.read_bytes())
            if kept.pop("key") == key:
                return Engine(**{field: _tuple(value) for field, value in kept.items()})
        except (OSError, ValueError, TypeError, KeyError):
            pass  # not tried before, or by another version of reb
    engine = _tried(replace(engine, version=_ask_version(engine)))
    known.parent.mkdir(parents=True, exist_ok=True)
    part = known.with_name(f".{name}-{os.getpid()}")
    part.write_text(json.dumps({"key": key, **asdict(engine)}))
    part.replace(known)
    return engine


def usable_engines() -> list[Engine]:
    """The engines of this host that start containers, the preferred one first."""
    return tried_engines()[0]


def require_engine(name: str | None) -> Engine:
    """The engine of that name, else the first that works.

    Raises:
        RebError: it does not work, or none does; with the words of each that is installed.
    """
    if name is not None:
        return find_engine(name)
    engines, installed = tried_engines()
    if engines:
        return engines[0]
    if not installed:
        raise HostError(
            "neither podman nor docker is installed", advice=f"apt-get install {ENGINES[0]}"
        )
    raise HostError(
        "; ".join(str(trouble.args[0]) for trouble in installed),
        advice=installed[0].advice or "reb doctor says more",
    )


def tried_engines() -> tuple[list[Engine], list[RebError]]:
    """The engines that start containers, and why others that are installed do not."""
    engines, troubles = [], []
    for name in ENGINES:
        try:
            engines.append(find_engine(name))
        except RebError as error:
            if shutil.which(name):
                troubles.append(error)
    return engines, troubles


def starts_containers(engine: Engine, tools: Path) -> bool:
    """Whether a container of an image without a file starts at all.

    Args:
        engine: With the flags that this host needs.
        tools: The bundle, which the container is given.
    """
    try:
        _make_probe_image(engine)
        _start(engine, tools)
    except (SandboxError, HostError):
        return False
    return True


def _ask_version(engine: Engine) -> str:
    said = engine.ask("version", "--format", "{{.Client.Version}}")
    return printable(said.splitlines()[-1]) if said else ""


def _key(engine: Engine) -> str:
    """A digest of what decides the flags; asking the engine itself would take longer."""
    installed = os.stat(engine.program)  # noqa: PTH116 - of the program that a link names
    facts = (
        _KEPT,
        engine.program,
        (installed.st_size, installed.st_mtime_ns),
        os.environ.get("DOCKER_HOST", "") if engine.name == "docker" else "",
        platform.release(),
        os.geteuid(),
        resource.getrlimit(resource.RLIMIT_NOFILE),
        resource.getrlimit(resource.RLIMIT_NPROC),
    )
    return hashlib.sha256(repr(facts).encode()).hexdigest()


def _tried(engine: Engine) -> Engine:
    """With the first flags by which a container starts, then with all that it can have.

    Raises:
        HostError: none starts.
    """
    _make_probe_image(engine)
    tools = bundle(default_cache())
    first_words = ""
    for candidate in _candidates(engine):
        try:
            _start(candidate, tools)
        except SandboxError as error:
            first_words = first_words or str(error.args[0])
            continue
        return _with_extras(candidate, tools)
    raise HostError(
        f"{engine.name} starts no container here: {first_words}",
        advice="mend what it says, or use --sandbox local",
    )


def _candidates(engine: Engine) -> Iterator[Engine]:
    # podman lowers its own limit of processes to what the kernel has of process ids.
    limits = [tuple(_ulimits(most)) for most in (_MOST_FILES, 32768, 4096)]
    runtimes: list[tuple[str, ...]] = [()]
    runtimes += [
        ("--runtime", name)
        for name in engine.dialect.runtimes
        if shutil.which(name, path=f"{os.environ.get('PATH', '')}:/usr/sbin:/sbin")
    ]
    for runtime in runtimes:
        for flags in ((), *limits):
            notes = []
            if runtime:
                notes.append(f"{' '.join(runtime)}, since the engine's own choice fails here")
            if flags:
                notes.append(f"{' '.join(flags)}, since it asks for more than this user may have")
            yield replace(engine, global_flags=runtime, run_flags=flags, notes=tuple(notes))


def _with_extras(engine: Engine, tools: Path) -> Engine:
    try:
        _start(engine, tools, *_LIMITS_TRIED)
    except SandboxError as error:
        note = f"no limits on memory, CPUs and processes: {error.args[0]}"
        engine = replace(engine, limits=False, notes=(*engine.notes, note))
    return replace(engine, why_outside=_why_outside(engine, tools))


def _why_outside(engine: Engine, tools: Path) -> str:
    """Why the harness cannot listen in the network of a container; empty where it can."""
    container, code = "", f"import time; time.sleep({_PROBE_S})"
    try:
        container = _probe(engine, tools, code, "--detach", "--stop-timeout", "0")
        listen_in_container(engine, container, 0).close()
    except (SandboxError, HostError) as error:
        return str(error.args[0])
    finally:
        if container:
            engine.remove(container)
    return ""


def _start(engine: Engine, tools: Path, *flags: str) -> None:
    """Start a container that answers.

    Raises:
        SandboxError: it does not.
    """
    said = _probe(engine, tools, f"print({_ANSWER!r})", "--rm", *flags)
    if said != _ANSWER:
        raise SandboxError(f"a container said {printable(said)!r}")


def _probe(engine: Engine, tools: Path, code: str, *flags: str) -> str:
    """Run Python in a container without a network; the last line that the engine prints."""
    place = new_place()
    python = bundled_tools(tools, place).python
    said = engine.ask(
        *("run", "--network", "none", *engine.run_flags, *flags),
        *("--label", f"{LABEL}.kind=probe", "--label", f"{LABEL}.owner={this_owner()}"),
        *(*shown(tools, place), "--entrypoint", ""),
        *(_PROBE_IMAGE, *python, "-I", "-S", "-c", code),
    )
    return said.splitlines()[-1] if said else ""


def _make_probe_image(engine: Engine) -> None:
    try:
        engine.call("image", "inspect", _PROBE_IMAGE)
    except AbsentError:
        pass  # it is made now
    else:
        return
    content = io.BytesIO()
    with tarfile.open(fileobj=content, mode="w") as archive:
        folder = tarfile.TarInfo("reb")
        folder.type, folder.mode = tarfile.DIRTYPE, 0o755
        archive.addfile(folder)
    engine.call("import", "-", _PROBE_IMAGE, stdin=content.getvalue())


def _ulimits(most_processes: int) -> Iterator[str]:
    """Limits that this process has, and so may give to a container."""
    for name, number, most in (
        ("nofile", resource.RLIMIT_NOFILE, _MOST_FILES),
        ("nproc", resource.RLIMIT_NPROC, most_processes),
    ):
        hard = resource.getrlimit(number)[1]
        if hard == resource.RLIM_INFINITY or hard > most:
            hard = most
        yield "--ulimit"
        yield f"{name}={hard}:{hard}"


def _tuple(value: Any) -> Any:
    return tuple(value) if isinstance(value, list) else value
