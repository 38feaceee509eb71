"""A run stops before the disk is full, and goes on when there is room."""

import json
import shutil

import pytest

from researchenvbench.run.room import RoomGuard

from .conftest import record_of


def test_with_enough_room_nothing_is_in_the_way(tmp_path):
    assert RoomGuard.of("local", tmp_path, 1).problem() == ""
    assert RoomGuard(tmp_path, 0).problem() == ""
    assert RoomGuard(None, 1 << 60).problem() == ""  # not on this host, so not known


def test_with_too_little_it_is_said_what_to_do(tmp_path):
    problem = RoomGuard(tmp_path, 1 << 60).problem()
    assert str(tmp_path) in problem
    assert "reb env prune" in problem


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
