"""The script that shows on real hardware that the levels judge as they should."""

import json
import os
import subprocess
import sys
import time
import zipfile
from pathlib import Path

import pytest
from test_witness import FRAMEWORK

from researchenvbench.attempt import Finding, Level, LevelResult, Owner, Verdict
from researchenvbench.gpu import leases
from researchenvbench.gpu_use import GpuUse
from researchenvbench.verify.witness import counter

sys.path.insert(0, str(Path(__file__).parents[2] / "scripts"))
import gpu_acceptance
import gpu_cases
import gpu_run
import gpu_suite
from gpu_cases import Case

HANG = Case("x", "", "failed", "time limit", "agent", next_within_s=1.0)


def result(reason="still running at the time limit", owner=Owner.AGENT, **more):
    return LevelResult(
        level=Level.C3, verdict=Verdict.FAILED, owner=owner, reason=reason, gpu_use=GpuUse(), **more
    )


class TestHeldAgainst:
    @pytest.mark.parametrize(
        ("seen", "next_s", "good"),
        [
            (result(), 0.2, True),
            (result(), 1.7, False),
            (result(reason="exit 1"), 0.2, False),
            (result(owner=Owner.HOST), 0.2, False),
            (result(findings=(Finding(kind="gpu-not-freed", what="7", why="x"),)), 0.2, False),
        ],
    )
    def test_all_of_it_must_fit(self, seen, next_s, good):
        assert gpu_run.held_against(HANG, seen, next_s).as_it_must is good

    def test_a_pass_has_no_reason(self):
        passed = LevelResult(level=Level.C3, verdict=Verdict.PASSED)
        assert gpu_run.held_against(Case("x", "", "passed"), passed).as_it_must
        said = passed.model_copy(update={"reason": "but"})
        assert not gpu_run.held_against(Case("x", "", "passed"), said).as_it_must


def test_every_case_that_does_not_pass_says_why_and_whose_it_is():
    cases = [*gpu_cases.ONE, *gpu_cases.TWO, *gpu_cases.HANGS, gpu_cases.EXTENSION]
    assert len({one.name for one in cases}) == len(cases)
    for one in cases:
        compile(gpu_cases.HEAD + one.program, one.name, "exec")
        assert (one.verdict == "passed") == (not one.words) == (one.owner is None), one.name


def test_parts_are_known_before_they_are_run(capsys):
    assert gpu_acceptance.show_plan() == 0
    said = capsys.readouterr().out
    assert "suite: about " in said
    estimates = [line for line in said.splitlines() if not line.startswith(" ")]
    assert len(estimates) == len(gpu_acceptance.PARTS)


def test_what_a_host_lacks_is_left_out_and_named():
    outcome = gpu_run.run_case(Case("x", "", "passed", needs=("no_such_program",)), Path("/none"))
    assert (outcome.as_it_must, outcome.verdict) == (True, "left out")
    assert outcome.reason == "this host has no no_such_program"


@pytest.fixture
def chosen(tmp_path):
    return gpu_acceptance.Chosen(tmp_path, tmp_path / "carry", damages=True, tasks=())


def test_a_part_that_was_cut_off_is_gone_on_with(chosen, driver, monkeypatch):
    ran = []

    def work(name, est_s, good=True):
        def run(_folder):
            ran.append(name)
            if good is None:
                raise OSError("broken")
            return [gpu_run.Outcome(name, good, "passed", None, "", "passed")]

        return gpu_acceptance.Work(name, est_s, run)

    todo = [work("a", 1), work("b", 1, good=False), work("c", 500), work("d", 1, good=None)]
    monkeypatch.setattr(gpu_acceptance, "works", lambda *_: todo)
    assert gpu_acceptance.run_part("one", chosen, time.monotonic() + 100) == (False, False)
    assert ran == ["a", "b", "d"]
    kept = json.loads((chosen.out / "one.json").read_text())["outcomes"]
    assert [(one["case"], one["verdict"]) for one in kept] == [
        ("a", "passed"),
        ("b", "passed"),
        ("d", "error"),
    ]
    todo[:] = [work("a", 1), work("b", 1), work("c", 500), work("d", 1)]
    assert gpu_acceptance.run_part("one", chosen, time.monotonic() + 1000) == (True, True)
    assert ran == ["a", "b", "d", "b", "c", "d"]
    assert "| b | passed | passed |" in gpu_acceptance.page(chosen.out)


def test_a_tree_that_turns_links_on_is_left_out(tmp_path):
    (tmp_path / "train.py").write_text("import os\n")
    assert gpu_suite.links_set(tmp_path) == ""
    (tmp_path / "run.sh").write_text("export NCCL_NVLS_ENABLE=1\n")
    assert gpu_suite.links_set(tmp_path) == "run.sh names NCCL_NVLS_ENABLE"


@pytest.fixture
def judged(driver, tmp_path, monkeypatch):
    """Cases whose programs have our framework in the place of torch."""
    monkeypatch.setattr(leases, "lease_folder", lambda: tmp_path / "leases")
    monkeypatch.setenv("REB_CACHE", str(tmp_path / "cache"))
    monkeypatch.setattr(counter, "_COMPILERS", ())
    monkeypatch.setattr(gpu_run, "HEAD", FRAMEWORK)
    counter._compiled.cache_clear()
    yield (("LD_LIBRARY_PATH", str(driver.folder)),)
    counter._compiled.cache_clear()


