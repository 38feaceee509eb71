"""Layers over folders: what they keep apart, what is left of them, and who may have them."""

import os
import pty
import select
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from researchenvbench.errors import SandboxError
from researchenvbench.sandbox import Command
from researchenvbench.sandbox.local import namespace
from researchenvbench.sandbox.local.adopted import adopted_box
from researchenvbench.sandbox.local.namespace import Refusal, namespace_support, open_namespaces
from researchenvbench.sandbox.local.sandbox import LocalSandbox


def wait_until(condition, limit_s=10.0):
    until = time.monotonic() + limit_s
    while time.monotonic() < until:
        if condition():
            return True
        time.sleep(0.02)
    return False


def alive(pid):
    try:
        state = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
    except (FileNotFoundError, ProcessLookupError):  # it has ended, perhaps while it was read
        return False
    return state != "Z"


def test_support_is_told_in_words():
    kind, network, why = namespace_support()
    assert kind in ("overlay", "in-place")
    assert network in ("none", "host")
    assert (kind, network) == ("overlay", "none") or why


@pytest.mark.usefixtures("needs_overlay")
class TestOpen:
    def test_folder_that_is_absent_is_refused(self, tmp_path):
        refusal = open_namespaces([tmp_path / "absent"], tmp_path / "scratch", network=False)
        assert isinstance(refusal, Refusal)
        assert "absent" in refusal.why

    def test_what_is_not_allowed_is_done_without(self, tmp_path, monkeypatch):
        """The next attempt leaves out what the host refused, and the reason is kept."""
        real = namespace._open
        refused = []

        def forbidding(order):
            for step in ("pid", "network"):
                if order[step]:
                    refused.append(step)
                    return {"step": step, "why": "Operation not permitted"}
            return real(order)

        monkeypatch.setattr(namespace, "_open", forbidding)
        (tmp_path / "box").mkdir()
        opened = open_namespaces([tmp_path / "box"], tmp_path / "scratch", network=False)
        try:
            assert refused == ["pid", "network"]
            assert opened.network == "host"
            assert opened.why == (
                "no process namespace: Operation not permitted; "
                "no network of its own: Operation not permitted"
            )
        finally:
            opened.close()
        assert not alive(opened.pid)

    def test_layer_in_memory_where_the_disk_carries_none(self, tmp_path):
        """An overlay cannot have its changes on an overlay: as in many a container."""
        (tmp_path / "outer").mkdir()
        outer = open_namespaces([tmp_path / "outer"], tmp_path / "scratch", network=False)
        inner = """
import sys
from pathlib import Path
from researchenvbench import process
from researchenvbench.sandbox.local.namespace import open_namespaces
here = Path(sys.argv[1])
(here / "box").mkdir()
(here / "box" / "file").write_text("frozen")
opened = open_namespaces([here / "box"], here / "scratch", network=False)
done, output = process.capture(["/bin/sh", "-c", "echo changed > file; cat file"],
    cwd=here / "box", env={}, time_limit_s=20, namespaces_of=opened.pid)
print(output.decode().strip(), (here / "box" / "file").read_text(), opened.why)
opened.close()
"""
        from researchenvbench import process

        try:
            _, output = process.capture(
                [sys.executable, "-c", inner, str(tmp_path / "outer")],
                cwd=tmp_path / "outer",
                env={"PATH": os.environ["PATH"], "PYTHONPATH": os.pathsep.join(sys.path)},
                time_limit_s=60,
                namespaces_of=outer.pid,
            )
        finally:
            outer.close()
        if os.geteuid() != 0 and b"Operation not permitted" in output:
            pytest.skip("this host lets an ordinary user make no namespaces within one")
        assert output.startswith(b"changed frozen no overlay over the environment"), output
        assert b"kept in memory" in output


