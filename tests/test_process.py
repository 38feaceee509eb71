"""Programs end, whatever they do, and how they ended is told."""

import contextlib
import os
import signal
import stat
import subprocess
import sys
import textwrap
import time
from pathlib import Path

import pytest

from researchenvbench import process
from researchenvbench.errors import SandboxError

#: As the real one, but impatient.
QUICK = (("SIGINT", 0.3), ("SIGTERM", 0.3), ("SIGKILL", 5.0))


def alive(pid):
    try:
        state = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
    except (FileNotFoundError, ProcessLookupError):
        return False
    return state != "Z"


def wait_until(condition, limit_s=10.0):
    until = time.monotonic() + limit_s
    while time.monotonic() < until:
        if condition():
            return True
        time.sleep(0.02)
    return False


@pytest.fixture
def run(tmp_path):
    def run(*argv, **options):
        options = {
            "time_limit_s": 30,
            "cwd": tmp_path,
            "env": {"PATH": os.environ["PATH"]},
        } | options
        return process.run(argv, log=tmp_path / "log", **options)

    return run


@pytest.fixture
def python(run):
    """Run a piece of Python, in an interpreter of its own."""

    def python(code, **options):
        return run(sys.executable, "-I", "-S", "-c", textwrap.dedent(code), **options)

    return python


def pids_in(folder):
    return [int(file.read_text()) for file in sorted(folder.glob("*.pid"))]


class TestEnds:
    def test_output_and_errors_go_to_the_log_in_order(self, run, tmp_path):
        finished = run("sh", "-c", "echo one; echo two >&2; echo three")
        assert finished.ok
        assert (tmp_path / "log").read_text() == "one\ntwo\nthree\n"
        assert finished.log_bytes == 14

    def test_exit_code(self, run):
        finished = run("sh", "-c", "exit 3")
        assert (finished.exit_code, finished.signal, finished.ok) == (3, None, False)

    def test_signal(self, run):
        finished = run("sh", "-c", "kill -SEGV $$")
        assert (finished.exit_code, finished.signal) == (None, "SIGSEGV")

    def test_append_keeps_what_was_there(self, run, tmp_path):
        run("echo", "first")
        run("echo", "second", append=True)
        assert (tmp_path / "log").read_text() == "first\nsecond\n"
        run("echo", "third")
        assert (tmp_path / "log").read_text() == "third\n"

    def test_standard_input_is_empty(self, run):
        assert run("cat").ok

    def test_environment_is_the_given_one_and_no_more(self, run, tmp_path):
        run("env", env={"PATH": os.environ["PATH"], "NAME": "välue \udcff"})
        lines = (tmp_path / "log").read_bytes().splitlines()
        assert sorted(lines) == [
            b"NAME=v\xc3\xa4lue \xff",
            b"PATH=" + os.fsencode(os.environ["PATH"]),
        ]

    def test_no_descriptor_of_ours_is_inherited(self, run, tmp_path):
        run("ls", "-l", "/proc/self/fd")
        assert "pipe" not in "".join(
            line
            for line in (tmp_path / "log").read_text().splitlines()
            if " 1 ->" not in line and " 2 ->" not in line
        )

    def test_ignored_signals_are_restored(self, python, tmp_path):
        python("import signal; print(open('/proc/self/status').read())")
        ignored = next(
            line
            for line in (tmp_path / "log").read_text().splitlines()
            if line.startswith("SigIgn")
        )
        # Python itself ignores SIGPIPE and SIGXFSZ; whoever runs the tests may ignore more.
        own = 1 << (signal.SIGPIPE - 1) | 1 << (signal.SIGXFSZ - 1)
        status = Path("/proc/self/status").read_text()
        ours = next(line for line in status.splitlines() if line.startswith("SigIgn"))
        assert int(ignored.split()[1], 16) & ~(own | int(ours.split()[1], 16)) == 0


