"""Sources come from real little repositories, archives and indexes, and are what they promise."""

from __future__ import annotations

import functools
import hashlib
import http.server
import io
import json
import os
import subprocess
import sys
import tarfile
import threading
import zipfile
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from researchenvbench import gitcommand
from researchenvbench.errors import HostError, SourceError
from researchenvbench.gitcommand import git
from researchenvbench.places import default_cache
from researchenvbench.source import (
    commit_date,
    fetch_source,
    snapshot_in_place,
    tracked_file,
    tracked_paths,
)
from researchenvbench.task import Task

if TYPE_CHECKING:
    from collections.abc import Iterator

    from conftest import GitRepository


def task(source: dict[str, Any], folder: Path = Path("/")) -> Task:
    """A task with that source, loaded from `folder`."""
    made = Task.model_validate({"schema": 1, "name": "t", "domain": "d", "source": source})
    return made.model_copy(update={"folder": folder})


@pytest.fixture
def cache(tmp_path: Path) -> Path:
    return tmp_path / "cache"


# --- git -------------------------------------------------------------------------------


def of_git(repository: GitRepository, commit: str, **more: Any) -> Task:
    return task({"kind": "git", "url": str(repository.folder), "commit": commit, **more})


def test_a_git_folder_at_a_commit(repository: GitRepository, cache: Path) -> None:
    first = repository.commit({"a.py": "1\n", "pkg/b.py": "2\n"})
    repository.commit({"a.py": "changed\n"})
    snapshot = fetch_source(of_git(repository, first), cache=cache)
    assert snapshot.commit == first
    assert snapshot.date is not None
    assert snapshot.date.isoformat() == "2025-03-04T03:06:07+00:00"
    assert (snapshot.tree / "a.py").read_text() == "1\n"
    assert sorted(snapshot.tracked) == ["a.py", "pkg/b.py"]
    assert snapshot.tracked["a.py"].sha256 == hashlib.sha256(b"1\n").hexdigest()


def test_a_url_relative_to_the_task(repository: GitRepository, tmp_path: Path, cache: Path) -> None:
    commit = repository.commit({"a.py": "1\n"})
    (tmp_path / "task").mkdir()
    source = {"kind": "git", "url": "../repo", "commit": commit}
    assert fetch_source(task(source, tmp_path / "task"), cache=cache).commit == commit


def test_links_executables_and_names_that_are_no_utf8(
    repository: GitRepository, cache: Path
) -> None:
    repository.write({"a.py": "1\n", "run.sh": "#!/bin/sh\n"})
    (repository.folder / "run.sh").chmod(0o755)
    (repository.folder / "link").symlink_to("a.py")
    (repository.folder / "outside").symlink_to("/etc/passwd")
    strange = os.fsdecode(b"caf\xe9.txt")
    (repository.folder / strange).write_text("x")
    wanted = of_git(repository, repository.commit())
    snapshot = fetch_source(wanted, cache=cache)
    kinds = {path: entry.kind for path, entry in snapshot.tracked.items()}
    assert kinds == {
        "a.py": "file",
        "run.sh": "executable",
        "link": "link",
        "outside": "link",
        strange: "file",
    }
    assert snapshot.tracked["outside"].sha256 == hashlib.sha256(b"/etc/passwd").hexdigest()
    again = fetch_source(wanted, cache=cache)
    assert (again.digest, again.tracked) == (snapshot.digest, snapshot.tracked)


