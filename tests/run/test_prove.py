"""Proving the smallest task for real: gold is built once, and each breakage applied to it."""

from __future__ import annotations

import dataclasses
import shutil
import zipfile
from pathlib import Path

import pytest

from researchenvbench.attempt import Verdict
from researchenvbench.errors import SandboxError, TaskError
from researchenvbench.gpu.inventory import GpuInventory
from researchenvbench.proofs import standing
from researchenvbench.run.job import AttemptRun
from researchenvbench.run.prove import problems_of, prove_task, save_proof
from researchenvbench.run.store import RunFolder
from researchenvbench.sandbox.local.sandbox import LocalSandbox
from researchenvbench.task import Breakage, StageName
from researchenvbench.taskfile import load_suite
from researchenvbench.verify.damage import damaged
from researchenvbench.verify.device import check_devices
from researchenvbench.verify.pyramid import with_interpreter

from .conftest import SUITE

pytestmark = pytest.mark.slow  # each starts the checker of imports several times

#: Beside the three of the task: each kind of breakage that proves nothing, and other levels.
MORE_BREAKAGES = """
[breakages.wrong_product]
description = "the run ends well, and its product is wrong"
append = { "adder.py" = "add = lambda left, right: left * right" }
because = "sum"

[breakages.other_reason]
description = "fails, and not for the reason that is given"
remove = ["adder.py"]
because = "out of paper"

[breakages.not_a_failure]
description = "damages nothing that matters, and is said to"
remove = ["notes.txt"]
because = "No module named 'adder'"

[breakages.removes_nothing]
description = "a glob that matches no file"
remove = ["addder*.py"]
expect = "passed"

[breakages.stubs_nothing]
description = "a package that is not there"
stub = ["subtracter"]
because = "subtracter"

[breakages.appends_nothing]
description = "a module that is not there"
append = { "subtracter.py" = "x = 1" }
because = "subtracter"

[breakages.uninstalls_nothing]
description = "a distribution that is not there"
uninstall = ["subtracter"]
expect = "passed"

[breakages.unresolved]
description = "the module is gone: C0 sees it"
level = "C0"
remove = ["adder.py"]
because = "adder"

[breakages.unseen]
description = "C0 does not look into modules"
level = "C0"
stub = ["adder"]
expect = "passed"

[breakages.of_nothing_in_c0]
description = "a glob that matches no file"
level = "C0"
remove = ["addder*.py"]
because = "adder"

[breakages.no_framework]
description = "C2 does not apply to a task without frameworks"
level = "C2"
remove = ["adder.py"]
because = "adder"

[breakages.no_such_stage]
description = "the task has no stage for one GPU"
level = "C3"
remove = ["adder.py"]
because = "adder"
"""


@pytest.fixture(scope="module", autouse=True)
def cache(shared_cache):
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("REB_CACHE", str(shared_cache))
        yield


@pytest.fixture(scope="module")
def suite_folder(tmp_path_factory):
    folder = Path(shutil.copytree(SUITE, tmp_path_factory.mktemp("proofs") / "small"))
    with (folder / "adder" / "task.toml").open("a") as stream:
        stream.write(MORE_BREAKAGES)
    return folder


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    return RunFolder(tmp_path_factory.mktemp("gold"))


@pytest.fixture(scope="module")
def proof(suite_folder, run):
    suite = load_suite(suite_folder)
    return prove_task(suite, suite.task("adder"), run, lambda _: None)


@pytest.fixture
def breakages(proof):
    return {breakage.name: breakage for breakage in proof.breakages}


def test_gold_passes(proof):
    assert [(stage.stage, stage.verdict) for stage in proof.stages] == [
        (StageName.CPU, Verdict.PASSED)
    ]
    assert proof.problem == ""
    assert proof.c0_missing == ()


def test_a_proof_says_what_it_took(proof):
    (stage,) = proof.stages
    assert proof.build_seconds > 0
    assert stage.seconds > 0
    assert proof.size_bytes > 10_000  # links to an interpreter, and one module
    assert proof.archive_bytes == 0  # its module was not installed from an index
    assert (stage.asset_bytes, stage.fetched_bytes) == ({}, 0)
    assert proof.cpus >= 1
    assert proof.load_average >= 0


@pytest.mark.parametrize(
    "name", ["no_adder", "stub_adder", "wrong_product", "unused", "unresolved", "unseen"]
)
def test_a_good_breakage_is_as_expected(breakages, name):
    breakage = breakages[name]
    assert breakage.as_expected, breakage.reason
    assert breakage.verdict == breakage.expected


