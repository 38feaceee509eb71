"""The source of a task: fetched once, verified against its commit or hash, kept pristine.

A `Snapshot` is a folder that nobody works in, with the list of its tracked files and their
digests. Builds get a copy; verification compares the copy that the agent left with the
list. Nothing of the source is executed here: git runs without the repository's hooks,
filters or prompts (`gitcommand`), and a source distribution (`sdist`) is only unpacked.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import shutil
import stat
import tempfile
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from .errors import HostError, SourceError, SourceNotAvailableError
from .gitcommand import address, fetch_commit, git, make_git
from .mirrors import Mirror
from .places import default_cache, source_mirror
from .sdist import download, unpack
from .stored import write_atomically
from .task import FolderSource, GitSource, SdistSource

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from .task import Task

#: Folders that are environments, caches or version control, never part of a source.
NOT_SOURCE = frozenset({".git", ".hg", ".venv", "venv", "node_modules", "__pycache__", ".tox"})

_ADVICE = "check the address, the network, and that the commit still exists"


@dataclass(frozen=True)
class TrackedFile:
    """One file that the commit or the archive holds."""

    kind: Literal["file", "executable", "link"]
    sha256: str  #: of the content; of the target for a link


@dataclass(frozen=True)
class Snapshot:
    """A source as its commit or archive has it."""

    tree: Path
    digest: str
    tracked: Mapping[str, TrackedFile]  #: by path relative to the tree
    commit: str | None = None
    date: datetime | None = None  #: of the commit, or of the upload of the archive


def fetch_source(
    task: Task, *, installs: Mapping[str, str] | None = None, cache: Path | None = None
) -> Snapshot:
    """The pristine source of a task, from the cache or from where it is published.

    A commit is looked for in the cache, in the mirror that the user names
    (`REB_SOURCE_MIRROR`), at the source's own address, then at the others that it lists.
    `installs` are the host's package settings as pip variables (`PIP_INDEX_URL`,
    `PIP_EXTRA_INDEX_URL`, `PIP_FIND_LINKS`).

    Raises:
        SourceNotAvailableError: the task says that its commit cannot be had any more.
        SourceError: it cannot be had, or is not what its commit or hash promises.
        HostError: git is not installed, or the cache cannot be written.
    """
    root = (cache or default_cache()) / "sources"
    source = task.source
    try:
        root.mkdir(parents=True, exist_ok=True)
        if isinstance(source, FolderSource):
            return _snapshot_of_folder((task.folder / source.path).resolve(), root)
        key = source.commit if isinstance(source, GitSource) else source.sha256
        if isinstance(source, GitSource) and source.submodules:
            key += "-submodules"
        place = root / key
        with _locked(place):
            if (snapshot := _kept(place)) is not None:
                return snapshot
            with _staging(place) as staging:
                if isinstance(source, GitSource):
                    facts = _from_git(source, task.folder, staging)
                else:
                    facts = _from_index(source, installs or {}, staging)
                _write_manifest(staging, facts)
            return _read_manifest(place)
    except OSError as error:
        raise _cannot_keep(task, root, error) from error


def objects_of(
    task: Task, *, copies: Mapping[str, Path] | None = None, cache: Path | None = None
) -> Path:
    """A git directory that holds the commit of a task, without a checkout of it.

    That is one of the `copies`, repositories of this host by the commits that they hold; or
    in the mirror that the user names; or what the cache has. Where none holds the commit, a
    bare repository in the cache is made of it.

    Raises:
        SourceNotAvailableError: the task says that its commit cannot be had any more.
        SourceError: it cannot be had, or the source is no commit.
        HostError: git is not installed, or the cache cannot be written.
    """
    source = task.source
    if not isinstance(source, GitSource):
        raise SourceError("its source is not a commit of a git repository")
    if copies and source.commit in copies:
        return copies[source.commit]
    root = cache or default_cache()
    own = Mirror(root / "commits")
    named = source_mirror()
    tried = []
    for mirror in (Mirror(named) if named else None, own):
        if mirror is None:
            continue
        try:
            return mirror.find(source.commit)
        except SourceError as error:
            tried.append(f"the mirror {mirror.folder}: {error.args[0]}")
    if _kept(place := root / "sources" / source.commit) is not None:
        return place / "tree" / ".git"
    if source.unavailable:
        raise _not_available(source, tried[:-1])
    try:
        return own.take(source, task.folder).folder
    except SourceError as error:
        raise SourceError("; ".join([*tried[:-1], str(error.args[0])]), advice=_ADVICE) from error
    except OSError as error:
        raise _cannot_keep(task, own.folder, error) from error


def _not_available(source: GitSource, tried: Sequence[str]) -> SourceNotAvailableError:
    return SourceNotAvailableError(
        "; ".join([f"source not available: {source.unavailable}", *tried]),
        advice="a folder of mirrors that has the commit can be named by --source-mirror",
    )


def _cannot_keep(task: Task, root: Path, error: OSError) -> HostError:
    return HostError(
        f"the source of {task.name} cannot be kept in {root}: {error.strerror or error}",
        advice="set REB_CACHE to a folder that can be written and has room",
    )


def source_is(task: Task, digest: str) -> bool:
    """Whether `digest` is still that of the task's source.

    A commit and an archive are fixed by the task itself; a folder may have been edited. One
    that is gone is taken for unchanged: what was built from it can still be judged.
    """
    if not isinstance(task.source, FolderSource):
        return True
    try:
        return fetch_source(task).digest == digest
    except SourceError:
        return True


def digest_file(path: Path) -> str:
    """SHA-256 of a file's content."""
    with path.open("rb") as stream:
        return hashlib.file_digest(stream, "sha256").hexdigest()


