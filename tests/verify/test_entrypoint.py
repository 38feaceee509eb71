"""C1: the repository's own entry point in a fresh box, judged by what it made.

Each test says what the stage is, runs it for real in an environment that was built for real,
and looks at verdict, owner and reason.
"""

import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from researchenvbench.attempt import Level, Owner, Report, Verdict
from researchenvbench.diagnose import _rules
from researchenvbench.errors import TaskError
from researchenvbench.sandbox.host_environment import host_environment
from researchenvbench.sandbox.local.sandbox import LocalSandbox
from researchenvbench.source import fetch_source
from researchenvbench.task import StageName, Task
from researchenvbench.taskfile import load_suite
from researchenvbench.verify.confirm import _QUESTIONS
from researchenvbench.verify.entrypoint import run_stage
from researchenvbench.verify.pyramid import with_interpreter
from researchenvbench.verify.subject import Subject

SUITE = Path(__file__).parent.parent / "suites" / "small"


@pytest.fixture(scope="module")
def cache(tmp_path_factory):
    return tmp_path_factory.mktemp("cache")


@pytest.fixture(scope="module")
def judge(tmp_path_factory, cache):
    """Builds an attempt of a task by hand and runs its cpu stage."""
    sandbox, host = LocalSandbox(), host_environment()

    def build(task):
        attempt = tmp_path_factory.mktemp(task.name)
        snapshot = fetch_source(task, cache=cache)
        with sandbox.build_box(attempt, snapshot.tree) as box:
            subprocess.run([sys.executable, "-m", "venv", box.layout.env], check=True)
            python = box.layout.env / "bin" / "python"
            installer = box.layout.repo / "install.py"
            if installer.exists():
                subprocess.run([python, installer], check=True)
        sandbox.freeze(attempt)
        return attempt, snapshot, python

    attempts = {}

    def run(task, *, report_env=None, **options):
        key = task.name
        if key not in attempts:
            attempts[key] = build(task)
        attempt, snapshot, python = attempts[key]
        subject = Subject(
            folder=tmp_path_factory.mktemp("results"),
            open_box=lambda **asked: sandbox.stage_box(
                attempt, **{"network": False, "gpus": (), **asked}
            ),
            host=host,
            snapshot=snapshot,
            task=task,
            report=Report(python_path=str(python), env=report_env or {}),
        )
        subject = with_interpreter(subject, str(python))
        assert subject.interpreter, subject.interpreter_error
        return run_stage(subject, StageName.CPU, **options)

    return run


def variant(name, **stage):
    """A task of the small suite with another cpu stage."""
    task = load_suite(SUITE).task(name)
    data = task.model_dump(by_alias=True, mode="json")
    data["stages"]["cpu"] |= stage
    return Task.model_validate(data).model_copy(update={"folder": task.folder})


def prints(text, code=0, more="pass"):
    """A stage that prints a text and ends."""
    return {
        "command": ["{python}", "-c", f"import sys; print({text!r}); {more}; sys.exit({code})"],
        "evidence": [{"kind": "output", "pattern": "done"}],
    }


def test_a_service_is_started_waited_for_and_asked(judge):
    result = judge(load_suite(SUITE).task("server"))
    assert result.verdict is Verdict.PASSED, result.reason
    assert result.level is Level.C1
    assert len(result.evidence) == 4


def test_a_service_that_dies_fails_the_stage_with_its_last_words(judge):
    task = variant("server", env={"SERVER_DIES": "1"})
    result = judge(task)
    assert (result.verdict, result.owner) == (Verdict.FAILED, Owner.AGENT)
    assert "model ended before it was ready" in result.reason
    assert "no weights" in result.reason


def test_exit_0_without_the_evidence_fails_and_says_what_was_seen(judge):
    result = judge(variant("adder", **prints("almost")))
    assert (result.verdict, result.owner) == (Verdict.FAILED, Owner.AGENT)
    assert "almost" in result.reason


def test_the_evidence_without_a_good_end_fails(judge):
    result = judge(variant("adder", **prints("done", code=3)))
    assert result.verdict is Verdict.FAILED
    assert result.exit_code == 3
    assert "exit 3" in result.reason


def test_a_stage_over_its_time_is_ended_and_failed(judge):
    stage = prints("done", more="import time; sys.stdout.flush(); time.sleep(600)")
    result = judge(variant("adder", **stage, time_limit_s=2))
    assert result.verdict is Verdict.FAILED
    assert result.timed_out
    assert "time limit of 2 s" in result.reason


def test_a_missing_module_is_the_reason_and_the_agents_fault(judge):
    result = judge(variant("adder", **prints("x", more="import nowhere_to_be_found")))
    assert result.reason.startswith("the module nowhere_to_be_found is not installed")
    assert result.owner is Owner.AGENT


def test_a_missing_system_library_is_the_hosts_and_names_the_package(judge):
    if (
        shutil.which("ldconfig", path="/sbin:/usr/sbin")
        and "libOSMesa.so.8"
        in subprocess.run(
            ["/sbin/ldconfig", "-p"], capture_output=True, text=True, check=True
        ).stdout
    ):
        pytest.skip("this host has libOSMesa.so.8")
    loads = "import ctypes; ctypes.CDLL('libOSMesa.so.8')"
    result = judge(variant("adder", **prints("x", more=loads)))
    assert (result.verdict, result.owner) == (Verdict.INCONCLUSIVE, Owner.HOST)
    assert result.system_packages == ("libosmesa6",)


