"""A run stops before the disk is full, and goes on when there is room."""

import json
import shutil

import pytest

from researchenvbench.run.plan import RunPlan, plan_attempts
from researchenvbench.run.pool import LocalPool
from researchenvbench.run.room import RoomGuard
from researchenvbench.run.store import RunFolder
from researchenvbench.taskfile import load_suite

from .conftest import record_of


def test_with_enough_room_nothing_is_in_the_way(tmp_path):
    assert RoomGuard.of("local", tmp_path, 1).problem() == ""
    assert RoomGuard(tmp_path, 0).problem() == ""
    assert RoomGuard(None, 1 << 60).problem() == ""  # not on this host, so not known


def test_with_too_little_it_is_said_what_to_do(tmp_path):
    problem = RoomGuard(tmp_path, 1 << 60).problem()
    assert str(tmp_path) in problem
    assert "reb env prune" in problem


def test_what_the_ledger_says_of_the_next_and_of_those_under_way_counts_too(tmp_path):
    free = shutil.disk_usage(tmp_path).free
    third = free // 3
    guard = RoomGuard(tmp_path, 1, {"a--1": third, "b--1": third, "c--1": 2 * free})
    assert guard.problem("a--1") == ""
    assert guard.problem("a--1", ["b--1", "of-unknown-size--1"]) == ""
    assert "that the ledger says it needs" in guard.problem("a--1", ["c--1"])
    assert guard.problem("of-unknown-size--1") == ""
    assert RoomGuard(tmp_path, 0, {"c--1": 2 * free}).problem("c--1") == ""  # as was asked for


def test_a_folder_that_is_not_there_yet_has_the_room_of_its_disk(tmp_path):
    free = shutil.disk_usage(tmp_path).free
    assert RoomGuard(tmp_path / "a" / "b", 1).free_bytes() == pytest.approx(free, rel=0.2)


class Watcher:
    """Notes what begins and ends, in their order."""

    def __init__(self):
        self.seen = []

    def started(self, attempt):
        self.seen.append(("started", attempt.task.name))

    def ended(self, attempt, problem):
        self.seen.append(("ended", attempt.task.name, problem))


@pytest.fixture
def planned(suite, tmp_path, monkeypatch, shared_cache):
    monkeypatch.setenv("REB_CACHE", str(shared_cache))
    loaded = load_suite(suite)
    folder = RunFolder(tmp_path / "run")
    plan = RunPlan(suite=str(suite), agent="gold", keep="none")
    folder.claim(plan)
    return plan_attempts(plan, loaded, loaded.tasks, 1, folder)


def test_a_build_waits_while_others_may_give_room_back(planned):
    def room(attempt, beside):
        return f"{attempt} is not begun beside {sorted(beside)}" if beside else ""

    watcher = Watcher()
    LocalPool(2, room).run(planned, watcher)
    names = [entry[1] for entry in watcher.seen]
    assert sorted(names) == ["adder", "adder", "server", "server"]
    # One after the other, though two might have been at work at a time.
    assert [entry[0] for entry in watcher.seen] == ["started", "ended"] * 2
    assert [entry[2] for entry in watcher.seen if entry[0] == "ended"] == ["", ""]


def test_a_build_for_which_nobody_can_give_room_back_is_not_begun(planned):
    def room(attempt, beside):
        return "no room" if attempt == "server--1" else ""

    watcher = Watcher()
    LocalPool(2, room).run(planned, watcher)
    assert ("ended", "server", "no room") in watcher.seen
    assert ("started", "server") not in watcher.seen
    assert ("ended", "adder", "") in watcher.seen


def test_no_build_begins_without_room_and_the_same_command_goes_on(reb, suite, tmp_path):
    run = tmp_path / "run"
    line = ["run", suite, "--agent", "gold", "--only", "adder", "--out", run]
    done = reb(*line, "--min-free", "9000t")
    assert done.returncode == 1
    assert "less than" in done.stderr
    assert "reb env prune" in done.stderr
    assert not (run / "attempts").exists()  # nothing was begun, so nothing is void

    assert reb(*line).returncode == 0
    assert record_of(run)["results"]["C1"]["verdict"] == "passed"

    # What is built is verified again all the same: that needs no room to speak of.
    (run / "attempts" / "adder--1" / "record.json").unlink()
    again = reb(*line, "--min-free", "9000t", "--attempts", "2")
    assert again.returncode == 1
    assert record_of(run)["results"]["C1"]["verdict"] == "passed"
    assert [folder.name for folder in (run / "attempts").glob("[!.]*")] == ["adder--1"]


def test_a_floor_that_is_no_size_is_said(reb, suite):
    done = reb("run", suite, "--min-free", "much")
    assert done.returncode == 2
    assert "--min-free" in done.stderr


@pytest.mark.container
def test_of_containers_the_engine_s_storage_is_looked_at(podman, tmp_path):
    place = RoomGuard.of("podman", tmp_path, 1).place
    asked = json.loads(podman.ask("info", "--format", "json"))["store"]["graphRoot"]
    assert str(place) == asked
    assert shutil.disk_usage(place).total
