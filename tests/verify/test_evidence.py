"""Each kind of evidence holds on real work and fails, with what was seen, on anything else.

Everything runs in stage boxes of the local sandbox: the programs, the services, the probes.
"""

from __future__ import annotations

import dataclasses
import os
import shutil
import sys
import time
from pathlib import Path

import pytest
from pydantic import TypeAdapter, ValidationError

from researchenvbench.attempt import Owner, Verdict
from researchenvbench.evidence import Evidence, HttpEvidence
from researchenvbench.sandbox import Command, Finished
from researchenvbench.sandbox.local.sandbox import LocalSandbox
from researchenvbench.task import Service, Stage
from researchenvbench.verify import evidence
from researchenvbench.verify.readers import contained
from researchenvbench.verify.readers.installed import INSTALL

ENTRY = TypeAdapter(Evidence)
PORT = "18473"  # in a network of its own, or at worst an unlikely one of the host's


@pytest.fixture(scope="module")
def attempt(tmp_path_factory):
    folder = tmp_path_factory.mktemp("attempt [1]")  # of characters that a glob would take
    source = folder / "source"
    source.mkdir()
    (source / "old.csv").write_text("a\n1\n")
    with LocalSandbox().build_box(folder, source):
        pass
    LocalSandbox().freeze(folder)
    return folder


@pytest.fixture(scope="module")
def shared(attempt):
    """For what leaves no files: opening a box takes a while."""
    with LocalSandbox().stage_box(attempt, network=False, gpus=[]) as opened:
        yield opened


@pytest.fixture
def box(attempt):
    with LocalSandbox().stage_box(attempt, network=False, gpus=[]) as opened:
        yield opened


def python(box, code: str, cwd: Path | None = None, time_limit_s: float = 60.0) -> Command:
    argv = [sys.executable, "-c", code]
    return Command(argv, cwd or box.layout.work, {"PATH": os.environ["PATH"]}, time_limit_s)


def values(box) -> dict[str, str]:
    layout = box.layout
    return {
        "work": str(layout.work),
        "repo": str(layout.repo),
        "out": str(layout.out),
        "port": PORT,
    }


def judge(box, tmp_path: Path, code: str, *entries: dict, **stage):
    """Run some Python in the box and judge what it left; the exit status comes first."""
    service = Service(name="server", command=("x",), ready_port=True)
    asked = Stage(
        command=("x",),
        evidence=tuple(ENTRY.validate_python(entry) for entry in entries)
        or ({"kind": "output", "pattern": ""},),
        services=(service,),
        **stage,
    )
    log = tmp_path / "command.log"
    finished = box.run(python(box, code), log)
    logs = {None: log, "server": tmp_path / "server.log"}
    return evidence.judge(asked, finished, box, logs, values(box), tmp_path / "products")


def one(box, tmp_path: Path, code: str, entry: dict):
    return judge(box, tmp_path, code, entry)[-1]


# --- exit status -----------------------------------------------------------------------


@pytest.mark.parametrize(
    ("code", "verdict", "seen"),
    [
        ("pass", Verdict.PASSED, "exit status 0"),
        ("raise SystemExit(3)", Verdict.FAILED, "exit status 3"),
        ("import os; os.kill(os.getpid(), 9)", Verdict.FAILED, "ended by SIGKILL"),
    ],
)
def test_the_exit_status_is_judged_though_no_entry_names_it(shared, tmp_path, code, verdict, seen):
    first = judge(shared, tmp_path, code)[0]
    assert (first.entry, first.verdict, first.seen) == ("exit status 0", verdict, seen)


def test_another_exit_status_can_be_expected(shared, tmp_path):
    entry = {"kind": "exit", "code": 3}
    output = {"kind": "output", "pattern": "hi"}
    results = judge(shared, tmp_path, "print('hi'); raise SystemExit(3)", output, entry)
    assert [result.verdict for result in results] == [Verdict.PASSED, Verdict.PASSED]
    assert judge(shared, tmp_path, "print('hi')", output, entry)[1].verdict is Verdict.FAILED


