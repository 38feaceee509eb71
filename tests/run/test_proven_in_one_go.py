"""What is proven of the starter suite in one go: interrupted, taken up again, and little disk."""

from __future__ import annotations

import json
import signal
from typing import TYPE_CHECKING

import pytest

from .conftest import record_of
from .test_runs import wait_for

if TYPE_CHECKING:
    from pathlib import Path

    from .conftest import Reb

pytestmark = [pytest.mark.slow, pytest.mark.network]

#: The two of its tasks that gold builds in the shortest time, without a large framework.
TASKS = ("hmmlearn", "jraph")


def test_it_goes_on_where_it_was_and_leaves_no_environment(reb: Reb, tmp_path: Path) -> None:
    run = tmp_path / "run"
    line = ["run", "starter", "--agent", "gold", "--subset", "proven", "--subset", "small"]
    line += ["--subset", "cpu", "--keep", "none", "--min-free", "1g", "--out", str(run)]
    line += [word for task in TASKS for word in ("--only", task)]
    plan = json.loads(reb(*line, "--dry-run", "--json").stdout)
    assert plan["part"]["tasks"] == list(TASKS)
    assert plan["total"]["seconds_by_ledger_of_all"]
    assert plan["total"]["peak_bytes"] < plan["total"]["environments"]["known_bytes"]

    process = reb.start(*line)
    attempts = [run / "attempts" / f"{task}--1" for task in TASKS]
    wait_for((attempts[1] / "logs").exists, "the second to be begun", limit_s=400)
    process.send_signal(signal.SIGINT)
    _, said = process.communicate(timeout=60)
    assert process.returncode == 130, said
    before = (attempts[0] / "record.json").read_bytes()
    assert not (attempts[0] / "box").exists()

    done = reb(*line)
    assert done.returncode == 0, done.stderr
    assert (attempts[0] / "record.json").read_bytes() == before
    for task in TASKS:
        record = record_of(run, f"{task}--1")
        assert record["results"]["C1"]["verdict"] == "passed", record["results"]["C1"]["reason"]
        assert record["results"]["C1"]["proven"] == "proven"
    assert not any((attempt / "box").exists() for attempt in attempts)
    text = " ".join(done.stdout.split())
    assert "2 of 7 tasks (subset proven and small and cpu, named tasks), 2 attempts" in text
    assert "C1 CPU run 2/2" in text
    again = reb(*line, "--dry-run").stdout
    assert "2 attempts, none to build, at 2 of 7 tasks" in again
