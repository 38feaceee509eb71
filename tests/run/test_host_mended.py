"""What this host could not decide is decided again where it may have got what it lacked."""

import json
import shutil
from pathlib import Path

import pytest

from researchenvbench.attempt import Level, Owner, Verdict, Want
from researchenvbench.run import check, doctor, done
from researchenvbench.run.plan import RunPlan
from researchenvbench.run.store import RunFolder
from researchenvbench.taskfile import load_task

from .conftest import SUITE, Reb, record_of

KEEPING = RunPlan(suite="small", agent="gold")


@pytest.fixture(scope="module")
def finished(shared_cache, tmp_path_factory):
    folder = tmp_path_factory.mktemp("finished")
    made = Reb(shared_cache, folder)(
        "run", SUITE, "--agent", "gold", "--only", "adder", "--out", folder / "run"
    )
    assert made.returncode == 0, made.stderr
    return folder / "run"


@pytest.fixture
def wanting(finished, tmp_path):
    """A copy of the run in which C1 is inconclusive for want of something."""

    def make(want):
        run = Path(shutil.copytree(finished, tmp_path / "copy", symlinks=True))
        attempt = run / "attempts" / "adder--1"
        lacks = {
            "verdict": Verdict.INCONCLUSIVE,
            "owner": Owner.HOST,
            "want": want,
            "reason": "this host lacks it",
        }
        for path in (attempt / "record.json", RunFolder(run).attempt("adder", 1).result_file("C1")):
            text = json.loads(path.read_text())
            result = text["results"]["C1"] if "results" in text else text["result"]
            result.update(lacks)
            path.write_text(json.dumps(text))
        return run

    return make


@pytest.mark.parametrize("want", [Want.READER, Want.LIBRARY])
def test_the_level_is_made_anew_and_the_others_are_kept(reb, wanting, want):
    run = wanting(want)
    kept = (run / "attempts" / "adder--1" / "results" / "C0.json").stat().st_mtime_ns
    command = ("run", SUITE, "--agent", "gold", "--only", "adder", "--out", run)
    assert "verify: C1 was inconclusive for want of" in reb(*command, "--dry-run").stdout
    again = reb(*command)
    assert again.returncode == 0, again.stderr
    assert record_of(run)["results"]["C1"]["verdict"] == "passed"
    assert (run / "attempts" / "adder--1" / "results" / "C0.json").stat().st_mtime_ns == kept
    assert " done\n" in reb(*command, "--dry-run").stdout


def test_a_reader_that_is_still_absent_makes_nothing_anew(wanting, monkeypatch):
    record = RunFolder(wanting(Want.READER)).attempt("adder", 1).load_record()
    task = load_task(SUITE / "adder")
    assert done._host_may_differ(record, KEEPING, task)
    monkeypatch.setattr(done, "lacking", lambda _: {"hdf5": ["h5py"]})
    assert done._host_may_differ(record, KEEPING, task) == ""


def test_a_gpu_that_is_absent_makes_nothing_anew(wanting):
    record = RunFolder(wanting(Want.GPU)).attempt("adder", 1).load_record()
    assert record.results[Level.C1].want is Want.GPU
    assert done._host_may_differ(record, KEEPING, load_task(SUITE / "adder")) == ""


def test_without_an_environment_nothing_is_made_anew(wanting):
    record = RunFolder(wanting(Want.LIBRARY)).attempt("adder", 1).load_record()
    task = load_task(SUITE / "adder")
    assert done._host_may_differ(record, KEEPING, task)
    for keep in ("none", "failed"):
        setting = KEEPING.model_copy(update={"keep": keep})
        assert done._host_may_differ(record, setting, task) == ""


def test_absent_readers_are_named_before_a_run(monkeypatch):
    monkeypatch.setattr(check, "lacking", lambda found: {name: ["x"] for name in found})
    assert check._open_ends(load_task(SUITE / "adder")) == [
        "no reader is installed here for: json (x)"
    ]


def test_doctor_says_whether_readers_are_there(monkeypatch):
    assert doctor._readers().state == "good"
    monkeypatch.setattr(doctor, "lacking", lambda: {"hdf5": ["h5py"], "png": ["pillow"]})
    line = doctor._readers()
    assert (line.state, line.found.partition(" not")[0]) == ("note", "h5py, pillow")
    assert "[readers]" in line.advice
