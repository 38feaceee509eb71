"""Where a stage finds what it reads, by which variables, and what is said of it afterwards."""

import dataclasses
import hashlib
import os
import subprocess
import sys

import pytest

from researchenvbench.assets import Missing, prepare
from researchenvbench.attempt import AssetUse, Owner, Report, Verdict
from researchenvbench.errors import TaskError
from researchenvbench.sandbox.host_environment import host_environment
from researchenvbench.sandbox.local.namespace import namespace_support
from researchenvbench.sandbox.local.sandbox import LocalSandbox
from researchenvbench.source import fetch_source
from researchenvbench.task import StageName, Task
from researchenvbench.verify.assets import OFFLINE, expected, same_assets, shown
from researchenvbench.verify.entrypoint import run_stage
from researchenvbench.verify.pyramid import with_interpreter
from researchenvbench.verify.subject import Subject

FILE = "import pathlib, sys; pathlib.Path(sys.argv[1]).write_text(sys.argv[3])\n"
FOLDER = """
import pathlib, sys
out = pathlib.Path(sys.argv[1]) / "deep"
out.mkdir(parents=True)
(out / "part").write_text(sys.argv[3])
"""


@pytest.fixture(scope="module", autouse=True)
def cache(tmp_path_factory):
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("REB_CACHE", str(tmp_path_factory.mktemp("cache")))
        yield


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """A task's folder, with a repository, a file and recipes."""
    folder = tmp_path_factory.mktemp("task")
    (folder / "repository").mkdir()
    (folder / "repository" / "main.py").write_text("print('main')\n")
    (folder / "rows.csv").write_text("1,2\n")
    (folder / "file.py").write_text(FILE)
    (folder / "folder.py").write_text(FOLDER)
    return folder


def made(script="file.py", seed=0, **more):
    return {"kind": "made", "recipe": {"script": script, "seed": seed}, **more}


def hub(repo, seed=0, **more):
    stand_in = {"script": "folder.py", "seed": seed}
    return {"kind": "hub", "repo": repo, "placed": "hub", "stand_in": stand_in, **more}


ROWS = {"kind": "file", "path": "rows.csv", "sha256": hashlib.sha256(b"1,2\n").hexdigest()}


@pytest.fixture(scope="module")
def task(folder):
    """A task whose stage runs some Python, given the tables of its assets."""

    def task(assets, code="pass", *arguments, **stage):
        stage = {
            "command": ["{python}", "-c", f"{code}\nprint('done')", *arguments],
            "assets": list(assets),
            "evidence": [{"kind": "output", "pattern": "done"}],
            **stage,
        }
        data = {
            "schema": 1,
            "name": "reader",
            "domain": "reading",
            "source": {"kind": "folder", "path": "repository"},
            "assets": assets,
            "stages": {"cpu": stage},
        }
        return Task.model_validate(data).model_copy(update={"folder": folder})

    return task


@pytest.fixture(scope="module")
def attempts(tmp_path_factory, task):
    """An environment for each way of keeping stages apart that this host has."""
    found = {}
    snapshot = fetch_source(task({}))
    for fresh in ("overlay", "in-place"):
        if fresh == "overlay" and namespace_support()[0] != "overlay":
            continue
        sandbox, attempt = LocalSandbox(fresh), tmp_path_factory.mktemp(fresh)
        with sandbox.build_box(attempt, snapshot.tree) as box:
            subprocess.run([sys.executable, "-m", "venv", box.layout.env], check=True)
        sandbox.freeze(attempt)
        found[fresh] = (sandbox, attempt)
    return found


@pytest.fixture
def subject(attempts, tmp_path):
    """What is judged, with the assets of a task."""

    def subject(task, *, fresh="overlay", choice="auto", **changed):
        if fresh not in attempts:
            pytest.skip("no overlay here")
        sandbox, attempt = attempts[fresh]
        python = str(sandbox.layout(attempt).env / "bin" / "python")
        host, snapshot = host_environment(), fetch_source(task)
        assets = prepare(
            task, task.stages, choice, snapshot=snapshot, host=host, say=lambda _: None
        )
        fields = {
            "folder": tmp_path / "results",
            "open_box": lambda **asked: sandbox.stage_box(
                attempt, **{"network": False, "gpus": (), **asked}
            ),
            "host": host,
            "snapshot": snapshot,
            "task": task,
            "report": Report(python_path=python, env=changed.pop("report_env", {})),
            "assets": assets,
            "asset_choice": choice,
        }
        return with_interpreter(Subject(**fields | changed), python)

    return subject


