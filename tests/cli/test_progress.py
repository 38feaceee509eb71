"""Progress: cheap to follow, never a flood, and the terminal is left as it was found."""

from __future__ import annotations

import os
import pty
import re
import select
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from researchenvbench.attempt import (
    AttemptStatus,
    EventLog,
    HostFacts,
    Level,
    LevelResult,
    Owner,
    Record,
    Verdict,
    Want,
)
from researchenvbench.cli.progress import (
    Activity,
    PlainWatcher,
    QuietWatcher,
    RunWatcher,
    make_watcher,
)
from researchenvbench.run.plan import PlannedAttempt
from researchenvbench.run.store import AttemptFolder, Job
from researchenvbench.task import FolderSource, Task


def planned(folder: Path, name: str = "alpha") -> PlannedAttempt:
    task = Task(
        schema=1, name=name, domain="test", source=FolderSource(kind="folder", path=str(folder))
    )
    place = AttemptFolder(folder / f"{name}--1")
    place.path.mkdir(parents=True)
    job = Job(suite="s", task_folder=str(folder), task=name, agent="builtin")
    return PlannedAttempt(task, 1, place, job, done=False, why="build")


def save_record(attempt: PlannedAttempt) -> None:
    results = {
        Level.C1: LevelResult(level=Level.C1, verdict=Verdict.PASSED, proven="proven"),
        Level.C2: LevelResult(
            level=Level.C2,
            verdict=Verdict.INCONCLUSIVE,
            owner=Owner.HOST,
            want=Want.GPU,
            reason="no GPU",
        ),
    }
    Record(
        reb_version="0", task=attempt.task.name, task_digest="t", source_digest="s",
        agent="builtin", sandbox="local", status=AttemptStatus.OK, started="", finished="",
        results=results, host=HostFacts(system="x", cpus=1, memory_bytes=1),
    ).save(attempt.folder.record_file)  # fmt: skip


def wait_for(condition, seconds: float = 20.0) -> None:
    end = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < end, "it did not come"
        time.sleep(0.02)


# --- what an attempt is doing ----------------------------------------------------------


def test_the_last_event_and_the_last_line_of_its_log(tmp_path):
    log = tmp_path / "build.log"
    say = EventLog(tmp_path / "events.jsonl")
    say("one")
    say("installing", log=log)
    log.write_bytes(b"first\n 10%\r 55%\r\xff 90%\x1b[0m\n\n")
    activity = Activity("a", tmp_path)
    activity.look()
    assert activity.doing == "installing"
    assert activity.line == "\N{REPLACEMENT CHARACTER} 90%"


def test_the_newest_log_where_the_event_names_none(tmp_path):
    (tmp_path / "logs").mkdir()
    for place, name in enumerate(("new.log", "old.log")):
        (tmp_path / "logs" / name).write_text(f"{name}\n")
        os.utime(tmp_path / "logs" / name, (1e9 - place, 1e9 - place))
    EventLog(tmp_path / "events.jsonl")("C1")
    activity = Activity("a", tmp_path)
    activity.look()
    assert activity.line == "new.log"


def test_half_an_event_is_not_an_event(tmp_path):
    path = tmp_path / "events.jsonl"
    EventLog(path)("whole")
    with path.open("a") as stream:
        stream.write('[1]\n{"doing": 3}\nnonsense\n{"time": "x", "doi')
    activity = Activity("a", tmp_path)
    activity.look()
    assert activity.doing in ("3", "whole")


def test_files_that_vanish_change_nothing(tmp_path):
    path = tmp_path / "events.jsonl"
    activity = Activity("a", tmp_path)
    activity.look()
    assert activity.doing == "starting"
    EventLog(path)("building")
    activity.look()
    path.unlink()
    activity.look()
    assert activity.doing == "building"


def test_looking_at_a_huge_log_is_cheap(tmp_path):
    log = tmp_path / "huge.log"
    with log.open("wb") as stream:
        stream.truncate(2_000_000_000)
        stream.seek(0, os.SEEK_END)
        stream.write(b"\nthe end\n")
    EventLog(tmp_path / "events.jsonl")("x", log=log)
    activity = Activity("a", tmp_path)
    started = time.process_time()
    for _ in range(100):
        activity.look()
    assert activity.line == "the end"
    assert time.process_time() - started < 1.0


# --- plain lines -----------------------------------------------------------------------


def test_plain_lines_from_start_to_end(tmp_path, capsys):
    attempt = planned(tmp_path)
    said = ""

    def seen(text):
        nonlocal said
        said += capsys.readouterr().err
        return text in said

    with PlainWatcher(interval_s=0.05) as watcher:
        watcher.started(attempt)
        EventLog(attempt.folder.events_file)("resolving")
        wait_for(lambda: seen("alpha--1: resolving ("))
        save_record(attempt)
        watcher.ended(attempt, "")
    assert seen("")
    lines = said.splitlines()
    assert lines[0] == "alpha--1: build"
    assert re.fullmatch(r"alpha--1: C1 pass  ?C2 \? no GPU \(.* s\)", lines[-1])
    assert capsys.readouterr().out == ""


