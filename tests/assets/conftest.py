"""What tests of assets share: a server, a cache of their own, and tasks that read assets."""

from __future__ import annotations

import os
import subprocess
import sys
from typing import TYPE_CHECKING

import pytest

from researchenvbench.assets import Choice, Missing, Ready, prepare
from researchenvbench.sandbox.host_environment import host_environment
from researchenvbench.taskfile import load_task

from . import servers

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from researchenvbench.source import Snapshot
    from researchenvbench.task import Task

_TASK = """\
schema = 1
name = "reads"
domain = "tests"
[source]
kind = "folder"
path = "."
[stages.cpu]
command = ["{{python}}", "{{repo}}/read.py"]
assets = {names}
[[stages.cpu.evidence]]
kind = "output"
pattern = "done"
"""


@pytest.fixture(autouse=True)
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty cache, and no account."""
    folder = tmp_path / "cache"
    monkeypatch.setenv("REB_CACHE", str(folder))
    monkeypatch.delenv("HF_TOKEN", raising=False)
    monkeypatch.setenv("no_proxy", "127.0.0.1,localhost")
    return folder / "assets"


@pytest.fixture
def server(monkeypatch: pytest.MonkeyPatch) -> Iterator[servers.Server]:
    """A server that is a hub too."""
    for running in servers.running():
        monkeypatch.setenv("HF_ENDPOINT", running.address)
        yield running


class Tasks:
    """Makes tasks whose one stage reads the given assets, and prepares them."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.said: list[str] = []
        folder.mkdir()

    def task(self, assets: str) -> Task:
        """A task with these tables `[assets.…]`."""
        import tomllib

        names = list(tomllib.loads(assets)["assets"])
        text = _TASK.format(names=names).replace("'", '"') + assets
        (self.folder / "task.toml").write_text(text)
        return load_task(self.folder)

    def script(self, text: str, name: str = "make.py") -> None:
        """A recipe's script; `out` is where it writes, `seed` the number."""
        start = "import sys, pathlib\nout = pathlib.Path(sys.argv[1])\nseed = int(sys.argv[3])\n"
        (self.folder / name).write_text(start + text)

    def prepare(
        self, assets: str, choice: Choice = "auto", snapshot: Snapshot | None = None
    ) -> dict[str, Ready | Missing]:
        """What `prepare` answers for all assets."""
        task = self.task(assets)
        return prepare(
            task,
            task.stages,
            choice,
            snapshot=snapshot,
            host=host_environment(),
            say=self.said.append,
        )

    def one(self, assets: str, choice: Choice = "auto") -> Ready | Missing:
        """The same for the one asset that there is."""
        (found,) = self.prepare(assets, choice).values()
        return found

    def ready(self, assets: str, choice: Choice = "auto") -> Ready:
        """The one asset, which must be there."""
        found = self.one(assets, choice)
        assert isinstance(found, Ready), found
        return found

    def missing(self, assets: str, choice: Choice = "auto") -> Missing:
        """Why the one asset is not there, as it must not be."""
        found = self.one(assets, choice)
        assert isinstance(found, Missing), found
        return found


@pytest.fixture
def tasks(tmp_path: Path) -> Tasks:
    """Tasks in a folder of their own."""
    return Tasks(tmp_path / "task")


_FETCH = """\
import sys
from pathlib import Path
from researchenvbench.assets import Ready, prepare
from researchenvbench.sandbox.host_environment import host_environment
from researchenvbench.taskfile import load_task
task = load_task(Path(sys.argv[1]))
found = prepare(task, task.stages, "auto", snapshot=None, host=host_environment(), say=print)
sys.exit(0 if all(isinstance(one, Ready) for one in found.values()) else str(found))
"""


def fetching(tasks: Tasks) -> subprocess.Popen[str]:
    """A process of its own that prepares the assets of the task last made."""
    return subprocess.Popen(
        [sys.executable, "-c", _FETCH, str(tasks.folder)],
        env=dict(os.environ),
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )
