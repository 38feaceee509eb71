"""A GitHub of this host, with little repositories that can be cloned."""

from __future__ import annotations

import shutil
from datetime import date
from typing import TYPE_CHECKING, Any

import pytest

from researchenvbench.selection import selecting
from researchenvbench.selection.answers import Answers
from researchenvbench.selection.criteria import Asked
from researchenvbench.selection.github import GitHub
from researchenvbench.selection.trees import Trees
from tests.conftest import GitRepository
from tests.run.conftest import Reb

from . import github_server

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from researchenvbench.selection.criteria import Candidate, Selection

    from .github_server import Server

#: What meets every criterion that a tree shows.
WHOLE = {
    "README.md": "# Net\n\nThe code of [our paper](https://arxiv.org/abs/2403.01234).\n",
    "net/train.py": (
        "import torch\nimport torch.distributed as dist\n\n\n"
        "def main():\n    dist.init_process_group('nccl')\n    torch.zeros(3).cuda()\n"
    ),
}


@pytest.fixture
def server(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Server]:
    """The server, with nothing in it."""
    if shutil.which("git") is None:
        pytest.skip("git is not installed: apt-get install git")
    monkeypatch.setenv("no_proxy", "127.0.0.1,localhost")
    monkeypatch.delenv("GITHUB_TOKEN", raising=False)
    monkeypatch.delenv("GITHUB_API_URL", raising=False)
    (tmp_path / "served").mkdir()
    yield from github_server.running(tmp_path / "served")


@pytest.fixture
def publish(server: Server) -> Callable[..., GitRepository]:
    """Puts a repository of these files on the server, and its facts into the search."""

    def put(name: str, files: dict[str, str], **facts: object) -> GitRepository:
        repository = GitRepository(server.root / f"{name}.git")
        repository.commit(files)
        server.add(name, **facts)
        return repository

    return put


@pytest.fixture
def reb(tmp_path: Path) -> Reb:
    """The command line, with an empty cache of its own."""
    return Reb(tmp_path / "cache", tmp_path)


@pytest.fixture
def select(server: Server, tmp_path: Path) -> Callable[..., Selection]:
    """Searches the server for `queries`, with a cache of this test's own."""

    def run(*queries: str, fresh: bool = False, limit: int = 100, **asked: Any) -> Selection:
        asked = {"since": date(2024, 1, 1), "more_stars_than": 100} | asked
        cache = tmp_path / "cache" / "selection"
        answers = Answers(cache / "answers", fresh=fresh)
        with GitHub(server.address, answers, print, wait_incomplete_s=0.01) as github:
            return selecting.select(
                Asked(queries=queries or ("net",), limit=limit, **asked),
                github,
                Trees(cache / "trees"),
                say=print,
                keep=lambda _: None,
            )

    return run


def names(selection: Selection) -> list[str]:
    """The candidates in their order."""
    return [candidate.name for candidate in selection.candidates]


def standings(candidate: Candidate) -> dict[str, str]:
    """The answer to each criterion."""
    return {finding.criterion: finding.standing for finding in candidate.findings}