def test_plain_lines_are_no_flood(tmp_path, capsys):
    attempt = planned(tmp_path)
    say = EventLog(attempt.folder.events_file)
    with PlainWatcher(interval_s=60) as watcher:
        watcher._interval_s = 0.2  # the thread polls, changes come faster than it may tell
        watcher.started(attempt)
        for number in range(200):
            say(f"step {number}")
        watcher.ended(attempt, "killed by SIGKILL")
    lines = capsys.readouterr().err.splitlines()
    assert len(lines) <= 3
    assert "no record: killed by SIGKILL" in lines[-1]
    assert watcher.problems == {"alpha--1": "killed by SIGKILL"}


def test_an_attempt_that_left_no_record_says_so(tmp_path, capsys):
    attempt = planned(tmp_path)
    with PlainWatcher() as watcher:
        watcher.started(attempt)
        watcher.ended(attempt, "")
        attempt.folder.record_file.write_text("{")
        watcher.ended(attempt, "")
    lines = capsys.readouterr().err.splitlines()
    assert "no record: it left no record" in lines[1]
    assert "not a Record" in lines[2]


def test_quiet_is_quiet(tmp_path, capsys):
    attempt = planned(tmp_path)
    with make_watcher(quiet=True, json=False) as watcher:
        watcher.started(attempt)
        watcher.ended(attempt, "it crashed")
    captured = capsys.readouterr()
    assert (captured.out, captured.err) == ("", "")
    assert watcher.problems == {"alpha--1": "it crashed"}


def test_the_kind_fits_the_error_output(capsys):
    assert isinstance(make_watcher(quiet=False, json=False), PlainWatcher)
    assert isinstance(make_watcher(quiet=False, json=True), QuietWatcher)


# --- a terminal ------------------------------------------------------------------------

_PROGRAM = """
import sys, time
sys.path.insert(0, {tests!r})
from pathlib import Path
from test_progress import planned, save_record
from researchenvbench.attempt import EventLog
from researchenvbench.cli.progress import make_watcher

folder = Path({folder!r})
first, second = planned(folder, "first"), planned(folder, "second")
with make_watcher(quiet=False, json=False) as watcher:
    watcher.started(first)
    watcher.started(second)
    log = first.folder.path / "build.log"
    log.write_text("\\x1b[2Jlast words " + "x" * 500)
    EventLog(first.folder.events_file)("installing things", log=log)
    time.sleep(0.6)
    save_record(second)
    watcher.ended(second, "")
    print("to the output", flush=True)
    time.sleep(0.4)
    print("READY", file=sys.stderr, flush=True)
    time.sleep({wait})
"""


def in_terminal(tmp_path, *, columns: int, interrupt: bool) -> tuple[str, str]:
    """(what a terminal got, what the output got) of a program that shows live progress."""
    script = tmp_path / "program.py"
    script.write_text(
        _PROGRAM.format(
            tests=str(Path(__file__).parent),
            folder=str(tmp_path / "run"),
            wait=30 if interrupt else 0,
        )
    )
    terminal, end = pty.openpty()
    environment = {**os.environ, "TERM": "xterm", "COLUMNS": str(columns), "LINES": "24"}
    environment.pop("NO_COLOR", None)
    process = subprocess.Popen(
        [sys.executable, str(script)], stderr=end, stdout=subprocess.PIPE, env=environment
    )
    os.close(end)
    got, sent = b"", False
    until = time.monotonic() + 60
    while time.monotonic() < until:
        if select.select([terminal], [], [], 0.1)[0]:
            try:
                part = os.read(terminal, 65536)
            except OSError:  # the other end is closed
                break
            if not part:
                break
            got += part
        if interrupt and not sent and b"READY" in got:
            process.send_signal(signal.SIGINT)
            sent = True
    assert process.stdout is not None
    out = process.stdout.read().decode()
    process.stdout.close()
    process.wait(30)
    os.close(terminal)
    return got.decode(errors="replace"), out


@pytest.mark.parametrize("interrupt", [False, True])
def test_the_cursor_comes_back(tmp_path, interrupt):
    text, out = in_terminal(tmp_path, columns=80, interrupt=interrupt)
    assert "installing things" in text
    assert "last words" in text
    assert "second--1" in text
    assert text.rfind("\x1b[?25h") > text.rfind("\x1b[?25l") > -1
    assert ("KeyboardInterrupt" in text) is interrupt
    assert out == "to the output\n"
    assert "\x1b[2J" not in text


def test_a_narrow_terminal_gets_lines_of_its_width(tmp_path):
    text, _ = in_terminal(tmp_path, columns=30, interrupt=False)
    plain = re.sub(r"\x1b\[[0-9;?]*[A-Za-z]", "", text)
    running = [part for part in re.split(r"[\r\n]+", plain) if "first--1" in part]
    assert running
    assert all(len(line.rstrip()) <= 30 for line in running)


def test_watchers_are_what_a_run_needs():
    watcher: RunWatcher = make_watcher(quiet=True, json=False)
    assert watcher.problems == {}
