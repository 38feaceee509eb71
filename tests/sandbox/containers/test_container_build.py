"""The container in which an agent works: what it is given, and how its commands end."""

import hashlib
import os
import signal
import threading
import time
from dataclasses import replace
from pathlib import Path

import pytest
from container_boxes import images_of, ours, run

from researchenvbench.errors import LimitReachedError, SandboxError
from researchenvbench.sandbox import Command
from researchenvbench.sandbox.containers import copies, disk
from researchenvbench.sandbox.containers.given import ATTEMPT_KEY, attempt_key

pytestmark = [pytest.mark.container, pytest.mark.slow]


@pytest.fixture(scope="module")
def building(tmp_path_factory, sandbox, source):
    """A build's box that many tests share."""
    folder = tmp_path_factory.mktemp("building")
    with sandbox.build_box(folder, source, key="k") as box:
        yield box
    sandbox.discard(folder)
    assert not ours(folder)


@pytest.fixture
def log(tmp_path):
    return tmp_path / "log"


class TestSource:
    def test_of_all_sizes(self, sandbox, building, tmp_path):
        for blocks in range(54, 66):
            tree = tmp_path / f"{blocks}"
            tree.mkdir()
            (tree / "file").write_bytes(b"x" * (512 * blocks))
            target = building.layout.work / "trees" / f"{blocks}"
            copies.copy_tree(sandbox.engine, building._journal.container, tree, target, {})
            assert len(building.read(target / "file", 1 << 20)) == 512 * blocks

    def test_is_copied_as_it_is(self, building, source, log):
        script = (
            "cat package/__init__.py; readlink link away far; ls -d empty; stat -c '%a %n' "
            "run.sh raised empty; stat -c %Y package/__init__.py; "
            "[ run.sh -ef again.sh ] && echo same; ls -b | grep caf; [ -e fifo ] || echo none; "
            "stat -c %U:%G raised"
        )
        finished, output = run(building, script, log)
        assert finished.ok, output
        assert output.splitlines() == [
            "value = 1",
            "package",
            "/etc/passwd",
            "../../../../etc/passwd",
            "empty",
            "755 run.sh",
            "6755 raised",
            "700 empty",
            "1234567890",
            "same",
            "caf\\351\\ \\377",
            "none",
            "root:root",
        ]
        run(building, "echo changed > package/__init__.py", log)
        assert (source / "package" / "__init__.py").read_text() == "value = 1\n"

    def test_of_200_megabytes(self, containers, attempt, tmp_path, log):
        tree = tmp_path / "big"
        tree.mkdir()
        piece = os.urandom(1 << 20)
        with (tree / "weights").open("wb") as stream:
            for _ in range(200):
                stream.write(piece)
        expected = hashlib.sha256(piece * 200).hexdigest()
        with containers().build_box(attempt, tree, key="k") as box:
            assert run(box, "sha256sum weights", log)[1].split()[0] == expected


