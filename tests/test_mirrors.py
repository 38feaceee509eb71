"""A mirror keeps whole commits, is found by them alone, and is asked before any address."""

from __future__ import annotations

import json
import shutil
from typing import TYPE_CHECKING, Any

import pytest

from researchenvbench.errors import SourceError, SourceNotAvailableError
from researchenvbench.gitcommand import fetch_commit, lacks
from researchenvbench.mirrors import Mirror, copies_of, incomplete, repositories_below
from researchenvbench.source import fetch_source, objects_of
from researchenvbench.task import GitSource, Task

if TYPE_CHECKING:
    from pathlib import Path

    from conftest import GitRepository

GONE = "https://example.invalid/owner/name.git"


def source_of(commit: str, url: object = GONE, **more: Any) -> GitSource:
    return GitSource.model_validate({"kind": "git", "url": str(url), "commit": commit, **more})


def task_of(source: GitSource) -> Task:
    data = source.model_dump()
    return Task.model_validate({"schema": 1, "name": "t", "domain": "d", "source": data})


@pytest.fixture
def mirror(tmp_path: Path) -> Mirror:
    return Mirror(tmp_path / "mirrors")


@pytest.fixture
def cache(tmp_path: Path) -> Path:
    return tmp_path / "cache"


def take(mirror: Mirror, repository: GitRepository, commit: str) -> Path:
    return mirror.take(source_of(commit, repository.folder), mirror.folder).folder


# --- taking ----------------------------------------------------------------------------


def test_a_commit_is_kept_alone_bare_and_whole(repository: GitRepository, mirror: Mirror) -> None:
    repository.commit({"a.py": "before\n"})
    commit = repository.commit({"a.py": "1\n"})
    repository.commit({"a.py": "after\n"})
    place = take(mirror, repository, commit)
    assert place == mirror.folder / f"{repository.folder.parent.name}__repo@{commit}.git"
    assert incomplete(commit, place) == ""
    assert (place / "shallow").read_text().split() == [commit]
    assert not (place / "index").exists()
    index = json.loads((mirror.folder / "index.json").read_text())
    assert index["commits"][commit]["taken_from"] == str(repository.folder)
    assert index["commits"][commit]["size_bytes"] > 0
    assert mirror.find(commit) == place


def test_the_copy_can_be_cloned(
    repository: GitRepository, mirror: Mirror, another_repository: GitRepository
) -> None:
    commit = repository.commit({"a.py": "1\n"})
    place = take(mirror, repository, commit)
    another_repository("clone", "--quiet", str(place), "clone")
    assert (another_repository.folder / "clone" / "a.py").read_text() == "1\n"


def test_what_is_whole_is_left_and_what_is_damaged_is_made_anew(
    repository: GitRepository, mirror: Mirror
) -> None:
    commit = repository.commit({"a.py": "1\n", "b.py": "2\n"})
    source = source_of(commit, repository.folder)
    first = mirror.take(source, mirror.folder)
    assert first.taken_from == str(repository.folder)
    assert mirror.take(source, mirror.folder).taken_from == ""
    for pack in first.folder.glob("objects/pack/*"):
        pack.unlink()
    shutil.rmtree(first.folder / "objects")
    (first.folder / "objects").mkdir()
    with pytest.raises(SourceError, match="does not hold the commit"):
        mirror.find(commit)
    assert mirror.take(source, mirror.folder).taken_from == str(repository.folder)
    assert mirror.find(commit) == first.folder


def test_one_object_that_is_missing_makes_it_incomplete(
    repository: GitRepository, mirror: Mirror
) -> None:
    commit = repository.commit({"a.py": "1\n"})
    blob = repository("rev-parse", f"{commit}:a.py")
    (repository.folder / ".git/objects" / blob[:2] / blob[2:]).unlink()
    assert "objects of the commit are missing" in incomplete(commit, repository.folder / ".git")
    with pytest.raises(SourceError, match="cannot be had"):
        take(mirror, repository, commit)
    assert not list(mirror.folder.glob("*.git"))


def test_what_an_interrupted_try_left_is_no_hindrance(
    repository: GitRepository, mirror: Mirror
) -> None:
    commit = repository.commit({"a.py": "1\n"})
    left = mirror.folder / f".{commit}.part"
    left.mkdir(parents=True)
    (left / "HEAD").write_text("half")
    assert incomplete(commit, take(mirror, repository, commit)) == ""
    assert not left.exists()


def test_another_address_has_it_and_the_name_stays_the_tasks(
    repository: GitRepository, another_repository: GitRepository, mirror: Mirror
) -> None:
    commit = another_repository.commit({"a.py": "1\n"})
    repository.commit({"other.py": "2\n"})
    source = source_of(commit, repository.folder, also_at=[str(another_repository.folder)])
    taken = mirror.take(source, mirror.folder)
    assert taken.taken_from == str(another_repository.folder)
    assert taken.folder.name.endswith(f"__repo@{commit}.git")


def test_a_repository_of_this_host_is_found_below_a_folder(
    repository: GitRepository, mirror: Mirror, tmp_path: Path
) -> None:
    commit = repository.commit({"a.py": "1\n"})
    (tmp_path / "text").mkdir()
    (tmp_path / "text" / "HEAD").write_text("no repository")
    copies = copies_of([commit, "ab" * 20], repositories_below([tmp_path]))
    assert copies == {commit: repository.folder / ".git"}
    taken = mirror.take(source_of(commit), mirror.folder, copies=copies)
    assert taken.taken_from == str(repository.folder / ".git")


