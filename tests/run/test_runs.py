"""A run ends with a record an attempt, redoes nothing, and survives being killed."""

import json
import os
import re
import shutil
import signal
import time
from pathlib import Path

import pytest
from filelock import FileLock

from researchenvbench.taskfile import load_task

from .conftest import SUITE, Reb, record_of


def processes_naming(text):
    """Ids of living processes whose command line or variables hold `text`."""
    found = []
    for entry in Path("/proc").iterdir():
        if not entry.name.isdigit() or int(entry.name) == os.getpid():
            continue
        try:
            said = entry.joinpath("cmdline").read_bytes() + entry.joinpath("environ").read_bytes()
        except OSError:
            continue
        if text.encode() in said:
            found.append(int(entry.name))
    return found


def wait_for(condition, what, limit_s=60):
    deadline = time.monotonic() + limit_s
    while not condition():
        assert time.monotonic() < deadline, f"waited {limit_s} s for {what}"
        time.sleep(0.05)


def events(run, name="adder--1"):
    path = run / "attempts" / name / "events.jsonl"
    if not path.exists():
        return []
    return [json.loads(line)["doing"] for line in path.read_text().splitlines()]


@pytest.fixture
def slow_suite(suite):
    """The entry point sleeps for a minute a step, so that it can be interrupted."""
    task = suite / "adder" / "task.toml"
    text = task.read_text().replace(
        "time_limit_s = 60", 'time_limit_s = 600\nenv = { ADDER_SLEEP_S = "60" }'
    )
    task.write_text(text)
    return suite


def quick(suite):
    task = suite / "adder" / "task.toml"
    task.write_text(task.read_text().replace('ADDER_SLEEP_S = "60"', 'ADDER_SLEEP_S = "0"'))


def test_gold_passes_and_the_table_says_so(reb, tmp_path):
    done = reb("run", SUITE, "--agent", "gold", "--out", tmp_path / "run")
    assert done.returncode == 0, done.stderr
    record = record_of(tmp_path / "run")
    verdicts = {level: result["verdict"] for level, result in record["results"].items()}
    assert verdicts == {
        "C0": "passed",
        "C1": "passed",
        "C2": "not_applicable",
        "C3": "not_applicable",
        "C4": "not_applicable",
        "C5": "passed",
    }
    assert record["status"] == "ok"
    assert record["build"]["report"]["torch_version"] is None
    assert "adder" in done.stdout
    assert (tmp_path / "run" / "index.html").is_file()


def test_the_same_run_again_redoes_nothing_and_a_changed_task_does(reb, suite, tmp_path):
    run = tmp_path / "run"
    assert reb("run", suite, "--agent", "gold", "--out", run).returncode == 0
    attempt = run / "attempts" / "adder--1"
    before = {path: path.stat().st_mtime_ns for path in attempt.rglob("*") if path.is_file()}
    assert reb("run", suite, "--agent", "gold", "--out", run).returncode == 0
    assert before == {p: p.stat().st_mtime_ns for p in attempt.rglob("*") if p.is_file()}

    # Gold follows its recipe, whatever the stages are: they alone are run anew.
    task = suite / "adder" / "task.toml"
    task.write_text(task.read_text().replace("time_limit_s = 60", "time_limit_s = 61"))
    plan = reb("run", suite, "--agent", "gold", "--out", run, "--dry-run")
    assert re.search(r"adder--1 .* verify\n", plan.stdout)
    assert reb("run", suite, "--agent", "gold", "--out", run).returncode == 0
    assert (attempt / "build.json").stat().st_mtime_ns == before[attempt / "build.json"]
    assert (attempt / "results" / "C1.json").stat().st_mtime_ns > before[
        attempt / "results" / "C1.json"
    ]
    assert record_of(run)["task_digest"] == load_task(suite / "adder").digest

    task.write_text(task.read_text().replace("[gold]", '[gold]\nenv.X = "1"'))
    plan = reb("run", suite, "--agent", "gold", "--out", run, "--dry-run")
    assert "the agent's configuration has changed" in plan.stdout
    assert reb("run", suite, "--agent", "gold", "--out", run).returncode == 0
    assert (attempt / "build.json").stat().st_mtime_ns > before[attempt / "build.json"]
    kept = list((run / "superseded").glob("adder--1-*/record.json"))
    assert len(kept) == 1, "the record of the attempt that was made again is kept"


