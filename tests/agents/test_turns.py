"""Commands in a box, one at a time: what each printed and nothing else, and how it ended."""

import os
import stat
import time
from pathlib import Path

import pytest

from researchenvbench.agents.transcript import read_steps
from researchenvbench.agents.turns import OutOfTimeError, Turns


def listing(folder):
    return {
        (str(path.relative_to(folder)), path.lstat().st_size)
        for path in Path(folder).rglob("*")
        if not stat.S_ISDIR(path.lstat().st_mode)
    }


def test_each_turn_has_its_own_output_and_how_it_ended(assign):
    turns = Turns(assign())
    first = turns.step("echo one; echo two >&2; exit 3")
    assert (first.output, first.exit_status, first.timed_out) == ("one\ntwo\n", 3, False)
    second = turns.step("pwd; echo $0")
    assert second.output.splitlines()[0].endswith("/box/repo"), "it begins in the repository"
    assert second.output.splitlines()[1] == "bash"
    assert turns.step("kill -9 $$").exit_status == 137
    assert turns.step("nothing-of-this-name").exit_status == 127
    assert turns.step("[[ ab == a* ]] && shopt -q extglob || echo none").exit_status == 0


def test_without_bash_it_is_sh(assign, tmp_path):
    assignment = assign()
    (tmp_path / "bin").mkdir()
    (tmp_path / "bin" / "readlink").symlink_to("/usr/bin/readlink")
    (tmp_path / "bin" / "sh").symlink_to("/bin/sh")
    without = Turns(assignment, keeps_cwd=True, environment={"PATH": str(tmp_path / "bin")})
    assert without.step('cd deep; echo "[$BASH_VERSION]"').output == "[]\n"
    assert without.step("pwd").output.endswith("/repo/deep\n")


def test_the_folder_stays_where_that_is_asked_for(assign):
    assignment = assign()
    repo = assignment.box.layout.repo
    forgets = Turns(assignment)
    forgets.step("cd deep")
    assert forgets.step("pwd").output == f"{repo}\n"
    keeps = Turns(assignment, keeps_cwd=True)
    assert keeps.step("cd deep && exit 4").exit_status == 4
    assert keeps.step("pwd; cd down").output == f"{repo}/deep\n", "no mark of ours is in it"
    assert keeps.cwd == repo / "deep" / "down"
    assert keeps.step("printf 'no end of line'").output == "no end of line"
    assert keeps.step("set -eu; false; echo not reached").exit_status == 1
    assert keeps.step("(cd /; exit 0); pwd").output == f"{repo}/deep/down\n"
    keeps.step("cd ..; rm -r down; mkdir 'a b\"'; cd 'a b\"'")
    assert keeps.step("pwd").output == f'{repo}/deep/a b"\n'
    gone = keeps.step("rmdir ../'a b\"'") and keeps.step("pwd")
    assert gone.output.endswith(f"{repo}\n"), "a folder that is gone is said, not died of"
    assert "instead" in gone.output


def test_that_the_folder_stays_leaves_no_trace(assign):
    assignment = assign()
    root = assignment.box.layout.root
    before = listing(root)
    turns = Turns(assignment, keeps_cwd=True)
    turns.step("cd deep; echo x")
    turns.step("exec > made; cd ..; echo into the file")
    assert (root / "repo/deep/made").read_text() == "into the file\n"
    assert listing(root) - before == {("repo/deep/made", 14)}
    assert turns.cwd == root / "repo/deep", "what could not be asked stays as it was"


def test_much_output_is_shortened_and_little_is_not(assign):
    turns = Turns(assign(), shown=1000)
    long = turns.step("for i in $(seq 20000); do echo line $i; done")
    assert long.output.startswith("line 1\n")
    assert long.output.endswith("line 20000\n")
    assert "left out" in long.output
    assert len(long.output) < 1100
    wide = turns.step("printf 'ü%.0s' $(seq 1000)")
    assert wide.output == "ü" * 1000, "characters are counted, and not bytes"
    middle = turns.step("printf 'ü%.0s' $(seq 1001)")
    assert "[1 characters left out]" in middle.output
    bad = turns.step(r"printf '\377\000x'")
    assert bad.output == "\ufffd\0x"


def test_a_command_ends_at_its_limit_and_the_next_one_runs(assign):
    turns = Turns(assign(), keeps_cwd=True)
    began = time.monotonic()
    late = turns.step("cd deep; echo begun; sleep 60", time_limit_s=0.5)
    assert time.monotonic() - began < 20
    assert (late.output, late.exit_status, late.timed_out) == ("begun\n", None, True)
    assert turns.step("echo well").output == "well\n"


def test_all_ends_with_the_time_for_building(assign):
    turns = Turns(assign(seconds=1.0))
    assert turns.step("sleep 60", time_limit_s=50).timed_out
    assert turns.left_s == 0
    with pytest.raises(OutOfTimeError, match="time"):
        turns.step("echo never")
    assert len(turns.steps) == 1


def test_the_deadline_can_move(assign):
    deadline = [0.0]
    turns = Turns(assign(), deadline=lambda: deadline[0])
    with pytest.raises(OutOfTimeError):
        turns.step("echo never")
    deadline[0] = time.monotonic() + 30
    assert turns.step("echo now").output == "now\n"


@pytest.mark.parametrize("command", ["echo a\0b", "echo " + "x" * 200_000])
def test_what_no_program_can_be_given_is_said(assign, command):
    turn = Turns(assign()).step(command)
    assert turn.exit_status == 126
    assert turn.output


def test_steps_are_kept_as_they_are_done(assign, attempt):
    turns = Turns(assign(), keeps_cwd=True)
    turns.step("cd deep", said="I look \udc80 around")
    turns.step("echo \ud83d", time_limit_s=5)
    turns.step(r"printf 'a\342\200\250b\302\205c\r\fd\n'")
    steps = read_steps(attempt / "transcript.jsonl")
    assert [(step.number, step.kind, step.exit_status) for step in steps] == [
        (1, "command", 0),
        (2, "command", 0),
        (3, "command", 0),
    ]
    assert steps[2].output == "a\u2028b\x85c\r\fd\n", "none of these ends a line here"
    assert steps[0].said == "I look ? around"
    assert steps[1].cwd.endswith("/repo/deep")
    assert steps[1].output == "?\n"
    assert not steps[1].failed
    assert steps[1].began
    log = (attempt / "logs" / "build.log").read_text()
    assert "# step 1: cd deep" in log
    Turns(assign())
    assert read_steps(attempt / "transcript.jsonl") == [], "a new build has a new transcript"


def test_what_is_left_in_the_background_ends_with_its_command(assign):
    turns = Turns(assign())
    began = time.monotonic()
    turn = turns.step("sleep 300 & echo $!")
    assert time.monotonic() - began < 20
    assert not os.path.exists(f"/proc/{turn.output.strip()}")  # noqa: PTH110
