"""The container that a stage runs in: as fresh as the first, shut off, and not to be fooled."""

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from container_boxes import ours, run

from researchenvbench.errors import RefusedError, SandboxError
from researchenvbench.sandbox import Command
from researchenvbench.sandbox.containers import disk
from researchenvbench.sandbox.containers.options import Options
from researchenvbench.sandbox.host_environment import host_environment

pytestmark = [pytest.mark.container, pytest.mark.slow]


#: What a build may leave where stages have their own folders.
PLANTED = {
    "link": "mkdir -p /reb; ln -s /etc /reb/stage",
    "file": "mkdir -p /reb; echo file > /reb/stage",
    "folder": (
        "mkdir -p /reb/stage/work /reb/stage/tools; echo planted > /reb/stage/work/result.json; "
        "chmod 0 /reb/stage/work; ln -s /etc /reb/stage/out"
    ),
    "above": "ln -s /etc /reb",
    "fifo": "mkdir -p /reb; mkfifo /reb/stage",
}


@pytest.fixture(scope="module")
def stage(sandbox, frozen):
    """A stage's box that many tests share."""
    with sandbox.stage_box(frozen, network=False, gpus=()) as box:
        yield box


@pytest.fixture
def mine(frozen):
    """The containers of the attempt that the test has started: others share one."""
    shared = set(ours(frozen))
    return lambda: sorted(set(ours(frozen)) - shared)


@pytest.fixture
def log(tmp_path):
    return tmp_path / "log"


@pytest.fixture
def image(sandbox, debian_image, tmp_path):
    """Opens a box on an image that a shell line has made of the base image."""
    made = []
    attempt = tmp_path / "attempt"
    attempt.mkdir()

    def open_image(line, *, network=False):
        engine = sandbox.engine
        name = f"localhost/researchenvbench/hostile:{os.getpid()}-{len(made)}"
        container = engine.ask(
            *("run", "--detach", "--network", "none", *engine.run_flags, "--entrypoint", ""),
            *(debian_image.id, "/bin/sh", "-c", line),
        )
        engine.call("wait", container)
        engine.call("commit", container, name)
        engine.call("rm", "--force", container)
        made.append(name)
        return sandbox.image_box(name, attempt, network=network)

    yield open_image
    for name in made:
        sandbox.engine.call("rmi", "--force", name)


class TestFreshness:
    def test_own_folders_are_empty_in_each_and_leavings_are_gone(self, sandbox, frozen, mine, log):
        for _ in range(2):
            with sandbox.stage_box(frozen, network=False, gpus=()) as box:
                layout = box.layout
                for folder in (layout.work, layout.out, layout.home, layout.tmp, layout.tools):
                    assert run(box, "ls -A; touch file", log, cwd=folder)[1] == ""
                line = (
                    "cat installed.py; echo damaged > installed.py; rm data; "
                    "ls /dev/shm; touch /dev/shm/x"
                )
                assert run(box, line, log, cwd=layout.env)[1] == "frozen\n"
                assert box.freshness.kind == "container"
        assert not mine()

    @pytest.mark.parametrize("planted", PLANTED.values(), ids=PLANTED)
    def test_what_was_planted_there_is_gone(self, image, log, planted):
        with image(planted) as box:
            for folder in (box.layout.work, box.layout.out, box.layout.home, box.layout.tools):
                assert run(box, "pwd -P; ls -A", log, cwd=folder)[1] == f"{folder}\n"
            box.put(box.layout.tools / "probe", b"x")
            assert box.read(box.layout.tools / "probe", 9) == b"x"

    @pytest.mark.parametrize(
        "planted",
        ["echo file > /reb", "mkdir /reb; ln -s /nowhere /reb/host"],
        ids=["file", "link"],
    )
    def test_certificates_are_seen_whatever_was_planted(
        self, image, tmp_path, monkeypatch, planted
    ):
        trusted = tmp_path / "trusted.pem"
        trusted.write_text("trusted\n")
        monkeypatch.setenv("PIP_CERT", str(trusted))
        host = host_environment()
        with image(planted, network=True) as box:
            place = box.variables(host, installs=True)["PIP_CERT"]
            assert not place.startswith("/reb/")
            assert box.read(Path(place), 99) == b"trusted\n"