def test_results_of_a_removed_environment_stand_and_what_has_none_is_built_anew(reb, tmp_path):
    run = tmp_path / "run"
    command = ("run", SUITE, "--agent", "gold", "--only", "adder", "--out", run)
    assert reb(*command, "--keep", "none").returncode == 0
    before = (run / "attempts" / "adder--1" / "record.json").read_bytes()
    again = reb(*command, "--reverify")
    assert again.returncode == 0, again.stderr
    assert "not verified again, since the environment was removed: adder--1." in again.stderr
    assert (run / "attempts" / "adder--1" / "record.json").read_bytes() == before

    (run / "attempts" / "adder--1" / "record.json").unlink()
    plan = reb(*command, "--dry-run").stdout
    assert "build again: its environment was removed" in plan
    assert reb(*command).returncode == 0
    assert record_of(run)["results"]["C1"]["verdict"] == "passed"


def test_reverify_makes_results_anew_and_keeps_the_build(reb, tmp_path):
    run = tmp_path / "run"
    reb("run", SUITE, "--agent", "gold", "--out", run)
    attempt = run / "attempts" / "adder--1"
    built = (attempt / "build.json").stat().st_mtime_ns
    result = (attempt / "results" / "C1.json").stat().st_mtime_ns
    assert reb("run", SUITE, "--agent", "gold", "--out", run, "--reverify").returncode == 0
    assert (attempt / "build.json").stat().st_mtime_ns == built
    assert (attempt / "results" / "C1.json").stat().st_mtime_ns > result


def test_ctrl_c_stops_the_children_and_says_how_to_go_on(reb, slow_suite, tmp_path):
    run = tmp_path / "run"
    process = reb.start("run", slow_suite, "--agent", "gold", "--out", run)
    log = run / "attempts" / "adder--1" / "logs" / "cpu.log"
    wait_for(lambda: log.exists() and "step 1" in log.read_text(), "the stage to run")
    process.send_signal(signal.SIGINT)
    _, said = process.communicate(timeout=60)
    assert process.returncode == 130
    assert "The same command goes on from there" in said
    assert "Traceback" not in said
    wait_for(lambda: not processes_naming(str(run)), "the children to end")
    assert not (run / "attempts" / "adder--1" / "record.json").exists()


@pytest.fixture
def stubborn_suite(suite):
    """The build is a program that no polite signal ends."""
    script = (
        "import signal, time; signal.signal(signal.SIGINT, signal.SIG_IGN); "
        "signal.signal(signal.SIGTERM, signal.SIG_IGN); print('building', flush=True); "
        "time.sleep(600)"
    )
    task = suite / "adder" / "task.toml"
    recipe = 'steps = [["{python}", "{repo}/install.py"]]'
    longer = f'steps = [["{{python}}", "{{repo}}/install.py"], ["{{python}}", "-c", "{script}"]]'
    assert recipe in task.read_text()
    task.write_text(task.read_text().replace(recipe, longer))
    return suite


def builds(run):
    log = run / "attempts" / "adder--1" / "logs" / "build.log"
    return lambda: log.exists() and "building" in log.read_text().splitlines()


def test_a_second_ctrl_c_ends_at_once(reb, stubborn_suite, tmp_path):
    run = tmp_path / "run"
    process = reb.start("run", stubborn_suite, "--agent", "gold", "--out", run)
    wait_for(builds(run), "the build")
    process.send_signal(signal.SIGINT)
    time.sleep(0.3)
    assert process.poll() is None, "what ignores signals is given its grace"
    process.send_signal(signal.SIGINT)
    _, said = process.communicate(timeout=60)
    assert process.returncode == 130
    assert "The same command goes on from there" in said
    assert "Traceback" not in said
    wait_for(lambda: not processes_naming(str(run)), "the children to end")


