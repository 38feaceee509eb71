"""The process that forks jobs: every run gets an answer, whoever is ended and whenever."""

import os
import signal
import sys
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from researchenvbench.errors import HostError
from researchenvbench.run.forks import INTERRUPTED, ForkServer

LIMIT_S = 30


def work(what, place="", more=False):
    if what == "write":
        Path(place).write_text(f"{more} {os.getpid()}")
    elif what == "exit":
        sys.exit(3)
    elif what == "raise":
        raise RuntimeError("a fault")
    elif what == "die":
        os.kill(os.getpid(), signal.SIGKILL)
    elif what == "sleep":
        Path(place).write_text(str(os.getpid()))
        time.sleep(600)


@pytest.fixture
def server():
    assert threading.enumerate() == [threading.main_thread()], "a fork copies no other thread"
    server = ForkServer(work)
    yield server
    server.close()


@pytest.fixture
def threads(server):
    """Ended before the server is closed, so that a run that hangs fails its test."""
    with ThreadPoolExecutor(4) as threads:
        yield threads
        server.close()


def wait_for(path):
    deadline = time.monotonic() + LIMIT_S
    while not (path.exists() and path.read_text()):
        assert time.monotonic() < deadline
        time.sleep(0.01)
    return int(path.read_text())


def is_gone(pid):
    deadline = time.monotonic() + LIMIT_S
    while time.monotonic() < deadline:
        try:
            state = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
        except OSError:
            return True
        if state == "Z":
            return True
        time.sleep(0.01)
    return False


def test_results_come_back(server, tmp_path):
    assert server.run("write", str(tmp_path / "written"), True) == 0
    said, pid = (tmp_path / "written").read_text().split()
    assert said == "True"
    assert int(pid) != os.getpid()
    assert server.run("exit") == 3
    assert server.run("raise") == 1
    assert server.run("die") == -signal.SIGKILL


def test_an_interrupt_reaches_those_that_run_and_no_more_are_started(server, threads, tmp_path):
    first = threads.submit(server.run, "sleep", str(tmp_path / "first"))
    second = threads.submit(server.run, "sleep", str(tmp_path / "second"))
    wait_for(tmp_path / "first")
    wait_for(tmp_path / "second")
    server.interrupt()
    assert first.result(LIMIT_S) == INTERRUPTED
    assert second.result(LIMIT_S) == INTERRUPTED
    assert server.run("sleep", str(tmp_path / "third")) == -signal.SIGINT
    assert not (tmp_path / "third").exists()


@pytest.mark.parametrize("delay_s", [0, 0.001, 0.003, 0.01, 0.03])
def test_an_interrupt_while_a_job_starts_is_not_lost(server, threads, tmp_path, delay_s):
    running = threads.submit(server.run, "sleep", str(tmp_path / "place"))
    time.sleep(delay_s)
    server.interrupt()
    assert running.result(LIMIT_S) in (INTERRUPTED, -signal.SIGINT)


def test_kill_9_of_the_server_answers_all_that_wait(server, threads, tmp_path):
    running = [threads.submit(server.run, "sleep", str(tmp_path / name)) for name in "ab"]
    jobs = [wait_for(tmp_path / name) for name in "ab"]
    os.kill(server.pid, signal.SIGKILL)
    assert all(future.result(LIMIT_S) < 0 for future in running)
    assert all(is_gone(pid) for pid in jobs), "the kernel ends its jobs with it"
    with pytest.raises(HostError, match="no job can be started"):
        server.run("exit")
    server.interrupt()


def test_a_run_after_the_end_is_refused(server):
    server.close()
    with pytest.raises(HostError, match="no job can be started"):
        server.run("exit")


def test_closing_ends_the_jobs(server, threads, tmp_path):
    running = threads.submit(server.run, "sleep", str(tmp_path / "place"))
    job = wait_for(tmp_path / "place")
    server.close()
    assert running.result(LIMIT_S) < 0
    assert is_gone(job)
