"""Environments as they are found on a host with GPUs: judged, broken, and kept in the ledger."""

import subprocess
import sys

import pytest
from gpu_driver import UUIDS
from test_witness import FRAMEWORK

from researchenvbench.attempt import Verdict
from researchenvbench.evidence import OutputEvidence
from researchenvbench.gpu import leases
from researchenvbench.proofs import gpu_key, keep_gpu_proofs, load_ledger, standing
from researchenvbench.run.found import (
    prove_as_found,
    run_as_found,
    subject_as_found,
    without_installer,
)
from researchenvbench.source import snapshot_in_place
from researchenvbench.task import Breakage, FolderSource, Stage, StageName, Task
from researchenvbench.verify.interpreter import Interpreter
from researchenvbench.verify.witness import counter

ONE = StageName.SINGLE_GPU


@pytest.fixture
def environment(tmp_path):
    """A Python with a distribution `fw`, the framework of these tests, and one that it needs."""
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", tmp_path / "env"], check=True)
    (site,) = tmp_path.glob("env/lib/python*/site-packages")
    for name, module, text in (
        ("fw", "fw.py", FRAMEWORK + "\nimport helper\n"),
        ("helper", "helper/__init__.py", ""),
    ):
        (site / module).parent.mkdir(exist_ok=True)
        (site / module).write_text(text)
        facts = site / f"{name}-1.0.dist-info"
        facts.mkdir()
        (facts / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: 1.0\n")
        listed = (module, f"{facts.name}/METADATA", f"{facts.name}/RECORD")
        (facts / "RECORD").write_text("".join(f"{file},,\n" for file in listed))
    return tmp_path / "env/bin/python", site


def interpreter(python, site):
    return Interpreter(
        executable=str(python),
        version="3",
        implementation="CPython",
        prefix=str(python.parent.parent),
        base_prefix="/usr",
        purelib=str(site),
        platlib=str(site),
        kind="venv",
    )


def test_what_is_uninstalled_is_removed_where_there_is_no_installer(environment):
    breakage = Breakage(description="x", uninstall=("helper",), remove=("a*",), because="x")
    changed = without_installer(breakage, interpreter(*environment))
    assert changed.uninstall == ()
    assert changed.remove == ("a*", "helper", "helper-1.0.dist-info")
    absent = Breakage(description="x", uninstall=("no-such",), because="x")
    assert without_installer(absent, interpreter(*environment)) is absent


@pytest.fixture
def task(driver, tmp_path):
    repo = tmp_path / "suite/fw"
    repo.mkdir(parents=True)
    (repo / "train.py").write_text("import fw\nfw.use(0)\nfw.launch()\nprint('trained')\n")
    stage = Stage(
        command=("{python}", "{repo}/train.py"),
        time_limit_s=20,
        evidence=(OutputEvidence(kind="output", pattern="trained"),),
        env={"LD_LIBRARY_PATH": str(driver.folder)},
    )
    helper = {"description": "it is gone", "level": "C3", "uninstall": ("helper",)}
    return Task(
        schema=1,
        name="fw",
        domain="tests",
        source=FolderSource(kind="folder", path=str(repo)),
        stages={ONE: stage},
        breakages={"no_helper": Breakage(**helper, because="No module named 'helper'")},
        folder=repo,
    )


@pytest.mark.slow
def test_a_stage_is_proven_with_what_the_host_has(driver, environment, task, tmp_path, monkeypatch):
    monkeypatch.setattr(leases, "lease_folder", lambda: tmp_path / "leases")
    monkeypatch.setenv("REB_CACHE", str(tmp_path / "cache"))
    monkeypatch.setattr(counter, "_COMPILERS", ())
    counter._compiled.cache_clear()
    snapshot = snapshot_in_place(task.folder)
    python = str(environment[0])
    subject = subject_as_found(task.folder, python, task, tmp_path / "out", snapshot)
    result = run_as_found(subject, ONE)
    assert (result.verdict, result.gpu_grades) == (Verdict.PASSED, {UUIDS[0]: "observed"})
    assert result.seconds > 1

    untried = prove_as_found(subject, ONE, result, damages=False)
    keep_gpu_proofs(task.folder.parent, [untried])
    assert standing(task, ONE) == "unproven"  # nobody has seen it tell good from bad

    proof = prove_as_found(subject, ONE, result, carried=("helper-1.0",))
    (broken,) = proof.breakages
    assert (broken.verdict, broken.as_expected, proof.carried) == ("failed", True, ("helper-1.0",))
    assert environment[1].joinpath("helper").is_dir()  # the layer took the damage
    keep_gpu_proofs(task.folder.parent, [proof])
    kept = load_ledger(task.folder.parent).on_gpus[gpu_key("fw", ONE)]
    assert kept.gpu_use.processes[0].seen[0].percent == 80
    assert standing(task, ONE) == "proven"
    other = task.model_copy(update={"breakages": {}})
    assert standing(other, ONE) == "unproven"
    counter._compiled.cache_clear()
