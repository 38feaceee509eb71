"""Whether what a task names in the world is still there: commits, models, data."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from ..assets.looking import host_of, look_up
from ..errors import AssetError, SourceError, UnreachableError
from ..gitcommand import address, fetch_commit, make_git
from ..owner import own_folder
from ..task import GitSource

if TYPE_CHECKING:
    from collections.abc import Callable, Collection
    from pathlib import Path

    from ..asset import Asset
    from ..assets.looking import Original
    from ..task import Task

#: How git, by curl or ssh, says that it did not get through to a server. It has no exit
#: status of its own for that.
_UNREACHED = re.compile(
    r"Could ?n[o']t (?:resolve|connect)|Failed to connect|Connection (?:refused|reset|timed out)"
    r"|Network is unreachable|No route to host|name resolution|timed out after|[Tt]imeout was"
    r"|did not end within|CONNECT tunnel failed|Received HTTP code \d+ from proxy"
)


@dataclass
class Online:
    """What was found of a task, one line each."""

    problems: list[str] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    #: Hosts that did not answer: of what they hold nothing is known.
    unreached: set[str] = field(default_factory=set)


def check_online(
    task: Task, say: Callable[[str], None], *, unreached: Collection[str] = ()
) -> Online:
    """What a task names and the world has no more, and what else is to be known.

    A source is there while one of its addresses holds the commit; the others that do not are
    named. One that the task itself says is gone is asked again. Hosts that are `unreached`
    already are not asked.

    Raises:
        HostError: git is not installed, or there is no temporary folder.
    """
    found = Online()
    if isinstance(task.source, GitSource):
        _look_at_source(task.source, task.folder, found, unreached)
    for name, asset in task.assets.items():
        key = f"assets.{name}"
        if (host := host_of(asset)) in {*unreached, *found.unreached}:
            found.unreached.add(host)
            continue
        try:
            original = look_up(asset, say)
        except UnreachableError as error:
            found.unreached.add(error.host)
        except AssetError as error:
            found.problems.append(f"{key}: {error.args[0]}")
        else:
            if original is not None:
                wrong, right = _differences(asset, original)
                found.problems += [f"{key}.{line}" for line in wrong]
                found.notes += [f"{key}: {line}" for line in right]
    return found


def _look_at_source(
    source: GitSource, task_folder: Path, found: Online, unreached: Collection[str]
) -> None:
    gone = {}
    there = undecided = False
    for url in (source.url, *source.also_at):
        host = _host(url)
        why = "" if host in unreached else _lacks(url, source.commit, task_folder)
        if host in unreached or (host and _UNREACHED.search(why)):
            found.unreached.add(host)
            undecided = True
        elif why:
            gone[url] = why
        else:
            there = True
    lines = [f"source: {url} has lost the commit: {why}" for url, why in gone.items()]
    if source.unavailable and there:
        found.problems.append("source.unavailable: the commit is there again")
    elif there or undecided or source.unavailable:
        found.notes += lines
    else:
        found.problems += lines


def _host(url: str) -> str:
    """The host of an address that git is given; empty for a folder of this one."""
    if url.startswith("git@"):
        return url.partition("@")[2].partition(":")[0]
    return urlsplit(url).netloc.rpartition("@")[2] if "://" in url else ""


def _lacks(url: str, commit: str, task_folder: Path) -> str:
    """Why the commit cannot be had there; empty where it can.

    It is fetched: a server that shows a branch does not say whether it gives a commit.
    """
    with own_folder("look") as folder:
        try:
            make_git("init", "--quiet", "--bare", folder=folder, bare=True)
            fetch_commit(address(url, task_folder)[0], commit, folder, bare=True)
        except SourceError as error:
            return str(error.args[0])
    return ""


def _differences(asset: Asset, original: Original) -> tuple[list[str], list[str]]:
    """What the task says otherwise, and what it does not say, of an original."""
    wrong, notes = [], []
    if original.revision and asset.why_not_pinned:
        notes.append(f"not pinned; today's revision is {original.revision}")
    if original.gated is not None and original.gated != asset.gated:
        wrong.append(f"gated: it is {'' if original.gated else 'not '}gated")
    for key, here, there in (
        ("licence", asset.licence, original.licence),
        ("bytes", asset.size_bytes, original.size_bytes),
    ):
        if there is None or here == there:
            continue
        if here is None:
            notes.append(f"{key} is {there}")
        elif not (isinstance(here, str) and here.casefold() == str(there).casefold()):
            wrong.append(f"{key}: it is {there}, the task says {here}")
    return wrong, notes
