"""Programs of a container reach the harness, whatever network it has."""

import http.server
import threading
from contextlib import contextmanager

import pytest
from container_boxes import ours, run

from researchenvbench.errors import HostError, SandboxError
from researchenvbench.sandbox.engines import reaching
from researchenvbench.sandbox.listening import NotAllowedError, listen_within

pytestmark = [pytest.mark.container, pytest.mark.slow]

ASK = (
    "from urllib.request import urlopen; "
    "print(urlopen('http://{}:{}/', timeout=20).read().decode())"
)
PORT = 4711


class Handler(http.server.BaseHTTPRequestHandler):
    """Says where it was asked."""

    def do_GET(self):
        content = f"you asked {self.headers['Host']}".encode()
        self.send_response(200)
        self.send_header("Content-Length", str(len(content)))
        self.end_headers()
        self.wfile.write(content)

    def log_message(self, *arguments):
        pass


@contextmanager
def served(listening):
    """A little server on a socket that listens already."""
    server = http.server.ThreadingHTTPServer(("", 0), Handler, bind_and_activate=False)
    server.socket.close()
    server.socket = listening
    thread = threading.Thread(target=server.serve_forever, args=(0.05,))
    thread.start()
    try:
        yield
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


@pytest.fixture(params=["none", "host", "bridge"])
def box(request, containers, tmp_path, source):
    sandbox = containers(network=request.param)
    with sandbox.build_box(tmp_path, source, key="k") as box:
        yield box
    sandbox.discard(tmp_path)
    assert not ours(tmp_path)


def ask(box, listening, log):
    address, port = listening.getsockname()
    return run(box, f'python3 -c "{ASK.format(address, port)}"', log)


class TestListen:
    def test_is_reached_and_can_be_had_again(self, box, tmp_path):
        with box.listen(0) as listening:
            address, port = listening.getsockname()
            assert address == "127.0.0.1"
            with served(listening):
                finished, said = ask(box, listening, tmp_path / "log")
            assert finished.ok, said
            assert said.strip() == f"you asked 127.0.0.1:{port}"
        with box.listen(port) as again, served(again):
            assert ask(box, again, tmp_path / "log")[0].ok
            with pytest.raises(HostError, match=f"127.0.0.1:{port}.*in use"):
                box.listen(port)

    def test_where_it_may_not_be_entered_by_the_gateway(self, box, tmp_path, monkeypatch):
        """As with docker of a user; that one may not enter is all that is pretended."""

        def forbidden(pid, port):
            raise NotAllowedError("it is root's", advice="be root")

        monkeypatch.setattr(reaching, "listen_within", forbidden)
        kind = box._engine.ask(
            *("container", "inspect", "--format", "{{.HostConfig.NetworkMode}}"),
            box._journal.container,
        )
        if kind == "none":
            with pytest.raises(HostError, match="it is root's") as caught:
                box.listen(0)
            assert caught.value.advice == "be root; or give builds a network: --network full"
            return
        with box.listen(0) as listening, served(listening):
            assert (listening.getsockname()[0] == "127.0.0.1") == (kind == "host")
            finished, said = ask(box, listening, tmp_path / "log")
        assert finished.ok, said


def test_a_container_that_has_ended(sandbox, tmp_path, source):
    with sandbox.build_box(tmp_path, source, key="k") as box:
        box._engine.call("kill", box._journal.container)
        with pytest.raises(SandboxError, match="does not run"):
            box.listen(PORT)
    sandbox.discard(tmp_path)


def test_another_process_took_the_number(sandbox, tmp_path, source, monkeypatch):
    """What listens in a namespace that is not the container's is closed again."""
    made = []

    def then_started_anew(pid, port):
        made.append(listen_within(pid, port))
        engine, container = box._engine, box._journal.container
        engine.call("restart", "--time", "0", container)
        return made[0]

    with sandbox.build_box(tmp_path, source, key="k") as box:
        monkeypatch.setattr(reaching, "listen_within", then_started_anew)
        with pytest.raises(SandboxError, match="started anew"):
            box.listen(PORT)
        assert made[0].fileno() == -1
    sandbox.discard(tmp_path)