class TestCommand:
    def test_variables_folder_and_user(self, stage, log):
        values = {"LINES": "one\ntwo", "SPACED": "  a ", "BYTES": os.fsdecode(b"\xff")}
        script = (
            "import os, sys; print([os.environ[n] for n in sys.argv[1:]], os.getcwd(), os.getuid())"
        )
        command = Command(
            ["python3", "-c", script, *values], Path("/usr"), {"PATH": "/usr/bin", **values}, 60
        )
        assert stage.run(command, log).ok, log.read_text()
        assert log.read_text() == f"{list(values.values())} /usr 0\n"

    @pytest.mark.parametrize("code", [0, 1, 42, 255])
    def test_exit_code(self, stage, log, code):
        assert run(stage, f"exit {code}", log)[0].exit_code == code

    def test_death_by_a_signal(self, stage, log):
        finished, _ = run(stage, "kill -SEGV $$", log)
        assert (finished.exit_code, finished.signal) == (None, signal.Signals.SIGSEGV.name)

    def test_start_errors(self, stage, log):
        command = Command(["no-such-program"], stage.layout.work, {"PATH": "/usr/bin"}, 5)
        assert "not found" in stage.run(command, log).start_error
        command = Command(["true"], Path("/no/such"), {"PATH": "/usr/bin"}, 5)
        assert "working folder" in stage.run(command, log).start_error

    def test_time_limit_ends_its_tree(self, stage, log):
        finished, _ = run(stage, "setsid sleep 1234 & sleep 1235", log, time_limit_s=1)
        assert finished.timed_out
        assert "1234" not in run(stage, "cat /proc/[0-9]*/cmdline | tr '\\0' ' '", log)[1].split()

    def test_left_over_processes_are_named(self, stage, log):
        finished, _ = run(stage, "setsid sleep 1236 & exit 0", log)
        assert [left.split()[1] for left in finished.leftovers] == ["sleep"]

    def test_no_end_to_its_output(self, stage, log):
        finished, _ = run(stage, "head -c 200000000 /dev/zero | tr '\\0' x; echo end", log)
        assert finished.ok
        assert log.stat().st_size <= 64 << 20
        assert log.read_bytes().endswith(b"xend\n")

    def test_service_and_command_meet(self, stage, log, tmp_path):
        serve = (
            "import socket; s = socket.create_server(('127.0.0.1', 8765))\n"
            "while True: s.accept()[0].sendall(b'hello')"
        )
        command = Command(["python3", "-c", serve], stage.layout.work, {"PATH": "/usr/bin"}, 60)
        service = stage.start(command, tmp_path / "service")
        ask = (
            "import socket, time\n"
            "for _ in range(100):\n"
            "    try: print(socket.create_connection(('127.0.0.1', 8765)).recv(9)); break\n"
            "    except OSError: time.sleep(0.1)"
        )
        command = Command(["python3", "-c", ask], stage.layout.work, {"PATH": "/usr/bin"}, 60)
        assert stage.run(command, log).ok
        assert log.read_text() == "b'hello'\n"
        assert service.poll() is None
        assert service.stop().stopped