class TestCommand:
    def test_variables_reach_it_as_they_are(self, building, log):
        values = {
            "PLAIN": "1",
            "SPACED": "  a  b ",
            "HASH": "# no comment",
            "QUOTED": "'a' \"b\" $HOME `c`",
            "EMPTY": "",
            "EQUALS": "a=b=c",
            "LINES": "one\ntwo",
            "FOREIGN": "ü",
        }
        script = "import os, sys; print({n: os.environ.get(n) for n in sys.argv[1:]})"
        command = Command(
            ["python3", "-c", script, *values],
            building.layout.repo,
            {"PATH": "/usr/bin", **values},
            60,
        )
        finished = building.run(command, log)
        assert finished.ok, log.read_text()
        assert log.read_text().strip() == str(values)

    def test_working_folder_and_user(self, building, log):
        assert run(building, "pwd; id -u", log, cwd=Path("/usr/lib"))[1] == "/usr/lib\n0\n"

    def test_folder_that_is_not_there_is_a_failure(self, building, log):
        finished, output = run(building, "pwd", log, cwd=Path("/no/such"))
        assert not finished.ok
        assert "/no/such" in output

    def test_program_that_is_not_there_is_a_failure(self, building, log):
        command = Command(["no-such-program"], building.layout.repo, {"PATH": "/usr/bin"}, 60)
        assert building.run(command, log).exit_code == 127
        assert "not found" in log.read_text()

    @pytest.mark.parametrize("code", [0, 1, 42, 137, 255])
    def test_exit_code(self, building, log, code):
        finished, _ = run(building, f"exit {code}", log)
        assert (finished.exit_code, finished.timed_out) == (code, False)

    def test_death_by_a_signal(self, building, log):
        finished, _ = run(building, "kill -SEGV $$", log)
        assert finished.exit_code == 128 + signal.SIGSEGV

    def test_log_is_appended_to_or_begun_anew(self, building, log):
        env = {"PATH": "/usr/bin:/bin"}
        for append in (False, True, True):
            command = Command(["echo", "line"], building.layout.repo, env, 60)
            building.run(command, log, append=append)
        assert log.read_text() == "line\n" * 3
        building.run(command, log)
        assert log.read_text() == "line\n"

    def test_no_end_to_its_output(self, building, log):
        finished, _ = run(building, "head -c 200000000 /dev/zero | tr '\\0' x; echo end", log)
        assert finished.ok
        assert finished.log_bytes == 200_000_004
        assert log.stat().st_size <= 64 << 20
        assert log.read_bytes().endswith(b"xend\n")

    def test_time_limit_ends_its_tree(self, building, log):
        script = "setsid sleep 1234 & (sleep 1235; echo no) & trap '' INT TERM; sleep 1236; echo no"
        finished, output = run(building, script, log, time_limit_s=2)
        assert finished.timed_out
        assert (finished.exit_code, finished.signal) == (None, "SIGKILL")
        assert finished.seconds < 12
        assert "no" not in output
        assert "123" not in run(building, "cat /proc/[0-9]*/cmdline | tr '\\0' ' '", log)[
            1
        ].replace("cmdline", "")

    def test_newest_line_is_told(self, building, log):
        told = []
        env = {"PATH": "/usr/bin:/bin"}
        command = Command(["sh", "-c", "echo one; sleep 1; echo two"], Path("/"), env, 60)
        building.run(command, log, on_line=told.append)
        assert told == ["one", "two"]


class TestFiles:
    def test_of_all_sizes(self, building, log):
        # 32 KiB are 64 blocks, and python pads an archive to 20.
        for blocks in range(54, 66):
            path = building.layout.work / f"{blocks}"
            building.put(path, b"x" * (512 * blocks))
            assert len(building.read(path, 1 << 20)) == 512 * blocks

    def test_put_and_read(self, building, log):
        place = building.layout.tmp / "deep" / "er"
        names = {place / "a": b"one", place / "ü \udcff": b"", place / "c": b"\0" * 1000}
        building.put_all(names)
        building.put(place / "run", b"#!/bin/sh\necho ran\n", mode=0o755)
        for path, content in names.items():
            assert building.read(path, 1000) == content
        assert run(building, f"{place}/run; stat -c %a {place}/a {place}", log)[1] == (
            "ran\n644\n755\n"
        )

    def test_modes_of_what_is_there_stay(self, building, log):
        run(building, "chmod 700 /workspace; chmod 750 /workspace/repo", log)
        building.put(building.layout.repo / "new", b"")
        building.put(building.layout.tmp / "new", b"")
        assert run(building, "stat -c %a /workspace /workspace/repo /tmp", log)[1].split() == [
            "700",
            "750",
            "1777",
        ]

    def test_what_is_no_regular_file_is_refused(self, building, log):
        run(
            building,
            "cd /tmp; ln -s /etc/passwd link; mkfifo fifo; mkdir folder; "
            "head -c 2000 /dev/zero > big; ln -s /nowhere dangling",
            log,
        )
        for name, words in {
            "link": "symbolic link",
            "fifo": "FIFO",
            "folder": "folder",
            "big": "has 2000 bytes; at most 1000",
            "dangling": "cannot be read",
            "absent": "cannot be read",
            "../etc/passwd": "must not hold",
        }.items():
            with pytest.raises(SandboxError, match=words):
                building.read(Path(f"/tmp/{name}"), 1000)

    def test_a_large_file_that_is_not_wanted_costs_nothing(self, building, log):
        assert run(building, "truncate -s 20G /tmp/hole", log)[0].ok
        began = time.monotonic()
        with pytest.raises(SandboxError, match="has 21474836480 bytes"):
            building.read(Path("/tmp/hole"), 1000)
        assert time.monotonic() - began < 20
        run(building, "rm /tmp/hole", log)