HARNESS = """
import os, sys
from pathlib import Path
from researchenvbench.sandbox import Command
from researchenvbench.sandbox.local.sandbox import LocalSandbox
here = Path(sys.argv[1])
with LocalSandbox(sys.argv[2]).stage_box(here, network=False, gpus=()) as box:
    env = {"PATH": os.environ["PATH"]}
    print(box._namespaces.pid if box._namespaces else 0, flush=True)
    box.start(Command(["sleep", "321"], box.layout.work, env, 99), here / "service.log")
    box.run(Command(["sh", "-c", "setsid sleep 321 & exec sleep 321"], box.layout.work, env, 99),
            here / "log")
"""


def test_kill_of_the_harness_leaves_no_process_and_no_mount(sandbox, frozen, fresh):
    harness = subprocess.Popen(
        [sys.executable, "-c", HARNESS, str(frozen), fresh], stdout=subprocess.PIPE, text=True
    )
    holder = int(harness.stdout.readline())

    def sleeping():
        """Processes of this box only: their working folder tells."""
        found = []
        for entry in Path("/proc").iterdir():
            if entry.name.isdecimal():
                try:
                    if (entry / "cwd").readlink() == frozen / "stage" / "work":
                        found.append(entry.name)
                except OSError:
                    continue
        return found

    assert wait_until(lambda: len(sleeping()) == 3)
    harness.send_signal(signal.SIGKILL)
    harness.communicate()
    assert wait_until(lambda: not sleeping())
    if holder:
        assert wait_until(lambda: not alive(holder))
    mounts = Path("/proc/self/mountinfo").read_text()
    assert "stage" not in mounts
    # The next box clears away what the killed one had in its scratch folder.
    with sandbox.stage_box(frozen, network=False, gpus=()):
        pass
    assert [path.name for path in (frozen / "scratch").iterdir()] == [".lock"]


class TestAdopted:
    @pytest.fixture
    def own(self, tmp_path):
        """A user's repository, with an environment beside it."""
        repo, prefix = tmp_path / "my repo", tmp_path / "my env"
        repo.mkdir()
        (repo / "file").write_text("mine\n")
        (prefix / "lib").mkdir(parents=True)
        (prefix / "pyvenv.cfg").touch()
        return repo, prefix

    def test_nothing_of_the_users_changes(self, own, tmp_path, needs_overlay, shell):
        repo, prefix = own
        scratch = tmp_path / "scratch"
        with adopted_box(repo, prefix, scratch, network=False) as box:
            assert box.freshness.kind == "overlay"
            _, output = shell(
                box, f"pwd; echo x > file; rm '{prefix}/pyvenv.cfg'; touch new; ls", cwd=repo
            )
            assert output == f"{repo}\nfile\nnew\n"
            assert box.layout.work.is_relative_to(scratch)
            assert shell(box, "pwd")[1] == f"{box.layout.work}\n"
        assert (repo / "file").read_text() == "mine\n"
        assert [path.name for path in repo.iterdir()] == ["file"]
        assert (prefix / "pyvenv.cfg").exists()

    def test_environment_within_the_repository(self, own, tmp_path, needs_overlay, shell):
        repo, prefix = own
        inner = repo / ".venv"
        shutil.move(prefix, inner)
        with adopted_box(repo, inner, tmp_path / "scratch", network=False) as box:
            shell(box, "rm -r .venv", cwd=repo)
        assert inner.is_dir()

    def test_system_prefix_is_left_alone(self, own, tmp_path, fresh, shell):
        repo, _ = own
        scratch = tmp_path / "scratch"
        with adopted_box(repo, Path("/usr"), scratch, network=False, fresh=fresh) as box:
            assert shell(box, "true")[0].ok

    def test_in_place_says_what_changed(self, own, tmp_path, shell):
        repo, prefix = own
        scratch = tmp_path / "scratch"
        options = {"network": False, "fresh": "in-place"}
        with adopted_box(repo, prefix, scratch, **options) as box:
            assert box.freshness.changed == ()
            shell(box, f"touch new '{prefix}/lib/planted'", cwd=repo)
        with adopted_box(repo, prefix, scratch, **options) as box:
            assert set(box.freshness.changed) == {str(repo / "new"), str(prefix / "lib/planted")}

    def test_scratch_in_the_repository_is_refused(self, own):
        repo, prefix = own
        box = adopted_box(repo, prefix, repo / "runs", network=False)
        with pytest.raises(SandboxError, match="lies in"), box:
            pass

    def test_absent_repository(self, tmp_path):
        box = adopted_box(tmp_path / "absent", None, tmp_path / "scratch", network=False)
        with pytest.raises(SandboxError, match="is not a folder"), box:
            pass