class TestStartErrors:
    def test_unknown_program(self, run):
        finished = run("no-such-program-here")
        assert "no-such-program-here: program not found on PATH" in finished.start_error
        assert not finished.ok

    def test_absent_path(self, run):
        assert "program not found" in run("/no/such/program").start_error

    def test_folder(self, run, tmp_path):
        assert "is a folder" in run(str(tmp_path)).start_error

    def test_no_executable_bit(self, run, tmp_path):
        (tmp_path / "script").write_text("#!/bin/sh\n")
        assert "not executable" in run(str(tmp_path / "script")).start_error

    def test_neither_binary_nor_script(self, run, tmp_path):
        program = tmp_path / "program"
        program.write_bytes(b"\x00\x01\x02")
        program.chmod(0o755)
        assert "not a program that this machine can run" in run(str(program)).start_error

    def test_interpreter_of_the_first_line_is_absent(self, run, tmp_path):
        script = tmp_path / "script"
        script.write_text("#!/no/such/python\n")
        script.chmod(0o755)
        assert "first line" in run(str(script)).start_error

    def test_working_folder_is_absent(self, run, tmp_path):
        error = run("true", cwd=tmp_path / "absent").start_error
        assert "working folder cannot be entered" in error

    def test_arguments_too_long(self, run):
        assert "too long" in run("true", "x" * 3_000_000).start_error

    def test_nul_in_an_argument(self, run):
        assert "null byte" in run("true", "a\0b").start_error

    def test_log_cannot_be_written(self, run, tmp_path):
        with pytest.raises(SandboxError, match="the log cannot be written"):
            process.run(["true"], cwd=tmp_path, env={}, log=tmp_path / "no" / "log", time_limit_s=1)


class TestTimeLimit:
    def test_ends_at_the_limit(self, run):
        finished = run("sleep", "100", time_limit_s=0.3)
        assert finished.timed_out
        assert finished.signal == "SIGINT"
        assert finished.seconds < 3
        assert not finished.ok

    def test_terminate_follows_interrupt(self, run):
        finished = run(
            "sh", "-c", "trap '' INT; sleep 100; sleep 100", time_limit_s=0.3, ladder=QUICK
        )
        assert finished.timed_out
        assert finished.signal == "SIGTERM"

    def test_child_that_ignores_interrupt_and_terminate(self, python):
        finished = python(
            """
            import signal, time
            signal.signal(signal.SIGINT, signal.SIG_IGN)
            signal.signal(signal.SIGTERM, signal.SIG_IGN)
            while True: time.sleep(1)
            """,
            time_limit_s=0.5,
            ladder=QUICK,
        )
        assert finished.timed_out
        assert finished.signal == "SIGKILL"
        assert not finished.out_of_memory

    def test_stopped_child(self, run):
        finished = run("sh", "-c", "kill -STOP $$", time_limit_s=0.3, ladder=QUICK)
        assert finished.timed_out
        assert finished.seconds < 2

    def test_output_until_the_limit_is_kept(self, run, tmp_path):
        run("sh", "-c", "echo before; sleep 100", time_limit_s=0.5)
        assert (tmp_path / "log").read_text() == "before\n"

    def test_child_that_closes_its_output_and_stays(self, run):
        finished = run("sh", "-c", "exec >/dev/null 2>&1 </dev/null; sleep 100", time_limit_s=0.4)
        assert finished.timed_out
        assert finished.seconds < 3

    @pytest.mark.parametrize("how", ["setsid", "double fork", "ignores"])
    def test_whoever_left_the_group_is_ended_too(self, python, tmp_path, how):
        python(
            f"""
            import os, signal, time
            def note(name): open(name + '.pid', 'w').write(str(os.getpid()))
            if os.fork() == 0:
                os.setsid()
                if {how!r} == 'double fork' and os.fork():
                    os._exit(0)
                if {how!r} == 'ignores':
                    signal.signal(signal.SIGINT, signal.SIG_IGN)
                    signal.signal(signal.SIGTERM, signal.SIG_IGN)
                os.close(1); os.close(2)
                note('away')
                time.sleep(100)
            note('main')
            time.sleep(100)
            """,
            time_limit_s=0.7,
            ladder=QUICK,
        )
        pids = pids_in(tmp_path)
        assert len(pids) == 2
        assert not [pid for pid in pids if alive(pid)]

    @pytest.mark.parametrize("pause_s", [0.01, 0])
    def test_one_that_forks_on_and_on(self, python, tmp_path, pause_s):
        finished = python(
            f"""
            import os, signal, time
            signal.signal(signal.SIGINT, signal.SIG_IGN)
            signal.signal(signal.SIGTERM, signal.SIG_IGN)
            signal.signal(signal.SIGCHLD, signal.SIG_IGN)
            # Ends by itself in any case: a chain that outlived the test would slow the host.
            last = time.monotonic() + 20
            while time.monotonic() < last:
                if os.fork():
                    time.sleep({pause_s})
                    os._exit(0)
            """,
            time_limit_s=5,
            ladder=QUICK,
        )
        # The first ends at once; what follows is a chain of orphans.
        assert finished.exit_code == 0
        assert len(finished.leftovers) >= 1
        assert not [left for left in finished.leftovers if "could not" in left]