class TestFreeze:
    def test_daemons_are_named_and_ended(self, sandbox, attempt, source, log):
        with sandbox.build_box(attempt, source, key="k") as box:
            run(box, "setsid sleep 4321 >/dev/null 2>&1 & (trap '' TERM; sleep 4322) & exit 0", log)
        frozen = sandbox.freeze(attempt)
        assert any(name.endswith("sleep 4321") for name in frozen.ended_processes)
        assert any("4322" in name for name in frozen.ended_processes)
        assert len(frozen.ended_processes) <= 3
        assert not ours(attempt)
        assert not (attempt / "container.json").exists()
        assert not (attempt / "container.kept").exists()
        with sandbox.stage_box(attempt, network=False, gpus=()) as stage:
            listed = run(stage, "cat /proc/[0-9]*/cmdline | tr '\\0' ' '", log)[1]
            assert "sleep 43" not in listed
            assert run(stage, "ls -A /var/tmp", log)[1] == ""

    def test_what_cannot_be_listed_is_not_taken_for_nothing(
        self, containers, attempt, source, tmp_path, podman, log
    ):
        program = tmp_path / "podman"
        program.write_text(
            '#!/bin/sh\ncase " $* " in *" top "*) echo "Error: no listing" >&2; exit 1;; esac\n'
            f'exec {podman.program} "$@"\n'
        )
        program.chmod(0o755)
        sandbox = containers()
        sandbox.__dict__["engine"] = replace(podman, program=str(program))
        with sandbox.build_box(attempt, source, key="k") as box:
            run(box, "true", log)
        (left,) = sandbox.freeze(attempt).ended_processes
        assert "cannot be listed: podman top: Error: no listing" in left

    def test_what_somebody_has_started_from_it_stays(self, sandbox, attempt, source, log):
        with sandbox.build_box(attempt, source, key="k") as box:
            run(box, "true", log)
        engine, image = sandbox.engine, sandbox.freeze(attempt).image
        # Of an image with all labels of a build's container, which is worse than ours.
        mine = engine.ask(
            *("create", "--label", f"{ATTEMPT_KEY}={attempt_key(attempt)}"),
            *(*engine.run_flags, image, "true"),
        ).splitlines()[-1]
        try:
            with pytest.raises(
                SandboxError, match="stays, since a container is made of it"
            ) as said:
                sandbox.discard(attempt)
            assert "rmi" in said.value.advice
            assert engine.state(mine).status != "gone"
        finally:
            engine.remove(mine)
        sandbox.discard(attempt)
        assert not images_of(attempt)

    def test_nothing_built_cannot_be_frozen(self, sandbox, attempt):
        with pytest.raises(SandboxError, match="nothing has been built"):
            sandbox.freeze(attempt)

    def test_digest_is_the_image(self, sandbox, frozen, podman):
        environment = sandbox.environment(frozen)
        assert environment.digest.startswith("sha256:")
        assert podman.ask("image", "inspect", "--format", "{{.Id}}", environment.digest)
        assert environment.size_bytes < 10_000_000

    def test_image_that_is_gone_is_said(self, sandbox, attempt, source, log):
        with sandbox.build_box(attempt, source, key="k") as box:
            run(box, "true", log)
        frozen = sandbox.freeze(attempt)
        sandbox.engine.call("rmi", "--force", frozen.image)
        with pytest.raises(SandboxError, match="no image") as raised:
            sandbox.environment(attempt)
        assert "builds anew" in raised.value.advice
        # Also where it is removed after the sandbox had seen it.
        stage = sandbox.stage_box(attempt, network=False, gpus=())
        with pytest.raises(SandboxError, match="no image"), stage:
            pass
        assert not ours(attempt)

    def test_second_build_starts_anew(self, sandbox, attempt, source, log):
        for _ in range(2):
            with sandbox.build_box(attempt, source, key="k") as box:
                assert run(box, "ls ..; touch ../left", log)[1] == "repo\n"
            sandbox.freeze(attempt)
        assert len(images_of(attempt)) == 1


