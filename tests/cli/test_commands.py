"""The command line as a newcomer meets it: help, completion, templates, lists."""

import json
import shlex
import subprocess
import sys
from pathlib import Path

import pytest

from researchenvbench.cli import COMMANDS
from researchenvbench.taskfile import load_task

COMMAND_LINES = [
    *([name] for name in COMMANDS),
    *(["tasks", name] for name in ("list", "show", "check", "totals", "prove", "new")),
    ["sources", "mirror"],
    *(["env", name] for name in ("list", "shell", "prune", "export", "import")),
    *(["image", name] for name in ("build", "list")),
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


def test_a_template_is_not_put_among_other_files(tmp_path):
    (tmp_path / "mine").mkdir()
    assert reb("tasks", "new", "mine", "--suite", tmp_path).returncode == 0
    (tmp_path / "other").mkdir()
    (tmp_path / "other" / "notes.txt").write_text("x")
    done = reb("tasks", "new", "other", "--suite", tmp_path)
    assert done.returncode == 2
    assert "is not empty" in done.stderr
    assert not (tmp_path / "other" / "task.toml").exists()
    (tmp_path / "file").write_text("x")
    assert reb("tasks", "new", "file", "--suite", tmp_path).returncode == 2


def make_local_task(folder, *, roots):
    (folder / "code").mkdir(parents=True)
    (folder / "code" / "fit.py").write_text("print('done')\n")
    (folder / "task.toml").write_text(
        f'''schema = 1
name = "{folder.name}"
domain = "tests"
source = {{ kind = "folder", path = "code" }}
c0 = {{ roots = {json.dumps(roots)} }}
[stages.cpu]
command = ["{{python}}", "{{repo}}/fit.py"]
[[stages.cpu.evidence]]
kind = "output"
pattern = "done"
'''
    )


def test_one_task_is_checked_by_its_folder(tmp_path):
    make_local_task(tmp_path / "good", roots=["fit.py"])
    make_local_task(tmp_path / "bad", roots=["gone"])
    done = reb("tasks", "check", tmp_path / "good")
    assert (done.returncode, done.stdout) == (0, "good: good\n"), done.stderr
    done = reb("tasks", "check", tmp_path / "bad")
    assert (done.returncode, done.stdout) == (1, "bad: 1 problem\n"), done.stderr
    assert "gone is not in the repository" in done.stderr


@pytest.mark.parametrize("options", [["--level", "C9"], ["--stage", "gpu"]])
def test_a_usage_error_of_verify_comes_first(tmp_path, monkeypatch, options):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    repo = tmp_path / "repo"
    repo.mkdir()
    (repo / "fit.py").write_text("print(1)\n")
    (repo / "README.md").write_text("```\npython fit.py\n```\n")
    done = reb("verify", repo, *options)
    assert done.returncode == 2
    assert f"there is no {options[0][2:]} {options[1]!r}" in done.stderr
    assert "--entry" not in done.stderr
    assert not (tmp_path / "cache").exists()


def test_printed_commands_can_be_pasted(tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    repo = tmp_path / "it's mine"
    (repo / ".venv").mkdir(parents=True)
    (repo / ".venv" / "pyvenv.cfg").write_text("")
    (repo / "fit.py").write_text("print(1)\n")
    (repo / "README.md").write_text("```\npython fit.py --name 'a b'\n```\n")
    shown = next(
        line
        for line in reb("verify", repo, "--level", "C0").stderr.splitlines()
        if "run it" in line
    )
    assert shlex.split(shown.partition("to run it: ")[2]) == [
        "reb",
        "verify",
        str(repo),
        "--entry",
        "python fit.py --name 'a b'",
    ]
    shown = reb("build", repo).stderr
    assert f"reb build {shlex.quote(str(repo))} --replace" in shown


def test_a_build_leaves_nothing_but_the_environment_and_names_its_log(tmp_path, monkeypatch):
    monkeypatch.setenv("REB_CACHE", str(tmp_path / "cache"))
    repo = tmp_path / "a repository"
    repo.mkdir()
    (repo / "fit.py").write_text("import json\nprint(1)\n")
    done = reb("build", repo, "--index-date", "none")
    assert done.returncode == 0, done.stderr
    assert sorted(path.name for path in repo.iterdir()) == [".venv", "fit.py"]
    log = Path(done.stderr.splitlines()[-1].removeprefix("log: "))
    assert log.parent == tmp_path / "cache" / "builds"
    assert log.read_text().startswith("# ")

    (repo / "fit.py").write_text("import nonesuch_module_of_nobody\n")
    limit = ("--time-limit", "0.01")  # less than a second: it does not get far
    failed = reb("build", repo, "--replace", "--index-date", "none", "--quiet", *limit)
    assert failed.returncode == 1
    assert failed.stdout.rstrip().endswith(f"; log: {log}")
    assert log.is_file()
    assert not (repo / ".venv.log").exists()


def test_a_run_is_not_taken_for_an_environment(tmp_path):
    (tmp_path / "run.json").write_text("{}")
    done = reb("verify", tmp_path)
    assert done.returncode == 2
    assert "has no attempts yet" in done.stderr
    attempt = tmp_path / "attempts" / "curves--1"
    attempt.mkdir(parents=True)
    (attempt / "job.json").write_text("{}")
    done = reb("verify", tmp_path)
    assert done.returncode == 2
    assert "is a run" in done.stderr
    assert f"reb verify {attempt}" in done.stderr
    assert "reb build" not in done.stderr
    assert "unfinished" in reb("env", "list", tmp_path).stdout


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
