"""Which process something belongs to, and whether it lives."""

import os
import subprocess
import sys

import pytest

from researchenvbench.owner import (
    before_restart,
    of_own_folder,
    own_folder,
    owner_state,
    this_owner,
)


def owner_of_another():
    """A process that has said who it is, and waits."""
    return subprocess.Popen(
        [
            sys.executable,
            "-c",
            (
                "from researchenvbench.owner import this_owner\n"
                "print(this_owner(), flush=True)\nimport sys\nsys.stdin.read()"
            ),
        ],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )


def test_a_process_lives_until_it_has_ended():
    assert owner_state(this_owner()) == "alive"
    with owner_of_another() as process:
        owner = process.stdout.readline().strip()
        assert owner_state(owner) == "alive"
        process.kill()
        os.waitid(os.P_PID, process.pid, os.WEXITED | os.WNOWAIT)
        assert owner_state(owner) == "dead"  # though nobody has asked how it ended
    assert owner_state(owner) == "dead"


def test_another_process_of_the_same_number_is_not_taken_for_it():
    boot, namespace, pid, started = this_owner().split(".")
    assert owner_state(f"{boot}.{namespace}.{pid}.{int(started) - 1}") == "dead"


@pytest.mark.parametrize("change", [0, 1])
def test_of_what_cannot_be_seen_from_here_nothing_is_claimed(change):
    parts = this_owner().split(".")
    parts[change] = "1234"
    assert owner_state(".".join(parts)) == "unknown"
    assert before_restart(".".join(parts)) is (change == 0)


@pytest.mark.parametrize("owner", ["", "nonsense", "a.b.c.d"])
def test_without_an_owner_nothing_is_known(owner):
    assert owner_state(owner) == "unknown"


def test_a_folder_says_whose_it_is_and_goes(tmp_path):
    with own_folder("look", tmp_path) as folder:
        (folder / "file").write_text("x")
        assert of_own_folder(folder.name) == ("look", this_owner())
    assert not folder.exists()


def test_a_folder_may_be_moved_away_meanwhile(tmp_path):
    with own_folder("bundle", tmp_path) as folder:
        folder.rename(tmp_path / "kept")
    assert (tmp_path / "kept").is_dir()


@pytest.mark.parametrize(
    "name", ["reb-look-a1b2c3d4", "reb-thesis-0123456789ab.1.2.3-a1b2c3d4", "look", ""]
)
def test_a_folder_of_another_says_nothing(name):
    assert of_own_folder(name) is None
