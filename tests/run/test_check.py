"""`reb tasks check` names the key, what is wrong, and what was probably meant."""

from __future__ import annotations

import pytest

from .conftest import SUITE


@pytest.fixture
def check(reb, suite):
    """The exit code and what is said of the smallest task with `old` replaced by `new`."""

    def run(old, new):
        path = suite / "adder" / "task.toml"
        text = path.read_text()
        assert old in text
        path.write_text(text.replace(old, new))
        done = reb("tasks", "check", suite)
        assert "Traceback" not in done.stderr
        said = [line.removeprefix(f"{path}: ") for line in done.stderr.splitlines()]
        return done.returncode, said

    return run


def test_a_good_suite_is_good(reb):
    done = reb("tasks", "check", SUITE)
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout == "adder: good\nserver: good\n"


COMMAND = 'command = ["{python}", "{repo}/train.py", "--steps", "3"]'
BLOCK = 'readme_block = { file = "README.md", number = 3, language = "bash" }'


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        (
            "{repo}/train.py",
            "{repo}/trian.py",
            "stages.cpu.command.1: trian.py is not in the repository; did you mean 'train.py'?",
        ),
        (
            "{repo}/train.py",
            "{repo}/qqqq",
            "stages.cpu.command.1: qqqq is not in the repository",
        ),
        (
            COMMAND,
            BLOCK,
            "stages.cpu.readme_block.number: README.md has 2 blocks of bash, there is no number 3",
        ),
        (
            COMMAND,
            BLOCK.replace("README.md", "READ.md"),
            "stages.cpu.readme_block.file: READ.md is not a file of the source",
        ),
        (
            "[stages.cpu]",
            '[c0]\nroots = ["install.py", "model"]\n\n[stages.cpu]',
            "c0.roots: model is not in the repository",
        ),
        (
            "{repo}/train.py",
            "{repo}/\\u0000",
            "stages.cpu.command.1: \0 is not in the repository",
        ),
    ],
    ids=["script", "unlike any", "number of block", "file of block", "root", "no name"],
)
def test_a_fault_is_one_line(check, old, new, said):
    assert check(old, new) == (1, [said])


def test_a_block_that_is_there_is_good(check):
    assert check(COMMAND, BLOCK.replace("number = 3", "number = 2")) == (0, [])


def test_a_file_that_only_the_run_makes_is_no_fault(check):
    assert check("{work}/result.json", "{repo}/result.json") == (0, [])


def test_a_source_that_is_not_there_is_said(check):
    code, said = check('path = "repository"', 'path = "repositroy"')
    assert code == 1
    assert "repositroy" in said[0]
