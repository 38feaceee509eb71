"""An attempt's life on this host: built, frozen, and judged in boxes that are fresh."""

import os
import stat
import time
from pathlib import Path

import pytest

from researchenvbench.errors import SandboxError
from researchenvbench.sandbox import Command
from researchenvbench.sandbox.local.sandbox import LocalSandbox


class TestBuild:
    def test_own_copy_of_the_source(self, attempt, source, shell):
        with LocalSandbox().build_box(attempt, source) as box:
            repo = box.layout.repo
            assert (repo / "package" / "__init__.py").read_text() == "value = 1\n"
            assert stat.S_IMODE((repo / "run.sh").stat().st_mode) == 0o755
            assert (repo / "link").readlink() == Path("package")
            assert (repo / "away").readlink() == Path("/etc/passwd")
            assert not (repo / "fifo").exists()
            shell(box, "echo changed > package/__init__.py", cwd=repo)
        assert (source / "package" / "__init__.py").read_text() == "value = 1\n"

    def test_a_second_build_starts_anew(self, attempt, source):
        sandbox = LocalSandbox()
        with sandbox.build_box(attempt, source) as box:
            (box.layout.home / "left").write_text("x")
            blocked = box.layout.root / "env" / "closed"
            blocked.mkdir(parents=True)
            (blocked / "file").touch()
            blocked.chmod(0)
        sandbox.freeze(attempt)
        with sandbox.build_box(attempt, source) as box:
            assert not list(box.layout.home.iterdir())
            assert not box.layout.env.exists()
            stage = sandbox.stage_box(attempt, network=False, gpus=())
            with pytest.raises(SandboxError, match="no environment has been frozen"), stage:
                pass

    def test_source_around_the_attempt_is_refused(self, source):
        attempt = source / "runs" / "one"
        attempt.mkdir(parents=True)
        box = LocalSandbox().build_box(attempt, source)
        with pytest.raises(SandboxError, match="lies in the source"), box:
            pass

    def test_nothing_built_cannot_be_frozen(self, attempt):
        with pytest.raises(SandboxError, match="nothing has been built"):
            LocalSandbox().freeze(attempt)


class TestFrozen:
    def test_digest_is_of_paths_contents_and_modes(self, sandbox, frozen):
        before = sandbox.environment(frozen)
        file = sandbox.layout(frozen).env / "installed.py"
        assert before.files >= 4
        assert before.size_bytes >= 5007
        os.utime(file, ns=(1, 1))
        assert sandbox.environment(frozen).digest == before.digest
        file.chmod(0o755)
        assert sandbox.environment(frozen).digest != before.digest
        assert sandbox.changes(frozen).modified == ("env/installed.py",)

    def test_changes_are_named(self, sandbox, frozen):
        layout = sandbox.layout(frozen)
        assert not sandbox.changes(frozen)
        file = layout.env / "installed.py"
        status = file.stat()
        file.write_text("FROZEN\n")  # same size
        os.utime(file, ns=(status.st_atime_ns, status.st_mtime_ns))  # and the same time
        (layout.env / "data").unlink()
        (layout.repo / "new").touch()
        changes = sandbox.changes(frozen)
        assert changes.modified == ("env/installed.py",)
        assert changes.removed == ("env/data",)
        assert changes.added == ("repo/new",)

    def test_damaged_list_is_named(self, sandbox, frozen):
        (frozen / "frozen.json.gz").write_bytes(b"no gzip")
        with pytest.raises(SandboxError, match="cannot be read"):
            sandbox.environment(frozen)


