"""A run whose stage reads a file of the task, a download and a model of a hub, from end to end."""

from __future__ import annotations

import hashlib
import http.server
import json
import threading
from functools import partial
from typing import TYPE_CHECKING

import pytest

from researchenvbench.sandbox.containers.sandbox import ContainerSandbox

from .conftest import record_of

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = pytest.mark.slow

#: Reads everything, each by the way that the task says, and tries to write to it.
READ = """
import json, os, pathlib, sys
import adder

table, weights, net = map(pathlib.Path, sys.argv[1:])
print("table", table.name, table.read_text().strip())
print("weights", weights.name, weights.read_text().strip())
cache = pathlib.Path(os.environ["HF_HUB_CACHE"])
revision = (cache / "models--org--net" / "refs" / "main").read_text()
found = cache / "models--org--net" / "snapshots" / revision
print("net", json.loads((found / "config.json").read_text()), found == net)
print("offline", os.environ["HF_HUB_OFFLINE"], os.environ["TRANSFORMERS_OFFLINE"])
for place in (table, weights, net / "config.json", table.parent / "new"):
    try:
        place.write_text("changed")
        print("written", place)
    except OSError:
        pass
pathlib.Path("done.json").write_text('{"read": 3}')
"""
STAND_IN = """
import pathlib, sys
out = pathlib.Path(sys.argv[1])
out.write_text("made up " + sys.argv[sys.argv.index("--seed") + 1])
"""
NET = """
import pathlib, sys
out = pathlib.Path(sys.argv[1])
out.mkdir()
(out / "config.json").write_text('{"layers": 1}')
"""
ASSETS = """
[assets.table]
kind = "file"
path = "rows.csv"
sha256 = "{table}"

[assets.weights]
kind = "url"
url = "{url}/weights.bin"
sha256 = "{weights}"
[assets.weights.stand_in]
script = "stand_in.py"
seed = 7

[assets.net]
kind = "hub"
repo = "org/net"
placed = "hub"
[assets.net.stand_in]
script = "net.py"
"""


class Server:
    """A server of files, which can be shut."""

    def __init__(self, folder: Path) -> None:
        quiet = type("Quiet", (http.server.SimpleHTTPRequestHandler,), {"log_message": _nothing})
        self._server = http.server.ThreadingHTTPServer(
            ("127.0.0.1", 0), partial(quiet, directory=str(folder))
        )
        self.url = f"http://127.0.0.1:{self._server.server_port}"
        threading.Thread(target=self._server.serve_forever, daemon=True).start()

    def close(self) -> None:
        self._server.shutdown()
        self._server.server_close()


def _nothing(*_: object) -> None:
    """Say nothing of a request."""


@pytest.fixture
def server(tmp_path):
    served = tmp_path / "served"
    served.mkdir()
    (served / "weights.bin").write_text("the original")
    server = Server(served)
    yield server
    server.close()


def digest(text):
    return hashlib.sha256(text.encode()).hexdigest()


@pytest.fixture
def with_assets(suite, server):
    """The smallest suite; its task reads three assets and computes with nothing else."""
    task = suite / "adder"
    (task / "rows.csv").write_text("1,2\n")
    (task / "read.py").write_text(READ)
    (task / "stand_in.py").write_text(STAND_IN)
    (task / "net.py").write_text(NET)
    text = (task / "task.toml").read_text()
    stage = text[text.index("[stages.cpu]") : text.index("[gold]")]
    text = text.replace(
        stage,
        """[stages.cpu]
command = ["{python}", "{task}/read.py", "{assets.table}", "{assets.weights}", "{assets.net}"]
assets = ["table", "weights", "net"]
time_limit_s = 60

[[stages.cpu.evidence]]
kind = "file"
pattern = "{work}/done.json"
format = "json"

"""
        + ASSETS.format(url=server.url, table=digest("1,2\n"), weights=digest("the original")),
    )
    (task / "task.toml").write_text(text)
    return suite


