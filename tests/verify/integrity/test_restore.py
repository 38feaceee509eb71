"""A stage starts from the source's own files, or says what is in the way."""

from __future__ import annotations

import os
import subprocess
import sys
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pytest

from researchenvbench.attempt import Level, LevelResult, Owner, Report, Verdict
from researchenvbench.sandbox.host_environment import host_environment
from researchenvbench.sandbox.local.sandbox import LocalSandbox
from researchenvbench.source import fetch_source
from researchenvbench.task import Task
from researchenvbench.verify.pyramid import run_level, with_interpreter
from researchenvbench.verify.subject import Subject

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from conftest import GitRepository

SOURCE = {
    "train.py": "import model\nimport pkg.version\nprint(model.answer, pkg.version.number)\n",
    "model.py": "answer = 'right'\n",
    "pkg/__init__.py": "",
    "pkg/version.py": "number = 1\n",
}


@pytest.fixture
def run(repository: GitRepository, tmp_path: Path) -> Callable[..., LevelResult]:
    """Runs C1 of a task whose `pkg/version.py` is generated, in a tree that `plant` altered."""

    def run(plant: Callable[[Path, str], object], **subject_options: Any) -> LevelResult:
        task = Task.model_validate(
            {
                "schema": 1,
                "name": "t",
                "domain": "d",
                "source": {
                    "kind": "git",
                    "url": str(repository.folder),
                    "commit": repository.commit(SOURCE),
                },
                "generated": ["pkg/version.py"],
                "stages": {
                    "cpu": {
                        "command": ["{python}", "{repo}/train.py"],
                        "evidence": [{"kind": "output", "pattern": "^right 1$"}],
                    }
                },
            }
        )
        snapshot = fetch_source(task, cache=tmp_path / "cache")
        sandbox, attempt = LocalSandbox(), tmp_path / "attempt"
        attempt.mkdir()
        with sandbox.build_box(attempt, snapshot.tree, key="k") as box:
            command = [sys.executable, "-m", "venv", "--without-pip", box.layout.env]
            subprocess.run(command, check=True)
            python = str(box.layout.env / "bin" / "python")
            plant(box.layout.repo, python)
        sandbox.freeze(attempt)
        subject = Subject(
            folder=tmp_path / "results",
            open_box=lambda **asked: sandbox.stage_box(
                attempt, **{"network": False, "gpus": (), **asked}
            ),
            host=host_environment(),
            snapshot=snapshot,
            task=task,
            report=Report(python_path=python),
        )
        return run_level(
            replace(with_interpreter(subject, python), **subject_options), Level.C1, ()
        )

    return run


def _changed(repo: Path, _: str) -> None:
    (repo / "pkg/version.py").write_text("number = 2\n")


def _linked(repo: Path, _: str) -> None:
    (repo / "pkg/version.py").unlink()
    (repo / "pkg/version.py").symlink_to("/dev/full")


def _false_byte_code(repo: Path, python: str) -> None:
    """Byte code of other code, dated as the source is, which Python takes for the source's."""
    model = repo / "model.py"
    source, status = model.read_text(), model.stat()
    model.write_text("answer = 'wrong'\n")
    os.utime(model, ns=(status.st_atime_ns, status.st_mtime_ns))
    subprocess.run([python, "-m", "py_compile", model], check=True)
    model.write_text(source)
    os.utime(model, ns=(status.st_atime_ns, status.st_mtime_ns))
    said = subprocess.run([python, repo / "train.py"], check=True, capture_output=True, text=True)
    assert said.stdout == "wrong 1\n", "the trick itself does not work"


def _linked_byte_code(repo: Path, python: str) -> None:
    _false_byte_code(repo, python)
    (repo / "__pycache__").rename(repo.parent / "elsewhere")
    (repo / "__pycache__").symlink_to(repo.parent / "elsewhere")


@pytest.mark.parametrize("plant", [_changed, _linked, _false_byte_code, _linked_byte_code])
def test_a_stage_runs_the_code_of_the_source(
    run: Callable[..., LevelResult], plant: Callable[[Path, str], object]
) -> None:
    result = run(plant)
    assert result.verdict is Verdict.PASSED, result.reason


def test_byte_code_of_a_users_own_folder_is_not_read(run: Callable[..., LevelResult]) -> None:
    result = run(_false_byte_code, judge_edits=False)
    assert result.verdict is Verdict.PASSED, result.reason


def _folder_in_the_way(repo: Path, _: str) -> None:
    (repo / "pkg/version.py").unlink()
    (repo / "pkg/version.py").mkdir()


def _linked_folder(repo: Path, _: str) -> None:
    (repo / "pkg").rename(repo.parent / "pkg")
    (repo / "pkg").symlink_to(repo.parent / "pkg")


@pytest.mark.parametrize(
    ("plant", "why"),
    [
        (_folder_in_the_way, "Is a directory"),
        (_linked_folder, "a folder of its path is none, or a link"),
    ],
)
def test_what_is_in_the_way_of_a_generated_file_is_the_agents_fault(
    run: Callable[..., LevelResult], plant: Callable[[Path, str], object], why: str
) -> None:
    result = run(plant)
    assert (result.verdict, result.owner) == (Verdict.FAILED, Owner.AGENT)
    assert "the generated file pkg/version.py cannot be restored" in result.reason
    assert why in result.reason
