"""A cache that cannot be written is said, with what to do."""

import pytest

from .conftest import SUITE


@pytest.mark.parametrize(
    "line",
    [
        ["verify", SUITE / "adder" / "repository"],
        ["verify", "--image", "nonesuch", "--task", SUITE / "adder"],
    ],
    ids=["folder", "image"],
)
def test_verify_says_where_else_it_could_be(reb, line):
    done = reb(*line, REB_CACHE="/proc/none")
    assert done.returncode == 2
    assert "logs and record cannot be kept in /proc/none/verifications" in done.stderr
    assert "set REB_CACHE to a folder that you may write" in done.stderr


def test_a_run_ends_with_what_to_do(reb, tmp_path):
    # A folder as a source needs no cache, an archive does.
    suite = tmp_path / "suite"
    reb("tasks", "new", "mine", "--suite", suite)
    task = suite / "mine" / "task.toml"
    text = (SUITE / "adder" / "task.toml").read_text().replace('"adder"', '"mine"')
    folder = 'kind = "folder"\npath = "repository"'
    assert folder in text
    commit = f'kind = "git"\nurl = "{tmp_path}/none"\ncommit = "{"a" * 40}"'
    task.write_text(text.replace(folder, commit))
    done = reb("run", suite, "--agent", "gold", "--out", tmp_path / "run", REB_CACHE="/proc/none")
    assert done.returncode == 1, done.stderr
    last = done.stderr.splitlines()[-1]
    assert "1 attempt could not be judged here (mine--1): " in last
    assert "What to do: set REB_CACHE to a folder" in last
    assert "give the same command again" in last