def test_the_time_limit_and_a_program_that_cannot_start(shared, tmp_path):
    late = shared.run(
        python(shared, "import time; time.sleep(60)", time_limit_s=0.5), tmp_path / "a"
    )
    absent = shared.run(
        dataclasses.replace(python(shared, ""), argv=["/absent/python"]), tmp_path / "b"
    )
    stage = Stage(command=("x",), evidence=({"kind": "output", "pattern": "x"},))
    said = [
        evidence.judge(stage, finished, shared, {None: finished.log}, {}, tmp_path / "p")[0]
        for finished in (late, absent)
    ]
    assert [result.verdict for result in said] == [Verdict.FAILED] * 2
    assert "time limit" in said[0].seen
    assert "could not be started" in said[1].seen


# --- output ----------------------------------------------------------------------------

LOSS = {"kind": "output", "pattern": r"loss=(?P<loss>\S+)", "groups": {"loss": {"falling": True}}}


def test_a_falling_loss_is_evidence(shared, tmp_path):
    result = one(shared, tmp_path, "print('loss=3'); print('x'); print('loss=1e-3')", LOSS)
    assert result.verdict is Verdict.PASSED
    assert result.seen == (
        "2 lines, the last: loss=1e-3; loss: 2 numbers, first 3, last 0.001, range 0.001 to 3"
    )


@pytest.mark.parametrize(
    ("code", "seen"),
    [
        ("print('epoch 1'); print('done')", "no line of 2 matches; its last lines: epoch 1 | done"),
        ("pass", "no line of 0 matches; nothing was printed"),
        ("print('loss=1'); print('loss=2')", "not falling: the first is 1, the last 2"),
        ("print('loss=1')", "only one number"),
        ("print('loss=2'); print('loss=nan')", "1 of 2 numbers are NaN"),
        ("print('loss=inf'); print('loss=2')", "1 of 2 numbers are infinite"),
        ("print('loss=1,024'); print('loss=2')", "no numbers, such as '1,024'"),
    ],
)
def test_output_that_shows_no_work(shared, tmp_path, code, seen):
    result = one(shared, tmp_path, code, LOSS)
    assert result.verdict is Verdict.FAILED
    assert result.owner is None
    assert seen in result.seen


def test_lines_are_counted(shared, tmp_path):
    entry = {"kind": "output", "pattern": "^step", "at_least": 3}
    assert one(shared, tmp_path, "print('step\\n' * 3)", entry).verdict is Verdict.PASSED
    few = one(shared, tmp_path, "print('step 1\\nstep 2')", entry)
    assert (few.verdict, few.seen) == (Verdict.FAILED, "2 lines, the last: step 2")


def test_progress_bars_and_broken_text(shared, tmp_path):
    code = r"import os; os.write(1, b'\xff\r 1%| loss=3\r 9%| loss=2\x1b[0m\r\n')"
    assert one(shared, tmp_path, code, LOSS).verdict is Verdict.PASSED


def test_the_output_of_a_service(shared, tmp_path):
    entry = {"kind": "output", "pattern": "GET /", "service": "server"}
    assert "was not running" in one(shared, tmp_path, "pass", entry).seen
    (tmp_path / "server.log").write_text("GET / 200\n")
    assert one(shared, tmp_path, "pass", entry).verdict is Verdict.PASSED


def judged_log(shared, tmp_path: Path, dropped: int, entry: dict, text: str):
    log = tmp_path / "log"
    log.write_text(text)
    finished = Finished(
        exit_code=0,
        signal=None,
        seconds=1,
        timed_out=False,
        log=log,
        log_bytes_dropped=dropped,
    )
    stage = Stage(command=("x",), evidence=(ENTRY.validate_python(entry),))
    return evidence.judge(stage, finished, shared, {None: log}, {}, tmp_path / "p")[-1]


def test_what_a_truncated_log_can_and_cannot_tell(shared, tmp_path):
    gap = "\n[…             1000 bytes of output left out here …]\n"
    plain = {"kind": "output", "pattern": "loss"}
    there, absent = f"loss=3{gap}loss=1", f"start{gap}end"
    assert judged_log(shared, tmp_path, 1000, plain, there).verdict is Verdict.PASSED
    unknown = judged_log(shared, tmp_path, 1000, plain, absent)
    assert unknown.verdict is Verdict.INCONCLUSIVE
    assert "1000 bytes of the output were left out" in unknown.seen
    # One of the matches that were left out may have been NaN.
    assert judged_log(shared, tmp_path, 1000, LOSS, there).verdict is Verdict.INCONCLUSIVE
    bad = there.replace("=1", "=nan")
    assert judged_log(shared, tmp_path, 1000, LOSS, bad).verdict is Verdict.FAILED
    assert judged_log(shared, tmp_path, 0, plain, absent).verdict is Verdict.FAILED