def test_kill_9_during_a_build_leaves_nothing_running_and_is_built_anew(
    reb, stubborn_suite, suite, tmp_path
):
    run = tmp_path / "run"
    attempt = run / "attempts" / "adder--1"
    process = reb.start("run", stubborn_suite, "--agent", "gold", "--out", run)
    wait_for(builds(run), "the build")
    (attempt / "box" / "env" / "half").write_text("of the build that was ended")
    process.kill()
    process.communicate()
    wait_for(lambda: not processes_naming(str(run)), "the orphans to end")
    assert not (attempt / "build.json").exists()
    assert "the build has not ended" in reb("report", run, COLUMNS="200").stdout

    task = suite / "adder" / "task.toml"
    task.write_text(task.read_text().replace("time.sleep(600)", "time.sleep(0)"))
    assert reb("run", suite, "--agent", "gold", "--out", run).returncode == 0
    assert record_of(run)["results"]["C1"]["verdict"] == "passed"
    assert not (attempt / "box" / "env" / "half").exists()


def test_kill_9_of_the_harness_loses_only_the_stage_under_way(reb, slow_suite, tmp_path):
    run = tmp_path / "run"
    process = reb.start("run", slow_suite, "--agent", "gold", "--out", run)
    attempt = run / "attempts" / "adder--1"
    log = attempt / "logs" / "cpu.log"
    wait_for(lambda: log.exists() and "step 1" in log.read_text(), "the stage to run")
    process.kill()
    process.communicate()
    wait_for(lambda: not processes_naming(str(run)), "the orphans to end")
    built = (attempt / "build.json").stat().st_mtime_ns
    imports = (attempt / "results" / "C0.json").stat().st_mtime_ns
    assert reb("report", run).returncode == 0

    # Only how long a step sleeps differs; the digest would differ too, so it is set outside.
    again = reb.start("run", slow_suite, "--agent", "gold", "--out", run)
    wait_for(lambda: any("cpu:" in doing for doing in events(run)), "the stage to run again")
    again.send_signal(signal.SIGINT)
    again.communicate(timeout=60)
    assert (attempt / "build.json").stat().st_mtime_ns == built
    assert (attempt / "results" / "C0.json").stat().st_mtime_ns == imports


def test_a_source_that_cannot_be_had_makes_the_attempt_void_and_is_tried_again(
    reb, suite, tmp_path
):
    source = suite / "adder" / "repository"
    away = source.rename(suite / "away")
    run = tmp_path / "run"
    done = reb("run", suite, "--agent", "gold", "--out", run)
    assert done.returncode == 1, done.stderr
    last = done.stderr.splitlines()[-1]
    assert last.startswith("reb: 1 attempt could not be judged here (adder--1): ")
    assert "What to do: " in last
    assert "the same command again" in last
    record = record_of(run)
    assert record["status"] == "void"
    assert {result["owner"] for result in record["results"].values()} == {"host"}
    away.rename(source)
    assert reb("run", suite, "--agent", "gold", "--out", run).returncode == 0
    assert record_of(run)["status"] == "ok"


def test_fail_on_gives_exit_codes_for_ci(reb, suite, tmp_path):
    task = suite / "adder" / "task.toml"
    task.write_text(task.read_text().replace("min = 5, max = 5", "min = 6, max = 6"))
    run = tmp_path / "run"
    assert reb("run", suite, "--agent", "gold", "--out", run).returncode == 0
    assert reb("run", suite, "--agent", "gold", "--out", run, "--fail-on", "failed").returncode == 1
    result = record_of(run)["results"]["C1"]
    assert (result["verdict"], result["owner"]) == ("failed", "agent")
    assert "result.json" in result["reason"]


def test_a_disqualified_attempt_counts_as_failed(reb, suite, tmp_path):
    task = suite / "adder" / "task.toml"
    edits = "open('{repo}/train.py', 'a').write('# easier')"
    steps = f'steps = [["{{python}}", "{{repo}}/install.py"], ["{{python}}", "-c", "{edits}"]]'
    recipe = 'steps = [["{python}", "{repo}/install.py"]]'
    task.write_text(task.read_text().replace(recipe, steps))
    run = tmp_path / "run"
    done = reb("run", suite, "--agent", "gold", "--out", run, "--fail-on", "failed")
    record = record_of(run)
    assert record["status"] == "disqualified"
    assert "failed" not in {result["verdict"] for result in record["results"].values()}
    assert done.returncode == 1


