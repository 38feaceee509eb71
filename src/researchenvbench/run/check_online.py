"""Whether what a task names in the world is still there: commits, models, data."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ..assets.looking import look_up
from ..errors import AssetError, SourceError
from ..gitcommand import address, fetch_commit, make_git
from ..owner import own_folder
from ..task import GitSource

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from ..asset import Asset
    from ..assets.looking import Original
    from ..task import Task


def check_online(task: Task, say: Callable[[str], None]) -> tuple[list[str], list[str]]:
    """What a task names and the world has no more, and what else is to be known.

    One line each. A source is there while one of its addresses holds the commit; the others
    that do not are named. One that the task itself says is gone is asked again.

    Raises:
        HostError: git is not installed, or there is no temporary folder.
    """
    problems, notes = _source(task) if isinstance(task.source, GitSource) else ([], [])
    for name, asset in task.assets.items():
        key = f"assets.{name}"
        try:
            original = look_up(asset, say)
        except AssetError as error:
            problems.append(f"{key}: {error.args[0]}")
            continue
        if original is not None:
            wrong, right = _differences(asset, original)
            problems += [f"{key}.{line}" for line in wrong]
            notes += [f"{key}: {line}" for line in right]
    return problems, notes


def _source(task: Task) -> tuple[list[str], list[str]]:
    source = task.source
    assert isinstance(source, GitSource)  # noqa: S101 - by the caller
    gone = {}
    for url in (source.url, *source.also_at):
        if why := _lacks(url, source.commit, task.folder):
            gone[url] = why
    lines = [f"source: {url} has lost the commit: {why}" for url, why in gone.items()]
    there = len(gone) < 1 + len(source.also_at)
    if source.unavailable and there:
        return ["source.unavailable: the commit is there again"], []
    return ([], lines) if there or source.unavailable else (lines, [])


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