class TestFiles:
    def test_names_kinds_and_sizes(self, stage, log, tmp_path):
        work = stage.layout.work / "files"
        run(
            stage,
            f"mkdir {work}; cd {work}; echo r > r.txt; ln -s r.txt l.txt; mkfifo f.txt; "
            "truncate -s 200M big; echo b > \"$(printf 'b\\377.txt')\"; ln -s /etc away; "
            "ln -s /etc/passwd passwd.txt",
            log,
        )
        found = stage.collect(f"{work}/*.txt", tmp_path / "got")
        assert [(os.fsencode(c.inside.name), c.copy.read_bytes(), c.fresh) for c in found] == [
            (b"b\xff.txt", b"b\n", True),
            (b"r.txt", b"r\n", True),
        ]
        assert len(stage.read(work / "big", 200 << 20)) == 200 << 20
        (big,) = stage.collect(f"{work}/big", tmp_path / "big")
        assert big.copy.stat().st_size == 200 << 20
        for name, words in {
            "l.txt": "symbolic link",
            "f.txt": "FIFO",
            "away/passwd": "link",
            "absent": "does not exist",
            "../files/r.txt": "must not hold",
        }.items():
            with pytest.raises(SandboxError, match=words):
                stage.read(work / name, 100)
        with pytest.raises(SandboxError, match="at most 100"):
            stage.read(work / "big", 100)
        with pytest.raises(SandboxError):
            stage.put(work / "away" / "planted", b"")
        assert stage.read(work / "r.txt", 100) == b"r\n"  # it still answers

    def test_put_many_with_modes(self, stage, log):
        tools = stage.layout.tools
        stage.put_all({tools / "many" / str(n): b"x" * 100_000 for n in range(500)})
        stage.put(tools / "run", b"#!/bin/sh\necho ran\n", mode=0o755)
        assert run(stage, f"{tools}/run; ls {tools}/many | wc -l", log)[1] == "ran\n500\n"

    def test_examine(self, stage, log):
        env = str(stage.layout.env)
        assert stage.examine("sizes", {"root": env})["bytes"] >= 5007
        with pytest.raises(RefusedError, match=r"^what was left .*: ModuleNotFound"):
            stage.examine("no_such", {})
        assert stage.examine("sizes", {"root": env})["bytes"] >= 5007

    def test_a_look_that_takes_all_the_memory_is_the_environments(self, containers, frozen, log):
        sandbox = containers(memory="300m")
        if not sandbox.engine.limits:
            pytest.skip("the engine cannot limit the memory of containers here")
        lists = (
            "cd $(python3 -c 'import site; print(site.getsitepackages()[0])' || echo /usr/lib); "
            "mkdir -p $PWD && echo 'import x' > x.pth; for n in 1 2 3; do mkdir x-$n.dist-info; "
            "yes x-1.dist-info/RECORD,sha256=x,1 | head -c 66000000 > x-$n.dist-info/RECORD; done"
        )
        order = {"path": "/usr/bin/python3", "home": "/root", "hooks": True, "frameworks": {}}
        with sandbox.stage_box(frozen, network=False, gpus=()) as box:
            assert box.examine("prefix", order)["hooks"] is not None
            finished, output = run(box, lists, log)
            assert finished.ok, output
            with pytest.raises(RefusedError, match="more memory than the container may have"):
                box.examine("prefix", order)
            # The attendant is still there, and so are others' looks.
            assert box.examine("sizes", {"root": "/usr/bin"})["bytes"] > 1000

    def test_a_look_that_somebody_in_there_ends_is_theirs(self, sandbox, frozen, tmp_path):
        kill = (
            "import os, signal\n"
            "while True:\n"
            "    for name in os.listdir('/proc'):\n"
            "        try:\n"
            "            parent = open(f'/proc/{name}/stat').read().split()[3]\n"
            "            if name.isdigit() and parent == '1':\n"
            "                os.kill(int(name), signal.SIGKILL)\n"
            "        except OSError:\n"
            "            pass\n"
        )
        command = Command(["python3", "-c", kill], Path("/"), {"PATH": "/usr/bin"}, 60)
        with sandbox.stage_box(frozen, network=False, gpus=()) as box:
            running = box.start(command, tmp_path / "kill.log")
            try:
                time.sleep(1)
                with pytest.raises(RefusedError, match="somebody in the container has ended"):
                    box.examine("sizes", {"root": "/"})
            finally:
                running.stop()
            assert box.examine("sizes", {"root": "/usr/bin"})["bytes"] > 1000

    def test_a_look_that_does_not_end_is_the_environments(self, sandbox, frozen):
        with (
            sandbox.stage_box(frozen, network=False, gpus=()) as box,
            pytest.raises(RefusedError, match="took more than"),
        ):
            box.examine("sizes", {"root": "/"}, time_limit_s=0.0)


