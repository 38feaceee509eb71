"""A folder that is no run is said to be none, by every command that takes one."""

import json
import subprocess
from pathlib import Path

import pytest

from .test_commands import reb

SUITE = Path(__file__).parents[1] / "suites" / "small"


@pytest.mark.parametrize(
    "line", [["report"], ["env", "list"], ["env", "prune", "--dry-run", "--run"]], ids=" ".join
)
def test_a_folder_without_a_run_is_refused(tmp_path, line):
    for path, words in ((tmp_path, "no run.json"), (tmp_path / "no", "no such folder")):
        done = reb(*line, path)
        assert done.returncode == 2
        assert f"{path} is not a run folder: " in done.stderr
        assert words in done.stderr
        assert "runs/starter-builtin" in done.stderr
        assert done.stdout == ""


@pytest.mark.parametrize("more", [[], ["--dry-run"]], ids=["run", "dry-run"])
def test_a_run_is_not_put_among_other_files(tmp_path, more):
    repository = tmp_path / "repository"
    subprocess.run(["git", "init", "-q", repository], check=True)
    own = tmp_path / "own"
    own.mkdir()
    (own / "run.json").write_text(json.dumps({"my": "file"}))
    notes = tmp_path / "notes"
    notes.mkdir()
    (notes / "x.txt").write_text("")
    for folder, said in (
        (repository, "no run, but a git repository: it has no run.json"),
        (own, "own/run.json: not a Setting"),
        (notes, "not empty, and no run: it has no run.json"),
    ):
        before = sorted(folder.rglob("*"))
        done = reb("run", SUITE, "--agent", "gold", "--out", folder, *more)
        assert done.returncode == 2
        assert said in done.stderr
        assert "--out" in done.stderr
        assert sorted(folder.rglob("*")) == before
    assert json.loads((own / "run.json").read_text()) == {"my": "file"}
    file = tmp_path / "file"
    file.write_text("")
    done = reb("run", SUITE, "--agent", "gold", "--out", file, *more)
    assert done.returncode == 2
    assert "cannot be a run's folder" in done.stderr
    assert reb("run", SUITE, "--agent", "gold", "--out", tmp_path / "new", "--dry-run").stdout
    assert not (tmp_path / "new").exists()