@pytest.fixture
def run(reb, with_assets, tmp_path):
    """Runs the suite's task; returns C1 of its record, and what was printed."""

    def run(*more, ok=True):
        done = reb(
            "run",
            with_assets,
            "--only",
            "adder",
            "--agent",
            "gold",
            "--out",
            tmp_path / "run",
            *more,
            REB_CACHE=str(tmp_path / "cache"),
        )
        assert done.returncode == 0 or not ok, done.stderr
        return record_of(tmp_path / "run")["results"]["C1"], done.stdout + done.stderr

    return run


def log(tmp_path):
    return (tmp_path / "run" / "attempts" / "adder--1" / "logs" / "cpu.log").read_text()


def origins(result):
    return {name: use["origin"] for name, use in result["assets"].items()}


def test_stand_ins_are_read_and_the_table_says_so(run, tmp_path):
    result, said = run("--assets", "stand-in")
    assert result["verdict"] == "passed", (result["reason"], log(tmp_path))
    assert origins(result) == {"table": "real", "weights": "stand-in", "net": "stand-in"}
    assert all(use["digest"] and not use["changed"] for use in result["assets"].values())
    assert log(tmp_path).splitlines() == [
        "table rows.csv 1,2",
        "weights weights.bin made up 7",
        "net {'layers': 1} True",
        "offline 1 1",
    ], "all is found, and nothing could be written"
    assert "^" in said
    assert "C1 CPU run, stand-ins" in said
    page = (tmp_path / "run" / "index.html").read_text()
    assert "stand-ins for weights or data" in page
    assert "weights (stand-in " in page


def test_what_is_asked_for_is_read_and_only_its_stage_is_run_again(run, reb, server, tmp_path):
    first, _ = run()
    assert origins(first)["weights"] == "stand-in", "auto fetches no original that has a stand-in"
    results = tmp_path / "run" / "attempts" / "adder--1" / "results"
    times = {path: path.stat().st_mtime_ns for path in results.iterdir()}
    again, _ = run()
    assert again == first
    assert times == {path: path.stat().st_mtime_ns for path in results.iterdir()}

    real, said = run("--assets", "real")
    assert (real["verdict"], real["owner"]) == ("inconclusive", "asset")
    assert real["reason"].startswith("asset net: "), "nobody has looked up its revision"
    assert real["advice"]
    assert origins(real)["net"] == "real"
    assert "? asset" in said
    changed = {p.name for p in results.iterdir() if p.stat().st_mtime_ns != times.get(p)}
    assert changed == {"C1.json"}, "no other level is touched"

    # The download is in the cache by now, so that is what `auto` takes.
    server.close()
    auto, _ = run()
    assert auto["verdict"] == "passed", auto["reason"]
    assert origins(auto) == {"table": "real", "weights": "real", "net": "stand-in"}
    assert "weights weights.bin the original" in log(tmp_path)
    assert auto["assets"]["weights"]["digest"] != first["assets"]["weights"]["digest"]


def test_a_recipe_that_fails_is_the_assets_and_is_tried_again(run, with_assets, tmp_path):
    script = with_assets / "adder" / "net.py"
    script.write_text("raise SystemExit('no memory for that')\n")
    result, said = run()
    assert (result["verdict"], result["owner"]) == ("inconclusive", "asset")
    assert result["reason"].startswith("asset net: ")
    assert not result["command"], "nothing was run"
    record = record_of(tmp_path / "run")
    assert record["results"]["C0"]["verdict"] == "passed"
    assert "? asset" in said


def test_a_changed_copy_is_made_anew_before_it_is_read(run, tmp_path):
    first, _ = run()
    digest_of = first["assets"]["weights"]["digest"]
    copy = tmp_path / "cache" / "assets" / "objects" / digest_of / "content" / "weights.bin"
    copy.chmod(0o644)
    copy.write_text("something else")
    again, _ = run("--reverify")
    assert again["verdict"] == "passed", again["reason"]
    assert again["assets"] == first["assets"]
    assert "weights weights.bin made up 7" in log(tmp_path)