class TestLeftovers:
    def test_named_and_ended(self, run, tmp_path):
        finished = run("sh", "-c", "setsid sleep 100 & echo $! > a.pid; exit 0", ladder=QUICK)
        assert finished.exit_code == 0
        assert [left.split()[1] for left in finished.leftovers] == ["sleep"]
        assert not alive(int(finished.leftovers[0].split()[0]))

    def test_one_that_ends_by_itself_at_once_is_none(self, run):
        finished = run("sh", "-c", "sleep 0.1 & exit 0")
        assert finished.leftovers == ()

    def test_one_that_holds_the_output_open_keeps_nobody_waiting(self, run):
        began = time.monotonic()
        finished = run("sh", "-c", "(trap '' INT; sleep 100) & exit 0", ladder=QUICK)
        assert time.monotonic() - began < 5
        assert finished.leftovers


class TestOutput:
    def test_two_hundred_megabytes(self, run, tmp_path):
        script = "echo begin; head -c 200000000 /dev/zero | tr '\\0' x; echo; echo end"
        finished = run("sh", "-c", script, log_limit_bytes=1_000_000)
        log = (tmp_path / "log").read_bytes()
        assert finished.ok
        assert finished.log_bytes == 200_000_011
        assert len(log) <= 1_000_100
        assert log.startswith(b"begin\n")
        assert log.endswith(b"x\nend\n")
        assert f"{finished.log_bytes_dropped} bytes of output left out here".encode() in log
        gap = len(log) - (finished.log_bytes - finished.log_bytes_dropped)
        assert 0 < gap < 100  # the line between is all that was added

    def test_bytes_are_kept_as_they_are(self, run, tmp_path):
        run("printf", r"a\377b\r\0c\303\274\n")
        assert (tmp_path / "log").read_bytes() == b"a\xffb\r\0c\xc3\xbc\n"

    def test_visible_at_once(self, tmp_path):
        running = process.start(
            ["sh", "-c", "echo here; sleep 100"],
            cwd=tmp_path,
            env={"PATH": os.environ["PATH"]},
            log=tmp_path / "log",
            time_limit_s=60,
        )
        try:
            assert wait_until(lambda: (tmp_path / "log").read_text() == "here\n")
        finally:
            running.stop()

    def test_on_line_gets_the_newest_line(self, run):
        seen = []
        run(
            "sh",
            "-c",
            r"printf 'one\n'; sleep 0.4; printf '10%%\r20%%\r'; sleep 0.4; printf '\377end'",
            on_line=seen.append,
        )
        assert seen == ["one", "20%", "\ufffdend"]

    def test_on_line_is_told_a_few_times_a_second(self, run):
        seen = []
        finished = run("sh", "-c", "seq 200000", on_line=seen.append)
        assert 1 <= len(seen) <= 3 + finished.seconds / 0.2
        assert seen[-1] == "200000"

    @pytest.mark.skipif(os.geteuid() != 0, reason="mounting a small file system needs root")
    def test_full_disk(self, run, tmp_path):
        small = tmp_path / "small"
        small.mkdir()
        mounted = subprocess.run(
            ["mount", "-t", "tmpfs", "-o", "size=100k", "none", small], check=False
        )
        if mounted.returncode:
            pytest.skip("this host lets nobody mount")
        try:
            finished = process.run(
                ["sh", "-c", "head -c 1000000 /dev/zero; exit 4"],
                cwd=tmp_path,
                env={"PATH": os.environ["PATH"]},
                log=small / "log",
                time_limit_s=20,
            )
        finally:
            subprocess.run(["umount", small], check=True)
        assert finished.exit_code == 4
        assert finished.log_error == "No space left on device"
        assert finished.log_bytes == 1_000_000


