"""Builds without a network: package indexes through the harness, or nothing."""

import http.server
import json
import os
import shutil
import subprocess
import sys
import threading
from pathlib import Path
from zipfile import ZipFile

import pytest
from container_boxes import ours

from researchenvbench.network_use import Reach
from researchenvbench.process import Command
from researchenvbench.relay.registries.opening import PORT, build_network
from researchenvbench.sandbox.containers.sandbox import ContainerSandbox
from researchenvbench.sandbox.host_environment import host_environment

pytestmark = [pytest.mark.container, pytest.mark.slow]

SMALL = Path(__file__).parents[2] / "suites" / "small"
#: Loopback too, and none of the addresses that programs reach without the proxy.
ADDRESS = "127.0.0.2"
WHEEL = "fetchedpart-1.0-py3-none-any.whl"


@pytest.fixture(scope="module")
def index(tmp_path_factory):
    """A package index on this host with one package; its address, with the port."""
    folder = tmp_path_factory.mktemp("index")
    files = folder / "simple" / "fetchedpart"
    files.mkdir(parents=True)
    with ZipFile(files / WHEEL, "w") as wheel:
        about = "fetchedpart-1.0.dist-info"
        wheel.writestr("fetchedpart.py", "value = 42\n")
        wheel.writestr(
            f"{about}/METADATA", "Metadata-Version: 2.1\nName: fetchedpart\nVersion: 1.0\n"
        )
        wheel.writestr(
            f"{about}/WHEEL", "Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n"
        )
        wheel.writestr(f"{about}/RECORD", f"fetchedpart.py,,\n{about}/RECORD,,\n")
    (files / "index.html").write_text(f'<a href="{WHEEL}">{WHEEL}</a>')

    class Quiet(http.server.SimpleHTTPRequestHandler):
        def __init__(self, *arguments):
            super().__init__(*arguments, directory=folder)

        def log_message(self, *arguments):
            pass

    server = http.server.ThreadingHTTPServer((ADDRESS, 0), Quiet)
    thread = threading.Thread(target=server.serve_forever, args=(0.05,))
    thread.start()
    yield f"{ADDRESS}:{server.server_address[1]}"
    server.shutdown()
    thread.join()
    server.server_close()


@pytest.fixture
def inside(debian_image, tmp_path, source):
    """Opens a build of a reach; runs a line in it, and says what it printed."""
    sandboxes = []

    def opened(reach, lines):
        sandbox = ContainerSandbox("podman", {"image": debian_image.id}, reach)
        sandboxes.append(sandbox)
        said = []
        with (
            sandbox.build_box(tmp_path, source, key="k") as box,
            build_network(reach, box, tmp_path, host_environment()) as network,
        ):
            variables = box.variables(network.host, installs=True)
            for line in lines:
                log = tmp_path / "log"
                command = Command(["/bin/sh", "-c", line], box.layout.repo, variables, 120)
                box.run(command, log)
                said.append(log.read_text(errors="replace"))
        return said, network.use

    yield opened
    for sandbox in sandboxes:
        sandbox.discard(tmp_path)
    assert not ours(tmp_path)


def lines_of(tmp_path):
    return [json.loads(line) for line in (tmp_path / "fetched.jsonl").read_text().splitlines()]