def test_a_server_that_hands_out_branches_only(
    repository: GitRepository, mirror: Mirror, monkeypatch: pytest.MonkeyPatch
) -> None:
    commit = repository.commit({"a.py": "1\n"})
    repository.commit({"a.py": "2\n"})
    # Version 0 of the protocol knows no other way than to ask for what a reference names.
    monkeypatch.setenv("GIT_CONFIG_COUNT", "1")
    monkeypatch.setenv("GIT_CONFIG_KEY_0", "protocol.version")
    monkeypatch.setenv("GIT_CONFIG_VALUE_0", "0")
    place = take(mirror, repository, commit)
    assert incomplete(commit, place) == ""
    assert not (place / "shallow").exists(), "the history came with it, since it had to"


def test_what_is_no_commit_is_refused(repository: GitRepository, tmp_path: Path) -> None:
    repository.commit({"a.py": "1\n"})
    tree = repository("rev-parse", "HEAD^{tree}")
    assert lacks(tree, repository.folder / ".git", bare=True) == (
        f"{tree} is a tree there and no commit"
    )
    (tmp_path / "new").mkdir()
    with pytest.raises(SourceError):
        fetch_commit(str(repository.folder), tree, tmp_path / "new")


def test_a_damaged_index_is_written_anew(repository: GitRepository, mirror: Mirror) -> None:
    mirror.folder.mkdir()
    (mirror.folder / "index.json").write_text("{")
    commit = repository.commit({"a.py": "1\n"})
    take(mirror, repository, commit)
    assert list(json.loads((mirror.folder / "index.json").read_text())["commits"]) == [commit]


# --- using -----------------------------------------------------------------------------


def test_a_source_comes_from_the_mirror_when_its_address_is_gone(
    repository: GitRepository, mirror: Mirror, cache: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    commit = repository.commit({"a.py": "1\n"})
    take(mirror, repository, commit)
    shutil.rmtree(repository.folder)
    monkeypatch.setenv("REB_SOURCE_MIRROR", str(mirror.folder))
    gone = task_of(source_of(commit, repository.folder))
    assert objects_of(gone, cache=cache) == mirror.find(commit)
    snapshot = fetch_source(gone, cache=cache)
    assert (snapshot.commit, sorted(snapshot.tracked)) == (commit, ["a.py"])


def test_the_cache_is_asked_before_the_mirror(
    repository: GitRepository, mirror: Mirror, cache: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    commit = repository.commit({"a.py": "1\n"})
    task = task_of(source_of(commit, repository.folder))
    fetch_source(task, cache=cache)
    shutil.rmtree(repository.folder)
    monkeypatch.setenv("REB_SOURCE_MIRROR", str(mirror.folder / "nothing"))
    assert fetch_source(task, cache=cache).commit == commit
    assert objects_of(task, cache=cache) == cache / "sources" / commit / "tree" / ".git"


def test_a_mirror_that_lacks_the_commit_or_is_none_is_passed_over_and_named(
    repository: GitRepository, mirror: Mirror, cache: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    commit = repository.commit({"a.py": "1\n"})
    monkeypatch.setenv("REB_SOURCE_MIRROR", str(mirror.folder))
    gone = task_of(source_of(commit, mirror.folder / "gone", also_at=["/nowhere"]))
    said = r"(?s)from the mirror .*mirrors: {}; nor from .*/gone: there is no folder"
    with pytest.raises(SourceError, match=said.format("there is no such folder")):
        fetch_source(gone, cache=cache)
    mirror.folder.mkdir()
    with pytest.raises(SourceError, match=said.format("it does not hold the commit")):
        fetch_source(gone, cache=cache)
    (mirror.folder / f"x@{commit}.git").mkdir()
    with pytest.raises(SourceError, match=said.format(r"x@.*\.git: it is no git repository")):
        fetch_source(gone, cache=cache)
    with pytest.raises(SourceError, match="nor from /nowhere"):
        fetch_source(gone, cache=cache)
    assert fetch_source(task_of(source_of(commit, repository.folder)), cache=cache).commit == commit


def test_a_folder_that_is_no_repository_is_never_taken_for_the_one_around_it(
    repository: GitRepository,
) -> None:
    commit = repository.commit({"a.py": "1\n"})
    inner = Mirror(repository.folder)
    (repository.folder / f"x@{commit}.git").mkdir()
    with pytest.raises(SourceError, match="no git repository"):
        inner.find(commit)


def test_the_other_addresses_are_tried_in_their_order(
    repository: GitRepository, another_repository: GitRepository, cache: Path
) -> None:
    commit = another_repository.commit({"a.py": "1\n"})
    also_at = ["gone", str(another_repository.folder)]
    source = source_of(commit, repository.folder, also_at=also_at)
    snapshot = fetch_source(task_of(source), cache=cache)
    assert (snapshot.commit, sorted(snapshot.tracked)) == (commit, ["a.py"])


def test_a_commit_that_nobody_has_says_so_unless_a_mirror_has_it(
    repository: GitRepository, mirror: Mirror, cache: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    commit = repository.commit({"a.py": "1\n"})
    gone = task_of(source_of(commit, unavailable="the repository was rewritten"))
    for ask in (fetch_source, objects_of):
        with pytest.raises(SourceNotAvailableError, match="not available: the repository was rew"):
            ask(gone, cache=cache)
    take(mirror, repository, commit)
    monkeypatch.setenv("REB_SOURCE_MIRROR", str(mirror.folder))
    assert fetch_source(gone, cache=cache).commit == commit


def test_objects_of_a_commit_are_brought_to_the_cache_without_a_checkout(
    repository: GitRepository, cache: Path
) -> None:
    commit = repository.commit({"a.py": "1\n"})
    place = objects_of(task_of(source_of(commit, repository.folder)), cache=cache)
    assert place.parent == cache / "commits"
    assert not list(cache.rglob("a.py"))
    shutil.rmtree(repository.folder)
    assert objects_of(task_of(source_of(commit, repository.folder)), cache=cache) == place
