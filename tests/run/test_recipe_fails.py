"""A recipe whose step fails says which step, and what it printed."""

import pytest

from researchenvbench.proofs import load_ledger

from .conftest import record_of

SAYS_WHY = 'steps = [["{python}", "-c", "import sys; print(41 + 1); sys.exit(\'no compiler\')"]]'


@pytest.fixture
def failing(suite):
    file = suite / "adder" / "task.toml"
    old = 'steps = [["{python}", "{repo}/install.py"]]'
    text = file.read_text()
    assert old in text
    file.write_text(text.replace(old, SAYS_WHY))
    return suite


def test_a_run_shows_the_step_and_what_it_printed(reb, failing, tmp_path):
    run = tmp_path / "run"
    done = reb("run", failing, "--agent", "gold", "--only", "adder", "--out", run)
    assert done.returncode == 0, done.stderr
    said = " ".join(done.stdout.split())
    assert "adder: no report: step 2 of 2 (`" in said
    assert "failed: exit status 1; it printed: 42 / no compiler" in said
    assert "log: " in said
    assert "attempts/adder--1/logs/build.log" in done.stdout
    assert 'href="./attempts/adder--1/logs/build.log"' in (run / "index.html").read_text()
    build = record_of(run)["build"]
    assert build["reason"].startswith("step 2 of 2 (`")


def test_a_proof_shows_the_step_and_tries_no_breakage(reb, failing, tmp_path):
    done = reb("tasks", "prove", failing, "--only", "adder", "--out", tmp_path / "run")
    assert done.returncode == 1
    assert "adder: NOT as it should be: gold was not built; its 3 breakages" in done.stdout
    assert "it printed: 42 / no compiler; see logs/build.log" in done.stdout
    proof = load_ledger(failing).proofs["adder"]
    assert "no compiler" in proof.problem