@pytest.mark.parametrize(
    ("name", "verdict", "reason"),
    [
        ("other_reason", "failed", "another reason than /out of paper/: the module adder is not"),
        ("not_a_failure", "passed", ""),
        ("removes_nothing", "inconclusive", "nothing matches remove: addder*.py"),
        ("stubs_nothing", "inconclusive", "nothing matches stub: there is no package subtracter"),
        ("appends_nothing", "inconclusive", "nothing matches append: there is no file subtracter"),
        ("uninstalls_nothing", "inconclusive", "subtracter is not installed"),
        ("of_nothing_in_c0", "inconclusive", "nothing matches remove: addder*.py"),
        ("no_framework", "not_applicable", "needs no framework"),
        ("no_such_stage", "inconclusive", "the task has no single_gpu stage"),
    ],
)
def test_a_bad_breakage_is_not_and_says_why(suite_folder, proof, breakages, name, verdict, reason):
    breakage = breakages[name]
    assert not breakage.as_expected
    assert breakage.verdict == verdict
    assert reason in breakage.reason
    task = load_suite(suite_folder).task("adder")
    assert [line for line in problems_of(task, proof) if line.startswith(f"breakage {name}: ")]


def test_only_bad_breakages_are_problems(suite_folder, proof):
    task = load_suite(suite_folder).task("adder")
    assert len(problems_of(task, proof)) == 9


def test_the_frozen_environment_is_what_it_was(proof, run):
    attempt = AttemptRun(run.attempt("adder", 1).path)
    changes = attempt.sandbox.changes(attempt.folder.path)
    assert [path for path in changes.all() if "adder" in path or "notes" in path] == []
    assert list(attempt.folder.path.glob("box/env/lib/python*/site-packages/adder.py"))


def test_the_ledger_holds_no_place_of_this_host(suite_folder, proof, run):
    save_proof(load_suite(suite_folder), proof)
    text = (suite_folder / "proofs.json").read_text()
    assert str(run.path) not in text
    assert str(Path.home()) not in text


@pytest.mark.slow
def test_the_task_as_it_comes_is_proven_until_something_changes(reb, suite, tmp_path):
    done = reb("tasks", "prove", suite, "--only", "adder", "--out", tmp_path / "gold", "--quiet")
    assert done.returncode == 0, done.stdout + done.stderr
    assert "adder: good: cpu proven" in done.stdout
    assert "3 of 3 breakages as they should be" in done.stdout

    def stands():
        return standing(load_suite(suite).task("adder"), StageName.CPU)

    assert stands() == "proven"
    task = suite / "adder" / "task.toml"
    text = task.read_text()
    for old, new in [
        ("steps = [[", 'seed = ["wheel"]\nsteps = [['),
        ("No module named 'adder'", "No module"),
        ("time_limit_s = 60", "time_limit_s = 61"),
    ]:
        assert old in text
        task.write_text(text.replace(old, new))
        assert stands() == "unproven", new
    task.write_text(text)
    assert stands() == "proven"


def test_after_a_change_of_a_stage_gold_is_judged_again_and_not_built(reb, suite, tmp_path):
    prove = ("tasks", "prove", suite, "--only", "adder", "--out", tmp_path / "gold", "--quiet")
    assert reb(*prove).returncode == 0
    attempt = RunFolder(tmp_path / "gold").attempt("adder", 1)
    built = attempt.load_build()
    old_log = attempt.path / "breakages" / "no_adder" / "logs" / "cpu-old.log"
    old_log.write_text("out of paper")
    task = suite / "adder" / "task.toml"
    text = task.read_text()
    task.write_text(text.replace("at_least = 3", "at_least = 4"))
    done = reb(*prove)
    assert done.returncode == 1, "a stage that gold does not pass any more is no proof"
    assert "gold does not pass cpu: failed" in done.stdout
    task.write_text(
        text.replace("at_least = 3", "at_least = 2").replace("named 'adder'", "named|out of paper")
    )
    assert reb(*prove).returncode == 0
    assert standing(load_suite(suite).task("adder"), StageName.CPU) == "proven"
    assert attempt.load_build() == built
    assert not old_log.exists(), "a log of an earlier proof would give a reason"

    shutil.rmtree(attempt.path / "box")
    assert reb(*prove).returncode == 0
    assert attempt.load_build().started > built.started


