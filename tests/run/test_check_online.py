"""`reb tasks check --online`: what a task names is there, has changed, or has vanished."""

from __future__ import annotations

import socket

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
        found = check_online(load_task(tmp_path), print)
        assert not found.unreached
        return found.problems, found.notes

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


@pytest.fixture
def nobody():
    """The address of a server that there is not."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        return f"127.0.0.1:{free.getsockname()[1]}"


def test_without_a_network_it_is_said_once_and_nothing_is_wrong(reb, suite, repository, nobody):
    commit = repository.commit({"train.py": "", "install.py": ""})
    for name in ("adder", "server"):
        path = suite / name / "task.toml"
        text = path.read_text().split("[stages.")[0].split("[source]")[0]
        source = f'[source]\nkind = "git"\nurl = "http://{nobody}/a.git"\ncommit = "{commit}"\n'
        path.write_text(f"{text}{source}{hub()}")
    done = reb(
        *("tasks", "check", suite, "--online"), HF_ENDPOINT=f"http://{nobody}", no_proxy="127.0.0.1"
    )
    assert done.returncode == 3, done.stderr
    assert done.stdout.startswith(f"adder: good; not pinned: model; not asked: {nobody}\n")
    assert done.stdout.rstrip().endswith(": 0 good, 2 good as far as could be asked")
    assert done.stdout.count(f"not asked: {nobody}") == 2
    assert done.stderr.count("cannot be reached from here") == 1
    assert f"not asked, since they cannot be reached from here: {nobody};" in done.stderr
    assert "next try" not in done.stderr, "a server that git did not reach is not asked again"


def test_a_fault_is_a_fault_also_where_a_server_cannot_be_reached(
    repository, tmp_path, nobody, monkeypatch
):
    monkeypatch.setenv("no_proxy", "127.0.0.1")
    monkeypatch.setenv("HF_ENDPOINT", f"http://{nobody}")
    repository.commit({"a.py": ""})
    source = f'kind = "git"\nurl = "{repository.folder}"\ncommit = "{"1" * 40}"'
    (tmp_path / "task.toml").write_text(
        f'schema = 1\nname = "looked"\ndomain = "tests"\n[source]\n{source}\n{hub()}'
    )
    said = []
    found = check_online(load_task(tmp_path), said.append)
    assert [line.partition(":")[0] for line in found.problems] == ["source"]
    assert found.unreached == {nobody}
    assert len(said) == 1, "it was tried again"


def test_one_address_that_cannot_be_reached_leaves_it_open(
    repository, tmp_path, nobody, monkeypatch
):
    monkeypatch.setenv("no_proxy", "127.0.0.1")
    repository.commit({"a.py": ""})
    source = (
        f'kind = "git"\nurl = "{repository.folder}"\ncommit = "{"1" * 40}"\n'
        f'also_at = ["http://{nobody}/a.git"]'
    )
    (tmp_path / "task.toml").write_text(
        f'schema = 1\nname = "looked"\ndomain = "tests"\n[source]\n{source}\n'
    )
    found = check_online(load_task(tmp_path), print)
    assert (found.problems, found.unreached) == ([], {nobody})
    assert "has lost the commit" in found.notes[0]
