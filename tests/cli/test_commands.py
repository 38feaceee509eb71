"""The command line as a newcomer meets it: help, completion, templates, lists."""

import json
import subprocess
import sys

import pytest

from researchenvbench.cli import COMMANDS
from researchenvbench.taskfile import load_task

COMMAND_LINES = [
    *([name] for name in COMMANDS),
    *(["tasks", name] for name in ("list", "show", "check", "prove", "new")),
    *(["env", name] for name in ("list", "shell")),
]


def reb(*arguments, cwd=None):
    return subprocess.run(
        [sys.executable, "-m", "researchenvbench", *map(str, arguments)],
        cwd=cwd,
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )


@pytest.mark.parametrize("line", COMMAND_LINES, ids=" ".join)
def test_every_help_begins_with_an_example(line):
    done = reb(*line, "--help")
    assert done.returncode == 0, done.stderr
    assert "Example" in done.stdout
    assert f"reb {line[0]}" in done.stdout


def test_help_imports_nothing_heavy():
    listed = subprocess.run(
        [
            sys.executable,
            "-c",
            (
                "import sys; sys.argv = ['reb', '--help']\n"
                "from researchenvbench.cli import main\n"
                "try: main()\n"
                "except SystemExit: print(' '.join(sys.modules), file=sys.stderr)"
            ),
        ],
        capture_output=True,
        text=True,
        check=True,
    ).stderr.split()
    heavy = {"pydantic", "rich", "jinja2", "packaging", "requests", "pynvml", "filelock", "uv"}
    assert "click" in listed
    assert heavy.isdisjoint(listed)


def test_version_names_the_tools_that_are_driven():
    done = reb("--version")
    assert done.returncode == 0
    named = {line.split()[0] for line in done.stdout.splitlines()}
    assert named >= {"researchenvbench", "python", "uv", "pyright", "git"}


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_completion(shell):
    done = reb("completion", shell)
    assert done.returncode == 0
    assert "_REB_COMPLETE" in done.stdout


def test_the_template_is_a_task(tmp_path):
    assert reb("tasks", "new", "my-task", "--suite", tmp_path).returncode == 0
    task = load_task(tmp_path / "my-task")
    assert task.name == "my-task"
    assert list(task.stages) == ["cpu"]
    again = reb("tasks", "new", "my-task", "--suite", tmp_path)
    assert again.returncode == 2
    assert "there already" in again.stderr


def test_a_name_that_is_a_path_is_refused(tmp_path):
    done = reb("tasks", "new", "../elsewhere", "--suite", tmp_path)
    assert done.returncode == 2
    assert not (tmp_path.parent / "elsewhere").exists()


def test_the_starter_suite_is_listed_and_shown():
    rows = json.loads(reb("tasks", "list", "starter", "--json").stdout)
    assert len(rows) >= 6
    name = rows[0]["task"]
    assert name in reb("tasks", "show", f"starter/{name}").stdout
    assert json.loads(reb("tasks", "show", f"starter/{name}", "--json").stdout)["name"] == name


def test_doctor_says_what_this_host_can_do():
    lines = json.loads(reb("doctor", "--json").stdout)
    assert {"git", "fresh stages", "GPUs", "disk"} <= {line["what"] for line in lines}
    assert all(line["found"] for line in lines)


def test_the_page_of_the_task_file_is_up_to_date(request):
    script = request.config.rootpath / "scripts" / "task_reference.py"
    assert subprocess.run([sys.executable, script, "--check"], check=False).returncode == 0
