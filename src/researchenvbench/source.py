"""The source of a task: fetched once, verified against its commit or hash, kept pristine.

A `Snapshot` is a folder that nobody works in, with the list of its tracked files and their
digests. Builds get a copy; verification compares the copy that the agent left with the
list. Nothing of the source is executed here: git runs without the repository's hooks,
filters or prompts, and a source distribution (`sdist`) is only unpacked.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import shutil
import stat
import subprocess
import tempfile
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from .errors import HostError, SourceError
from .sdist import download, unpack
from .stored import write_atomically
from .task import FolderSource, GitSource, SdistSource

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from .task import Task

#: Folders that are environments, caches or version control, never part of a source.
NOT_SOURCE = frozenset({".git", ".hg", ".venv", "venv", "node_modules", "__pycache__", ".tox"})
_FETCH_LIMIT_S = 1800
#: For what only asks: a pipe in place of a file of .git would be waited for without end.
_ASK_LIMIT_S = 20


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


def default_cache() -> Path:
    """Where sources and downloads are kept between runs (`REB_CACHE`, else XDG's)."""
    if chosen := os.environ.get("REB_CACHE"):
        return Path(chosen).absolute()
    base = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    return Path(base).absolute() / "researchenvbench"


def fetch_source(
    task: Task, *, installs: Mapping[str, str] | None = None, cache: Path | None = None
) -> Snapshot:
    """The pristine source of a task, from the cache or from where it is published.

    `installs` are the host's package settings as pip variables (`PIP_INDEX_URL`,
    `PIP_EXTRA_INDEX_URL`, `PIP_FIND_LINKS`).

    Raises:
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
        raise HostError(
            f"the source of {task.name} cannot be kept in {root}: {error.strerror or error}",
            advice="set REB_CACHE to a folder that can be written and has room",
        ) from error


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


def git(*arguments: str, folder: Path, stdin: bytes = b"") -> bytes:
    """Ask git about `folder`, with nothing that the repository could make it execute.

    Nothing is written there and nothing is fetched. Commands that read the content of work
    files (`diff`, `status`) do not belong here: git passes that content through whatever
    filter the repository names.

    Raises:
        SourceError: git said no, or not in time; its last lines are the reason.
        HostError: git is not installed.
    """
    asks = {"GIT_OPTIONAL_LOCKS": "0", "GIT_NO_LAZY_FETCH": "1", "GIT_ALLOW_PROTOCOL": "none"}
    return _run_git(arguments, folder, _ASK_LIMIT_S, asks, stdin)


def _make_git(*arguments: str, folder: Path) -> bytes:
    """Run git in a tree of our own, where it may fetch, write and take its time."""
    return _run_git(arguments, folder, _FETCH_LIMIT_S, {}, b"")


def _run_git(
    arguments: Sequence[str],
    folder: Path,
    time_limit_s: float,
    variables: Mapping[str, str],
    stdin: bytes,
) -> bytes:
    command = ["git", "-c", "core.hooksPath=/dev/null", "-c", "core.fsmonitor=false"]
    command += ["-c", "protocol.ext.allow=never", "-c", "core.attributesFile=/dev/null"]
    # Whatever the user prefers, files are to be as the commit has them.
    command += ["-c", "core.autocrlf=false", "-c", "core.symlinks=true"]
    command += ["-c", "advice.detachedHead=false", "-c", "safe.directory=*", *arguments]
    environment = {**os.environ, "GIT_TERMINAL_PROMPT": "0", "GIT_LFS_SKIP_SMUDGE": "1"}
    environment.update(variables)
    for variable in ("GIT_DIR", "GIT_WORK_TREE", "GIT_INDEX_FILE", "GIT_OBJECT_DIRECTORY"):
        environment.pop(variable, None)
    try:
        done = subprocess.run(
            command,
            cwd=folder,
            env=environment,
            input=stdin,
            capture_output=True,
            timeout=time_limit_s,
            check=False,
        )
    except FileNotFoundError as error:
        raise HostError("git is not installed", advice="apt-get install git") from error
    except subprocess.TimeoutExpired as error:
        raise SourceError(
            f"git {_name(arguments)} did not end within {time_limit_s:.0f} s"
        ) from error
    if done.returncode != 0:
        said = done.stderr.decode(errors="replace").strip().splitlines()
        raise SourceError(f"git {_name(arguments)}: {' '.join(said[-3:]) or done.returncode}")
    return done.stdout


def _name(arguments: Sequence[str]) -> str:
    """git's command among the arguments that may set options before it."""
    return arguments[2] if arguments[0] == "-c" else arguments[0]


def _from_git(source: GitSource, task_folder: Path, staging: Path) -> dict[str, str]:
    url, local = source.url, False
    if "://" not in url and not url.startswith("git@"):
        local = True
        url = str((task_folder / url).resolve())
        if not Path(url).is_dir():
            raise SourceError(f"there is no folder {url}", advice="correct source.url in the task")
    tree = staging / "tree"
    tree.mkdir()
    _make_git("init", "--quiet", folder=tree)
    try:
        _make_git("fetch", "--quiet", "--depth=1", "--", url, source.commit, folder=tree)
    except SourceError:
        # Not every server hands out a commit that no branch points at.
        try:
            _make_git("fetch", "--quiet", "--", url, "+refs/*:refs/reb/*", folder=tree)
            git("cat-file", "-e", f"{source.commit}^{{commit}}", folder=tree)
        except SourceError as error:
            raise SourceError(
                f"commit {source.commit} cannot be had from {source.url}: {error}",
                advice="check the address, the network, and that the commit still exists",
            ) from error
    _make_git("checkout", "--quiet", "--detach", source.commit, folder=tree)
    if source.submodules:
        update = ["submodule", "update", "--quiet", "--init", "--recursive", "--depth=1"]
        # Addresses such as ../lib are relative to the remote named origin.
        _make_git("remote", "add", "--", "origin", url, folder=tree)
        # A repository of this host may name others of this host, one from elsewhere may not.
        allow = f"protocol.file.allow={'always' if local else 'user'}"
        _make_git("-c", allow, *update, folder=tree)
        _make_git("remote", "remove", "origin", folder=tree)
    date = _date_of(source.commit, tree)
    return {"commit": source.commit, "date": date}


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
