"""`reb report`: tables on the output, JSON, the page, and clear words for what is no run."""

from __future__ import annotations

import json
import subprocess
import sys

import pytest
from click.testing import CliRunner

from researchenvbench.cli.report import command
from researchenvbench.run.plan import RunPlan
from researchenvbench.run.store import Job


@pytest.fixture
def run(folder, entries):
    folder.mkdir(parents=True)
    RunPlan(suite="sample", agent="builtin").save(folder / "run.json")
    for entry in entries:
        (entry.folder / "logs").mkdir(parents=True)
        Job(suite="sample", task_folder="/x", task=entry.task, agent="builtin").save(
            entry.folder / "job.json"
        )
        (entry.folder / "events.jsonl").write_text('{"time": "", "doing": "freezing"}\n')
        if entry.record:
            entry.record.save(entry.folder / "record.json")
    return folder


def reb(*arguments):
    return subprocess.run(
        [sys.executable, "-m", "researchenvbench", "report", *map(str, arguments)],
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
    )


def test_a_table_with_every_attempt(run, entries):
    done = reb(run)
    assert (done.returncode, done.stderr) == (0, "")
    assert all(entry.task[:10] in done.stdout for entry in entries)
    assert "zeta: no record: the build has not ended; the last that it did: freezing" in done.stdout


def test_json_holds_rates_and_records(run):
    data = json.loads(CliRunner().invoke(command, [str(run), "--json"]).stdout)
    (found,) = data["runs"]
    assert found["rates"][0]["counted"] == 4
    assert {a["task"] for a in found["attempts"]} >= {"alpha", "zeta"}
    lost = next(a for a in found["attempts"] if a["task"] == "zeta")
    assert lost["record"] is None
    assert lost["problem"]


def test_a_damaged_record_is_shown_as_such(run):
    (run / "attempts" / "alpha--1" / "record.json").write_text("[]")
    text = CliRunner().invoke(command, [str(run)]).stdout
    assert "alpha: no record" in text
    assert "not a Record" in text


def test_two_runs_side_by_side(run):
    text = CliRunner().invoke(command, [str(run), str(run)]).stdout
    row = next(line for line in text.splitlines() if line.startswith("delta"))
    assert row.split() == ["delta", "P?-??F", "P?-??F"]


def test_the_page_links_from_where_it_is(run, tmp_path):
    (run / "attempts" / "alpha--1" / "logs" / "cpu.log").write_text("x")
    target = tmp_path / "page.html"
    assert CliRunner().invoke(command, [str(run), "--html", str(target)]).exit_code == 0
    assert f"./{run.relative_to(tmp_path)}/attempts/alpha--1/logs/cpu.log" in target.read_text()


def test_what_is_no_run_folder(tmp_path):
    for path, words in ((tmp_path, "no run.json"), (tmp_path / "no", "no such folder")):
        done = reb(path)
        assert done.returncode == 2
        assert words in done.stderr
        assert "runs/starter-builtin" in done.stderr
        assert done.stdout == ""


def test_help_starts_with_an_example():
    text = CliRunner().invoke(command, ["--help"]).stdout
    assert "reb report runs/starter-builtin" in text