class TestRegistries:
    def test_packages_are_installed_through_it_without_a_network(self, inside, index, tmp_path):
        reach = Reach(policy="registries", allow_hosts=(index,))
        said, use = inside(
            reach,
            [
                "cat /proc/net/dev; cat /proc/net/route",
                (
                    "python3 -m venv /workspace/env && "
                    "/workspace/env/bin/pip install -q --no-deps "
                    f"--index-url http://{index}/simple fetchedpart 2>&1"
                ),
                "/workspace/env/bin/python -c 'import fetchedpart; print(fetchedpart.value)'",
                (
                    f"uv pip install -q --python /workspace/env --reinstall --no-deps "
                    f"--default-index http://{index}/simple fetchedpart && echo by uv"
                ),
            ],
        )
        interfaces = [line.split(":")[0].strip() for line in said[0].splitlines() if ":" in line]
        assert interfaces == ["lo"], said[0]
        assert said[2].strip() == "42", said[1]
        assert said[3].strip().endswith("by uv"), said[3]
        lines = lines_of(tmp_path)
        assert all(line["end"] == "passed" for line in lines), lines
        assert f"/simple/fetchedpart/{WHEEL}" in [line["path"] for line in lines]
        assert use.fetches == len(lines)
        assert use.refused == 0
        assert use.bytes_in > 1000

    def test_others_are_refused_with_the_reason_and_noted(self, inside, index, tmp_path):
        said, use = inside(
            Reach(policy="registries"),
            [
                f"python3 -c \"import urllib.request as u; u.urlopen('http://{index}/x')\"",
                "python3 -c \"import urllib.request as u; u.urlopen('https://evil.example/')\"",
                "python3 -c \"import socket; socket.create_connection(('151.101.0.223', 443), 5)\"",
                "python3 -c \"import socket; socket.getaddrinfo('pypi.org', 443)\"",
            ],
        )
        assert "is refused by the policy of this run" in said[0]
        assert "evil.example:443 is refused by the policy of this run" in said[1]
        assert "unreachable" in said[2]
        assert "gaierror" in said[3]
        assert [(line["end"], line["host"]) for line in lines_of(tmp_path)] == [
            ("refused", ADDRESS),
            ("refused", "evil.example"),
        ]
        assert use.refused_hosts == (index, "evil.example:443")

    def test_the_next_life_of_a_build_is_found_at_the_same_port(
        self, debian_image, tmp_path, source, index
    ):
        reach = Reach(policy="registries", allow_hosts=(index,))
        sandbox = ContainerSandbox("podman", {"image": debian_image.id}, reach)
        ask = f"import urllib.request as u; print(u.urlopen('http://{index}/simple/').status)"
        try:
            for life in (1, 2):
                assert sandbox.resumes(tmp_path, "k") == (life == 2)
                with (
                    sandbox.build_box(tmp_path, source, key="k") as box,
                    build_network(reach, box, tmp_path, host_environment()) as network,
                ):
                    given = network.host.installs
                    assert given["https_proxy"] == f"http://127.0.0.1:{PORT}"
                    if life == 1:
                        continue  # nothing is run, as when the harness is killed here
                    variables = box.variables(network.host, installs=True)
                    command = Command(["python3", "-c", ask], box.layout.repo, variables, 60)
                    box.run(command, tmp_path / "log")
                    assert (tmp_path / "log").read_text().strip() == "200"
            other = ContainerSandbox("podman", {"image": debian_image.id}, Reach(policy="none"))
            assert not other.resumes(tmp_path, "k")
        finally:
            sandbox.discard(tmp_path)


def test_none_reaches_nothing_and_says_so_soon(inside, index):
    [said, seconds], use = inside(
        Reach(policy="none"),
        [
            (
                f'env | grep -i proxy; python3 -c "import urllib.request as u; '
                f"u.urlopen('http://{index}/x')\""
            ),
            (
                "python3 -m venv /workspace/env; date +%s; "
                "/workspace/env/bin/pip install nothing-of-that-name >/dev/null 2>&1; date +%s"
            ),
        ],
    )
    assert "proxy" not in said.lower()
    assert "refused" in said or "unreachable" in said
    began, ended = map(int, seconds.split())
    assert ended - began < 20
    assert (use.policy, use.fetches) == ("none", 0)


@pytest.mark.timeout(900)
def test_a_whole_run(tmp_path, debian_image, index):
    """By the command: what it fetched is in the record, and another policy builds again."""
    suite = tmp_path / "suite"
    shutil.copytree(SMALL / "adder", suite / "adder")
    task = suite / "adder" / "task.toml"
    step = f'["uv", "pip", "install", "--default-index", "http://{index}/simple", "fetchedpart"]'
    step = step.replace('"install"', '"install", "--python", "{python}"')
    recipe = '["{python}", "{repo}/install.py"]'
    task.write_text(task.read_text().replace(recipe, f"{step}, {recipe}"))

    def reb(*more):
        return subprocess.run(
            [
                *(sys.executable, "-m", "researchenvbench", "run", suite, "--agent", "gold"),
                *("--sandbox", "podman", "--sandbox-option", f"image={debian_image.id}"),
                *("--out", tmp_path / "run", *more),
            ],
            env={**os.environ, "NO_COLOR": "1", "COLUMNS": "200"},
            cwd=tmp_path,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            check=False,
        )

    asked = ("--network", "registries", "--allow-host", index)
    done = reb(*asked)
    assert done.returncode == 0, done.stderr
    attempt = tmp_path / "run" / "attempts" / "adder--1"
    record = json.loads((attempt / "record.json").read_text())
    assert record["results"]["C1"]["verdict"] == "passed", (
        attempt / "logs" / "build.log"
    ).read_text()
    network = record["build"]["network"]
    assert (network["policy"], network["allow_hosts"]) == ("registries", [index])
    assert network["fetches"] == len(lines_of(attempt)) > 0
    assert "1 attempt, none to build" in reb(*asked, "--dry-run").stdout
    again = reb("--network", "none", "--dry-run").stdout
    assert "what builds reach of networks has changed" in again
    subprocess.run(
        [*(sys.executable, "-m", "researchenvbench"), "env", "prune", "--run", tmp_path / "run"],
        check=True,
        capture_output=True,
    )