def test_interactive_has_the_terminal_and_sees_the_box(sandbox, frozen):
    with sandbox.stage_box(frozen, network=False, gpus=()) as box:
        box.put(box.layout.work / "here", b"")
        script = 'test -t 0 && echo terminal; ls; cat "$0"; read line; echo got $line; exit 7'
        command = Command(
            ["sh", "-c", script, str(box.layout.env / "installed.py")],
            box.layout.work,
            {"PATH": os.environ["PATH"]},
            60,
        )
        argv = box.interactive_argv(command)
        pid, terminal = pty.fork()
        if pid == 0:
            os.execvp(argv[0], argv)
        os.write(terminal, b"typed\n")
        shown = b""
        while select.select([terminal], [], [], 20)[0]:
            try:
                chunk = os.read(terminal, 4096)
            except OSError:  # the terminal's end
                break
            shown += chunk
        assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 7
    lines = shown.decode().replace("\r", "").splitlines()
    assert [line for line in lines if line != "typed"] == [
        "terminal",
        "here",
        "frozen",
        "got typed",
    ]


# --- as somebody else ------------------------------------------------------------------


@pytest.mark.slow
@pytest.mark.skipif(os.geteuid() != 0, reason="these tests run as an ordinary user already")
def test_all_this_as_an_ordinary_user(tmp_path_factory):
    """The tests of the sandbox again, by a user without any right."""
    here = Path(__file__).parents[3]
    python = next(
        (
            path
            for path in (sys.executable, shutil.which("python3", path="/usr/bin:/usr/local/bin"))
            if path and as_nobody([path, "-c", "import sys; print(sys.version_info[:2])"], here)
        ),
        None,
    )
    if python is None:
        pytest.skip("no Python of this version and project that an ordinary user could run")
    folder = Path("/var/tmp") / f"reb-test-{os.getpid()}"
    folder.mkdir(mode=0o777)
    folder.chmod(0o777)
    try:
        names = ("test_local.py", "test_manifest.py", "test_namespace.py")
        tests = [str(Path(__file__).with_name(name)) for name in names]
        chosen = ["-k", "not in-place and not Frozen and not Build and not stored"]
        done = subprocess.run(
            [
                *NOBODY,
                *environment(here, folder),
                python,
                *["-m", "pytest", "-q", "-p", "no:cacheprovider", "-rs"],
                *["--basetemp", str(folder / "tests"), *chosen, *tests],
            ],
            cwd=here,
            capture_output=True,
            text=True,
            timeout=280,
            check=False,
        )
    finally:
        namespace.remove_tree(folder)
    assert done.returncode == 0, done.stdout + done.stderr
    assert " passed" in done.stdout


NOBODY = ["setpriv", "--reuid=65534", "--regid=65534", "--clear-groups", "env", "-i"]


def environment(here, folder):
    packages = [str(here / "src"), *(path for path in sys.path if path.endswith("-packages"))]
    return [
        "PATH=/usr/bin:/bin",
        f"HOME={folder}",
        f"TMPDIR={folder}",
        "PYTHONDONTWRITEBYTECODE=1",
        f"PYTHONPATH={os.pathsep.join(packages)}",
    ]


def as_nobody(command, here):
    """Whether an ordinary user can run this Python, and it is of this version."""
    done = subprocess.run(
        [*NOBODY, *environment(here, "/"), *command],
        cwd="/",
        capture_output=True,
        text=True,
        check=False,
    )
    return done.stdout.strip() == str(tuple(sys.version_info[:2]))


def test_layout_is_the_same_however_it_is_named(tmp_path):
    (tmp_path / "real").mkdir()
    (tmp_path / "alias").symlink_to("real")
    sandbox = LocalSandbox()
    assert sandbox.layout(tmp_path / "alias") == sandbox.layout(tmp_path / "real")