def test_a_pattern_that_takes_for_ever_is_the_tasks_fault(shared, tmp_path, monkeypatch):
    def soon(*arguments):
        return search(*arguments, time_limit_s=1)

    search = contained.search_log
    monkeypatch.setattr(contained, "search_log", soon)
    entry = {"kind": "output", "pattern": "^(a+)+$"}
    result = one(shared, tmp_path, "print('a' * 60 + '!')", entry)
    assert (result.verdict, result.owner) == (Verdict.INCONCLUSIVE, Owner.TASK)
    assert "a simpler pattern is needed" in result.seen


# --- http ------------------------------------------------------------------------------

SERVER = f"""
import http.server, time

class Handler(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        if self.path == "/away":
            self.send_response(302)
            self.send_header("Location", "http://example.org/")
            self.end_headers()
            return
        if self.path == "/slow":
            time.sleep(20)
        self.send_response(404 if self.path == "/absent" else 200)
        if self.path == "/cut":
            self.send_header("Content-Length", "100")
        self.end_headers()
        if self.path == "/stream":
            for i in range(100):
                self.wfile.write(b"data: token\\n\\n")
                self.wfile.flush()
                time.sleep(0.2)
        if self.path == "/flood":
            for i in range(2000):
                self.wfile.write(b"x" * 10000)
        self.wfile.write(b'{{"state": "ok"}}')

    def do_POST(self):
        body = self.rfile.read(int(self.headers["Content-Length"]))
        self.send_response(201)
        self.end_headers()
        self.wfile.write(body[::-1] + self.headers["X-Name"].encode())

http.server.ThreadingHTTPServer(("127.0.0.1", {PORT}), Handler).serve_forever()
"""


@pytest.fixture(scope="module")
def served(attempt, tmp_path_factory):
    """A box in whose own network a service answers."""
    folder = tmp_path_factory.mktemp("served")
    with LocalSandbox().stage_box(attempt, network=False, gpus=[]) as opened:
        running = opened.start(python(opened, SERVER), folder / "log")
        connect = f"import socket; socket.create_connection(('127.0.0.1', {PORT}), 2)"
        for _ in range(50):
            if opened.run(python(opened, connect), folder / "wait").ok:
                break
            time.sleep(0.1)
        yield opened
        running.stop()


def request(path: str, **entry) -> dict:
    return {"kind": "http", "url": f"http://127.0.0.1:{{port}}{path}", **entry}


def test_a_service_that_answers(served, tmp_path):
    result = one(served, tmp_path, "pass", request("/", pattern=r'"state": "ok"'))
    assert result.verdict is Verdict.PASSED
    assert result.seen == 'status 200, 15 bytes: {"state": "ok"}'


def test_a_body_and_headers_are_sent(served, tmp_path):
    entry = request("/", method="POST", body="abc" * 50_000, headers={"X-Name": "me"})
    entry |= {"status": 201, "pattern": "^(cba){50000}me$"}
    assert one(served, tmp_path, "pass", entry).verdict is Verdict.PASSED


@pytest.mark.parametrize(
    ("entry", "seen"),
    [
        (request("/absent"), "status 404"),
        (request("/", pattern="failed"), "the body does not match; status 200"),
        (request("/away"), "status 302, 0 bytes: ; it points to http://example.org/"),
        (request("/slow", time_limit_s=1), "no answer within 1 s"),
        (request("/cut"), "the body was cut off"),
        ({"kind": "http", "url": "http://127.0.0.1:1/"}, "nothing listens on port 1"),
        (request("/stream", time_limit_s=1, pattern="end"), "the body was still open"),
    ],
)
def test_a_service_that_does_not_answer_as_wanted(served, tmp_path, entry, seen):
    result = one(served, tmp_path, "pass", entry)
    assert (result.verdict, result.owner) == (Verdict.FAILED, None)
    assert seen in result.seen


def test_a_stream_that_does_not_end_is_read_for_as_long_as_allowed(served, tmp_path):
    entry = request("/stream", time_limit_s=1.5, pattern="(data: token\\s+){3}")
    assert one(served, tmp_path, "pass", entry).verdict is Verdict.PASSED