class TestHostile:
    def test_who_kills_all_kills_no_first_process(self, sandbox, attempt, source, log):
        with sandbox.build_box(attempt, source, key="k") as box:
            for _ in range(3):
                finished, _ = run(box, "kill -9 1; kill -9 -1; kill -9 $$", log)
                assert finished.exit_code == 137
            assert run(box, "echo alive", log)[1] == "alive\n"
        assert sandbox.freeze(attempt).digest

    def test_fork_bomb_ends(self, containers, attempt, source, log):
        sandbox = containers(pids="200")
        with sandbox.build_box(attempt, source, key="k") as box:
            began = time.monotonic()
            ended = ""
            try:
                finished, _ = run(box, "b() { b | b & }; b; sleep 1000", log, time_limit_s=3)
            except LimitReachedError as reached:  # it left no room for whatever would end it
                ended = str(reached)
            if ended:
                assert "could not be ended" in ended
                assert sandbox.engine.state(ours(attempt)[0]).status == "exited"
            else:
                assert not finished.ok
                assert run(box, "echo alive", log)[1] == "alive\n"
            assert time.monotonic() - began < 120
        assert sandbox.freeze(attempt).digest
        assert not ours(attempt)

    def test_own_tools_removed(self, sandbox, attempt, source, log):
        with sandbox.build_box(attempt, source, key="k") as box:
            run(box, "rm -f /bin/sh /bin/tail /bin/cat /bin/sleep /bin/setsid /bin/rm", log)
            finished, output = run(box, "echo no", log)
            assert not finished.ok
            assert "/bin/sh" in output
            box.put(box.layout.report, b"{}")
            assert box.read(box.layout.report, 10) == b"{}"
        assert sandbox.freeze(attempt).digest

    def test_100000_files(self, sandbox, attempt, source, log):
        script = (
            "import os\nos.makedirs('/workspace/many')\n"
            "for n in range(100_000): open(f'/workspace/many/{n}', 'w').close()\n"
            "held = []\n"
            "try:\n    for n in range(100_000): held.append(open(f'/workspace/many/{n}'))\n"
            "except OSError as error: print(error.strerror)\n"
        )
        with sandbox.build_box(attempt, source, key="k") as box:
            command = Command(["python3", "-c", script], Path("/"), {"PATH": "/usr/bin"}, 200)
            assert box.run(command, log).ok
            assert "Too many open files" in log.read_text()
        frozen = sandbox.freeze(attempt)
        with sandbox.stage_box(attempt, network=False, gpus=()) as stage:
            assert run(stage, "ls /workspace/many | wc -l", log)[1].strip() == "100000"
        assert frozen.digest

    def test_full_disk_is_the_builds_own_where_it_took_too_much(
        self, containers, attempt, source, log, monkeypatch
    ):
        monkeypatch.setattr(disk, "_MEASURE_EVERY_S", 1.0)
        sandbox = containers(disk="100m")
        with sandbox.build_box(attempt, source, key="k") as box:
            with pytest.raises(
                LimitReachedError, match=r"has written 0\.3 GB, more than the 0\.1 GB"
            ):
                run(
                    box,
                    "head -c 300000000 /dev/zero > /workspace/full; sleep 300",
                    log,
                    time_limit_s=200,
                )
            with pytest.raises(LimitReachedError, match=r"has written 0\.3 GB"):
                run(box, "true", log)
        frozen = sandbox.freeze(attempt)
        assert "has left 0.3 GB, more than the 0.1 GB" in frozen.unusable
        assert not images_of(attempt)

    def test_ended_from_outside(self, sandbox, attempt, source, log):
        def end():
            time.sleep(3)
            sandbox.engine.remove(ours(attempt)[0])

        killer = threading.Thread(target=end)
        opened = sandbox.build_box(attempt, source, key="k")
        with pytest.raises(SandboxError, match="ended from outside"), opened as box:  # noqa: PT012
            killer.start()
            run(box, "sleep 100", log)
        killer.join()
        assert not ours(attempt)
        assert not (attempt / "container.json").exists()

    def test_out_of_memory(self, containers, attempt, source, log, tmp_path, monkeypatch):
        here = tmp_path / "here"
        here.mkdir()
        monkeypatch.chdir(here)
        sandbox = containers(memory="128m")
        with sandbox.build_box(attempt, source, key="k") as box:
            finished, _ = run(box, "python3 -c 'x = bytearray(1 << 30)'", log)
            assert finished.exit_code == 137
            assert finished.out_of_memory
            assert run(box, "echo alive", log)[1] == "alive\n"
        assert not list(here.iterdir())