def said(subject):
    return (subject.folder / "logs" / "cpu.log").read_text().splitlines()


def test_each_is_at_its_place_by_its_own_name(task, subject):
    code = "import sys, pathlib\nfor p in map(pathlib.Path, sys.argv[1:]): print(*p.parts[-3:])"
    assets = {"rows": ROWS, "one": made(name="w.bin"), "many": made("folder.py")}
    it = subject(task(assets, code, "{assets.rows}", "{assets.one}", "{assets.many}/deep/part"))
    result = run_stage(it, StageName.CPU)
    assert result.verdict is Verdict.PASSED, result.reason
    assert said(it)[:3] == [
        "assets rows rows.csv",
        "assets one w.bin",
        "many deep part",
    ]
    assert {name: use.origin for name, use in result.assets.items()} == {
        "rows": "real",
        "one": "made",
        "many": "made",
    }


def test_caches_of_libraries_are_one_of_all_assets(task, subject):
    code = (
        "import os, pathlib\n"
        "hub, torch = (pathlib.Path(os.environ[n]) for n in ('HF_HUB_CACHE', 'TORCH_HOME'))\n"
        "print(*sorted(p.name for p in hub.iterdir()))\n"
        "print(*sorted(p.name for p in (torch / 'hub' / 'checkpoints').iterdir()))\n"
        "print(os.environ['HUGGINGFACE_HUB_CACHE'] == str(hub), 'HF_HOME' in os.environ)"
    )
    assets = {
        "a": hub("org/a"),
        "b": hub("org/b", 1),
        "c": hub("org/c", type="dataset"),
        "x": made(placed="torch", name="x.pt"),
        "y": made(seed=1, placed="torch", name="y.pt"),
    }
    it = subject(task(assets, code))
    result = run_stage(it, StageName.CPU)
    assert result.verdict is Verdict.PASSED, result.reason
    assert said(it)[:3] == [
        "datasets--org--c models--org--a models--org--b version.txt",
        "x.pt y.pt",
        "True False",
    ]


def test_a_report_may_name_other_caches_and_they_are_not_read(task, subject):
    names = ["TRANSFORMERS_CACHE", "SENTENCE_TRANSFORMERS_HOME", "HF_HUB_CACHE", "TORCH_HOME",
             "HUGGINGFACE_HUB_CACHE", "PYTORCH_TRANSFORMERS_CACHE"]  # fmt: skip
    code = (
        "import os\n"
        f"print(*sorted({{os.path.basename(os.environ[n]) for n in {names}}}))\n"
        "print('PYTORCH_PRETRAINED_BERT_CACHE' in os.environ, 'HF_ENDPOINT' in os.environ)"
    )
    assets = {"a": hub("org/a"), "x": made(placed="torch", name="x.pt")}
    mine = {"HF_ENDPOINT": "http://127.0.0.1:9", **dict.fromkeys(names, "/agents/own")}
    it = subject(task(assets, code), report_env=mine)
    result = run_stage(it, StageName.CPU)
    assert result.verdict is Verdict.PASSED, result.reason
    assert said(it)[:2] == ["hub torch", "False False"]


def test_without_assets_in_it_a_cache_is_the_reports(task, subject):
    code = "import os\nprint(os.environ['TRANSFORMERS_CACHE'], os.environ['HF_ENDPOINT'])"
    it = subject(task({}, code), report_env={"TRANSFORMERS_CACHE": "/a", "HF_ENDPOINT": "b"})
    assert run_stage(it, StageName.CPU).verdict is Verdict.PASSED
    assert said(it)[0] == "/a b"


def test_two_contents_for_one_file_of_a_cache_are_the_tasks_fault(task, subject):
    it = subject(task({"a": hub("org/a"), "b": hub("org/a", 1)}))
    with pytest.raises(TaskError, match="another content for hub/models--org--a/refs/main"):
        shown(it, it.task.stages[StageName.CPU])