def test_a_body_without_end_is_read_up_to_a_limit(served, tmp_path):
    result = one(served, tmp_path, "pass", request("/flood"))
    assert result.verdict is Verdict.PASSED
    assert "10000000 bytes" in result.seen
    assert "the body was too long" in result.seen


def test_no_proxy_stands_between(served, tmp_path, monkeypatch):
    monkeypatch.setenv("http_proxy", "http://127.0.0.1:1")
    assert one(served, tmp_path, "pass", request("/")).verdict is Verdict.PASSED


def test_a_probe_that_cannot_run_is_no_verdict_on_the_service(served, tmp_path, monkeypatch):
    monkeypatch.setattr(served, "tools", dataclasses.replace(served.tools, python=("/absent",)))
    argv = Command(["/bin/true"], served.layout.work, {}, 10)
    finished = served.run(argv, tmp_path / "log")
    service = Service(name="server", command=("x",), ready_port=True)
    stage = Stage(command=("x",), evidence=(request("/"),), services=(service,))
    result = evidence.judge(stage, finished, served, {}, values(served), tmp_path / "p")[-1]
    assert (result.verdict, result.owner) == (Verdict.INCONCLUSIVE, Owner.HOST)
    assert "the request was not sent" in result.seen


# --- files -----------------------------------------------------------------------------

CSV = {"kind": "file", "pattern": "{work}/*.csv", "format": "csv", "rows": 2}
WRITE = "open('x.csv', 'w').write('loss\\n3\\n1\\n')"


def test_a_file_that_this_run_made(box, tmp_path):
    entry = CSV | {"columns": ["loss"], "numeric": {"loss": {"falling": True}}}
    result = one(box, tmp_path, WRITE, entry)
    assert result.verdict is Verdict.PASSED
    assert result.seen == (
        "x.csv: CSV, 2 rows, columns loss; loss 2 numbers, first 3, last 1, range 1 to 3, 9 bytes"
    )


def test_a_relative_pattern_starts_where_the_command_did(box, tmp_path):
    write = f"open({str(box.layout.out / 'x.csv')!r}, 'w').write('a\\n1\\n')"
    entry = CSV | {"pattern": "x.csv", "rows": 1}
    assert judge(box, tmp_path, write, entry)[-1].verdict is Verdict.FAILED
    assert judge(box, tmp_path, write, entry, folder="{out}")[-1].verdict is Verdict.PASSED


def test_a_file_of_the_build_is_no_evidence(box, tmp_path):
    result = one(box, tmp_path, "pass", CSV | {"pattern": "{repo}/*.csv"})
    assert (result.verdict, result.seen) == (
        Verdict.FAILED,
        "0 of 1; old.csv: was there before this run",
    )


@pytest.mark.parametrize(
    ("code", "entry", "seen"),
    [
        ("pass", {}, "no file matches"),
        ("open('x.tsv', 'w').write('abc')", {}, "x.tsv (3 bytes)"),
        ("open('x.csv', 'w')", {}, "x.csv: has 0 bytes, at least 1 wanted"),
        (WRITE, {"min_bytes": 100}, "x.csv: has 9 bytes, at least 100 wanted"),
        (WRITE, {"rows": 3}, "x.csv: 2 rows, at least 3 wanted (CSV, 2 rows, columns loss)"),
        (WRITE, {"at_least": 2}, "1 of 2"),
        (WRITE, {"format": "json"}, "x.csv: not JSON"),
        ("import os; os.symlink('/etc/passwd', 'x.csv')", {}, "x.csv is a symbolic link"),
        ("import os; os.mkfifo('x.csv')", {}, "x.csv is a named pipe"),
        ("import os; os.mkdir('x.csv')", {}, "x.csv is a folder"),
        # It takes no room on the disk, where it is.
        ("open('x.csv', 'w').truncate(1 << 40)", {}, "the files have more than 8 GiB"),
        (
            "import os; os.mkdir('a'); open('a/x.csv', 'w'); os.symlink('a', 'b')",
            {"pattern": "{work}/b/*.csv"},
            "x.csv is a file behind a link",
        ),
    ],
)
def test_a_file_that_shows_no_work(box, tmp_path, code, entry, seen):
    result = one(box, tmp_path, code, CSV | entry)
    assert (result.verdict, result.owner) == (Verdict.FAILED, None)
    assert seen in result.seen