class TestStage:
    def open(self, sandbox, attempt, **options):
        return sandbox.stage_box(attempt, **{"network": False, "gpus": (), **options})

    def test_same_paths_and_content(self, sandbox, frozen, shell):
        layout = sandbox.layout(frozen)
        with self.open(sandbox, frozen) as box:
            assert box.layout.repo == layout.repo
            assert box.layout.work == layout.work
            assert not box.layout.home.is_relative_to(layout.root)
            _, output = shell(box, "pwd; cat installed.py", cwd=layout.env)
            assert output == f"{layout.env}\nfrozen\n"

    def test_own_folders_are_empty_in_each(self, sandbox, frozen, shell):
        for _ in range(2):
            with self.open(sandbox, frozen) as box:
                for folder in (box.layout.work, box.layout.out, box.layout.home, box.layout.tmp):
                    _, output = shell(box, "ls -A; touch file", cwd=folder)
                    assert output == ""

    def test_commands_of_one_box_share_its_state(self, sandbox, frozen, shell):
        with self.open(sandbox, frozen) as box:
            shell(box, "echo damaged > installed.py; mkdir -p a/b; rm data", cwd=box.layout.env)
            _, output = shell(box, "cat installed.py; ls", cwd=box.layout.env)
            assert output == "damaged\na\ninstalled.py\n"

    def test_put_read_collect(self, sandbox, frozen, shell, tmp_path):
        with self.open(sandbox, frozen) as box:
            work, tools = box.layout.work, box.layout.tools
            box.put(tools / "deep" / "probe.sh", b"#!/bin/sh\necho probed\n", mode=0o755)
            finished, output = shell(
                box, f"'{tools}/deep/probe.sh' > r.txt && ln -s r.txt l.txt".replace("'ü", "'\\''ü")
            )
            assert finished.ok, output
            assert box.read(work / "r.txt", 100) == b"probed\n"
            # The path itself holds no character that a pattern takes for its own.
            collected = box.collect(f"{work}/*.txt".replace("\\", "[\\]"), tmp_path / "got")
            assert [(c.inside, c.copy.read_bytes(), c.fresh) for c in collected] == [
                (work / "r.txt", b"probed\n", True)
            ]
            with pytest.raises(SandboxError, match="symbolic link"):
                box.read(work / "l.txt", 100)
            with pytest.raises(SandboxError, match="inside of the box only"):
                box.put(tmp_path / "x", b"")

    def test_frozen_files_are_not_fresh(self, sandbox, frozen, shell, tmp_path):
        with self.open(sandbox, frozen) as box:
            shell(box, "echo more >> installed.py", cwd=box.layout.env)
            pattern = str(box.layout.env / "*").replace("\\", "[\\]")
            collected = box.collect(pattern, tmp_path / "got")
            assert [(c.inside.name, c.fresh) for c in collected] == [
                ("installed.py", True),
                ("data", False),
            ]
            # Those that this box made come first.
            assert [c.fresh for c in box.collect(pattern, tmp_path / "one", limit=1)] == [True]

    def test_a_file_of_a_time_to_come_is_not_fresh(self, sandbox, frozen, shell, tmp_path):
        file = sandbox.layout(frozen).env / "data"
        future_ns = (int(time.time()) + 10**9) * 10**9
        os.utime(file, ns=(future_ns, future_ns))
        sandbox.freeze(frozen)
        with self.open(sandbox, frozen) as box:
            shell(box, "cat data; touch -d 2001-01-01 made", cwd=box.layout.env)
            pattern = str(box.layout.env / "*").replace("\\", "[\\]")
            collected = box.collect(pattern, tmp_path / "got")
            assert {c.inside.name: c.fresh for c in collected} == {
                "data": False,
                "made": True,
                "installed.py": False,
            }

    def test_services_end_with_the_box(self, sandbox, frozen, tmp_path):
        with self.open(sandbox, frozen) as box:
            env = {"PATH": os.environ["PATH"]}
            command = Command(["sleep", "100"], box.layout.repo, env, 100)
            running = box.start(command, tmp_path / "log")
        assert running.poll().stopped

    def test_service_and_command_meet(self, sandbox, frozen, shell, tmp_path):
        with self.open(sandbox, frozen) as box:
            env = {"PATH": os.environ["PATH"]}
            serve = ["python3", "-c", SERVE]
            service = box.start(Command(serve, box.layout.work, env, 60), tmp_path / "service")
            finished, output = shell(
                box,
                "for i in $(seq 100); do test -s port && break; sleep 0.1; done;"
                "python3 -c 'import socket; s = socket.create_connection("
                '("127.0.0.1", int(open("port").read()))); print(s.recv(9).decode())\'',
            )
            assert finished.ok, output
            assert output == "hello\n"
            service.stop()

    def test_left_over_processes_are_named(self, sandbox, frozen, shell):
        with self.open(sandbox, frozen) as box:
            finished, _ = shell(box, "setsid sleep 100 & exit 0")
            assert [left.split()[1] for left in finished.leftovers] == ["sleep"]

    def test_start_errors(self, sandbox, frozen, tmp_path):
        with self.open(sandbox, frozen) as box:
            command = Command(["no-such-program"], box.layout.work, {"PATH": "/usr/bin"}, 5)
            assert "not found" in box.run(command, tmp_path / "log").start_error
            command = Command(["true"], box.layout.work / "no", {"PATH": "/usr/bin"}, 5)
            assert "working folder" in box.run(command, tmp_path / "log").start_error

    def test_scratch_is_gone_afterwards(self, sandbox, frozen, shell):
        with self.open(sandbox, frozen) as box:
            shell(box, "mkdir d && touch d/f && chmod 0 d")
        assert [path.name for path in (frozen / "scratch").iterdir()] == [".lock"]

    def test_two_attempts_at_once(self, sandbox, frozen, source, shell, tmp_path):
        other = tmp_path / "other"
        other.mkdir()
        with sandbox.build_box(other, source) as box:
            box.layout.env.mkdir()
            (box.layout.env / "installed.py").write_text("another\n")
        sandbox.freeze(other)
        with self.open(sandbox, frozen) as one, self.open(sandbox, other) as two:
            shell(one, "echo 1 > file")
            shell(two, "echo 2 > file")
            assert one.read(one.layout.work / "file", 9) == b"1\n"
            assert two.read(two.layout.work / "file", 9) == b"2\n"
            assert one.read(one.layout.env / "installed.py", 99) == b"frozen\n"
            assert two.read(two.layout.env / "installed.py", 99) == b"another\n"