class TestNetwork:
    def test_none_is_none_and_has_a_loopback(self, sandbox, stage, log):
        script = (
            "import socket; server = socket.create_server(('127.0.0.1', 0))\n"
            "socket.create_connection(server.getsockname()); print('loopback')\n"
            "print(sorted(name for _, name in socket.if_nameindex()))\n"
            "socket.create_connection(('192.0.2.1', 80), 5)"
        )
        command = Command(["python3", "-c", script], Path("/"), {"PATH": "/usr/bin"}, 60)
        assert not stage.run(command, log).ok
        assert "loopback\n['lo']\n" in log.read_text()
        assert "Network is unreachable" in log.read_text()
        assert stage.freshness.network == "none"

    def test_asked_for(self, containers, frozen, log):
        with containers(network="host").stage_box(frozen, network=True, gpus=()) as box:
            assert box.freshness.network == "host"
            here = str(Path("/proc/self/ns/net").readlink())
            assert run(box, "readlink /proc/self/ns/net", log)[1].strip() == here


class TestLimits:
    def test_shared_memory_memory_and_processors(
        self, containers, frozen, log, tmp_path, monkeypatch
    ):
        here = tmp_path / "here"
        here.mkdir()
        monkeypatch.chdir(here)
        sandbox = containers(memory="256m", cpus="1", pids="64", shm="32m")
        with sandbox.stage_box(frozen, network=False, gpus=()) as box:
            line = (
                "df -m /dev/shm | tail -1 | tr -s ' ' | cut -d' ' -f2; "
                "python3 -c 'x = bytearray(1 << 30)'"
            )
            finished, output = run(box, line, log)
            assert output.split()[0] == "32"
            assert finished.exit_code == 137
            assert finished.out_of_memory
            began = time.monotonic()
            finished, _ = run(box, "b() { b | b & }; b; sleep 100", log, time_limit_s=3)
            assert not finished.ok
            assert time.monotonic() - began < 90
            # This host has not noticed, and neither has who looks at files.
            assert subprocess.run(["true"], check=False).returncode == 0
            assert box.read(box.layout.env / "installed.py", 99) == b"frozen\n"
        assert not list(here.iterdir())

    def test_disk(self, containers, frozen, mine, log, monkeypatch):
        for name in ("_CHECK_S", "_MEASURE_EVERY_S"):
            monkeypatch.setattr(disk, name, 0.2)
        sandbox = containers(disk="50m")

        def write(size_mb):
            with sandbox.stage_box(frozen, network=False, gpus=()) as box:
                run(box, f"head -c {size_mb}m /dev/zero > /big; sleep 3", log)

        write(10)
        with pytest.raises(RefusedError, match=r"the stage has written 0\.1 GB, more than the"):
            write(100)
        assert not mine()

    def test_flags(self, sandbox):
        flags = Options.of({"memory": "2g", "cpus": "1.5", "pids": 99, "shm": "1g"}).limits(
            sandbox.engine
        )
        assert flags[0] == "--shm-size=1g"
        if sandbox.engine.limits:
            assert flags[1:] == ["--memory=2g", "--pids-limit=99", "--cpus=1.5"]