def test_an_odd_name_is_told_in_printable_words(box, tmp_path):
    code = r"open(b'\xff\x1b[31m\n.csv', 'w').write('a\n1\n')"
    result = one(box, tmp_path, code, CSV)
    assert result.seen.startswith("0 of 1; ��[31m�.csv: 1 row")
    assert result.model_dump_json().encode().decode()


def test_one_good_file_among_bad_ones_is_enough(box, tmp_path):
    code = f"{WRITE}; open('y.csv', 'w').write('a\\n')"
    assert one(box, tmp_path, code, CSV).verdict is Verdict.PASSED
    assert one(box, tmp_path, code, CSV | {"at_least": 2}).verdict is Verdict.FAILED


def test_a_reader_that_is_not_installed_is_the_hosts_fault(box, tmp_path, monkeypatch):
    hidden = tmp_path / "hidden" / "h5py"
    hidden.mkdir(parents=True)
    (hidden / "__init__.py").write_text("raise ImportError('not here')")
    monkeypatch.setenv("PYTHONPATH", str(hidden.parent))
    entry = {"kind": "file", "pattern": "{work}/x.h5", "format": "hdf5"}
    result = one(box, tmp_path, r"open('x.h5', 'wb').write(b'\x89HDF\r\n\x1a\n')", entry)
    assert (result.verdict, result.owner) == (Verdict.INCONCLUSIVE, Owner.HOST)
    assert f"without h5py; in reb's checkout: {INSTALL}" in result.seen
    assert INSTALL in (Path(__file__).parents[2] / "README.md").read_text()
    absent = one(box, tmp_path, "pass", entry | {"pattern": "{work}/y.h5"})
    assert absent.verdict is Verdict.FAILED


def test_a_second_run_forgets_the_copies_of_the_first(box, tmp_path):
    assert one(box, tmp_path, WRITE, CSV).verdict is Verdict.PASSED
    again = one(box, tmp_path, "import os; os.remove('x.csv')", CSV)
    assert again.verdict is Verdict.FAILED
    assert not list((tmp_path / "products").rglob("x.csv"))


def test_a_checkpoint_is_opened_by_a_stage(box, tmp_path):
    shutil.copy(Path(__file__).parents[1] / "data" / "checkpoint.pt", tmp_path / "made.pt")
    code = f"import shutil; shutil.copy({str(tmp_path / 'made.pt')!r}, 'x.pt')"
    entry = {"kind": "file", "pattern": "x.pt", "format": "torch", "keys": ["optimizer", "epoch"]}
    assert one(box, tmp_path, code, entry).verdict is Verdict.PASSED


# --- in words --------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("entry", "sentence"),
    [
        ({"kind": "exit", "code": 2}, "exit status 2"),
        (
            {"kind": "output", "pattern": "(?P<x>.)", "groups": {"x": {"falling": True}}},
            "the command prints at least 1 line matching '(?P<x>.)', with x finite and falling",
        ),
        (
            {"kind": "output", "pattern": "up", "at_least": 2, "service": "api"},
            "the service api prints at least 2 lines matching 'up'",
        ),
        (
            request("/v1", method="POST", pattern="ok"),
            "POST http://127.0.0.1:{port}/v1 answers 200 with a body that matches 'ok'",
        ),
        (
            {"kind": "file", "pattern": "*", "numeric": {"a": {"finite": False, "max": 1}}},
            "this run makes at least 1 file *, with a a number and at most 1",
        ),
        (
            {"kind": "file", "pattern": "*.wav", "format": "wav", "min_seconds": 2},
            "this run makes at least 1 wav file *.wav, with at least 2 s",
        ),
        (
            {"kind": "file", "pattern": "*", "min_bytes": 9},
            "this run makes at least 1 file *, with at least 9 bytes",
        ),
    ],
)  # fmt: skip
def test_entries_as_sentences(entry, sentence):
    assert evidence.describe(ENTRY.validate_python(entry)) == sentence


@pytest.mark.parametrize(
    "url", ["http://localhost:x@example.org/", "http://example.org/", "https://127.0.0.1/", "x"]
)
def test_a_request_to_elsewhere_is_no_evidence(url):
    with pytest.raises(ValidationError, match="address of this host"):
        HttpEvidence(kind="http", url=url)
