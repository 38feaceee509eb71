"""A build is gone on with after the harness was killed, wherever that was, and never twice."""

import os
import signal
import subprocess
import sys
import threading
import time

import pytest
from container_boxes import images_of, kill_all, ours, run

from researchenvbench.errors import SandboxError
from researchenvbench.sandbox.containers.clock import now
from researchenvbench.sandbox.containers.journal import Journal
from researchenvbench.sandbox.engines.engine import Engine

pytestmark = [pytest.mark.container, pytest.mark.slow]

#: A build of three steps, of which the second takes long. Prints what the container is called.
HARNESS = """
import sys
from pathlib import Path
from researchenvbench.sandbox import make_sandbox, Command
image, attempt, source, seconds = sys.argv[1], Path(sys.argv[2]), Path(sys.argv[3]), sys.argv[4]
sandbox = make_sandbox("podman", {"image": image})
with sandbox.build_box(attempt, source, key="k") as box:
    print(box._journal.container, flush=True)
    box.put(box.layout.tmp / "given", b"given")
    for number in (1, 2, 3):
        line = f"echo {number} >> /workspace/steps; echo said {number}; cat /tmp/given"
        line += "; echo >> /tmp/given"
        if number == 2:
            line += f"; echo slow; sleep {seconds}; echo done"
        with (attempt / "log").open("a") as log:
            log.write(f"# step {number}\\n")
        command = Command(["sh", "-c", line], box.layout.repo, {"PATH": "/usr/bin:/bin"}, 100)
        finished = box.run(command, attempt / "log", append=True)
        assert finished.ok, finished
print(sandbox.freeze(attempt).digest, flush=True)
"""
LOG = "# step 1\nsaid 1\ngiven# step 2\nsaid 2\ngiven\nslow\ndone\n# step 3\nsaid 3\ngiven\n\n"


class KilledError(BaseException):
    """Stands for the end of the harness: nothing of ours runs after it."""


class DyingEngine(Engine):
    """An engine whose harness is killed before or after one of its commands."""

    def call(self, *arguments, **more):
        point = os.environ["TEST_DIES"].split()
        if arguments[0] == point[1] and point[0] == "before":
            raise KilledError
        answer = super().call(*arguments, **more)
        if arguments[0] == point[1]:
            raise KilledError
        return answer


@pytest.fixture
def log(tmp_path):
    return tmp_path / "log"


@pytest.fixture
def start(debian_image, attempt, source):
    """Starts a harness that builds; it leads a session of its own."""
    started = []

    def start(seconds):
        harness = subprocess.Popen(
            [sys.executable, "-c", HARNESS, debian_image.id, attempt, source, str(seconds)],
            stdout=subprocess.PIPE,
            text=True,
        )
        started.append(harness)
        return harness

    yield start
    for harness in started:
        kill_all(harness)


def wait_for(condition, *, limit_s=90):
    until = time.monotonic() + limit_s
    while not condition():
        assert time.monotonic() < until
        time.sleep(0.1)


def says(attempt, text):
    log = attempt / "log"
    return lambda: log.exists() and text in log.read_text()


def steps(sandbox, attempt, log):
    with sandbox.stage_box(attempt, network=False, gpus=()) as stage:
        return run(stage, "cat /workspace/steps", log)[1].split()


