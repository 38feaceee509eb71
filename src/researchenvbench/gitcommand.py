"""git through its command line, with nothing that a repository could make it execute.

One place starts it: without the repository's hooks, filters or prompts, and with none of the
variables by which a caller's own repository would be meant. What is fetched and what it is
good for is the subject of `source` and `mirrors`.
"""

from __future__ import annotations

import os
import subprocess
from pathlib import Path
from typing import TYPE_CHECKING

from .errors import HostError, SourceError

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

_FETCH_LIMIT_S = 1800
#: For what only asks: a pipe in place of a file of .git would be waited for without end.
_ASK_LIMIT_S = 20


def git(
    *arguments: str,
    folder: Path,
    bare: bool = False,
    stdin: bytes = b"",
    time_limit_s: float | None = None,
) -> bytes:
    """Ask git about `folder`, with nothing that the repository could make it execute.

    Nothing is written there and nothing is fetched. Commands that read the content of work
    files (`diff`, `status`) do not belong here: git passes that content through whatever
    filter the repository names. `bare`: the folder is the git directory itself, and where it
    is none no other above it is meant. The time limit is short by default: what can take
    longer, such as reading all files of a commit, sets its own.

    Raises:
        SourceError: git said no, or not in time; its last lines are the reason.
        HostError: git is not installed.
    """
    limit_s = _ASK_LIMIT_S if time_limit_s is None else time_limit_s
    asks = {"GIT_OPTIONAL_LOCKS": "0", "GIT_NO_LAZY_FETCH": "1", "GIT_ALLOW_PROTOCOL": "none"}
    return _run_git(arguments, folder, limit_s, {**asks, **_meant(folder, bare)}, stdin)


def make_git(*arguments: str, folder: Path, bare: bool = False) -> bytes:
    """Run git in a repository of our own, where it may fetch, write and take its time.

    Raises:
        SourceError: git said no, or not in time; its last lines are the reason.
        HostError: git is not installed.
    """
    return _run_git(arguments, folder, _FETCH_LIMIT_S, _meant(folder, bare), b"")


def fetch_commit(url: str, commit: str, folder: Path, *, bare: bool = False) -> None:
    """Fetch `commit` from `url` into the repository `folder`: alone where the server allows.

    Raises:
        SourceError: it cannot be had there, or is no commit.
        HostError: git is not installed.
    """
    try:
        alone = ("fetch", "--quiet", "--no-tags", "--depth=1", "--", url, commit)
        make_git(*alone, folder=folder, bare=bare)
    except SourceError:
        # Not every server hands out a commit that no branch points at.
        make_git("fetch", "--quiet", "--", url, "+refs/*:refs/reb/*", folder=folder, bare=bare)
    if why := lacks(commit, folder, bare=bare):
        raise SourceError(why)


def lacks(commit: str, folder: Path, *, bare: bool = False) -> str:
    """Why `folder` is of no use to whoever wants `commit`; empty where it holds it.

    Raises:
        HostError: git is not installed.
    """
    try:
        git("rev-parse", "--git-dir", folder=folder, bare=bare)
    except SourceError:
        return "it is no git repository"
    try:
        kind = git("cat-file", "-t", commit, folder=folder, bare=bare).decode().strip()
    except SourceError:
        return "it does not hold the commit"
    return "" if kind == "commit" else f"{commit} is a {kind} there and no commit"


def address(url: str, task_folder: Path) -> tuple[str, bool]:
    """What git is given for an address of a task, and whether it is a folder of this host.

    Raises:
        SourceError: it should be a folder, and there is none.
    """
    if "://" in url or url.startswith("git@"):
        return url, False
    place = (task_folder / url).resolve()
    if not place.is_dir():
        raise SourceError(f"there is no folder {place}", advice="correct source.url in the task")
    return str(place), True


def _meant(folder: Path, bare: bool) -> dict[str, str]:
    return {"GIT_DIR": str(folder.absolute())} if bare else {}


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
    # Packing in the background would go on in a folder that is about to be moved.
    command += ["-c", "gc.auto=0", "-c", "maintenance.auto=false"]
    command += ["-c", "advice.detachedHead=false", "-c", "safe.directory=*", *arguments]
    environment = {**os.environ, "GIT_TERMINAL_PROMPT": "0", "GIT_LFS_SKIP_SMUDGE": "1"}
    for variable in ("GIT_DIR", "GIT_WORK_TREE", "GIT_INDEX_FILE", "GIT_OBJECT_DIRECTORY"):
        environment.pop(variable, None)
    environment.update(variables)
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
        if not Path(folder).is_dir():
            raise SourceError(f"there is no folder {folder}") from error
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