@pytest.fixture(scope="module")
def finished(shared_cache, tmp_path_factory):
    """A run that is done; a test takes a copy."""
    folder = tmp_path_factory.mktemp("finished")
    done = Reb(shared_cache, folder)("run", SUITE, "--agent", "gold", "--out", folder / "run")
    assert done.returncode == 0, done.stderr
    return folder / "run"


@pytest.fixture
def run_again(reb, finished, tmp_path):
    """(a copy of the finished run, the same command again on it)."""
    run = Path(shutil.copytree(finished, tmp_path / "copy", symlinks=True))
    return run, lambda *more: reb("run", SUITE, "--agent", "gold", "--out", run, *more)


def test_a_job_that_could_not_work_gives_1_whatever_an_older_record_says(run_again):
    run, again = run_again
    with FileLock(run / "attempts" / ".adder--1.lock"):
        done = again("--reverify")
    assert "another process is working on this attempt" in done.stderr
    assert done.returncode == 1
    assert again().returncode == 0


@pytest.mark.parametrize(
    ("broken", "why", "built_anew"),
    [
        ("build.json", "build again: what is left of the last one cannot be read", True),
        ("record.json", "verify: the record cannot be read", False),
    ],
)
@pytest.mark.parametrize("text", ["{", '{"schema": 99}'])
def test_what_cannot_be_read_is_made_anew(run_again, broken, why, built_anew, text):
    run, again = run_again
    attempt = run / "attempts" / "adder--1"
    built = (attempt / "build.json").stat().st_mtime_ns
    (attempt / broken).write_text(text)
    assert why in again("--dry-run").stdout
    done = again()
    assert done.returncode == 0, done.stderr
    assert record_of(run)["status"] == "ok"
    assert ((attempt / "build.json").stat().st_mtime_ns > built) is built_anew
    assert " done\n" in again("--dry-run").stdout


def test_results_of_another_version_are_marked_and_not_redone(reb, run_again):
    run, again = run_again
    attempt = run / "attempts" / "adder--1"
    assert "older results" not in reb("report", run).stdout
    for path in [attempt / "record.json", *(attempt / "results").iterdir()]:
        stored = json.loads(path.read_text())
        path.write_text(json.dumps({**stored, "reb_version": "0.0.1"}))
    done = again()
    assert "older results" in done.stdout
    assert "older results" in (run / "index.html").read_text()
    assert json.loads(reb("report", run, "--json").stdout)["runs"][0]["attempts"][0]["older"]

    # A record made now from results of then is marked as well, until they are made anew.
    (attempt / "record.json").unlink()
    assert "older results" in again().stdout
    assert record_of(run)["stale"] is True
    assert "older results" not in again("--reverify").stdout


def test_a_record_of_a_newer_version_is_not_misread(reb, run_again):
    run, _ = run_again
    path = run / "attempts" / "adder--1" / "record.json"
    path.write_text(json.dumps({**json.loads(path.read_text()), "schema": 2}))
    said = " ".join(reb("report", run, COLUMNS="300").stdout.split())
    assert "was written by a newer version: schema 2" in said


def test_json_is_json_and_quiet_is_quiet(reb, tmp_path):
    done = reb("run", SUITE, "--agent", "gold", "--out", tmp_path / "run", "--json")
    assert json.loads(done.stdout)["runs"]
    again = reb("run", SUITE, "--agent", "gold", "--out", tmp_path / "run", "--quiet")
    assert again.stderr == ""


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["run", "smal"], "there is no suite 'smal'"),
        (["run", SUITE, "--only", "ader"], "did you mean 'adder'?"),
        (["run", SUITE, "--agent", "goldd"], "there is no agent 'goldd'"),
        (["run", SUITE, "--sandbox", "podmann"], "'podmann' is not one of"),
        (["run", SUITE, "--agent", "script"], "recipe=FILE"),
        (["verify", "/nowhere/at/all"], "there is no folder"),
        (["verify", ".", "--level", "C9", "--python", "/usr/bin/python3"], "no level 'C9'"),
        (["verify", ".", "--stage", "gpu", "--python", "/usr/bin/python3"], "no stage 'gpu'"),
        (["verify", "."], "no interpreter to judge"),
        (["report", "."], "not a run folder"),
        (["verfy"], "Did you mean 'verify'?"),
        (["tasks", "show", "adder"], "SUITE/TASK"),
    ],
)
def test_wrong_usage_is_a_line_and_exit_code_2(reb, arguments, said):
    done = reb(*arguments, VIRTUAL_ENV="", CONDA_PREFIX="")
    assert done.returncode == 2, done.stdout
    assert said in done.stderr
    assert "Traceback" not in done.stderr


