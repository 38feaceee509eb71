"""`reb verify` names damage done to an environment by hand, at the right level."""

import json
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from .conftest import SUITE, Reb

pytestmark = pytest.mark.slow  # each starts the checker of imports several times


@pytest.fixture(scope="module")
def built(tmp_path_factory, shared_cache):
    folder = tmp_path_factory.mktemp("built")
    done = Reb(shared_cache, folder)("run", SUITE, "--agent", "gold", "--out", folder / "run")
    assert done.returncode == 0, done.stderr
    return folder / "run" / "attempts" / "adder--1"


@pytest.fixture
def damaged(built):
    """The attempt, put right again after the test."""
    kept = built.with_name("kept")
    shutil.copytree(built, kept, symlinks=True)
    yield built
    shutil.rmtree(built)
    kept.rename(built)


def verify(reb, *arguments):
    done = reb("verify", *arguments, "--json")
    return done.returncode, json.loads(done.stdout)


def module_of(attempt):
    (found,) = attempt.glob("box/env/lib/python*/site-packages/adder.py")
    return found


def test_an_untouched_attempt_passes_again(reb, built):
    code, record = verify(reb, built)
    assert code == 0
    assert record["results"]["C1"]["verdict"] == "passed"
    assert record["results"]["C5"]["verdict"] == "passed"


def test_a_removed_package_fails_c1(reb, damaged):
    module_of(damaged).unlink()
    code, record = verify(reb, damaged)
    assert code == 1
    assert record["results"]["C1"]["verdict"] == "failed"
    assert record["results"]["C1"]["reason"].startswith("the module adder is not installed")
    assert record["results"]["C0"]["verdict"] == "failed"
    assert record["status"] == "ok"


def test_an_empty_stub_fails_c1_and_passes_c0(reb, damaged):
    module_of(damaged).write_text("")
    code, record = verify(reb, damaged)
    assert code == 1
    assert record["results"]["C0"]["verdict"] == "passed"
    assert record["results"]["C1"]["verdict"] == "failed"
    assert "adder" in record["results"]["C1"]["reason"]


def test_an_edited_tracked_file_disqualifies(reb, damaged):
    with (damaged / "box" / "repo" / "train.py").open("a") as stream:
        stream.write("# easier\n")
    code, record = verify(reb, damaged)
    assert code == 1
    assert record["status"] == "disqualified"
    (finding,) = [f for f in record["findings"] if f["disqualifies"]]
    assert (finding["kind"], finding["where"]) == ("tracked-file-changed", "train.py")


def test_only_the_levels_asked_for_are_run(reb, built):
    code, record = verify(reb, built, "--level", "C0")
    assert code == 0
    assert list(record["results"]) == ["C0"]
    code, record = verify(reb, built, "--stage", "cpu", "--repeats", "2")
    assert record["results"]["C1"]["verdicts"] == ["passed", "passed"]
    assert record["results"]["C1"]["flaky"] is False


@pytest.fixture
def own_folder(tmp_path):
    """A user's own repository, with an environment beside it and no task file."""
    repo = Path(shutil.copytree(SUITE / "adder" / "repository", tmp_path / "my repository"))
    subprocess.run([sys.executable, "-m", "venv", repo / ".venv"], check=True)
    subprocess.run([repo / ".venv" / "bin" / "python", repo / "install.py"], check=True)
    return repo


def tree(folder):
    return {str(path): path.lstat().st_mtime_ns for path in folder.rglob("*")}


def test_a_users_folder_is_judged_and_not_changed(reb, own_folder):
    before = tree(own_folder)
    done = reb("verify", own_folder, VIRTUAL_ENV="", CONDA_PREFIX="")
    assert f"judging {own_folder}/.venv/bin/python" in done.stderr.splitlines()[-1] + done.stderr
    assert "reb verify" in done.stderr, "the command that confirms the entry point is printed"
    assert "python train.py --steps 3" in done.stderr
    assert done.returncode == 3, "C1 is inconclusive for want of an entry point"
    assert "no entry point was given: --entry COMMAND" in done.stdout
    assert "(task)" not in done.stdout
    assert tree(own_folder) == before