# --- git -------------------------------------------------------------------------------


def _from_git(source: GitSource, task_folder: Path, staging: Path) -> dict[str, str]:
    tree = staging / "tree"
    _fetch_from_somewhere(source, task_folder, tree)
    make_git("checkout", "--quiet", "--detach", source.commit, folder=tree)
    if source.submodules:
        url, local = address(source.url, task_folder)
        update = ["submodule", "update", "--quiet", "--init", "--recursive", "--depth=1"]
        # Addresses such as ../lib are relative to the remote named origin.
        make_git("remote", "add", "--", "origin", url, folder=tree)
        # A repository of this host may name others of this host, one from elsewhere may not.
        allow = f"protocol.file.allow={'always' if local else 'user'}"
        make_git("-c", allow, *update, folder=tree)
        make_git("remote", "remove", "origin", folder=tree)
    date = _date_of(source.commit, tree)
    return {"commit": source.commit, "date": date}


def _fetch_from_somewhere(source: GitSource, task_folder: Path, tree: Path) -> None:
    """Fetch the commit into a new repository `tree`: from the mirror, else an address."""
    tried, advice = [], _ADVICE
    if (folder := source_mirror()) is not None:
        try:
            copy = Mirror(folder).find(source.commit)
            _fetch_anew(str(copy), source.commit, tree)
        except SourceError as error:
            tried.append(f"the mirror {folder}: {error.args[0]}")
        else:
            return
    if source.unavailable:
        raise _not_available(source, tried)
    for url in (source.url, *source.also_at):
        try:
            _fetch_anew(address(url, task_folder)[0], source.commit, tree)
        except SourceError as error:
            tried.append(f"{url}: {error.args[0]}")
            advice = error.advice or advice
        else:
            return
    raise SourceError(
        f"commit {source.commit} cannot be had from {'; nor from '.join(tried)}", advice=advice
    )


def _fetch_anew(url: str, commit: str, tree: Path) -> None:
    shutil.rmtree(tree, ignore_errors=True)  # what an earlier address left
    tree.mkdir()
    make_git("init", "--quiet", folder=tree)
    fetch_commit(url, commit, tree)


def _date_of(commit: str, tree: Path) -> str:
    # A repository can ask for signatures to be shown, and name the program that checks them.
    show = ["show", "--no-patch", "--no-show-signature", "--format=%cI"]
    return git(*show, commit, folder=tree).decode().strip()


def tracked_paths(tree: Path) -> list[str]:
    """The paths that git tracks in the work tree `tree`, submodules included."""
    listed = git("ls-files", "-z", "--recurse-submodules", folder=tree)
    return sorted(os.fsdecode(path) for path in listed.split(b"\0") if path)


# --- folders ---------------------------------------------------------------------------


def _snapshot_of_folder(folder: Path, root: Path) -> Snapshot:
    if not folder.is_dir():
        raise SourceError(f"there is no folder {folder}", advice="correct source.path in the task")
    made = Path(tempfile.mkdtemp(dir=root, prefix=".folder."))
    try:
        shutil.copytree(folder, made / "tree", symlinks=True, ignore=_no_source)
        _write_manifest(made, {})
        place = root / _read_manifest(made).digest
        with _locked(place):
            if (snapshot := _kept(place)) is not None:
                return snapshot
            shutil.rmtree(place, ignore_errors=True)
            made.rename(place)
            return _read_manifest(place)
    except shutil.Error as error:
        path, _, why = error.args[0][0]
        raise SourceError(f"{path}: cannot be copied: {why}") from error
    finally:
        shutil.rmtree(made, ignore_errors=True)


def _no_source(folder: str, names: list[str]) -> list[str]:
    """Names that are not copied: environments and caches, pipes, sockets and devices."""

    def special(name: str) -> bool:
        mode = Path(folder, name).lstat().st_mode
        return not (stat.S_ISREG(mode) or stat.S_ISDIR(mode) or stat.S_ISLNK(mode))

    return [name for name in names if name in NOT_SOURCE or special(name)]