def test_an_untrusted_agent_needs_the_word(reb, tmp_path):
    recipe = tmp_path / "recipe.toml"
    recipe.write_text('steps = [["{python}", "{repo}/install.py"]]')
    options = ["--agent", "script", "--agent-option", f"recipe={recipe}", "--out", tmp_path / "r"]
    refused = reb("run", SUITE, *options)
    assert refused.returncode == 2
    assert "--i-trust-this-agent" in refused.stderr
    trusted = reb("run", SUITE, *options, "--i-trust-this-agent")
    assert trusted.returncode == 0, trusted.stderr
    assert record_of(tmp_path / "r")["results"]["C1"]["verdict"] == "passed"


def test_a_folder_that_cannot_be_written_is_said(reb, tmp_path):
    occupied = tmp_path / "file"
    occupied.write_text("")
    done = reb("run", SUITE, "--agent", "gold", "--out", occupied / "run")
    assert done.returncode == 2
    assert "cannot be written" in done.stderr


def test_an_edited_folder_source_is_built_again(reb, suite, tmp_path):
    run = tmp_path / "run"
    options = ["--agent", "gold", "--only", "adder", "--out", run]
    reb("run", suite, *options)
    with (suite / "adder" / "repository" / "train.py").open("a") as stream:
        stream.write("# one more line\n")
    assert "the source has changed" in reb("run", suite, *options, "--dry-run").stdout


def test_reb_build_in_json_is_the_outcome_and_the_report(reb, repository):
    repository.commit({"measure.py": "import json\n"})
    done = reb("build", repository.folder, "--json")
    facts = json.loads(done.stdout)
    assert (done.returncode, done.stderr) == (0, "")
    assert facts["complete"] is True
    assert facts["report"]["python_path"] == f"{facts['prefix']}/bin/python"
    refused = reb("build", repository.folder, "--json", "--index-date", "yesterday")
    assert refused.returncode == 2
    assert "yesterday" in refused.stderr


def test_a_folder_that_is_no_run_is_not_touched(reb, tmp_path):
    precious = tmp_path / "home" / "attempts" / "adder--1" / "precious.txt"
    precious.parent.mkdir(parents=True)
    precious.write_text("mine")
    page = tmp_path / "home" / "index.html"
    page.write_text("my page")
    done = reb("run", SUITE, "--agent", "gold", "--only", "adder", "--out", tmp_path / "home")
    assert done.returncode == 2
    assert "not empty, and no run" in done.stderr
    assert (precious.read_text(), page.read_text()) == ("mine", "my page")


def test_a_repository_with_a_job_json_of_its_own_is_no_attempt(reb, tmp_path):
    repo = tmp_path / "repository"
    repo.mkdir()
    (repo / "job.json").write_text('{"schedule": "daily"}')
    (repo / "train.py").write_text("print('x')")
    done = reb("job", repo, "--phase", "build")
    assert done.returncode == 2
    assert "no attempt of a run" in done.stderr
    assert sorted(path.name for path in repo.iterdir()) == ["job.json", "train.py"]


def test_what_is_not_ours_in_an_attempt_survives_a_new_build(reb, suite, tmp_path):
    run = tmp_path / "run"
    options = ["--agent", "gold", "--only", "adder", "--out", run]
    reb("run", suite, *options)
    note = run / "attempts" / "adder--1" / "my-notes.txt"
    note.write_text("mine")
    (run / "attempts" / "adder--1" / "build.json").write_text("{")
    assert reb("run", suite, *options).returncode == 0
    assert note.read_text() == "mine"
    assert record_of(run)["results"]["C1"]["verdict"] == "passed"