def test_line_ends_are_as_the_commit_has_them(
    repository: GitRepository, cache: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    commit = repository.commit({"a.py": "1\n"})
    (tmp_path / ".gitconfig").write_text("[core]\n\tautocrlf = true\n")
    monkeypatch.setenv("HOME", str(tmp_path))
    snapshot = fetch_source(of_git(repository, commit), cache=cache)
    assert (snapshot.tree / "a.py").read_bytes() == b"1\n"


def test_a_commit_that_no_branch_points_at(repository: GitRepository, cache: Path) -> None:
    repository.commit({"a.py": "1\n"})
    lost = repository.commit({"a.py": "lost\n"})
    repository("reset", "--quiet", "--hard", "HEAD~")
    snapshot = fetch_source(of_git(repository, lost), cache=cache)
    assert (snapshot.tree / "a.py").read_text() == "lost\n"


def test_submodules_are_tracked_where_asked(
    repository: GitRepository, another_repository: GitRepository, cache: Path
) -> None:
    another_repository.commit({"inner.py": "i\n"})
    repository.commit({"a.py": "1\n"})
    repository("submodule", "--quiet", "add", str(another_repository.folder), "deps/inner")
    commit = repository.commit()
    without = fetch_source(of_git(repository, commit), cache=cache)
    assert sorted(without.tracked) == [".gitmodules", "a.py"]
    snapshot = fetch_source(of_git(repository, commit, submodules=True), cache=cache)
    assert sorted(snapshot.tracked) == [".gitmodules", "a.py", "deps/inner/inner.py"]
    assert without.digest != snapshot.digest


def test_a_submodule_whose_address_is_relative(
    repository: GitRepository, another_repository: GitRepository, cache: Path
) -> None:
    another_repository.commit({"inner.py": "i\n"})
    repository.commit({"a.py": "1\n"})
    address = f"../{another_repository.folder.name}"
    repository("submodule", "--quiet", "add", str(another_repository.folder), "inner")
    repository.write({".gitmodules": f'[submodule "inner"]\n\tpath = inner\n\turl = {address}\n'})
    commit = repository.commit()
    snapshot = fetch_source(of_git(repository, commit, submodules=True), cache=cache)
    assert sorted(snapshot.tracked) == [".gitmodules", "a.py", "inner/inner.py"]
    assert git("remote", folder=snapshot.tree) == b""


def test_a_pipe_in_git_is_not_waited_for(
    repository: GitRepository, monkeypatch: pytest.MonkeyPatch
) -> None:
    repository.commit({"a.py": "1\n"})
    (repository.folder / ".git/HEAD").unlink()
    os.mkfifo(repository.folder / ".git/HEAD")
    assert gitcommand._ASK_LIMIT_S <= 20
    monkeypatch.setattr(gitcommand, "_ASK_LIMIT_S", 0.5)
    with pytest.raises(SourceError, match="did not end within"):
        snapshot_in_place(repository.folder)


def test_the_date_of_a_commit_runs_no_program_of_the_repository(
    repository: GitRepository, tmp_path: Path
) -> None:
    commit = repository.commit({"a.py": "1\n"})
    signed = git("cat-file", "commit", commit, folder=repository.folder).replace(
        b"\n\n", b"\ngpgsig -----BEGIN PGP SIGNATURE-----\n x\n -----END PGP SIGNATURE-----\n\n", 1
    )
    (tmp_path / "signed").write_bytes(signed)
    repository(
        "update-ref",
        "HEAD",
        repository("hash-object", "-t", "commit", "-w", str(tmp_path / "signed")).strip(),
    )
    program = tmp_path / "program"
    program.write_text(f"#!/bin/sh\ntouch {tmp_path}/ran\n")
    program.chmod(0o755)
    repository("config", "gpg.program", str(program))
    repository("config", "log.showSignature", "true")
    repository("show", "--no-patch")
    assert (tmp_path / "ran").exists(), "the trap itself does not work"
    (tmp_path / "ran").unlink()
    assert commit_date(repository.folder) is not None
    assert not (tmp_path / "ran").exists()


def test_what_cannot_be_had_is_named(
    repository: GitRepository, tmp_path: Path, cache: Path
) -> None:
    repository.commit({"a.py": "1\n"})
    unknown = "ab" * 20
    with pytest.raises(SourceError, match=f"commit {unknown} cannot be had from"):
        fetch_source(of_git(repository, unknown), cache=cache)
    with pytest.raises(SourceError, match=r"there is no folder .*/nothing"):
        fetch_source(of_git(repository, unknown, url=str(tmp_path / "nothing")), cache=cache)
    (tmp_path / "empty").mkdir()
    with pytest.raises(SourceError, match="cannot be had"):
        fetch_source(of_git(repository, unknown, url=str(tmp_path / "empty")), cache=cache)
    assert not [path for path in (cache / "sources").iterdir() if path.is_dir()]


def test_an_address_is_never_taken_for_an_option(
    repository: GitRepository, tmp_path: Path, cache: Path
) -> None:
    witness = tmp_path / "witness"
    for url in (
        f"--upload-pack=touch {witness}",
        f"--upload-pack=touch {witness};://",
        f"ext::touch {witness}",
        f"ext::touch {witness} x://",
        "git@--proxy=x:y",
    ):
        with pytest.raises(SourceError):
            fetch_source(of_git(repository, "ab" * 20, url=url), cache=cache)
    assert not witness.exists()


def test_hooks_and_filters_of_a_repository_are_not_run(
    repository: GitRepository, tmp_path: Path
) -> None:
    repository.commit({"a.py": "1\n", ".gitattributes": "*.py filter=evil\n"})
    witness = tmp_path / "witness"
    hook = repository.folder / ".git/hooks/post-checkout"
    evil = repository.folder / "evil.sh"
    for script in (hook, evil):
        script.write_text(f"#!/bin/sh\ntouch {witness}\n")
        script.chmod(0o755)
    repository("config", "core.fsmonitor", str(evil))
    assert tracked_paths(repository.folder) == [".gitattributes", "a.py"]
    assert snapshot_in_place(repository.folder).commit
    assert not witness.exists()


def test_variables_of_git_do_not_lead_elsewhere(
    repository: GitRepository,
    another_repository: GitRepository,
    cache: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    commit = repository.commit({"a.py": "1\n"})
    another_repository.commit({"b.py": "2\n"})
    monkeypatch.setenv("GIT_DIR", str(another_repository.folder / ".git"))
    monkeypatch.setenv("GIT_WORK_TREE", str(another_repository.folder))
    assert sorted(fetch_source(of_git(repository, commit), cache=cache).tracked) == ["a.py"]
    assert another_repository("status", "--porcelain") == ""


def test_without_git_the_install_command_is_named(
    tmp_path: Path, cache: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    source = {"kind": "git", "url": str(tmp_path), "commit": "ab" * 20}
    with pytest.raises(HostError, match="git is not installed\n  apt-get install git"):
        fetch_source(task(source), cache=cache)


# --- source distributions --------------------------------------------------------------


def tar_gz(members: dict[str, bytes], links: dict[str, str] | None = None) -> bytes:
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w:gz") as archive:
        for name, content in members.items():
            entry = tarfile.TarInfo(name)
            entry.size = len(content)
            archive.addfile(entry, io.BytesIO(content))
        for name, target in (links or {}).items():
            entry = tarfile.TarInfo(name)
            entry.type, entry.linkname = tarfile.SYMTYPE, target
            archive.addfile(entry)
    return buffer.getvalue()


def zipped(members: dict[str, bytes]) -> bytes:
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w") as archive:
        for name, content in members.items():
            archive.writestr(name, content)
    return buffer.getvalue()


SETUP = {"curves-1.0/setup.py": b"raise SystemExit('executed')\n", "curves-1.0/curves.py": b"x=1"}


class Index:
    """A package index of one folder: its pages, written by hand, and its files."""

    def __init__(self, folder: Path, url: str) -> None:
        self.folder, self.url = folder, url

    def add(self, filename: str, content: bytes, *, json_page: bool = False) -> str:
        """Serve an archive; returns its digest."""
        digest = hashlib.sha256(content).hexdigest()
        page = self.folder / "simple" / "curves"
        page.mkdir(parents=True, exist_ok=True)
        (self.folder / filename).write_bytes(content)
        if json_page:
            # PEP 691 and, for upload-time, PEP 700.
            entry = {
                "filename": filename,
                "url": f"../../{filename}",
                "hashes": {"sha256": digest},
                "size": len(content),
                "upload-time": "2024-05-06T07:08:09Z",
            }
            answer = {
                "meta": {"api-version": "1.1"},
                "name": "curves",
                "versions": ["1.0"],
                "files": [entry],
            }
            (page / "index.json").write_text(json.dumps(answer))
        else:
            link = f'<a href="../../{filename}#sha256={digest}">{filename}</a>'
            (page / "index.html").write_text(f"<!DOCTYPE html><html><body>{link}</body></html>")
        return digest

    def task(self, digest: str) -> Task:
        return task({"kind": "sdist", "name": "Curves", "version": "1.0", "sha256": digest})

    @property
    def installs(self) -> dict[str, str]:
        return {"PIP_INDEX_URL": f"{self.url}/simple/"}


class _Handler(http.server.SimpleHTTPRequestHandler):
    def send_head(self) -> Any:
        page = Path(self.translate_path(self.path)) / "index.json"
        if self.path.endswith("/") and page.is_file():
            self.path += "index.json"
        return super().send_head()

    def guess_type(self, path: Any) -> str:
        if str(path).endswith("index.json"):
            return "application/vnd.pypi.simple.v1+json"
        return super().guess_type(path)

    def log_message(self, format: str, *args: Any) -> None:  # noqa: A002 - the base's name
        """Quiet."""


@pytest.fixture
def index(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Index]:
    folder = tmp_path / "index"
    folder.mkdir()
    for name in ("HTTP_PROXY", "HTTPS_PROXY", "http_proxy", "https_proxy"):
        monkeypatch.delenv(name, raising=False)
    handler = functools.partial(_Handler, directory=str(folder))
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        yield Index(folder, f"http://127.0.0.1:{server.server_address[1]}")
        server.shutdown()
        thread.join()


@pytest.mark.parametrize("json_page", [False, True], ids=["PEP 503", "PEP 691"])
def test_an_sdist_from_an_index(index: Index, cache: Path, *, json_page: bool) -> None:
    digest = index.add("curves-1.0.tar.gz", tar_gz(SETUP), json_page=json_page)
    snapshot = fetch_source(index.task(digest), installs=index.installs, cache=cache)
    assert sorted(snapshot.tracked) == ["curves.py", "setup.py"]
    assert (snapshot.date is not None) is json_page
    if snapshot.date:
        assert snapshot.date.isoformat() == "2024-05-06T07:08:09+00:00"


def test_a_cached_source_asks_nobody(index: Index, cache: Path) -> None:
    digest = index.add("curves-1.0.tar.gz", tar_gz(SETUP))
    first = fetch_source(index.task(digest), installs=index.installs, cache=cache)
    nowhere = {"PIP_INDEX_URL": "http://127.0.0.1:9/simple/"}
    assert fetch_source(index.task(digest), installs=nowhere, cache=cache) == first


def test_a_zip(index: Index, cache: Path) -> None:
    digest = index.add("curves-1.0.zip", zipped(SETUP))
    snapshot = fetch_source(index.task(digest), installs=index.installs, cache=cache)
    assert sorted(snapshot.tracked) == ["curves.py", "setup.py"]


def test_an_extra_index_is_asked_after_the_first(index: Index, cache: Path) -> None:
    digest = index.add("curves-1.0.tar.gz", tar_gz(SETUP))
    installs = {
        "PIP_INDEX_URL": f"{index.url}/nothing/",
        "PIP_EXTRA_INDEX_URL": f"{index.url}/simple/",
    }
    assert fetch_source(index.task(digest), installs=installs, cache=cache).tracked


def test_a_find_links_folder(tmp_path: Path, cache: Path) -> None:
    links = tmp_path / "links"
    links.mkdir()
    (links / "curves-1.0.tar.gz").write_bytes(tar_gz(SETUP))
    (links / "curves-1.0-py3-none-any.whl").write_bytes(b"a wheel is no source")
    (links / "notes.txt").write_text("x")
    digest = hashlib.sha256((links / "curves-1.0.tar.gz").read_bytes()).hexdigest()
    for value in (str(links), links.as_uri()):
        installs = {"PIP_INDEX_URL": "http://127.0.0.1:9/", "PIP_FIND_LINKS": f"/none {value}"}
        wanted = task({"kind": "sdist", "name": "curves", "version": "1.0", "sha256": digest})
        assert fetch_source(wanted, installs=installs, cache=cache).tracked


def test_an_index_that_is_a_folder(index: Index, cache: Path) -> None:
    """pip takes file:// addresses of an index; hosts without a network have them."""
    digest = index.add("curves-1.0.tar.gz", tar_gz(SETUP))
    installs = {"PIP_INDEX_URL": (index.folder / "simple").as_uri()}
    assert fetch_source(index.task(digest), installs=installs, cache=cache).tracked


def test_an_index_that_is_down(cache: Path) -> None:
    installs = {"PIP_INDEX_URL": "http://127.0.0.1:9/simple/"}
    wanted = task({"kind": "sdist", "name": "curves", "version": "1.0", "sha256": "0" * 64})
    with pytest.raises(SourceError, match=r"no index .* serves the source of curves==1\.0") as e:
        fetch_source(wanted, installs=installs, cache=cache)
    assert "pip config list" in e.value.advice


@pytest.mark.parametrize("page", [b"<html>Sign in", b"", b"\xff\xfe\x00{}", b"{" * 10_000])
def test_an_index_that_answers_with_something_else(index: Index, cache: Path, page: bytes) -> None:
    folder = index.folder / "simple" / "curves"
    folder.mkdir(parents=True)
    for name in ("index.html", "index.json"):
        (folder / name).write_bytes(page)
        with pytest.raises(SourceError, match="no index of this host serves the source"):
            fetch_source(index.task("0" * 64), installs=index.installs, cache=cache)


def test_another_file_than_the_task_names(index: Index, cache: Path) -> None:
    digest = index.add("curves-1.0.tar.gz", tar_gz(SETUP))
    with pytest.raises(SourceError, match=f"sha256 is {digest}, the task says {'0' * 64}"):
        fetch_source(index.task("0" * 64), installs=index.installs, cache=cache)
    assert not [path for path in (cache / "sources").iterdir() if path.is_dir()]


HOSTILE = {
    "a path out of the folder": tar_gz({"curves-1.0/../../escaped": b"x"}),
    "an absolute path": tar_gz({"/escaped": b"x", "curves-1.0/a.py": b"x"}),
    "a link out of the folder": tar_gz({}, {"curves-1.0/link": "../../../escaped"}),
    "an absolute link": tar_gz({}, {"curves-1.0/link": "/etc/passwd"}),
    "a device": None,
    "garbage": b"\x1f\x8b not gzip",
    "cut off": tar_gz(SETUP)[:60],
    "empty": b"",
}


@pytest.mark.parametrize("name", HOSTILE)
def test_hostile_archives_write_nothing_outside(
    index: Index, cache: Path, tmp_path: Path, name: str
) -> None:
    content = HOSTILE[name]
    if content is None:
        buffer = io.BytesIO()
        with tarfile.open(fileobj=buffer, mode="w:gz") as archive:
            entry = tarfile.TarInfo("curves-1.0/null")
            entry.type, entry.devmajor, entry.devminor = tarfile.CHRTYPE, 1, 3
            archive.addfile(entry)
        content = buffer.getvalue()
    digest = index.add("curves-1.0.tar.gz", content)
    try:
        snapshot = fetch_source(index.task(digest), installs=index.installs, cache=cache)
    except SourceError as error:
        assert "cannot be unpacked" in str(error)  # noqa: PT017 - or it is unpacked safely
    else:
        assert name == "an absolute path"
        assert set(snapshot.tracked) <= {"escaped", "curves-1.0/escaped", "curves-1.0/a.py"}
    assert not Path("/escaped").exists()
    assert not (cache / "escaped").exists()
    assert not (cache / "sources" / "escaped").exists()


def test_a_zip_with_a_path_out_of_the_folder(index: Index, cache: Path, tmp_path: Path) -> None:
    digest = index.add("curves-1.0.zip", zipped({"curves-1.0/a.py": b"x", "../../escaped": b"x"}))
    snapshot = fetch_source(index.task(digest), installs=index.installs, cache=cache)
    assert set(snapshot.tracked) == {"curves-1.0/a.py", "escaped"}
    assert not (cache / "escaped").exists()


# --- folders, the cache ----------------------------------------------------------------


def test_a_folder_is_taken_as_it_is(tmp_path: Path, cache: Path) -> None:
    work = tmp_path / "work"
    (work / ".venv/lib").mkdir(parents=True)
    (work / ".venv/lib/x.py").write_text("x")
    (work / "a.py").write_text("1\n")
    (work / "link").symlink_to("nowhere")
    source = {"kind": "folder", "path": "work"}
    first = fetch_source(task(source, tmp_path), cache=cache)
    assert sorted(first.tracked) == ["a.py", "link"]
    assert fetch_source(task(source, tmp_path), cache=cache) == first
    (work / "a.py").write_text("2\n")
    second = fetch_source(task(source, tmp_path), cache=cache)
    assert second.digest != first.digest
    assert (first.tree / "a.py").read_text() == "1\n"


def test_a_folder_with_what_cannot_be_copied(tmp_path: Path, cache: Path) -> None:
    work = tmp_path / "work"
    work.mkdir()
    (work / "a.py").write_text("1\n")
    os.mkfifo(work / "pipe")
    snapshot = fetch_source(task({"kind": "folder", "path": str(work)}), cache=cache)
    assert sorted(snapshot.tracked) == ["a.py"]
    with pytest.raises(SourceError, match="there is no folder /nowhere"):
        fetch_source(task({"kind": "folder", "path": "/nowhere"}), cache=cache)


def test_a_folder_that_is_a_git_work_tree(repository: GitRepository, cache: Path) -> None:
    repository.commit({"a.py": "1\n"})
    repository.write({"untracked.py": "2\n"})
    snapshot = fetch_source(task({"kind": "folder", "path": str(repository.folder)}), cache=cache)
    assert sorted(snapshot.tracked) == ["a.py", "untracked.py"]


def test_a_cache_that_cannot_be_written(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("x")
    (tmp_path / "work").mkdir()
    with pytest.raises(HostError, match="REB_CACHE") as caught:
        fetch_source(
            task({"kind": "folder", "path": str(tmp_path / "work")}), cache=tmp_path / "file"
        )
    assert "cannot be kept in" in str(caught.value)


def test_where_the_cache_is(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.delenv("REB_CACHE", raising=False)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    assert default_cache() == tmp_path / "researchenvbench"
    monkeypatch.setenv("REB_CACHE", str(tmp_path / "x"))
    assert default_cache() == tmp_path / "x"


_FETCH = """
import sys
from pathlib import Path
from researchenvbench.source import fetch_source
from researchenvbench.task import Task
source = {"kind": "git", "url": sys.argv[1], "commit": sys.argv[2]}
task = Task.model_validate({"schema": 1, "name": "t", "domain": "d", "source": source})
print(fetch_source(task, cache=Path(sys.argv[3])).digest)
"""


def test_two_processes_fetch_at_once(repository: GitRepository, cache: Path) -> None:
    commit = repository.commit({f"f{number}.py": "x\n" * number for number in range(200)})
    running = [
        subprocess.Popen(
            [sys.executable, "-c", _FETCH, str(repository.folder), commit, str(cache)],
            stdout=subprocess.PIPE,
            text=True,
        )
        for _ in range(2)
    ]
    digests = {process.communicate(timeout=120)[0] for process in running}
    assert [process.returncode for process in running] == [0, 0]
    assert len(digests) == 1
    assert [path.name for path in (cache / "sources").iterdir() if path.is_dir()] == [commit]


def test_a_fetch_that_was_cut_off_is_made_again(repository: GitRepository, cache: Path) -> None:
    commit = repository.commit({"a.py": "1\n"})
    (cache / "sources" / commit / "tree").mkdir(parents=True)
    assert sorted(fetch_source(of_git(repository, commit), cache=cache).tracked) == ["a.py"]


def test_a_damaged_cache_is_made_again(repository: GitRepository, cache: Path) -> None:
    wanted = of_git(repository, repository.commit({"a.py": "1\n"}))
    first = fetch_source(wanted, cache=cache)
    (first.tree.parent / "manifest.json").write_text('{"digest": ')
    assert fetch_source(wanted, cache=cache) == first


# --- a user's own folder ---------------------------------------------------------------


def test_a_users_folder_is_what_git_tracks_there(repository: GitRepository) -> None:
    commit = repository.commit({"a.py": "1\n", "gone.py": "2\n"})
    (repository.folder / "gone.py").unlink()
    repository.write({"untracked.py": "3\n", "a.py": "edited\n"})
    snapshot = snapshot_in_place(repository.folder)
    assert snapshot.commit == commit
    assert list(snapshot.tracked) == ["a.py"]
    assert snapshot.tracked["a.py"].sha256 == hashlib.sha256(b"edited\n").hexdigest()


def test_a_users_folder_without_a_commit_or_without_git(
    repository: GitRepository, tmp_path: Path
) -> None:
    repository.write({"a.py": "1\n"})
    repository("add", "a.py")
    snapshot = snapshot_in_place(repository.folder)
    assert (snapshot.commit, list(snapshot.tracked)) == (None, ["a.py"])
    (tmp_path / "plain").mkdir()
    (tmp_path / "plain/b.py").write_text("1\n")
    assert list(snapshot_in_place(tmp_path / "plain").tracked) == ["b.py"]


def test_a_work_tree_whose_history_lies_elsewhere(
    repository: GitRepository, tmp_path: Path
) -> None:
    repository.commit({"a.py": "1\n"})
    repository("worktree", "add", "--quiet", str(tmp_path / "worktree"))
    assert (tmp_path / "worktree/.git").is_file()
    assert list(snapshot_in_place(tmp_path / "worktree").tracked) == ["a.py"]


def test_what_is_no_file_is_not_a_tracked_file(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    with pytest.raises(OSError, match="neither a regular file nor a link"):
        tracked_file(tmp_path / "pipe")