class TestStop:
    """A program that somebody else wants ended."""

    def test_whoever_wants_it_ended_is_asked(self, python, tmp_path):
        wanted = tmp_path / "wanted"
        finished = python(
            "import time, pathlib\n"
            f"pathlib.Path({str(wanted)!r}).touch()\n"
            "print('works', flush=True)\n"
            "time.sleep(60)\n",
            time_limit_s=50,
            stop=wanted.exists,
        )
        assert finished.stopped
        assert not finished.timed_out
        assert finished.signal == "SIGINT" or finished.exit_code == 1
        assert finished.seconds < 20
        assert b"works" in finished.log.read_bytes()

    def test_it_is_asked_again_and_again_and_its_no_is_heard(self, python):
        asked = []
        finished = python("import time; time.sleep(2.5)", stop=lambda: asked.append(1) is not None)
        assert finished.ok
        assert not finished.stopped
        assert 2 <= len(asked) <= 6


class TestStart:
    def start(self, tmp_path, *argv, **options):
        return process.start(
            argv,
            cwd=tmp_path,
            env={"PATH": os.environ["PATH"]},
            log=tmp_path / "service.log",
            **{"time_limit_s": 60, "ladder": QUICK, **options},
        )

    def test_poll_and_stop(self, tmp_path):
        running = self.start(tmp_path, "sleep", "100")
        assert running.poll() is None
        finished = running.stop()
        assert finished.stopped
        assert finished.signal == "SIGINT"
        assert running.poll() == finished

    def test_stop_at_once(self, tmp_path):
        assert self.start(tmp_path, "sleep", "100").stop().seconds < 5

    def test_ends_by_itself(self, tmp_path):
        running = self.start(tmp_path, "sh", "-c", "exit 5")
        assert wait_until(lambda: running.poll() is not None)
        assert running.poll().exit_code == 5
        assert running.stop().exit_code == 5

    def test_time_limit(self, tmp_path):
        running = self.start(tmp_path, "sleep", "100", time_limit_s=0.3)
        assert wait_until(lambda: running.poll() is not None)
        assert running.poll().timed_out

    def test_many_at_once(self, tmp_path):
        running = [
            process.start(
                ["sh", "-c", f"echo {number}; sleep 0.2; exit {number}"],
                cwd=tmp_path,
                env={"PATH": os.environ["PATH"]},
                log=tmp_path / f"{number}.log",
                time_limit_s=30,
            )
            for number in range(6)
        ]
        assert wait_until(lambda: all(one.poll() for one in running), 20)
        assert [one.poll().exit_code for one in running] == list(range(6))
        assert [(tmp_path / f"{n}.log").read_text() for n in range(6)] == [
            f"{n}\n" for n in range(6)
        ]


def test_capture(tmp_path):
    finished, output = process.capture(
        ["sh", "-c", "printf answer"],
        cwd=tmp_path,
        env={"PATH": os.environ["PATH"]},
        time_limit_s=10,
    )
    assert finished.ok
    assert output == b"answer"


# --- the end of the harness ------------------------------------------------------------

HARNESS = """
import os, sys
from pathlib import Path
from researchenvbench import process
here = Path(sys.argv[1])
process.run(
    ["sh", "-c", "echo $$ > main.pid; setsid sh -c 'echo $$ > away.pid; exec sleep 9' & sleep 9"],
    cwd=here, env={"PATH": os.environ["PATH"]}, log=here / "log", time_limit_s=100,
    ladder=(("SIGINT", 0.3), ("SIGTERM", 0.3), ("SIGKILL", 5.0)),
)
"""


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGINT, signal.SIGTERM])
def test_end_of_the_harness_ends_the_tree(tmp_path, number):
    harness = subprocess.Popen(
        [sys.executable, "-c", HARNESS, str(tmp_path)], stderr=subprocess.PIPE, text=True
    )
    assert wait_until(lambda: len([p for p in tmp_path.glob("*.pid") if p.read_text()]) == 2)
    pids = pids_in(tmp_path)
    assert all(alive(pid) for pid in pids)
    harness.send_signal(number)
    _, errors = harness.communicate(timeout=20)
    assert wait_until(lambda: not any(alive(pid) for pid in pids))
    if number == signal.SIGINT:
        assert "KeyboardInterrupt" in errors
        assert harness.returncode not in (0, None)