SERVE = """
import socket
from pathlib import Path
server = socket.create_server(("127.0.0.1", 0))
Path("port").write_text(str(server.getsockname()[1]))
while True:
    server.accept()[0].sendall(b"hello")
"""


@pytest.mark.usefixtures("needs_overlay")
class TestOverlay:
    @pytest.fixture
    def fresh(self):
        return "overlay"

    def open(self, sandbox, attempt, network=False):
        return sandbox.stage_box(attempt, network=network, gpus=())

    def test_changes_are_thrown_away(self, sandbox, frozen, shell):
        with self.open(sandbox, frozen) as box:
            finished, output = shell(
                box,
                "echo damaged > installed.py; rm data; cd ../repo; mv package moved; ls",
                cwd=box.layout.env,
            )
            assert "moved" in output
            assert finished.ok
            assert box.freshness.kind == "overlay"
        assert not sandbox.changes(frozen)
        with self.open(sandbox, frozen) as box:
            assert box.freshness.changed == ()
            assert box.read(box.layout.env / "installed.py", 99) == b"frozen\n"

    def test_two_stages_of_one_attempt_at_once(self, sandbox, frozen, shell):
        with self.open(sandbox, frozen) as one, self.open(sandbox, frozen) as two:
            shell(one, "echo 1 > file; echo 1 > ../../box/env/installed.py")
            assert shell(two, "ls; cat ../../box/env/installed.py")[1] == "frozen\n"

    def test_network(self, sandbox, frozen, shell):
        network_here = str(Path("/proc/self/ns/net").readlink())
        interfaces = "cat /proc/net/dev | tail -n +3 | cut -d: -f1"
        with self.open(sandbox, frozen) as box:
            assert box.freshness.network == "none"
            assert shell(box, interfaces)[1].split() == ["lo"]
            assert shell(box, "readlink /proc/self/ns/net")[1].strip() != network_here
        with self.open(sandbox, frozen, network=True) as box:
            assert box.freshness.network == "host"
            assert shell(box, "readlink /proc/self/ns/net")[1].strip() == network_here

    def test_shared_memory_and_processes_are_its_own(self, sandbox, frozen, shell):
        with self.open(sandbox, frozen) as box:
            shell(box, "echo x > /dev/shm/reb-test-file")
            assert shell(box, "cat /dev/shm/reb-test-file")[1] == "x\n"
            pids = shell(box, "echo /proc/[0-9]*")[1].split()
            assert len(pids) < 10
        assert not Path("/dev/shm/reb-test-file").exists()

    def test_user_is_the_same(self, sandbox, frozen, shell):
        with self.open(sandbox, frozen) as box:
            assert shell(box, "id -u; touch f; stat -c %u f")[1].split() == [str(os.getuid())] * 2

    def test_box_that_has_died_says_so(self, sandbox, frozen, shell):
        with self.open(sandbox, frozen) as box:
            os.kill(box._namespaces.pid, 9)
            box._namespaces._process.wait()
            finished, _ = shell(box, "true")
            assert "the box cannot be entered" in finished.start_error

    def test_what_a_killed_harness_left_is_removed(self, sandbox, frozen):
        stale = frozen / "scratch" / "stale"
        stale.mkdir(parents=True)
        (stale / "lock").touch()
        with self.open(sandbox, frozen), self.open(sandbox, frozen):
            assert not stale.exists()
            assert len([p for p in (frozen / "scratch").iterdir() if p.is_dir()]) == 2


class TestInPlace:
    @pytest.fixture
    def fresh(self):
        return "in-place"

    def open(self, sandbox, attempt):
        return sandbox.stage_box(attempt, network=False, gpus=())

    def test_changes_of_earlier_stages_are_named(self, sandbox, frozen, shell):
        with self.open(sandbox, frozen) as box:
            assert box.freshness.kind == "in-place"
            assert box.freshness.network == "host"
            assert box.freshness.changed == ()
            shell(box, "echo damaged > installed.py; touch new", cwd=box.layout.env)
            shell(box, "mkdir __pycache__; touch __pycache__/x.pyc", cwd=box.layout.env)
        with self.open(sandbox, frozen) as box:
            # The folder's own byte code is no difference; the rest is.
            assert box.freshness.changed == ("env/installed.py", "env/new")

    def test_two_at_once_are_refused(self, sandbox, frozen):
        with self.open(sandbox, frozen):
            second = self.open(sandbox, frozen)
            with pytest.raises(SandboxError, match="another stage runs in place"), second:
                pass
