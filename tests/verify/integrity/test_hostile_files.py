"""What an agent leaves is read as far as it can be read, and never ends or halts the judge."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from contextlib import contextmanager

import pytest
from environments import findings, site_of, told, uv_venv

from researchenvbench.attempt import AttemptStatus, Level, Owner, Report, Verdict
from researchenvbench.errors import HostError, RefusedError, SandboxError
from researchenvbench.sandbox.host_environment import host_environment
from researchenvbench.sandbox.local.sandbox import LocalSandbox
from researchenvbench.source import fetch_source
from researchenvbench.standalone.look import elf, gitfolder
from researchenvbench.task import FolderSource, Task
from researchenvbench.verify.integrity.harmless import strange, wild
from researchenvbench.verify.integrity.hooks import judge_hooks
from researchenvbench.verify.integrity.templates import digest_of
from researchenvbench.verify.pyramid import status_of, verify
from researchenvbench.verify.subject import Subject

TOO_DEEP = {
    "minuses": f"x = {'-' * 900}1",
    "more minuses": f"x = {'-' * 20_000}1",
    "attributes": f"a{'.b' * 900}()",
    "sums": f"x = {' + '.join(['1'] * 5000)}",
}


@pytest.fixture
def python(tmp_path):
    """An interpreter of an environment that can be damaged."""
    return uv_venv(tmp_path / "env")


class TestCode:
    @pytest.mark.parametrize("text", TOO_DEEP.values(), ids=TOO_DEEP)
    def test_what_is_too_deep_cannot_be_read(self, text):
        assert strange(text) == wild(text) == "what cannot be read"
        assert digest_of(text, "call") == ""

    @pytest.mark.parametrize("text", TOO_DEEP.values(), ids=TOO_DEEP)
    def test_a_hook_that_cannot_be_read_is_tampering(self, python, text):
        (site_of(python) / "x.pth").write_text("import _x_editable_loader\n")
        (site_of(python) / "_x_editable_loader.py").write_text(text)
        assert told(findings(python)) == [("start-up-hook", True)]

    @pytest.mark.parametrize(
        "line", ["a{0} = 1", "def f{0}(): f{0}()", "import os; os.path.join('{0}')"]
    )
    def test_much_code_takes_no_more_than_its_length(self, line):
        text = "\n".join(line.format(number) for number in range(12_000))[:65_000]
        text = text.rpartition("\n")[0]
        started = time.process_time()
        strange(text)
        wild(text)
        assert time.process_time() - started < 3.0  # half a second is usual

    def test_of_many_hooks_only_so_much_is_read(self):
        file = {"path": "/s/x.py", "text": "x = 1\n" * 10_000, "whole": True, "changed_ns": 1,
                "listed": {"owner": "x", "same": True, "editable": False}}  # fmt: skip
        hook = {"kind": "sitecustomize", "path": "/s/x.py", "code": [], "files": [file],
                "runs": True}  # fmt: skip
        found = judge_hooks([hook] * 100)
        assert not found[0].disqualifies
        assert "more than can be read" in found[-1].what


class TestLists:
    @pytest.mark.parametrize(
        ("place", "content"),
        [
            ("pyvenv.cfg", "home = /x\0y\n"),
            ("pyvenv.cfg", f"home = /x\nversion = {'9' * 5000}\n"),
            ("conda-meta/x.json", "[" * 100_000),
            ("conda-meta/x.json", '{"paths_data": {"paths": [{"_path": 1, "sha256": 2}]}}'),
            ("SITE/x.start", "a\0b.c:d\n"),
            ("SITE/__editable___x_finder.py", f"MAPPING = {{'x': {'-' * 50_000}1}}\n"),
            ("SITE/x-1.dist-info/RECORD", "x.py,shake_128=abc,3\n"),
        ],
    )
    def test_nothing_in_one_ends_a_look(self, python, place, content):
        path = python.parent.parent / place.replace("SITE", str(site_of(python)))
        path.parent.mkdir(exist_ok=True)
        with path.open("a") as stream:
            stream.write(content)
        kinds = {finding.kind for finding in findings(python)}
        assert kinds <= {"start-up-hook", "distribution-changed"}

    @pytest.mark.parametrize("said", ["gitdir: /x\0y\n", "gitdir: a\n"])
    def test_a_git_that_names_no_folder(self, tmp_path, said):
        (tmp_path / ".git").write_text(said)
        assert not gitfolder.look(str(tmp_path), "0" * 40)["there"]

    @pytest.mark.parametrize("content", [b"\x7fELF", b"\x7fELF\x02\x01" + b"\xff" * 200])
    def test_an_elf_file_that_is_none(self, tmp_path, content):
        (tmp_path / "python").write_bytes(content)
        found = elf.facts(str(tmp_path / "python"))
        assert (found["needed"], found["defines"]) == ([], [])

    def test_a_program_that_never_answers(self, tmp_path):
        os.mkfifo(tmp_path / "python")
        assert elf.facts(str(tmp_path / "python"))["size_bytes"] == 0


class TestLooks:
    """In real boxes of this host."""

    @pytest.fixture
    def attempt(self, tmp_path):
        """A subject whose build has changed a tracked file, and whose boxes can be made fail."""
        source = tmp_path / "source"
        source.mkdir()
        (source / "fit.py").write_text("x = 1\n")
        data = {"schema": 1, "name": "t", "domain": "t",
                "source": FolderSource(kind="folder", path="source").model_dump()}  # fmt: skip
        task = Task.model_validate(data).model_copy(update={"folder": tmp_path})
        snapshot, sandbox = fetch_source(task), LocalSandbox()
        (folder := tmp_path / "attempt").mkdir()
        with sandbox.build_box(folder, snapshot.tree) as box:
            env = box.layout.env
            subprocess.run([sys.executable, "-m", "venv", "--without-pip", env], check=True)
            (box.layout.repo / "fit.py").write_text("x = 2\n")
        sandbox.freeze(folder)

        def attempt(error=None, after=0):
            left = [after]

            @contextmanager
            def open_box(**asked):
                left[0] -= 1
                if error and left[0] < 0:
                    raise error
                with sandbox.stage_box(folder, **{"network": False, "gpus": (), **asked}) as box:
                    yield box

            report = Report(python_path=str(env / "bin" / "python"))
            return Subject(
                tmp_path / "results", open_box, host_environment(), snapshot, task, report
            )

        return attempt

    @pytest.mark.parametrize("error", [HostError("no room"), SandboxError("it has ended")])
    def test_what_was_found_stands_where_the_host_fails(self, attempt, error):
        subject = attempt(error, after=1)
        judged = verify(subject, subject.report.python_path, frameworks=())
        assert [finding.kind for finding in judged.findings] == ["tracked-file-changed"]
        assert status_of(judged) is AttemptStatus.DISQUALIFIED
        assert judged.results[Level.C0].owner is Owner.HOST

    def test_what_was_found_stands_where_the_agent_is_in_the_way(self, attempt):
        subject = attempt(RefusedError("a pipe is in the way"), after=1)
        judged = verify(subject, subject.report.python_path, frameworks=())
        assert [finding.kind for finding in judged.findings] == [
            "tracked-file-changed",
            "environment-unusable",
        ]
        assert status_of(judged) is AttemptStatus.DISQUALIFIED
        assert judged.results[Level.C2].verdict is not Verdict.PASSED

    def test_an_error_in_a_look_is_told_in_words(self, attempt):
        with attempt().open_box() as box:
            for module in ("no_such", "sizes"):  # `sizes` without its order
                with pytest.raises(RefusedError, match=r"^what was left cannot be") as told_of:
                    box.examine(module, {})
                assert "Traceback" not in str(told_of.value)
            assert box.examine("sizes", {"root": "/usr/bin"})["bytes"] > 1000

    def test_a_look_that_does_not_end_is_the_environments(self, attempt):
        with attempt().open_box() as box:
            with pytest.raises(RefusedError, match="took more than"):
                box.examine("sizes", {"root": "/"}, time_limit_s=0.01)
            assert box.examine("sizes", {"root": "/usr/bin"})["bytes"] > 1000