def test_an_attempt_is_verified_with_others(run, reb, tmp_path):
    run("--assets", "stand-in")
    attempt = tmp_path / "run" / "attempts" / "adder--1"
    cache = {"REB_CACHE": str(tmp_path / "cache")}
    as_its_run = reb("verify", attempt, "--level", "C1", "--json", **cache)
    assert as_its_run.returncode == 0, as_its_run.stderr
    c1 = json.loads(as_its_run.stdout)["results"]["C1"]
    assert origins(c1)["weights"] == "stand-in"
    real = reb("verify", attempt, "--level", "C1", "--assets", "real", **cache)
    assert real.returncode == 3
    assert "asset net: " in real.stdout
    shown = reb("verify", attempt, "--level", "C1", "--quiet", **cache)
    assert "net (stand-in " in " ".join(shown.stdout.split())


def test_a_folder_of_a_users_own_is_judged_with_them(run, reb, with_assets, tmp_path):
    run()
    python = tmp_path / "run" / "attempts" / "adder--1" / "box" / "env" / "bin" / "python"
    done = reb(
        "verify",
        with_assets / "adder" / "repository",
        "--python",
        python,
        "--task",
        with_assets / "adder",
        "--level",
        "C1",
        "--json",
        REB_CACHE=str(tmp_path / "cache"),
    )
    assert done.returncode == 0, done.stderr + done.stdout
    assert origins(json.loads(done.stdout)["results"]["C1"])["net"] == "stand-in"


def test_a_shell_sees_what_the_stage_would(run, reb, tmp_path):
    run()
    attempt = tmp_path / "run" / "attempts" / "adder--1"
    line = "cat $HF_HUB_CACHE/models--org--net/snapshots/*/config.json"
    done = reb("env", "shell", attempt, "-c", line, REB_CACHE=str(tmp_path / "cache"))
    assert done.stdout == '{"layers": 1}', done.stderr


def test_proofs_say_what_each_stage_read(reb, with_assets, tmp_path):
    done = reb(
        "tasks",
        "prove",
        with_assets,
        "--only",
        "adder",
        "--assets",
        "stand-in",
        "--out",
        tmp_path / "proofs",
        REB_CACHE=str(tmp_path / "cache"),
    )
    proof = json.loads((with_assets / "proofs.json").read_text())["proofs"]["adder"]
    (stage,) = proof["stages"]
    assert stage["verdict"] == "passed", (stage, done.stdout)
    assert origins(stage) == {"table": "real", "weights": "stand-in", "net": "stand-in"}
    damaged = {breakage["name"]: breakage["verdict"] for breakage in proof["breakages"]}
    assert damaged["no_adder"] == "failed", "it had its assets, and failed for another reason"


@pytest.mark.container
@pytest.mark.timeout(900)
def test_a_container_and_its_image_are_judged_with_them(
    run, reb, with_assets, podman, debian_image, tmp_path
):
    attempt = tmp_path / "run" / "attempts" / "adder--1"
    try:
        image = f"image={debian_image.id}"
        # What it builds is small, however full the disk is.
        result, _ = run("--sandbox", "podman", "--sandbox-option", image, "--min-free", "0")
        assert result["verdict"] == "passed", (result["reason"], log(tmp_path))
        lines = log(tmp_path).splitlines()
        assert lines[:3] == [
            "table rows.csv 1,2",
            "weights weights.bin made up 7",
            "net {'layers': 1} True",
        ]
        assert not [line for line in lines if line.startswith("written")]
        built = json.loads((attempt / "build.json").read_text())["environment"]["image"]
        done = reb(
            *("verify", "--image", built, "--task", with_assets / "adder", "--level", "C1"),
            *("--assets", "stand-in", "--json", "--out", tmp_path / "out"),
            REB_CACHE=str(tmp_path / "cache"),
        )
        assert done.returncode == 0, done.stderr + done.stdout
        assert json.loads(done.stdout)["results"]["C1"]["assets"] == result["assets"]
    finally:
        ContainerSandbox("podman").discard(attempt)