class TestHostile:
    def test_who_kills_all_has_failed_and_is_not_the_host(self, sandbox, frozen, log):
        with sandbox.stage_box(frozen, network=False, gpus=()) as box:
            finished, _ = run(box, "kill -9 1; kill -9 -1; kill -9 $$", log)
            assert (finished.exit_code, finished.signal) == (None, "SIGKILL")
            assert run(box, "echo alive", log)[1] == "alive\n"
            assert box.read(box.layout.env / "installed.py", 99) == b"frozen\n"

    def test_ended_from_outside(self, sandbox, frozen, mine, log):
        with sandbox.stage_box(frozen, network=False, gpus=()) as box:
            sandbox.engine.call("kill", *mine())
            with pytest.raises(SandboxError, match="ended"):
                run(box, "echo no", log)
            with pytest.raises(SandboxError, match="has ended"):
                box.read(box.layout.env / "installed.py", 99)
        assert not mine()

    def test_tools_cannot_be_put_aside(self, sandbox, frozen, log):
        with sandbox.stage_box(frozen, network=False, gpus=()) as box:
            place = box.tools.package.parent
            line = (
                f"mv {place} /moved; rm -rf {place}; "
                f"echo x > {place}/package/standalone/look/sizes.py; "
                f"umount {place}; mount -t tmpfs none {place}; ln -sfn /etc {place}; ls {place}"
            )
            finished, output = run(box, line, log)
            assert finished.ok, output
            assert "package" in output.splitlines()
            assert box.examine("sizes", {"root": "/usr/bin"})["bytes"] > 1000
        with sandbox.stage_box(frozen, network=False, gpus=()) as box:
            assert box.tools.package.parent != place

    def test_tools_use_nothing_of_the_image(self, image, log):
        line = (
            "cp /bin/sh /keep; echo /evil.so > /etc/ld.so.preload; echo no > /evil.so; "
            "cd /; for f in $(find /usr/lib /lib64 -name 'libc.so*' -o -name 'ld-linux*' "
            "-o -name 'libm.so*' -o -name 'libpython*'); do rm -f $f; done"
        )
        with image(line) as box:
            box.put(box.layout.work / "a", b"x")
            assert box.read(box.layout.work / "a", 9) == b"x"
            assert box.examine("sizes", {"root": "/reb/stage/work"})["bytes"] >= 1
            finished, _ = run(box, "echo no", log)
            assert not finished.ok
            assert finished.lost is None  # our own supervisor reports it
            python = Command([*box.tools.python, "-I", "-c", "print(6 * 7)"], Path("/"), {}, 60)
            assert box.run(python, log).ok
            assert log.read_text() == "42\n"

    def test_python_and_shell_replaced(self, image, log):
        line = (
            "cd /usr/bin; printf '#!/bin/true\\n' > fake; chmod 755 fake; "
            "for f in python3 env dash; do cp fake $f.new; mv $f.new $f; done"
        )
        with image(line) as box:
            assert box.examine("sizes", {"root": "/usr/bin"})["bytes"] > 1000
            assert run(box, "echo no", log)[1] == ""


class TestEnd:
    def test_stage_of_a_killed_harness_ends_by_itself(self, frozen, mine, debian_image, tmp_path):
        script = (
            "import sys, time; from pathlib import Path\n"
            "from researchenvbench.sandbox import make_sandbox, Command\n"
            "sandbox = make_sandbox('podman', {'image': sys.argv[2]})\n"
            "with sandbox.stage_box(Path(sys.argv[1]), network=False, gpus=()) as box:\n"
            "    env = {'PATH': '/usr/bin:/bin'}\n"
            "    command = Command(['sleep', '1000'], box.layout.work, env, 1000)\n"
            "    box.start(command, Path(sys.argv[3]))\n"
            "    print('open', flush=True); time.sleep(1000)\n"
        )
        harness = subprocess.Popen(
            [sys.executable, "-c", script, str(frozen), debian_image.id, str(tmp_path / "log")],
            stdout=subprocess.PIPE,
        )
        assert harness.stdout.readline() == b"open\n"
        assert len(mine()) == 1
        harness.kill()
        harness.wait()
        harness.stdout.close()
        until = time.monotonic() + 60
        while mine() and time.monotonic() < until:
            time.sleep(0.5)
        assert not mine()
