"""Programs of agents: fetched once from a package registry, checked, and kept in the cache.

    CACHE/agents/NAME-VERSION-DIGEST/     what a definition takes of the archive

A download is compared with the digest that the definition holds before anything of it is
looked at. Nothing is run here, and no package's install script ever is.
"""

from __future__ import annotations

import base64
import hashlib
import os
import platform
import shutil
import tarfile
import tempfile
from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING

from filelock import FileLock

from ..assets.http import Client, Refused
from ..assets.progress import Progress, check_room
from ..errors import AssetError, RebError
from ..places import default_cache

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from .definition import AgentDefinition, Download

_REGISTRY = "https://registry.npmjs.org/"
#: As npm itself reads it.
_REGISTRY_NAMES = ("npm_config_registry", "NPM_CONFIG_REGISTRY")
#: Room for the archive and what is taken from it; programs are packed to a third or so.
_UNPACKED_TIMES = 4
_MACHINES = {"x86_64": "x86_64", "amd64": "x86_64", "aarch64": "aarch64", "arm64": "aarch64"}


def machine() -> str:
    """The kind of this machine, in the word of definitions."""
    return _MACHINES.get(platform.machine().lower(), platform.machine())


def download_of(definition: AgentDefinition) -> Download | None:
    """What is to be installed of an agent on this machine; None where it installs nothing.

    Raises:
        RebError: it is not made for this kind of machine.
    """
    if not definition.downloads:
        return None
    kind = machine()
    if kind not in ("x86_64", "aarch64") or kind not in definition.downloads:
        raise RebError(
            f"{definition.title} {definition.version} is not named for {kind}",
            advice=f"its definition has {', '.join(definition.downloads)}; add [downloads.{kind}]",
        )
    return definition.downloads[kind]


def package_digest(download: Download) -> str:
    """Of the archive and of what is taken from it."""
    words = repr((download.integrity, sorted(download.take.items())))
    return hashlib.sha256(words.encode()).hexdigest()


def installed(definition: AgentDefinition, download: Download, cache: Path | None = None) -> Path:
    """Where the program's folder is, or would be."""
    name = f"{definition.name}-{definition.version}-{package_digest(download)[:12]}"
    return (cache or default_cache()) / "agents" / name


def install(
    definition: AgentDefinition,
    download: Download,
    say: Callable[[str], None],
    cache: Path | None = None,
) -> Path:
    """The folder with the program, fetched where it is not there yet.

    Raises:
        RebError: it cannot be had, or is not what the definition says.
    """
    folder = installed(definition, download, cache)
    if folder.is_dir():
        return folder
    folder.parent.mkdir(parents=True, exist_ok=True)
    with FileLock(folder.parent / f".{folder.name}.lock"):
        if folder.is_dir():  # another attempt has fetched it meanwhile
            return folder
        # What has come of it stays until it is whole, with a note by which it is gone on with.
        partial = folder.parent / f".{folder.name}.partial"
        partial.mkdir(exist_ok=True)
        archive = partial / "archive.tgz"
        _fetch(definition, download, archive, say)
        _check(download, archive, definition.title)
        say(f"unpacking {definition.title} {definition.version}")
        with tempfile.TemporaryDirectory(dir=folder.parent, prefix=f".{folder.name}.") as made:
            inside = Path(made) / "program"
            unpack(archive, inside, download.take)
            if not (inside / definition.program).is_file():
                raise RebError(f"{download.url}: has no {definition.program} to start")
            inside.replace(folder)
        shutil.rmtree(partial)
    return folder


def _fetch(
    definition: AgentDefinition, download: Download, archive: Path, say: Callable[[str], None]
) -> None:
    what = f"{definition.title} {definition.version}"
    there = archive.stat().st_size if archive.exists() else 0
    if there == download.size_bytes:
        return
    check_room(archive.parent, download.size_bytes * _UNPACKED_TIMES)
    say(f"fetching {what} ({download.size_bytes / 1e6:.0f} MB)")
    url = from_registry(download.url, os.environ)
    progress = Progress(say, what, download.size_bytes)
    try:
        with Client(say) as client:
            client.download(url, archive, progress, size_bytes=download.size_bytes)
    except Refused as refused:
        raise RebError(
            f"{url}: is not given: {refused.words or refused.status}",
            advice="see that the version still exists; `npm view` tells its tarball and digest",
        ) from refused
    except AssetError:
        raise
    except OSError as error:
        raise RebError(f"{archive}: cannot be written: {error.strerror}") from error


def from_registry(url: str, environ: Mapping[str, str]) -> str:
    """The address at the registry that this user's npm takes, which may be a mirror."""
    mirror = next((environ[name] for name in _REGISTRY_NAMES if environ.get(name)), None)
    if mirror and url.startswith(_REGISTRY):
        return f"{mirror.rstrip('/')}/{url.removeprefix(_REGISTRY)}"
    return url


def _check(download: Download, archive: Path, title: str) -> None:
    with archive.open("rb") as stream:
        digest = hashlib.file_digest(stream, "sha512").digest()
    found = f"sha512-{base64.b64encode(digest).decode()}"
    if found != download.integrity:
        shutil.rmtree(archive.parent)
        raise RebError(
            f"{title}: what came from {download.url} is not what the definition names: "
            f"its digest is {found}, and not {download.integrity}",
            advice="somebody changed it, or the version was published anew; nothing was kept",
        )


def unpack(archive: Path, folder: Path, take: Mapping[str, str]) -> None:
    """Write the named files and folders of a gzipped tar archive, and nothing else of it.

    Links, devices and names that lead out of the folder are left out.

    Raises:
        RebError: it is no such archive, or holds none of a name.
    """
    missing = set(take)
    try:
        with tarfile.open(archive, "r:gz") as opened:
            for member in opened:
                for name, becomes in take.items():
                    rest = _below(member.name, name)
                    if rest is None or not member.isfile():
                        continue
                    target = folder / becomes / rest
                    if ".." in target.relative_to(folder).parts:
                        continue
                    missing.discard(name)
                    target.parent.mkdir(parents=True, exist_ok=True)
                    source = opened.extractfile(member)
                    assert source is not None  # noqa: S101 - a regular file has content
                    with source, target.open("wb") as stream:
                        shutil.copyfileobj(source, stream, 1 << 20)
                    target.chmod(0o755 if member.mode & 0o111 else 0o644)
    except (tarfile.TarError, EOFError, OSError) as error:
        raise RebError(f"{archive}: cannot be unpacked: {error}") from error
    if missing:
        raise RebError(f"{archive}: does not have {', '.join(sorted(missing))}")


def _below(member: str, name: str) -> str | None:
    """The path of a member below `name`; empty for itself, None where it lies elsewhere."""
    path, top = PurePosixPath(member), PurePosixPath(name)
    if path == top:
        return ""
    if not path.is_relative_to(top):
        return None
    return str(path.relative_to(top))