def test_death_of_the_supervisor_ends_the_program(tmp_path):
    running = process.start(
        ["sh", "-c", "echo $PPID > supervisor; echo $$ > main.pid; exec sleep 100"],
        cwd=tmp_path,
        env={"PATH": os.environ["PATH"]},
        log=tmp_path / "log",
        time_limit_s=60,
    )
    assert wait_until(
        lambda: (tmp_path / "main.pid").exists() and (tmp_path / "main.pid").read_text()
    )
    os.kill(int((tmp_path / "supervisor").read_text()), signal.SIGKILL)
    assert wait_until(lambda: running.poll() is not None)
    assert not running.poll().ok
    assert running.poll().signal == "SIGKILL"
    assert wait_until(lambda: not alive(int((tmp_path / "main.pid").read_text())))


# --- memory ----------------------------------------------------------------------------


@contextlib.contextmanager
def memory_group(limit_bytes):
    """A control group of either version with a memory limit; skips where none can be made."""
    own = Path("/proc/self/cgroup").read_text().splitlines()
    first = next((line.split(":", 2)[2] for line in own if ":memory:" in line), None)
    if first is not None:
        parent, name = Path(f"/sys/fs/cgroup/memory{first}"), "memory.limit_in_bytes"
    else:
        parent, name = Path("/sys/fs/cgroup"), "memory.max"
    group = parent / f"reb-test-{os.getpid()}"
    try:
        group.mkdir()
        (group / name).write_text(str(limit_bytes))
    except OSError as error:
        with contextlib.suppress(OSError):
            group.rmdir()
        pytest.skip(f"no control group with a memory limit can be made: {error}")
    try:
        yield group
    finally:
        assert wait_until(lambda: not (group / "cgroup.procs").read_text())
        group.rmdir()


def test_out_of_memory_is_known(tmp_path):
    harness = """
import os, sys
from pathlib import Path
Path(sys.argv[2], "cgroup.procs").write_text(str(os.getpid()))
from researchenvbench import process
here = Path(sys.argv[1])
eat = "x = bytearray(900_000_000); print(len(x))"
def run(*argv):
    env = {"PATH": os.environ["PATH"]}
    return process.run(argv, cwd=here, env=env, log=here / "log", time_limit_s=50)
finished = run(sys.executable, "-I", "-S", "-c", eat)
fine = run("false")
print(finished.signal, finished.out_of_memory, fine.out_of_memory)
"""
    with memory_group(200_000_000) as group:
        done = subprocess.run(
            [sys.executable, "-c", harness, str(tmp_path), str(group)],
            capture_output=True,
            text=True,
            timeout=60,
            check=False,
        )
    assert done.stdout == "SIGKILL True False\n", done.stderr


def test_killed_by_somebody_is_not_out_of_memory(run):
    finished = run("sh", "-c", "kill -KILL $$")
    assert finished.signal == "SIGKILL"
    assert not finished.out_of_memory


def test_log_is_for_its_owner_and_readers_only(run, tmp_path):
    run("true")
    assert stat.S_IMODE((tmp_path / "log").stat().st_mode) & 0o022 == 0


def test_a_halted_supervisor_is_given_up(python, monkeypatch):
    monkeypatch.setattr(process, "MARGIN_S", 0.5)
    began = time.monotonic()
    code = """
        import os, signal, subprocess, time
        child = subprocess.Popen(["sleep", "300"], start_new_session=True)
        print(child.pid, flush=True)
        os.kill(os.getppid(), signal.SIGSTOP)
        time.sleep(300)
    """
    finished = python(code, time_limit_s=1, ladder=QUICK)
    assert time.monotonic() - began < 20
    assert finished.timed_out
    assert finished.overdue
    assert not finished.out_of_memory
    assert not alive(int(finished.log.read_text()))


def test_a_supervisor_that_does_not_read_is_given_up(tmp_path, monkeypatch):
    monkeypatch.setattr(process, "MARGIN_S", 0.5)
    began = time.monotonic()
    finished = process.run(
        ["true"],
        cwd=tmp_path,
        env={"LONG": "x" * 120_000},
        log=tmp_path / "log",
        time_limit_s=1,
        ladder=QUICK,
        via=["sleep", "300"],
    )
    assert time.monotonic() - began < 20
    assert finished.overdue