class TestKilled:
    def test_in_a_step_that_goes_on(self, start, sandbox, attempt, log):
        harness = start(8)
        container = harness.stdout.readline()
        wait_for(says(attempt, "slow"))
        kill_all(harness)
        assert ours(attempt) == [container.strip()]
        again = start(8)
        said, _ = again.communicate(timeout=100)
        assert again.returncode == 0
        assert said.splitlines()[0] == container.strip()
        assert (attempt / "log").read_text() == LOG
        assert steps(sandbox, attempt, log) == ["1", "2", "3"]
        assert not ours(attempt)
        assert len(images_of(attempt)) == 1

    def test_in_a_step_that_ends_meanwhile(self, start, sandbox, attempt, log):
        harness = start(3)
        container = harness.stdout.readline()
        wait_for(says(attempt, "slow"))
        kill_all(harness)
        time.sleep(6)
        again = start(3)
        said, _ = again.communicate(timeout=100)
        assert said.splitlines()[0] == container.strip()
        assert (attempt / "log").read_text() == LOG
        assert steps(sandbox, attempt, log) == ["1", "2", "3"]

    def test_with_the_container(self, start, sandbox, attempt, log):
        harness = start(3)
        container = harness.stdout.readline()
        wait_for(says(attempt, "slow"))
        kill_all(harness)
        sandbox.engine.call("kill", container.strip())
        (attempt / "log").unlink()
        again = start(0)
        said, _ = again.communicate(timeout=100)
        assert again.returncode == 0
        assert said.splitlines()[0] != container.strip()
        assert steps(sandbox, attempt, log) == ["1", "2", "3"]
        assert not ours(attempt)
        assert len(images_of(attempt)) == 1


@pytest.mark.parametrize(
    "dies", ["before stop", "after stop", "before commit", "after commit", "before rm", "after rm"]
)
def test_killed_while_it_freezes(containers, attempt, source, log, dies, monkeypatch):
    def build(sandbox):
        with sandbox.build_box(attempt, source, key="k") as box:
            assert run(box, "echo 1 >> /workspace/steps; echo said", log)[1] == "said\n"
            box.put(box.layout.report, b"{}")
            assert box.read(box.layout.report, 10) == b"{}"
        return box._journal.container, sandbox.freeze(attempt)

    monkeypatch.setenv("TEST_DIES", "never x")
    first = containers()
    fields = {name: getattr(first.engine, name) for name in Engine.__dataclass_fields__}
    first.__dict__["engine"] = DyingEngine(**fields)
    with first.build_box(attempt, source, key="k") as box:
        run(box, "echo 1 >> /workspace/steps; setsid sleep 777 >/dev/null & echo said", log)
        container = box._journal.container
    monkeypatch.setenv("TEST_DIES", dies)
    with pytest.raises(KilledError):
        first.freeze(attempt)
    second = containers()
    assert second.resumes(attempt, "k") == (dies != "after rm")
    if dies == "after rm":  # what was frozen is discarded, and built again
        assert build(second)[0] != container
    else:
        with second.build_box(attempt, source, key="k") as box:
            assert box._journal.container == container
            line = "echo 1 >> /workspace/steps; setsid sleep 777 >/dev/null & echo said"
            assert run(box, line, log)[1] == "said\n"
        frozen = second.freeze(attempt)
        assert any("sleep 777" in name for name in frozen.ended_processes)
    assert steps(second, attempt, log) == ["1"]
    assert len(images_of(attempt)) == 1
    assert not ours(attempt)


