"""`reb tasks check --online`: what a task names is there, has changed, or has vanished."""

from __future__ import annotations

import pytest

from researchenvbench.run.check_online import check_online
from researchenvbench.taskfile import load_task
from tests.assets import servers

REVISION = servers.REVISION


@pytest.fixture
def server(monkeypatch):
    monkeypatch.setenv("no_proxy", "127.0.0.1,localhost")
    monkeypatch.delenv("HF_TOKEN", raising=False)
    for running in servers.running():
        monkeypatch.setenv("HF_ENDPOINT", running.address)
        running.repos["models/owner/name"] = {"a.bin": b"12345", "b.txt": b"12"}
        yield running


@pytest.fixture
def look(tmp_path):
    """Problems and notes of a task of these lines."""

    def run(lines, source='kind = "folder"\npath = "."'):
        (tmp_path / "task.toml").write_text(
            f'schema = 1\nname = "looked"\ndomain = "tests"\n[source]\n{source}\n{lines}'
        )
        return check_online(load_task(tmp_path), print)

    return run


def hub(more=""):
    return f'[assets.model]\nkind = "hub"\nrepo = "owner/name"\nfiles = ["*.bin"]\n{more}'


def test_a_model_that_is_as_the_task_says(server, look):
    server.card = {"cardData": {"license": "mit"}, "gated": False}
    said = f'revision = "{REVISION}"\nbytes = 5\nlicence = "MIT"\n'
    assert look(hub(said)) == ([], [])


def test_what_the_task_does_not_say_is_told(server, look):
    server.card = {"cardData": {"license": ["mit", "cc0-1.0"]}}
    assert look(hub()) == (
        [],
        [
            f"assets.model: not pinned; today's revision is {REVISION}",
            "assets.model: licence is mit and cc0-1.0",
            "assets.model: bytes is 5",
        ],
    )


def test_what_the_task_says_otherwise_is_a_fault(server, look):
    server.card = {"cardData": {"license": "apache-2.0"}, "gated": "manual"}
    said = f'revision = "{REVISION}"\nbytes = 6\nlicence = "MIT"\n'
    assert look(hub(said)) == (
        [
            "assets.model.gated: it is gated",
            "assets.model.licence: it is apache-2.0, the task says MIT",
            "assets.model.bytes: it is 5, the task says 6",
        ],
        [],
    )


def test_models_and_files_that_have_vanished(server, look):
    server.repos.clear()
    [line], notes = look(hub())
    assert (line.startswith("assets.model: it is not there"), notes) == (True, [])
    at = f'[assets.data]\nkind = "url"\nurl = "{server.address}/data.csv"\n'
    [line], _ = look(at)
    assert line.startswith(f"assets.data: {server.address}/data.csv answers 404 Not Found")
    server.files["/data.csv"] = b"1,2\n"
    assert look(at) == ([], ["assets.data: bytes is 4"])


class TestSource:
    def source(self, *folders, commit, more=""):
        first, *others = (str(folder) for folder in folders)
        return f'kind = "git"\nurl = "{first}"\ncommit = "{commit}"\nalso_at = {others}\n{more}'

    def test_one_address_is_enough_and_the_other_is_named(
        self, look, repository, another_repository
    ):
        commit = repository.commit({"a.py": ""})
        another_repository.commit({"b.py": ""})
        folders = another_repository.folder, repository.folder
        assert look("", self.source(repository.folder, commit=commit)) == ([], [])
        problems, notes = look("", self.source(*folders, commit=commit))
        assert problems == []
        assert notes[0].startswith(f"source: {folders[0]} has lost the commit: ")
        problems, _ = look("", self.source(folders[0], commit=commit))
        assert [line.split(": ")[0] for line in problems] == ["source"]

    def test_one_that_is_said_to_be_gone(self, look, repository):
        commit = repository.commit({"a.py": ""})
        gone = 'unavailable = "removed"\n'
        assert look("", self.source(repository.folder, commit=commit, more=gone)) == (
            ["source.unavailable: the commit is there again"],
            [],
        )
        problems, notes = look("", self.source(repository.folder, commit="1" * 40, more=gone))
        assert problems == []
        assert len(notes) == 1