# --- source distributions --------------------------------------------------------------


def _from_index(source: SdistSource, installs: Mapping[str, str], staging: Path) -> dict[str, str]:
    archive, date = download(source, installs, staging)
    found = digest_file(archive)
    if found != source.sha256:
        raise SourceError(
            f"{archive.name}: sha256 is {found}, the task says {source.sha256}",
            advice="the index serves another file than the task was written for",
        )
    unpack(archive, staging / "tree")
    archive.unlink()
    return {"date": date} if date else {}


# --- manifests -------------------------------------------------------------------------


@contextlib.contextmanager
def _locked(place: Path) -> Iterator[None]:
    """Nobody else on this host makes `place` meanwhile."""
    from filelock import FileLock

    with FileLock(f"{place}.lock"):
        yield


@contextlib.contextmanager
def _staging(place: Path) -> Iterator[Path]:
    """A folder beside `place` that takes its name when all went well, and else vanishes."""
    made = Path(tempfile.mkdtemp(dir=place.parent, prefix=f".{place.name}."))
    try:
        yield made
        if place.exists():
            shutil.rmtree(place)  # without a good manifest: an earlier try was cut off
        made.rename(place)
    finally:
        shutil.rmtree(made, ignore_errors=True)


def files_of(tree: Path) -> Iterator[str]:
    """Paths, relative to `tree`, of all files and links that count as source."""
    for folder, names, files in os.walk(tree):
        names[:] = sorted(name for name in names if name not in NOT_SOURCE)
        linked = [name for name in names if (Path(folder) / name).is_symlink()]
        for name in sorted([*files, *linked]):
            yield str((Path(folder) / name).relative_to(tree))


def tracked_file(path: Path) -> TrackedFile:
    """What is at `path`: a link is never followed.

    Raises:
        OSError: nothing is there, or it is neither a file nor a link.
    """
    status = path.lstat()
    if stat.S_ISLNK(status.st_mode):
        target = os.fsencode(os.readlink(path))  # noqa: PTH115  # bytes must survive
        return TrackedFile("link", hashlib.sha256(target).hexdigest())
    if not stat.S_ISREG(status.st_mode):
        raise OSError(0, "neither a regular file nor a link", str(path))
    kind: Literal["file", "executable"] = "executable" if status.st_mode & 0o100 else "file"
    return TrackedFile(kind, digest_file(path))


def _write_manifest(place: Path, facts: Mapping[str, str]) -> None:
    tree = place / "tree"
    paths = tracked_paths(tree) if (tree / ".git").exists() else sorted(files_of(tree))
    tracked = {}
    for path in paths:
        try:
            entry = tracked_file(tree / path)
        except OSError:
            continue  # a submodule's folder, or a file that the checkout left out
        tracked[path] = [entry.kind, entry.sha256]
    digest = hashlib.sha256(json.dumps(tracked, sort_keys=True).encode()).hexdigest()
    manifest = {**facts, "digest": digest, "tracked": tracked}
    write_atomically(place / "manifest.json", json.dumps(manifest))


def _kept(place: Path) -> Snapshot | None:
    """The snapshot at `place`, where one has been made and can be read."""
    try:
        return _read_manifest(place)
    except (FileNotFoundError, ValueError, KeyError, TypeError):
        return None


def _read_manifest(place: Path) -> Snapshot:
    manifest = json.loads((place / "manifest.json").read_text())
    date = manifest.get("date")
    return Snapshot(
        tree=place / "tree",
        digest=manifest["digest"],
        tracked={
            path: TrackedFile(kind, digest) for path, (kind, digest) in manifest["tracked"].items()
        },
        commit=manifest.get("commit"),
        date=datetime.fromisoformat(date).astimezone(UTC) if date else None,
    )


def snapshot_in_place(tree: Path) -> Snapshot:
    """A user's own folder as it is now: what git tracks there, else all of it."""
    commit = None
    if (tree / ".git").exists():
        paths = tracked_paths(tree)
        try:
            commit = git("rev-parse", "HEAD", folder=tree).decode().strip()
        except SourceError:
            commit = None  # no commit yet
    else:
        paths = sorted(files_of(tree))
    tracked = {}
    for path in paths:
        try:
            tracked[path] = tracked_file(tree / path)
        except OSError:
            continue  # deleted, but not yet from the index
    listing = {path: [entry.kind, entry.sha256] for path, entry in tracked.items()}
    digest = hashlib.sha256(json.dumps(listing, sort_keys=True).encode()).hexdigest()
    return Snapshot(tree=tree, digest=digest, tracked=tracked, commit=commit)


def commit_date(repo: Path) -> datetime | None:
    """When the commit of a work tree was made; None outside of git, or before a commit."""
    try:
        said = _date_of("HEAD", repo)
    except (SourceError, HostError):
        return None
    return datetime.fromisoformat(said).astimezone(UTC)
