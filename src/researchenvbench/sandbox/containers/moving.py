"""Environments as files: an archive of the image, which another host can load.

`oci` is an OCI archive (compressed; the image has another id there, since its configuration
is written anew), `tar` what `docker save` writes (not compressed; the id stays). Files and
labels are the same in both: `EnvironmentImage.content` is the digest of its layers. A file
holds one image and no name: what is loaded is called after its id.
"""

from __future__ import annotations

import os
import threading
import time
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING

from ... import process
from ...errors import HostError, RebError, SandboxError
from ...owner import own_folder
from ..engines.engine import LABEL, AbsentError
from ..engines.known import known_image
from ..engines.storage import require_room, storage_of
from .archives import DAMAGED as _DAMAGED
from .archives import read_archive
from .inventory import MOVED, environment_image, image_ids

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterator

    from ..engines.engine import Engine
    from .archives import Format
    from .inventory import EnvironmentImage

_TIME_LIMIT_S = 6 * 3600.0
_SAY_EVERY_S = 10.0
#: What an archive's layers may come to when they are unpacked.
_UNPACKED = {"oci": 3.0, "tar": 1.1}


def export_image(
    engine: Engine,
    image: EnvironmentImage,
    file: Path,
    form: Format,
    *,
    force: bool = False,
    say: Callable[[str], None] = lambda _: None,
) -> int:
    """Write an environment to a file, whole or not at all; its size in bytes.

    Raises:
        HostError: there is no room for it.
        SandboxError: the file is there already, or the engine cannot write it.
    """
    file = file.absolute()
    if file.exists() and (not force or not file.is_file()):
        raise SandboxError(f"{file} is there already", advice="--force writes over a file")
    if not file.parent.is_dir():
        raise SandboxError(f"there is no folder {file.parent}", advice="make it first")
    if form == "oci":
        _require_oci(engine, "write")
    _require_room(image.size_bytes, file.parent, engine.dialect.scratch())
    part = file.with_name(f".{file.name}.{os.getpid()}.part")
    try:
        say(f"writing {image.size_bytes / 1e6:.0f} MB")
        # By its id, so that the file brings no name along, and the image gets none here.
        identifier = image.id.removeprefix("sha256:")  # with it podman takes it for a name
        flags = engine.dialect.save(form)
        _run(engine, ["save", *flags, "--output", str(part), identifier], say, watched=part)
        read_archive(part)
        with part.open("rb") as stream:
            os.fsync(stream.fileno())
        part.replace(file)
    except OSError as error:
        raise HostError(f"{part} cannot be written: {error.strerror or error}") from error
    finally:
        part.unlink(missing_ok=True)
    return file.stat().st_size


def import_image(
    engine: Engine, file: Path, *, say: Callable[[str], None] = lambda _: None
) -> EnvironmentImage:
    """Load an environment from a file that `export_image` wrote.

    Raises:
        HostError: there is no room for it.
        SandboxError: the file is damaged, holds no environment, or the engine cannot load it.
    """
    file = file.absolute()
    archive = read_archive(file)
    if archive.labels.get(f"{LABEL}.kind") != "environment":
        raise SandboxError(
            f"{file}: holds an image, and no environment that `reb` has made",
            advice="reb env export writes such files",
        )
    if archive.names:
        raise SandboxError(
            f"{file}: would take the name {archive.names[0]!r:.200} on this host, which may be "
            "that of another image",
            advice=f"{_DAMAGED}; its files bring no names along",
        )
    if archive.format == "oci":
        _require_oci(engine, "read")
    need_bytes = int(file.stat().st_size * _UNPACKED[archive.format])
    _require_room(need_bytes, storage_of(engine), engine.dialect.scratch())
    say(f"loading {file.stat().st_size / 1e6:.0f} MB")
    before = image_ids(engine)
    said = _run(engine, ["load", "--input", str(file)], say)
    loaded = [line.rpartition(" ")[2] for line in said.splitlines() if "Loaded image" in line]
    if not loaded:
        raise SandboxError(f"{engine.name} load did not name an image: {said[-300:].strip()}")
    try:
        image = environment_image(engine, loaded[-1])
        own = f"{MOVED}:{image.short_id}"
        named = any(not name.startswith("sha256:") for name in loaded)
        if named or len(loaded) != 1 or image.content != archive.content:
            raise SandboxError(
                f"{file}: {engine.name} has loaded something else than it says that it holds",
                advice=_DAMAGED,
            )
        _require_free(engine, own, image.id)
        engine.call("tag", image.id, own)
    except RebError:
        for name in loaded:
            _forget(engine, name, before)
        raise
    return environment_image(engine, own)


def _require_free(engine: Engine, name: str, identifier: str) -> None:
    """See that nobody else has a name."""
    with suppress(AbsentError):
        if known_image(engine, name).id != identifier:
            raise SandboxError(
                f"{engine.name} has another image called {name}",
                advice=f"remove it, if it is not needed: {engine.name} rmi {name}",
            )


def _forget(engine: Engine, name: str, before: Collection[str]) -> None:
    """Remove an image that was loaded, unless it was there before."""
    with suppress(RebError):
        identifier = known_image(engine, name).id
        if identifier not in before:
            engine.call("rmi", "--force", identifier)


def _require_oci(engine: Engine, what: str) -> None:
    since = engine.dialect.oci_since
    if since is None:
        return
    version = engine.ask("version", "--format", "{{.Server.Version}}")
    if int(version.partition(".")[0] or 0) < since:
        raise SandboxError(
            f"{engine.name} {version} does not {what} OCI archives; {since} does",
            advice="reb env export --format tar; or use podman",
        )


def _require_room(need_bytes: int, *folders: Path | None) -> None:
    require_room(
        need_bytes,
        *folders,
        what="the environment",
        advice="free room there; reb env prune removes environments without a run",
    )


def _run(
    engine: Engine,
    arguments: list[str],
    say: Callable[[str], None],
    *,
    watched: Path | None = None,
) -> str:
    """A long command of the engine, which ends when this process does; what it prints."""
    with own_folder("moving") as folder:
        log = folder / "errors"
        with _saying(say, watched), engine.variables(arguments[0]) as variables:
            finished = process.run(
                engine.argv(*arguments),
                cwd=Path("/"),
                env=variables,
                log=log,
                time_limit_s=_TIME_LIMIT_S,
            )
        if not finished.ok:
            raise engine.trouble(arguments[0], log.read_bytes())
        return log.read_text(encoding="utf-8", errors="replace")


@contextmanager
def _saying(say: Callable[[str], None], file: Path | None) -> Iterator[None]:
    """Say every few seconds how far it is."""
    ended, began = threading.Event(), time.monotonic()

    def watch() -> None:
        while not ended.wait(_SAY_EVERY_S):
            size = ""
            with suppress(OSError):
                size = f", {file.stat().st_size / 1e6:.0f} MB written" if file else ""
            say(f"{time.monotonic() - began:.0f} s{size}")

    thread = threading.Thread(target=watch, daemon=True)
    thread.start()
    try:
        yield
    finally:
        ended.set()
        thread.join()
