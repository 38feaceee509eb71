"""Sockets that programs of a box reach at their own 127.0.0.1."""

import errno
import os
import shutil
import socket
import subprocess
import sys
import tempfile
from pathlib import Path
from threading import Thread

import pytest

from researchenvbench.errors import HostError, SandboxError
from researchenvbench.sandbox.listening import NotAllowedError, listen_within
from researchenvbench.sandbox.local.sandbox import LocalSandbox
from researchenvbench.standalone import listener

#: Prints what it is told at a port of 127.0.0.1.
ASK = "import socket, sys; print(socket.create_connection(('127.0.0.1', {})).recv(99).decode())"
NOBODY = ("setpriv", "--reuid=65534", "--regid=65534", "--clear-groups")
#: Says what the helper finds, without another process.
ENTER = """
import sys
sys.path.append(sys.argv[1])
from standalone import listener
try:
    print(listener._listen(int(sys.argv[2]), 4711).getsockname())
except listener.StepError as error:
    print((error.step, error.number))
"""


def answer(listening, text):
    """Accept one connection, and say something."""
    listening.settimeout(30)
    connection, _ = listening.accept()
    with connection:
        connection.sendall(text)


@pytest.fixture
def elsewhere():
    """Starts a process with a network namespace of its own, as one user or another."""
    started = []

    def start(*flags):
        if shutil.which("unshare") is None:
            pytest.skip("unshare is not installed: apt-get install util-linux")
        process = subprocess.Popen(
            [*flags, "sh", "-c", "echo up; exec sleep 300"],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        started.append(process)
        if process.stdout.readline() != "up\n":
            pytest.skip(f"no namespaces here: {process.stderr.read()}")
        return process.pid

    yield start
    for process in started:
        process.kill()
        process.communicate()


def _starts(argv):
    said = subprocess.run([*argv, "-c", ""], capture_output=True, check=False)
    return said.returncode == 0


@pytest.fixture
def as_nobody():
    """What the helper says about a process, run by a user without rights."""
    if os.geteuid() != 0 or shutil.which(NOBODY[0]) is None:
        pytest.skip("only root can be another user, by setpriv of util-linux")
    with tempfile.TemporaryDirectory() as name:
        # Where everybody can read it, as pytest's own folders are not.
        Path(name).chmod(0o755)
        copied = shutil.copytree(Path(listener.__file__).parent, Path(name) / "standalone")
        for path in (copied, *copied.rglob("*")):
            path.chmod(0o755)

        # Ours may lie in a home folder.
        pythons = [str(Path(sys.executable).resolve()), "/usr/bin/python3"]
        python = next((one for one in pythons if _starts([*NOBODY, one, "-I", "-S"])), None)
        if python is None:
            pytest.skip("another user has no Python here")

        def say(pid):
            argv = [*NOBODY, python, "-I", "-S", "-c", ENTER, name, str(pid)]
            said = subprocess.run(argv, capture_output=True, text=True, cwd="/", check=False)
            assert said.returncode == 0, said.stderr
            return said.stdout.strip()

        yield say


class TestBuild:
    def test_the_host_s_own(self, attempt, source):
        with LocalSandbox().build_box(attempt, source) as box, box.listen(0) as listening:
            address, port = listening.getsockname()
            assert address == "127.0.0.1"
            with socket.create_connection((address, port), 10):
                listening.accept()[0].close()
            assert not os.get_inheritable(listening.fileno())

    def test_again_at_the_same_port_but_not_twice(self, attempt, source):
        with LocalSandbox().build_box(attempt, source) as box:
            with box.listen(0) as first:
                port = first.getsockname()[1]
                with pytest.raises(HostError, match=f"127.0.0.1:{port}: {os.strerror(98)}"):
                    box.listen(port)
                # A connection that the harness ends first keeps its port for a minute.
                with socket.create_connection(first.getsockname(), 10) as client:
                    first.accept()[0].close()
                    client.recv(1)
            with box.listen(port) as second:
                assert second.getsockname()[1] == port


@pytest.mark.usefixtures("needs_overlay")
def test_a_network_of_its_own(frozen, shell, sandbox):
    """Programs in it are answered, and the same port of the host is another."""
    with sandbox.stage_box(frozen, network=False, gpus=()) as box:
        if box.freshness.network != "none":
            pytest.skip("this host gives boxes no network of their own")
        with box.listen(0) as listening:
            port = listening.getsockname()[1]
            with pytest.raises(OSError, match="refused"):
                socket.create_connection(("127.0.0.1", port), 10)
            assert not os.get_inheritable(listening.fileno())
            answering = Thread(target=answer, args=(listening, b"from outside"))
            answering.start()
            finished, said = shell(box, f'{sys.executable} -c "{ASK.format(port)}"')
            answering.join()
            assert finished.ok, said
            assert said.strip() == "from outside"
        with box.listen(port) as again:
            assert again.getsockname() == ("127.0.0.1", port)
            with pytest.raises(HostError, match=f":{port} in the box: {os.strerror(98)}"):
                box.listen(port)


class TestWithin:
    def test_loopback_is_brought_up(self, elsewhere):
        pid = elsewhere("unshare", *(() if os.geteuid() == 0 else ("-Ur",)), "-n")
        with listen_within(pid, 0) as listening:
            port = listening.getsockname()[1]
            if os.geteuid() == 0:
                told = subprocess.Popen(
                    ["nsenter", "-n", "-t", str(pid), sys.executable, "-c", ASK.format(port)],
                    stdout=subprocess.PIPE,
                    text=True,
                )
                answer(listening, b"hello")
                assert told.communicate()[0] == "hello\n"

    def test_another_user_enters_his_own_by_the_namespace_that_owns_it(self, elsewhere, as_nobody):
        """As with podman of a user: he has no right to the network but by his user namespace."""
        assert as_nobody(elsewhere(*NOBODY, "unshare", "-Urn")) == "('127.0.0.1', 4711)"

    def test_another_user_may_not_enter_root_s(self, elsewhere, as_nobody):
        assert as_nobody(elsewhere("unshare", "-n")) in (
            f"('enter', {errno.EACCES})",
            f"('enter', {errno.EPERM})",
        )

    def test_a_process_that_has_ended(self):
        process = subprocess.Popen(["true"])
        process.wait()
        with pytest.raises(SandboxError, match=f"process {process.pid}: "):
            listen_within(process.pid, 0)

    def test_not_allowed_says_what_to_do(self):
        assert "podman" in NotAllowedError("no", advice="or use podman").advice