def test_a_task_that_cannot_be_proven_says_why_and_the_next_one_is_tried(reb, suite, tmp_path):
    task = suite / "adder" / "task.toml"
    task.write_text(task.read_text().replace('"{repo}/install.py"', '"{repo}/nothing.py"'))
    done = reb("tasks", "prove", suite, "--out", tmp_path / "gold", "--quiet")
    assert done.returncode == 1
    assert "adder: NOT as it should be: gold was not built" in done.stdout
    assert "server: NOT as it should be: cpu unproven (passed" in done.stdout
    assert "no breakage is there that must fail cpu" in done.stdout


@pytest.fixture
def subject(proof, run, tmp_path):
    attempt = AttemptRun(run.attempt("adder", 1).path)
    subject = attempt.subject(tmp_path, attempt.source())
    return with_interpreter(subject, subject.report.python_path)


def test_a_damaged_subject_opens_boxes_with_the_damage_done(subject):
    breakage = Breakage(description="", stub=("adder",), expect="passed")
    broken = damaged(subject, breakage, subject.interpreter, subject.host)
    module = Path(subject.interpreter.purelib) / "adder.py"
    with broken.open_box() as box:
        assert box.read(module, 1000) == b""
    with subject.open_box() as box:
        assert b"def add" in box.read(module, 1000)


def test_distributions_are_installed_and_uninstalled_as_damage(subject, tmp_path):
    wheel = tmp_path / "curve_maker-1.0-py3-none-any.whl"
    metadata = "Metadata-Version: 2.1\nName: curve-maker\nVersion: 1.0\n"
    with zipfile.ZipFile(wheel, "w") as archive:
        archive.writestr("curves.py", "made = True\n")
        archive.writestr("curve_maker-1.0.dist-info/METADATA", metadata)
        archive.writestr(
            "curve_maker-1.0.dist-info/WHEEL",
            "Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n",
        )
        archive.writestr("curve_maker-1.0.dist-info/RECORD", "")
    module = Path(subject.interpreter.purelib) / "curves.py"
    install = Breakage(description="", install=(str(wheel),), expect="passed")
    uninstall = Breakage(description="", uninstall=("Curve.Maker",), expect="passed")
    with_it = damaged(subject, install, subject.interpreter, subject.host)
    with with_it.open_box() as box:
        assert box.read(module, 1000) == b"made = True\n"
    without_it = damaged(with_it, uninstall, subject.interpreter, subject.host)
    with without_it.open_box() as box, pytest.raises(SandboxError, match=r"curves\.py"):
        box.read(module, 1000)


def test_a_damage_that_cannot_be_done_names_its_log(subject):
    breakage = Breakage(description="", remove=("nothing*",), expect="passed")
    broken = damaged(subject, breakage, subject.interpreter, subject.host)
    with pytest.raises(TaskError, match="could not be applied") as caught, broken.open_box():
        pytest.fail("the box was opened")
    assert caught.value.advice == f"see {subject.logs / 'damage.log'}"
    assert "nothing matches" in (subject.logs / "damage.log").read_text()


def test_c2_asks_the_damaged_environment(subject):
    # Needs no GPU: what is looked at is that its box opens with the damage done, or not.
    gpus = GpuInventory(why_none="none is looked for")
    breakage = Breakage(description="", stub=("adder",), expect="passed")
    broken = damaged(subject, breakage, subject.interpreter, subject.host)
    assert check_devices(broken, ("torch",), gpus).verdict is Verdict.INCONCLUSIVE
    assert (subject.logs / "damage.log").exists()
    nothing = Breakage(description="", stub=("subtracter",), expect="passed")
    broken = damaged(subject, nothing, subject.interpreter, subject.host)
    with pytest.raises(TaskError, match="there is no package subtracter"):
        check_devices(broken, ("torch",), gpus)


def test_without_a_layer_nothing_is_damaged(subject, run):
    attempt, sandbox = run.attempt("adder", 1).path, LocalSandbox(fresh="in-place")
    in_place = dataclasses.replace(
        subject,
        open_box=lambda **asked: sandbox.stage_box(
            attempt, **{"network": False, "gpus": (), **asked}
        ),
    )
    breakage = Breakage(description="", remove=("adder.py",), expect="passed")
    broken = damaged(in_place, breakage, subject.interpreter, subject.host)
    with pytest.raises(SandboxError, match="the damage would stay"), broken.open_box():
        pytest.fail("the box was opened")
    assert (Path(subject.interpreter.purelib) / "adder.py").is_file()