@pytest.mark.slow
def test_what_hangs_is_ended_and_the_next_has_the_gpu(judged, tmp_path):
    case = Case(
        "x",
        "import signal\n"
        "[signal.signal(s, signal.SIG_IGN) for s in (2, 15)]\n"
        "use(0); launch(); print('loss', flush=True); time.sleep(600)",
        "failed",
        "still running at the time limit",
        "agent",
        ("observed",),
        limit_s=6.0,
        next_within_s=1.0,
        env=judged,
    )
    outcome = gpu_run.hang(case, tmp_path / "case")
    # On two GPUs the stage is one of several, of which this program uses one.
    assert "next after" in outcome.reason
    assert float(outcome.reason.partition("next after ")[2].split()[0]) < 1.0
    assert (outcome.verdict, outcome.owner) == ("failed", "agent")


@pytest.mark.slow
def test_a_case_is_a_stage_like_any_other(judged, tmp_path):
    good = Case("x", "use(0); launch(); print('loss')", "passed", grades=("observed",), env=judged)
    outcome = gpu_run.run_case(good, tmp_path / "good")
    assert outcome.as_it_must, outcome.reason
    bad = Case("x", "print('loss')", "failed", "it ran on the CPU", "agent", ("none",), env=judged)
    outcome = gpu_run.run_case(bad, tmp_path / "bad")
    assert outcome.as_it_must, outcome.reason


@pytest.mark.slow
def test_a_tiny_dev_shm_is_the_hosts(judged, tmp_path):
    (case,) = [one for one in gpu_cases.TWO if one.shm_mb]
    outcome = gpu_run.run_case(case, tmp_path / "case")
    if outcome.verdict == "left out":
        pytest.skip(outcome.reason)
    assert outcome.as_it_must, outcome.reason
    assert Path("/dev/shm").stat()  # ours is as it was


SUITE_PROGRAM = """
import sys
from importlib import metadata
from pathlib import Path
import gpu_suite

site = Path([one for one in sys.path if one.startswith(sys.prefix) and "site-packages" in one][0])
def files():
    return {one: one.read_bytes() for one in sorted(site.glob("helper*/*")) if one.is_file()}

before = files()
assert before
with gpu_suite.installed([Path(sys.argv[1])], Path(sys.argv[2])):
    assert metadata.version("helper") == "2.0"
    assert metadata.version("mine") == "0.1"
    assert "new" in (site / "helper/__init__.py").read_text()
    assert not (site / "helper/old.py").exists()
assert files() == before, files().keys()
assert not (site / "mine.py").exists()
with gpu_suite.installed([], None):
    assert files() == before
"""


def _wheel(folder: Path, name: str, version: str, files: dict[str, str]) -> Path:
    facts = f"{name}-{version}.dist-info"
    texts = {
        **files,
        f"{facts}/METADATA": f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n",
        f"{facts}/WHEEL": "Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n",
    }
    texts[f"{facts}/RECORD"] = "".join(f"{one},,\n" for one in (*texts, f"{facts}/RECORD"))
    wheel = folder / f"{name}-{version}-py3-none-any.whl"
    with zipfile.ZipFile(wheel, "w") as archive:
        for place, text in texts.items():
            archive.writestr(place, text)
    return wheel


@pytest.mark.slow
def test_what_is_carried_is_put_in_and_taken_out_again(tmp_path):
    subprocess.run([sys.executable, "-m", "venv", tmp_path / "env"], check=True)
    python = tmp_path / "env/bin/python"
    old = _wheel(tmp_path, "helper", "1.0", {"helper/__init__.py": "", "helper/old.py": ""})
    new = _wheel(tmp_path, "helper", "2.0", {"helper/__init__.py": "new = 1\n"})
    pip = [python, "-m", "pip", "install", "-q", "--no-index", "--no-deps"]
    subprocess.run([*pip, old], check=True)
    repository = tmp_path / "repository"
    repository.mkdir()
    made = _wheel(tmp_path, "mine", "0.1", {"mine.py": ""})
    (repository / "pyproject.toml").write_text(
        "[build-system]\nrequires = []\nbuild-backend = 'back'\nbackend-path = ['.']\n"
    )
    (repository / "back.py").write_text(
        "import shutil\n"
        "def build_wheel(folder, *_):\n"
        f"    return shutil.copy({str(made)!r}, folder).rpartition('/')[2]\n"
    )
    scripts = Path(gpu_suite.__file__).parent
    places = [str(scripts), *(one for one in sys.path if "site-packages" in one)]
    places.append(str(scripts.parent / "src"))
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(places)}
    subprocess.run(
        [python, "-c", SUITE_PROGRAM, new, repository], env=environment, check=True, timeout=200
    )


def test_a_compiler_of_cuda_is_found_beside_the_path(tmp_path, monkeypatch):
    case = Case("x", "", "passed", needs=("nvcc",))
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setenv("CUDA_HOME", str(tmp_path / "cuda"))
    assert gpu_run.lacking(case) == "this host has no nvcc"
    (tmp_path / "cuda/bin").mkdir(parents=True)
    (tmp_path / "cuda/bin/nvcc").touch(mode=0o755)
    assert gpu_run.lacking(case) == ""
