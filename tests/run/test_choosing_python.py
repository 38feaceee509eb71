"""Which interpreter `reb verify` judges where the command line names none."""

import sys

import pytest

from researchenvbench.errors import RebError
from researchenvbench.run.verification import check_python, choose_python


def environment(folder):
    (folder / "bin").mkdir(parents=True)
    (folder / "bin" / "python").symlink_to(sys.executable)
    return folder


def test_an_active_environment_is_judged(tmp_path):
    active = environment(tmp_path / "active")
    local = environment(tmp_path / "repo" / ".venv")
    chosen = choose_python(tmp_path / "repo", None, None, {"VIRTUAL_ENV": str(active)})
    assert chosen.path == str(active / "bin" / "python")
    assert f"{local} was passed over" in chosen.named_by


@pytest.mark.parametrize("variable", ["VIRTUAL_ENV", "CONDA_PREFIX"])
def test_an_active_environment_of_reb_itself_is_not_judged(tmp_path, variable):
    local = environment(tmp_path / "repo" / ".venv")
    linked = tmp_path / "link"
    linked.symlink_to(sys.prefix)
    for prefix in (sys.prefix, str(linked)):
        chosen = choose_python(tmp_path / "repo", None, None, {variable: prefix})
        assert chosen.path == str(local / "bin" / "python")
        assert "passed over" not in chosen.named_by
        assert f"${variable} is reb's own environment" in chosen.named_by


def test_where_only_reb_itself_is_active_there_is_nothing_to_judge(tmp_path):
    with pytest.raises(RebError, match="no active environment but reb's own") as raised:
        choose_python(tmp_path, None, None, {"VIRTUAL_ENV": sys.prefix})
    assert "--python" in raised.value.advice


def test_an_active_environment_that_is_the_local_one_is_not_passed_over(tmp_path):
    local = environment(tmp_path / "repo" / ".venv")
    chosen = choose_python(tmp_path / "repo", None, None, {"VIRTUAL_ENV": str(local)})
    assert chosen.path == str(local / "bin" / "python")
    assert chosen.named_by == "$VIRTUAL_ENV"


def test_a_typo_is_said_before_anything_is_judged(tmp_path, reb):
    environment(tmp_path / "venv")
    (tmp_path / "venv" / "data").write_text("")
    check_python(str(tmp_path / "venv"))
    check_python(str(tmp_path / "venv" / "bin" / "python"))
    for named, said in (
        ("venv/bin/pyton", "/venv/bin/pyton is not there; did you mean 'python'"),
        ("vevn/bin/python", "/vevn is not there; did you mean 'venv'"),
        ("venv/data", "data is no file that can be run"),
        ("venv/bin", "is a folder without bin/python"),
    ):
        with pytest.raises(RebError, match=said):
            check_python(str(tmp_path / named))
    done = reb("verify", tmp_path, "--python", tmp_path / "venv" / "bin" / "pyton")
    assert done.returncode == 2
    assert "did you mean 'python'?" in done.stderr
    assert "VENV/bin/python" in done.stderr


def test_what_is_no_python_is_said_and_nobody_blamed(tmp_path, reb):
    (tmp_path / "x.py").write_text("import json\n")
    done = reb("verify", tmp_path, "--python", "/bin/true")
    assert done.returncode == 2, done.stdout
    assert "--python: /bin/true is no Python interpreter" in done.stderr
    assert done.stdout == ""