def test_an_entry_point_that_the_user_names_is_run(reb, own_folder):
    before = tree(own_folder)
    code, record = verify(
        reb, own_folder, "--entry", "python train.py --steps 3", "--python", own_folder / ".venv"
    )
    assert code == 0, record["results"]
    assert record["results"]["C1"]["verdict"] == "passed"
    assert tree(own_folder) == before


def test_an_interpreter_that_is_none_is_said(reb, own_folder, tmp_path):
    fake = tmp_path / "bin" / "python"
    fake.parent.mkdir()
    fake.write_text("#!/bin/sh\nexit 0\n")
    fake.chmod(0o755)
    done = reb("verify", own_folder, "--python", fake, "--entry", "python train.py --steps 3")
    assert done.returncode == 2
    assert f"--python: {fake} is no Python interpreter" in done.stderr
    assert done.stdout == ""


def test_the_reported_interpreter_is_audited_and_not_the_one_that_is_judged(
    reb, own_folder, tmp_path
):
    report = tmp_path / "report.json"
    judged = own_folder / ".venv" / "bin" / "python"
    claims = [{"capability": "C0", "value": True}]
    options = ["--python", judged, "--report", report, "--level", "C0", "--level", "C5"]

    report.write_text(json.dumps({"python_path": "/nowhere/bin/python", "claims": claims}))
    code, record = verify(reb, own_folder, *options)
    assert code == 1
    outcomes = {claim["claim"]: claim["outcome"] for claim in record["audit"]["claims"]}
    assert outcomes["python_path"] == "false"
    assert outcomes["C0"] == "unverifiable"
    assert record["python"] == str(judged)

    # Another spelling of the same environment is the same.
    other_name = judged.with_name("python3")
    report.write_text(json.dumps({"python_path": str(other_name), "claims": claims}))
    code, record = verify(reb, own_folder, *options)
    outcomes = {claim["claim"]: claim["outcome"] for claim in record["audit"]["claims"]}
    assert (code, outcomes["python_path"], outcomes["C0"]) == (0, "true", "true")


@pytest.mark.parametrize(
    "option", [["--task", "starter/x"], ["--entry", "python x.py"], ["--report", "report.json"]]
)
def test_what_an_attempt_has_itself_cannot_be_given(reb, built, option):
    done = reb("verify", built, *option)
    assert done.returncode == 2
    assert f"leave out {option[0]}" in done.stderr


def test_a_report_that_is_too_large_says_how_large(reb, own_folder, tmp_path):
    report = tmp_path / "report.json"
    report.write_text('{"notes": "' + "x" * 1_500_000 + '"}')
    code, record = verify(reb, own_folder, "--report", report, "--level", "C5")
    assert code == 1
    assert "1500013 bytes" in record["results"]["C5"]["reason"]


def test_the_system_is_no_environment_whose_size_counts(reb, own_folder):
    system = Path(sys.base_prefix) / "bin" / "python3"
    _, record = verify(reb, own_folder, "--python", system, "--level", "C5")
    assert record["sizes"]["prefix_bytes"] is None
    _, record = verify(reb, own_folder, "--python", own_folder / ".venv", "--level", "C5")
    assert record["sizes"]["prefix_bytes"] > 0


def test_a_false_report_fails_c5(reb, own_folder, tmp_path):
    report = tmp_path / "report.json"
    report.write_text(
        json.dumps(
            {"python_path": str(own_folder / ".venv/bin/python"), "python_version": "2.7.18"}
        )
    )
    code, record = verify(reb, own_folder, "--report", report, "--level", "C5")
    assert code == 1
    assert record["results"]["C5"]["verdict"] == "failed"
    assert record["audit"]["by_kind"] == {"version": 1}


def test_what_was_changed_after_the_freeze_is_said(reb, damaged):
    (damaged / "box" / "env" / "later.txt").write_text("x")
    _, record = verify(reb, damaged, "--level", "C5")
    assert [finding["kind"] for finding in record["findings"]] == ["changed-after-freeze"]


def test_files_that_the_source_does_not_have_are_listed(reb, damaged):
    (damaged / "box" / "repo" / "notes.txt").write_text("x")
    code, record = verify(reb, damaged, "--level", "C5")
    assert code == 0
    assert record["untracked"] == ["notes.txt"]