@pytest.mark.parametrize("network", [False, True])
def test_only_without_a_network_are_libraries_told_that_there_is_none(task, subject, network):
    code = f"import os\nprint([os.environ.get(n) for n in {sorted(OFFLINE)}])"
    it = subject(task({}, code, network=network), report_env={"HF_HUB_OFFLINE": "0"})
    assert run_stage(it, StageName.CPU).verdict is Verdict.PASSED
    assert said(it)[0] == str(["1", "1", "1"] if not network else [None, "0", None])


def test_a_task_may_say_otherwise(task, subject):
    it = subject(
        task({}, "import os; print(os.environ['HF_HUB_OFFLINE'])", env={"HF_HUB_OFFLINE": "0"})
    )
    assert run_stage(it, StageName.CPU).verdict is Verdict.PASSED
    assert said(it)[0] == "0"


WRITES = (
    "import sys\n"
    "try:\n    open(sys.argv[1], 'w').write('changed')\n"
    "except OSError as error:\n    print(error.strerror)"
)


def test_in_a_layer_it_cannot_be_written(task, subject):
    it = subject(task({"rows": ROWS}, WRITES, "{assets.rows}"))
    result = run_stage(it, StageName.CPU)
    assert (result.verdict, result.assets["rows"].changed) == (Verdict.PASSED, "")
    assert said(it)[0] == "Read-only file system"


def test_in_place_a_change_is_noted_and_the_next_stage_gets_the_right_one(task, subject):
    this = task({"rows": ROWS}, WRITES, "{assets.rows}")
    it = subject(this, fresh="in-place")
    result = run_stage(it, StageName.CPU)
    assert result.verdict is Verdict.PASSED, result.reason
    if os.geteuid() != 0:
        assert said(it)[0] == "Permission denied"
        return
    assert "has changed" in result.assets["rows"].changed
    stage = this.stages[StageName.CPU]
    assert not same_assets(it, stage, result), "such a result is not kept"
    refused = run_stage(it, StageName.CPU)
    assert (refused.verdict, refused.owner) == (Verdict.INCONCLUSIVE, Owner.ASSET)
    assert "has changed" in refused.reason
    assert "run the same command again" in refused.advice
    reads = task({"rows": ROWS}, "import sys; print(open(sys.argv[1]).read())", "{assets.rows}")
    again = subject(reads, fresh="in-place")
    result = run_stage(again, StageName.CPU)
    assert (said(again)[0], result.assets["rows"].changed) == ("1,2", "")


def test_what_cannot_be_had_is_inconclusive_and_says_what_was_due(task, subject):
    it = subject(task({"net": hub("org/a")}), choice="real")
    assert isinstance(it.assets["net"], Missing)
    result = run_stage(it, StageName.CPU)
    assert (result.verdict, result.owner) == (Verdict.INCONCLUSIVE, Owner.ASSET)
    assert result.reason == f"asset net: {it.assets['net'].why}"
    assert result.advice == it.assets["net"].advice
    assert result.assets == {"net": AssetUse(origin="real", digest="")}


def test_a_stage_that_is_not_run_says_which_were_due(task, subject):
    it = subject(task({"net": hub("org/a")}), choice="stand-in", assets={})
    it = dataclasses.replace(it, interpreter=None, interpreter_error="none")
    result = run_stage(it, StageName.CPU)
    assert result.verdict is Verdict.FAILED
    assert result.assets == {"net": AssetUse(origin="stand-in", digest="")}


def test_a_result_stands_while_its_stage_would_read_the_same(task, subject):
    this = task({"rows": ROWS, "net": hub("org/a")})
    it = subject(this, choice="stand-in")
    stage = this.stages[StageName.CPU]
    result = run_stage(it, StageName.CPU)
    assert same_assets(it, stage, result)
    for name, use in result.assets.items():
        assert expected(this, name, "stand-in") == use
    other = subject(task({"rows": ROWS, "net": hub("org/a", 5)}), choice="stand-in")
    assert not same_assets(other, stage, result)
    assert not same_assets(it, stage, result.model_copy(update={"assets": {}})), "of before"
    nothing_run = result.model_copy(update={"assets": {}, "command": ()})
    assert same_assets(it, stage, nothing_run)