class TestResumed:
    def begin(self, sandbox, attempt, source, log, line="echo said; echo 1 >> /workspace/steps"):
        """A build whose harness is killed after its first command."""
        opened = sandbox.build_box(attempt, source, key="k")
        with pytest.raises(KilledError), opened as box:  # noqa: PT012
            run(box, line, log)
            box.put(box.layout.report, b"one")
            box.read(box.layout.report, 10)
            raise KilledError
        return box

    def test_what_was_read_is_read_again(self, sandbox, attempt, source, log):
        container = self.begin(sandbox, attempt, source, log)._journal.container
        sandbox.engine.call("exec", container, "sh", "-c", "echo two > /workspace/report.json")
        with sandbox.build_box(attempt, source, key="k") as box:
            assert not log.exists()
            assert run(box, "echo said; echo 1 >> /workspace/steps", log)[1] == "said\n"
            assert box.read(box.layout.report, 10) == b"one"
            assert box.read(box.layout.report, 10) == b"two\n"
            assert run(box, "cat /workspace/steps", log)[1] == "1\n"

    def test_time_in_which_nothing_ran_is_not_the_builds(self, sandbox, attempt, source, log):
        journal = self.begin(sandbox, attempt, source, log, "sleep 2")._journal
        last = journal.commands[-1]
        worked_s = last.began + last.end["seconds"] - journal.began
        assert worked_s > 2
        time.sleep(6)
        came_back = now()
        with sandbox.build_box(attempt, source, key="k") as box:
            spent_s = box.spent_s
            # What opening took is the build's own; of the six seconds nothing is.
            assert worked_s <= spent_s <= worked_s + now() - came_back

    def test_another_command_is_another_build(self, sandbox, attempt, source, log):
        self.begin(sandbox, attempt, source, log)
        opened = sandbox.build_box(attempt, source, key="k")
        with pytest.raises(SandboxError, match="another command"), opened as box:
            run(box, "echo something else", log)
        assert not ours(attempt)

    @pytest.mark.parametrize("content", [b"", b"{}", b"\xff", b"[1]", b'{"container": 1}', None])
    def test_journal_that_cannot_be_read(self, sandbox, attempt, source, log, content):
        old = self.begin(sandbox, attempt, source, log)._journal.container
        path = attempt / "container.json"
        text = path.read_bytes().replace(b'"token"', b'"no token"')
        path.write_bytes(text if content is None else content)
        assert not sandbox.resumes(attempt, "k")
        with sandbox.build_box(attempt, source, key="k") as box:
            assert ours(attempt) == [box._journal.container] != [old]

    def test_other_key_or_options(self, containers, sandbox, attempt, source, log):
        self.begin(sandbox, attempt, source, log)
        assert sandbox.resumes(attempt, "k")
        assert not sandbox.resumes(attempt, "another")
        assert not containers(memory="1g").resumes(attempt, "k")

    def test_paused_container_runs_on(self, sandbox, attempt, source, log):
        container = self.begin(sandbox, attempt, source, log)._journal.container
        sandbox.engine.call("pause", container)
        with sandbox.build_box(attempt, source, key="k") as box:
            assert run(box, "echo said; echo 1 >> /workspace/steps", log)[1] == "said\n"
            assert run(box, "cat /workspace/steps", log)[1] == "1\n"
            assert box._journal.container == container

    def test_ctrl_c_removes_it(self, sandbox, attempt, source, log):
        def interrupt():
            time.sleep(3)
            os.kill(os.getpid(), signal.SIGINT)

        thread = threading.Thread(target=interrupt)
        opened = sandbox.build_box(attempt, source, key="k")
        with pytest.raises(KeyboardInterrupt), opened as box:  # noqa: PT012
            thread.start()
            run(box, "sleep 100", log)
        thread.join()
        assert not ours(attempt)
        assert list(attempt.iterdir()) == []


def test_two_attempts_at_once(sandbox, source, tmp_path):
    seen = {}

    def build(name):
        attempt = tmp_path / name
        attempt.mkdir()
        with sandbox.build_box(attempt, source, key="k") as box:
            run(box, f"echo {name} > /workspace/name; sleep 1", attempt / "log")
        sandbox.freeze(attempt)
        with sandbox.stage_box(attempt, network=False, gpus=()) as stage:
            seen[name] = run(stage, "cat /workspace/name", attempt / "log")[1]
        sandbox.discard(attempt)

    threads = [threading.Thread(target=build, args=(name,)) for name in ("one", "two")]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert seen == {"one": "one\n", "two": "two\n"}


def test_damaged_journal_is_none(tmp_path):
    path = tmp_path / "container.json"
    Journal("c", "k", "i", 1.0, path=path).save()
    assert Journal.load(path).container == "c"
    path.write_text(path.read_text().replace('"began": 1.0', '"began": "one"'))
    assert Journal.load(path) is None
    assert Journal.load(tmp_path / "absent") is None