@pytest.mark.parametrize(
    ("how", "owner"),
    [
        ("raise ValueError('x')", Owner.AGENT),
        ("os.kill(os.getpid(), 11)", Owner.AGENT),
        ("import warnings; warnings.warn(str(error)); os._exit(3)", Owner.AGENT),
        ("raise SystemExit(str(error))", Owner.HOST),
    ],
)
def test_a_library_that_nobody_needs_excuses_nothing(judge, how, owner):
    script = f"""
import ctypes, os
try:
    ctypes.CDLL('libOSMesa.so.8')
except OSError as caught:
    error = caught
    print(error, flush=True)
{how}"""
    more = f"exec({script!r})"
    if "warn" in how:
        more = more.replace("print(error, flush=True)", "pass")
    assert judge(variant("adder", **prints("x", more=more))).owner is owner


def test_a_library_that_the_host_has_is_not_believed_to_be_missing(judge):
    lies = "raise OSError('libz.so.1: cannot open shared object file: No such file')"
    result = judge(variant("adder", **prints("x", more=lies)))
    assert (result.verdict, result.owner) == (Verdict.FAILED, Owner.AGENT)


@pytest.mark.parametrize(
    "words",
    [
        "insufficient shared memory (shm)",
        "No space left on device",
        "FileNotFoundError: [Errno 2] No such file or directory: 'git'",
        "libz.so.1: cannot open shared object file: No such file",
    ],
)
def test_words_alone_move_nothing_to_the_host(judge, words):
    result = judge(variant("adder", **prints("x", more=f"raise RuntimeError({words!r})")))
    assert (result.verdict, result.owner) == (Verdict.FAILED, Owner.AGENT)


def test_every_rule_that_blames_the_host_names_what_can_be_asked_of_it():
    blaming = [rule for rule in _rules() if rule.owner is Owner.HOST]
    assert blaming
    for rule in blaming:
        assert rule.want in _QUESTIONS, rule.name


def test_a_task_cannot_show_the_gpus_that_its_level_hides(judge):
    shows = {
        "command": ["{python}", "-c", "import os; print(repr(os.environ['CUDA_VISIBLE_DEVICES']))"],
        "env": {"CUDA_VISIBLE_DEVICES": "0"},
        "evidence": [{"kind": "output", "pattern": "^''$"}],
    }
    assert judge(variant("adder", **shows)).verdict is Verdict.PASSED


def test_a_full_disk_that_is_not_full_is_not_believed(judge):
    lies = "raise OSError(28, 'No space left on device')"
    result = judge(variant("adder", **prints("x", more=lies)))
    assert (result.verdict, result.owner) == (Verdict.FAILED, Owner.AGENT)


def test_the_stage_sees_the_report_env_and_the_task_env_wins(judge):
    shows = {
        "command": ["{python}", "-c", "import os; print(os.environ['A'], os.environ['B'])"],
        "env": {"B": "task"},
        "evidence": [{"kind": "output", "pattern": "^report task$"}],
    }
    result = judge(variant("adder", **shows), report_env={"A": "report", "B": "report"})
    assert result.verdict is Verdict.PASSED, result.reason


def test_the_stage_hides_gpus_and_starts_in_an_empty_folder(judge):
    shows = {
        "command": [
            "{python}",
            "-c",
            "import os; print(repr(os.environ['CUDA_VISIBLE_DEVICES']), os.listdir('.'))",
        ],
        "evidence": [{"kind": "output", "pattern": r"^'' \[\]$"}],
    }
    assert judge(variant("adder", **shows)).verdict is Verdict.PASSED


def test_a_stages_leavings_do_not_reach_the_next(judge):
    leaves = {
        "command": [
            "{python}",
            "-c",
            (
                "import pathlib; p = pathlib.Path(r'{repo}/left.txt'); "
                "print('there' if p.exists() else 'fresh'); p.write_text('x')"
            ),
        ],
        "evidence": [{"kind": "output", "pattern": "^fresh$"}],
    }
    first, second = judge(variant("adder", **leaves)), judge(variant("adder", **leaves))
    assert first.verdict is Verdict.PASSED
    if first.fresh.kind == "overlay":
        assert second.verdict is Verdict.PASSED


def test_a_console_script_comes_from_the_environment(judge):
    missing = {"command": ["adder-train"], "launcher": "console_script"}
    result = judge(variant("adder", **missing))
    assert result.verdict is Verdict.FAILED
    assert "adder-train is not in the environment" in result.reason
    pip = {
        "command": ["pip", "--version"],
        "launcher": "console_script",
        "evidence": [{"kind": "output", "pattern": "box/env/lib"}],
    }
    assert judge(variant("adder", **pip)).verdict is Verdict.PASSED


def test_a_readme_block_is_taken_from_the_source(judge):
    block = {
        "command": [],
        "readme_block": {"file": "README.md", "number": 2, "language": "bash"},
        "folder": "{repo}",
        "evidence": [{"kind": "output", "pattern": r"step 3 loss (?P<loss>\S+)"}],
    }
    result = judge(variant("adder", **block))
    assert result.verdict is Verdict.PASSED, result.reason
    block["readme_block"] = {"file": "README.md", "number": 9, "language": "bash"}
    with pytest.raises(TaskError, match="there is no number 9"):
        judge(variant("adder", **block))


def test_a_stage_that_nothing_can_pass_is_the_tasks(judge):
    result = judge(variant("adder", not_solvable="line 7 raises on every version"))
    assert (result.verdict, result.owner) == (Verdict.INCONCLUSIVE, Owner.TASK)


def test_noise_is_survived(judge):
    noise = (
        "sys.stdout.buffer.write(b'\\xff\\xfe\\x00\\r50%\\r100%\\n' * 1000); "
        "sys.stdout.flush(); print('done')"
    )
    assert judge(variant("adder", **prints("x", more=noise))).verdict is Verdict.PASSED
