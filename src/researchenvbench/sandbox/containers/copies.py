"""Files in and out of a build's container, by the engine's `cp` and archives.

Nothing of the container takes part, and nothing is unpacked on this host.
"""

from __future__ import annotations

import io
import subprocess
import tarfile
import tempfile
import time
from pathlib import Path
from typing import IO, TYPE_CHECKING

from ...errors import RefusedError, SandboxError

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator, Mapping

    from ..engines.engine import Engine

_PATIENCE_S = 60.0
_ROOT_AND_ONE = 2
_KINDS = {
    tarfile.DIRTYPE: "folder",
    tarfile.FIFOTYPE: "FIFO",
    tarfile.CHRTYPE: "character device",
    tarfile.BLKTYPE: "block device",
}


def read(engine: Engine, container: str, path: Path, limit_bytes: int) -> bytes:
    """The content of a regular file.

    The engine itself follows links, and never out of the container; one to a file of another
    name is seen, and refused.

    Raises:
        RefusedError: absent, no regular file, or over the limit.
    """
    for member, content in _members(engine, container, path):
        if member.issym() or Path(member.name).name != path.name:
            raise RefusedError(f"{path}: is a symbolic link, not a regular file")
        if not member.isreg():
            kind = _KINDS.get(member.type, "special file")
            raise RefusedError(f"{path}: is a {kind}, not a regular file")
        if member.size > limit_bytes:
            raise RefusedError(f"{path}: has {member.size} bytes; at most {limit_bytes} are read")
        return content.read()
    raise RefusedError(f"{path}: is a special file, not a regular file")


def put(
    engine: Engine, container: str, files: Mapping[Path, bytes], mode: int, known: Collection[Path]
) -> None:
    """Write files, with the folders that lead to them, but for those that are `known`.

    Raises:
        SandboxError: one cannot be written.
    """
    archive = io.BytesIO()
    with tarfile.open(fileobj=archive, mode="w", format=tarfile.PAX_FORMAT) as tar:
        folders = set(known)
        for path, content in files.items():
            _check(path)
            for above in reversed(path.parents):
                # Those right below the root are there, and their modes are not ours to set.
                if len(above.parts) > _ROOT_AND_ONE and above not in folders:
                    folders.add(above)
                    entry = tarfile.TarInfo(str(above.relative_to("/")))
                    entry.type, entry.mode, entry.mtime = tarfile.DIRTYPE, 0o755, int(time.time())
                    tar.addfile(entry)
            entry = tarfile.TarInfo(str(path.relative_to("/")))
            entry.size, entry.mode, entry.mtime = len(content), mode, int(time.time())
            tar.addfile(entry, io.BytesIO(content))
        end = tar.offset
    _cut(archive, end)
    engine.call("cp", "-", f"{container}:/", stdin=archive.getvalue())


def copy_tree(
    engine: Engine, container: str, source: Path, target: Path, folders: Mapping[str, int]
) -> None:
    """Copy a tree with modes, times and links as they are; special files are left out.

    Args:
        engine: The container's.
        container: Its id.
        source: On this host.
        target: In the container.
        folders: What is to be there as well, with modes.

    Raises:
        SandboxError: it cannot be copied.
        HostError: a disk is full.
    """

    def taken(member: tarfile.TarInfo) -> tarfile.TarInfo | None:
        if not (member.isreg() or member.isdir() or member.issym() or member.islnk()):
            return None
        member.uid = member.gid = 0
        member.uname = member.gname = "root"
        return member

    with tempfile.TemporaryFile() as archive:
        with tarfile.open(fileobj=archive, mode="w", format=tarfile.PAX_FORMAT) as tar:
            for folder, mode in folders.items():
                entry = tarfile.TarInfo(folder.lstrip("/"))
                entry.type, entry.mode = tarfile.DIRTYPE, mode
                entry.mtime = int(time.time())
                tar.addfile(entry)
            tar.add(source, str(target.relative_to("/")), filter=taken)
            end = tar.offset
        _cut(archive, end)
        archive.seek(0)
        engine.call("cp", "-", f"{container}:/", stdin=archive)


def _cut(archive: IO[bytes], end: int) -> None:
    """Take away all but the two blocks of zeros after the last member, which end an archive.

    podman closes the pipe after them, and fails where more than it had read ahead is to come.
    """
    archive.truncate(end + 2 * tarfile.BLOCKSIZE)


def _check(path: Path) -> None:
    if not path.is_absolute() or ".." in path.parts:
        raise SandboxError(f"{path}: must be absolute, and must not hold ..")


def _members(
    engine: Engine, container: str, path: Path
) -> Iterator[tuple[tarfile.TarInfo, IO[bytes]]]:
    """What the engine copies out for a path, as it comes; nothing is kept."""
    _check(path)
    with (
        engine.variables("cp") as variables,
        tempfile.TemporaryFile() as errors,
        subprocess.Popen(
            engine.argv("cp", f"{container}:{path}", "-"),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=errors,
            env=variables,
            start_new_session=True,
        ) as copying,
    ):
        try:
            archive = tarfile.open(fileobj=copying.stdout, mode="r|")  # noqa: SIM115
            for member in archive:
                content = archive.extractfile(member) if member.isreg() else None
                yield member, content or io.BytesIO()
        except tarfile.TarError as error:
            copying.wait(_PATIENCE_S)
            errors.seek(0)
            said = errors.read().decode(errors="replace").strip()[-500:]
            raise SandboxError(f"{path}: cannot be read: {said or error}") from error
        finally:
            copying.kill()
