"""A task file is data that anybody may write: each fault is one line that helps to mend it."""

from __future__ import annotations

import os
import time
import tomllib
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from researchenvbench.errors import TaskError
from researchenvbench.evidence import FileEvidence
from researchenvbench.schema import keys_at
from researchenvbench.task import StageName, Task, fill
from researchenvbench.taskfile import bundled_suites, find_task, load_suite, load_task

SUITES = Path(__file__).parent / "suites"
DIGEST = "0" * 64
GOOD = f"""\
schema = 1
name = "curves"
domain = "statistics"
python = ">=3.9,<3.14"
frameworks = ["torch"]

[source]
kind = "sdist"
name = "curves"
version = "1.0"
sha256 = "{DIGEST}"

[c0]
roots = ["curves"]

[assets.data]
kind = "file"
path = "data.csv"
sha256 = "{DIGEST}"

[stages.cpu]
command = ["{{python}}", "{{repo}}/fit.py", "{{assets.data}}"]
assets = ["data"]
time_limit_s = 60

[[stages.cpu.services]]
name = "server"
command = ["{{python}}", "-m", "http.server", "{{port}}"]
ready_port = true

[[stages.cpu.evidence]]
kind = "output"
pattern = "loss (?P<loss>\\\\S+)"
groups = {{ loss = {{ max = 5.0, falling = true }} }}

[[stages.cpu.evidence]]
kind = "http"
url = "http://127.0.0.1:{{port}}/"

[[stages.cpu.evidence]]
kind = "file"
pattern = "{{work}}/*.csv"
format = "csv"
numeric = {{ loss = {{ min = 0.0 }} }}

[stages.multi_gpu]
command = ["torchrun", "{{repo}}/fit.py"]
parallelism = "ddp"

[[stages.multi_gpu.evidence]]
kind = "output"
pattern = "done"

[gold]
steps = [["{{uv}}", "pip", "install", "{{repo}}"]]

[breakages.no-numpy]
description = "numpy is gone"
uninstall = ["numpy"]
because = "No module named 'numpy'"
"""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "data.csv").write_text("x,y\n1,2\n")
    return tmp_path


def load(folder: Path, text: str) -> Task:
    (folder / "task.toml").write_text(text)
    return load_task(folder)


def faults(folder: Path, text: str) -> list[str]:
    """The lines that a person reads, without the file's name, which each must carry."""
    with pytest.raises(TaskError) as caught:
        load(folder, text)
    lines = str(caught.value).splitlines()
    start = f"{folder / 'task.toml'}: "
    assert all(line.startswith(start) for line in lines)
    return [line.removeprefix(start) for line in lines]


def changed(old: str, new: str) -> str:
    assert old in GOOD
    return GOOD.replace(old, new, 1)


def test_a_good_file_loads(folder: Path) -> None:
    task = load(folder, GOOD)
    assert task.name == "curves"
    assert task.folder == folder
    assert task.stages[StageName.CPU].time_limit_s == 60
    assert isinstance(task.stages[StageName.CPU].evidence[2], FileEvidence)
    assert (task.gpus(StageName.CPU), task.gpus(StageName.MULTI_GPU)) == (0, 2)


# One fault each: what is written in place of what, and the line that it gives.
ONE_FAULT = {
    "unknown key, top": (
        'domain = "statistics"',
        'domain = "statistics"\nframework = ["torch"]',
        "framework: unknown key; did you mean 'frameworks'?",
    ),
    "unknown key, source": (
        'version = "1.0"',
        'version = "1.0"\nsha265 = "x"',
        "source.sha265: unknown key; did you mean 'sha256'?",
    ),
    "unknown key, c0": (
        'roots = ["curves"]',
        'roots = ["curves"]\nroot = "x"',
        "c0.root: unknown key; did you mean 'roots'?",
    ),
    "unknown key, asset": (
        'path = "data.csv"',
        'path = "data.csv"\npaht = "x"',
        "assets.data.paht: unknown key; did you mean 'path'?",
    ),
    "unknown key, stage": (
        "time_limit_s = 60",
        "time_limit_s = 60\ntime_limit = 60",
        "stages.cpu.time_limit: unknown key; did you mean 'time_limit_s'?",
    ),
    "unknown key, service": (
        "ready_port = true",
        "ready_port = true\nready_prot = true",
        "stages.cpu.services.0.ready_prot: unknown key; did you mean 'ready_port'?",
    ),
    "unknown key, evidence": (
        'format = "csv"',
        'format = "csv"\nmin_byte = 3',
        "stages.cpu.evidence.2.min_byte: unknown key; did you mean 'min_bytes'?",
    ),
    "unknown key, bounds of evidence": (
        "max = 5.0",
        "max = 5.0, faling = true",
        "stages.cpu.evidence.0.groups.loss.faling: unknown key; did you mean 'falling'?",
    ),
    "unknown key, gold": (
        "[gold]\n",
        "[gold]\nstep = []\n",
        "gold.step: unknown key; did you mean 'steps'?",
    ),
    "unknown key, breakage": (
        'uninstall = ["numpy"]',
        'uninstall = ["numpy"]\nuninstal = []',
        "breakages.no-numpy.uninstal: unknown key; did you mean 'uninstall'?",
    ),
    "unknown key, nothing near": (
        'domain = "statistics"',
        'domain = "statistics"\nzzz = 1',
        "zzz: unknown key",
    ),
    "a field of the program, not of the file": (
        'domain = "statistics"',
        'domain = "statistics"\nfolder = "/"',
        "folder: unknown key",
    ),
    "text for a number": (
        "time_limit_s = 60",
        'time_limit_s = "60"',
        "stages.cpu.time_limit_s: input should be a valid number, found '60'",
    ),
    "number for a switch": (
        "ready_port = true",
        "ready_port = 1",
        "stages.cpu.services.0.ready_port: input should be a valid boolean, found 1",
    ),
    "text for a list": (
        'roots = ["curves"]',
        'roots = "curves"',
        "c0.roots: input should be a valid array, found 'curves'",
    ),
    "date for a text": (
        'version = "1.0"',
        "version = 2024-01-01",
        "source.version: input should be a valid string, found {'a date or time': '2024-01-01'}",
    ),
    "a number out of its range": (
        "time_limit_s = 60",
        "time_limit_s = -1",
        "stages.cpu.time_limit_s: input should be greater than 0, found -1",
    ),
    "missing": ('domain = "statistics"\n', "", "domain: is required and is not there"),
    "missing, nested": (
        'pattern = "{work}/*.csv"\n',
        "",
        "stages.cpu.evidence.2.pattern: is required and is not there",
    ),
    "no kind": ('kind = "http"\n', "", "stages.cpu.evidence.1: needs a key `kind`"),
    "unknown kind": (
        'kind = "http"',
        'kind = "htpp"',
        (
            "stages.cpu.evidence.1: kind 'htpp' is not one of output, http, file, change, exit; "
            "did you mean 'http'?"
        ),
    ),
    "unknown source": (
        'kind = "sdist"',
        'kind = "svn"',
        "source: kind 'svn' is not one of git, sdist, folder",
    ),
    "unknown framework": (
        '["torch"]',
        '["pytorch"]',
        "frameworks.0: 'pytorch' is not one of torch, jax, tensorflow; did you mean 'torch'?",
    ),
    "unknown format": (
        'format = "csv"',
        'format = "cvs"',
        (
            "stages.cpu.evidence.2.format: 'cvs' is not one of any, json, csv, npy, npz, "
            "safetensors, torch, png, jpeg, wav, video, hdf5, tfevents; did you mean 'csv'?"
        ),
    ),
    "unknown stage": (
        "[stages.multi_gpu]",
        "[stages.multi_gpus]\nnot_distributed = 'x'\n[stages.multi_gpu]",
        (
            "stages.multi_gpus: 'multi_gpus' is not one of cpu, single_gpu, multi_gpu; "
            "did you mean 'multi_gpu'?"
        ),
    ),
    "unknown placeholder": (
        "{repo}/fit.py",
        "{rep}/fit.py",
        "stages.cpu.command.1: unknown placeholder {rep}; did you mean 'repo'?",
    ),
    "unknown placeholder, evidence": (
        "{work}/*.csv",
        "{wrok}/*.csv",
        "stages.cpu.evidence.2.pattern: unknown placeholder {wrok}; did you mean 'work'?",
    ),
    "unknown placeholder, service": (
        '"http.server", "{port}"',
        '"http.server", "{prot}"',
        "stages.cpu.services.server.command.3: unknown placeholder {prot}; did you mean 'port'?",
    ),
    "unknown placeholder, gold": (
        '"install", "{repo}"',
        '"install", "{repos}"',
        "gold: steps.0.3: unknown placeholder {repos}; did you mean 'repo'?",
    ),
    "asset that the stage does not name": (
        'assets = ["data"]\n',
        "",
        "stages.cpu.command.2: unknown placeholder {assets.data}",
    ),
    "unknown asset": (
        'assets = ["data"]',
        'assets = ["date"]',
        "stages.cpu.assets: 'date' is not defined; did you mean 'data'?; add a table [assets.date]",
    ),
    "bad regular expression": (
        'pattern = "done"',
        'pattern = "done("',
        (
            "stages.multi_gpu.evidence.0: not a regular expression: missing ), unterminated "
            "subpattern at position 4: 'done('"
        ),
    ),
    "group that the pattern has not": (
        "groups = { loss =",
        "groups = { los =",
        "stages.cpu.evidence.0: group 'los' is not a named group (?P<los>…) of pattern",
    ),
    "bad specifier": (
        '">=3.9,<3.14"',
        '"3.9 or so"',
        "python: not a version specifier such as >=3.9,<3.13: '3.9 or so'",
    ),
    "bad specifier, gold": (
        "[gold]\n",
        "[gold]\npython = '3,9'\n",
        "gold.python: not a version specifier such as >=3.9,<3.13: '3,9'",
    ),
    "short hash": (
        f'version = "1.0"\nsha256 = "{DIGEST}"',
        'version = "1.0"\nsha256 = "00"',
        "source.sha256: string should match pattern '^[0-9a-f]{64}$', found '00'",
    ),
    "an address that is not of this host": (
        "http://127.0.0.1:{port}/",
        "http://example.org/",
        (
            "stages.cpu.evidence.1.url: must be an http address of this host, such as "
            "http://127.0.0.1:{port}/"
        ),
    ),
    "no evidence": (
        '[[stages.multi_gpu.evidence]]\nkind = "output"\npattern = "done"\n',
        "",
        "stages.multi_gpu: needs evidence beside the exit status, which proves nothing",
    ),
    "no parallelism": (
        'parallelism = "ddp"\n',
        "",
        (
            "stages.multi_gpu: needs parallelism, one of ddp, fsdp, tensor, pipeline, device_map, "
            "replicas"
        ),
    ),
    "gpus on the CPU": (
        "time_limit_s = 60",
        "time_limit_s = 60\ngpus = 1",
        "stages.cpu.gpus: the cpu stage hides the GPUs; leave it out",
    ),
    "no readiness test": (
        "ready_port = true\n",
        "",
        "stages.cpu.services.0: needs a readiness test: ready_url, ready_port or ready_output",
    ),
    "a breakage that does nothing": (
        'uninstall = ["numpy"]\n',
        "",
        "breakages.no-numpy: does nothing: give uninstall, remove, stub, append or install",
    ),
    "a breakage without its reason": (
        "because = \"No module named 'numpy'\"\n",
        "",
        "breakages.no-numpy: needs `because`: a pattern for the reason that the failure must show",
    ),
    "an asset that is not there": (
        'path = "data.csv"',
        'path = "date.csv"',
        "assets.data.path: 'date.csv' is not a file in the task's folder",
    ),
    "an asset from elsewhere": (
        'path = "data.csv"',
        'path = "/etc/passwd"',
        "assets.data.path: '/etc/passwd' is not a file in the task's folder",
    ),
    "an asset from above": (
        'path = "data.csv"',
        'path = "../../etc/passwd"',
        "assets.data.path: '../../etc/passwd' is not a file in the task's folder",
    ),
    "an asset with a NUL": (
        'path = "data.csv"',
        'path = "data\\u0000.csv"',
        "assets.data.path: 'data\\x00.csv' is not a file in the task's folder",
    ),
    "another schema": ("schema = 1", "schema = 2", "schema: 2 is not one of 1"),
}


@pytest.mark.parametrize("name", ONE_FAULT)
def test_one_fault_gives_one_line_with_key_and_suggestion(folder: Path, name: str) -> None:
    old, new, line = ONE_FAULT[name]
    assert faults(folder, changed(old, new)) == [line]


def test_several_faults_give_a_line_each(folder: Path) -> None:
    text = changed('domain = "statistics"', "domian = 1").replace("max = 5.0", "mxa = 5.0")
    assert faults(folder, text) == [
        "domain: is required and is not there",
        "stages.cpu.evidence.0.groups.loss.mxa: unknown key; did you mean 'max'?",
        "domian: unknown key; did you mean 'domain'?",
    ]


def test_every_table_of_the_schema_suggests_its_own_keys() -> None:
    """A table that is added later is found from the models, not from a list kept by hand."""
    assert "min_bytes" in keys_at(Task, ("stages", "cpu", "evidence", 0, "file"))
    assert "finite" in keys_at(Task, ("stages", "cpu", "evidence", 0, "output", "groups", "x"))
    assert "number" in keys_at(Task, ("stages", "cpu", "readme_block"))
    assert keys_at(Task, ("name",)) == []
    assert "folder" not in keys_at(Task, ())


@pytest.mark.parametrize("number", ["inf", "-inf", "nan"])
@pytest.mark.parametrize(
    ("key", "old"),
    [
        ("stages.cpu.time_limit_s", "time_limit_s = 60"),
        ("stages.cpu.evidence.0.groups.loss.max", "max = 5.0"),
    ],
)
def test_numbers_are_finite(folder: Path, key: str, old: str, number: str) -> None:
    [line] = faults(folder, changed(old, f"{old.split(' = ', maxsplit=1)[0]} = {number}"))
    assert line == f"{key}: input should be a finite number, found {number}"


def test_numbers_can_be_long(folder: Path) -> None:
    [line] = faults(folder, changed("time_limit_s = 60", "gpus = 123456789012345678901234567890"))
    assert line.startswith("stages.cpu.gpus: ")


BROKEN_FILES = {
    "truncated": (GOOD[: len(GOOD) // 2 + 5].encode(), "not valid TOML: "),
    "binary": (bytes(range(256)), "not UTF-8 text (byte 128)"),
    "empty": (b"", "schema: is required and is not there"),
    "two megabytes": (b"# " + b"x" * 2_000_000, "is larger than 1 MB, which no task file is"),
    "deep": (b"a = " + b"[" * 100_000, "not valid TOML: "),
    "deep tables": (b"a = " + b"{a=" * 50_000, "not valid TOML: "),
    "the same key twice": (b"schema = 1\nschema = 1\n", "not valid TOML: "),
    "NUL": (b'name = "a\0b"\n', "not valid TOML: "),
    "a list of tables for a table": (
        b"[[source]]\nkind = 'git'\n",
        "source: input should be ",
    ),
}


@pytest.mark.parametrize("name", BROKEN_FILES)
def test_a_file_that_is_no_task_file(folder: Path, name: str) -> None:
    content, line = BROKEN_FILES[name]
    path = folder / "task.toml"
    path.write_bytes(content)
    with pytest.raises(TaskError) as caught:
        load_task(folder)
    lines = str(caught.value).splitlines()
    assert any(found.startswith(f"{path}: {line}") for found in lines)
    assert all(len(found) < 400 for found in lines)


LONG_KEYS = {
    "bare": "a" + ".a" * 100_000 + " = 1",
    "quoted": '"a"' + '."a"' * 100_000 + " = 1",
    "spaced": "a" + " . a" * 100_000 + " = 1",
    "table": "[a" + ".a" * 100_000 + "]",
    "inline table": "x = {a" + ".a" * 100_000 + " = 1}",
    "after an escaped quote": 'x = "\\""\na' + ".a" * 100_000 + " = 1",
    "after four quotes": 'x = {b = """c"""", a' + ".a" * 100_000 + " = 1}",
    "after four single quotes": "x = {b = '''c'''', a" + ".a" * 100_000 + " = 1}",
    "after a text of lines": 'x = """\n\\"""\n"""\na' + ".a" * 100_000 + " = 1",
}


@pytest.mark.parametrize("name", LONG_KEYS)
def test_a_huge_dotted_key_is_refused_at_once(folder: Path, name: str) -> None:
    start = time.monotonic()
    assert faults(folder, LONG_KEYS[name]) == [
        "a key has more than 50 dots, which no task file has"
    ]
    assert time.monotonic() - start < 2


@pytest.mark.parametrize("text", ['"""' * 300_001, '"' * 900_001, '\\"""' * 200_000, "'" * 900_001])
def test_a_file_of_quotes_is_refused_at_once(folder: Path, text: str) -> None:
    start = time.monotonic()
    assert faults(folder, f"x = {text}\\")[0].startswith("not valid TOML: ")
    assert time.monotonic() - start < 2


@pytest.mark.parametrize(
    "notes",
    [
        f"'{'.' * 99}'",
        f'"{"a." * 99}"',
        f'"""\n"{"a." * 99}\n"""',
        f"'''\n'{'a.' * 99}\n'''",
        f"'x' # {'.' * 99}",
    ],
)
def test_dots_in_texts_and_comments_are_no_keys(folder: Path, notes: str) -> None:
    task = load(folder, changed("[source]", f"notes = {notes}\n[source]"))
    assert task.notes


def test_what_is_no_file_is_not_opened(folder: Path) -> None:
    path = folder / "task.toml"
    with pytest.raises(TaskError, match=r"task\.toml: there is no such file\n  reb tasks new NAME"):
        load_task(folder)
    os.mkfifo(path)
    with pytest.raises(TaskError, match=r"task\.toml: is not a file"):
        load_task(folder)
    path.unlink()
    path.symlink_to("/dev/zero")
    with pytest.raises(TaskError, match=r"task\.toml: is not a file"):
        load_task(folder)
    path.unlink()
    path.mkdir()
    with pytest.raises(TaskError, match=r"task\.toml: is not a file"):
        load_task(path)


def test_an_asset_may_not_be_a_link_out_of_the_folder(tmp_path: Path) -> None:
    folder = tmp_path / "task"
    folder.mkdir()
    (tmp_path / "outside.csv").write_text("secret")
    (folder / "data.csv").symlink_to("../outside.csv")
    [line] = faults(folder, GOOD)
    assert line == "assets.data.path: 'data.csv' is not a file in the task's folder"


def test_a_stage_has_one_command(folder: Path) -> None:
    both = changed(
        "time_limit_s = 60", 'readme_block = { file = "README.md", number = 1 }\ntime_limit_s = 60'
    )
    assert faults(folder, both) == [
        "stages.cpu: needs either command or readme_block, and not both"
    ]


# --- suites ----------------------------------------------------------------------------


def make_task(suite: Path, name: str, text: str = GOOD) -> Path:
    folder = suite / name
    folder.mkdir(parents=True)
    (folder / "data.csv").write_text("x\n")
    (folder / "task.toml").write_text(text.replace('name = "curves"\nd', f'name = "{name}"\nd'))
    return folder


def test_a_folder_of_task_folders_is_a_suite(tmp_path: Path) -> None:
    make_task(tmp_path / "mine", "alpha")
    make_task(tmp_path / "mine", "beta")
    suite = load_suite(tmp_path / "mine")
    assert (suite.name, [task.name for task in suite.tasks]) == ("mine", ["alpha", "beta"])
    with pytest.raises(TaskError, match=r"suite mine has no task 'alpah'; did you mean 'alpha'\?"):
        suite.task("alpah")


def test_all_faults_of_a_suite_are_named(tmp_path: Path) -> None:
    make_task(tmp_path, "alpha", changed('domain = "statistics"\n', ""))
    make_task(tmp_path, "beta", "schema = ")
    with pytest.raises(TaskError) as caught:
        load_suite(tmp_path)
    assert "alpha/task.toml: domain: is required" in str(caught.value)
    assert "beta/task.toml: not valid TOML" in str(caught.value)


def test_two_tasks_of_one_name(tmp_path: Path) -> None:
    make_task(tmp_path, "alpha")
    (make_task(tmp_path, "other") / "task.toml").write_text(
        (tmp_path / "alpha/task.toml").read_text()
    )
    with pytest.raises(TaskError, match=r"other/task\.toml: name: 'alpha' is also that of "):
        load_suite(tmp_path)


@pytest.mark.parametrize("name", ["", "nothing", "a\0b", "..", "/dev/null", "x" * 5000])
def test_an_unknown_suite(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "empty" / "folder").mkdir(parents=True)
    monkeypatch.chdir(tmp_path / "empty" / "folder")
    with pytest.raises(TaskError, match="there is no suite"):
        load_suite(name)


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("{}/smal", "smal is not there; did you mean 'small'?"),
        ("{}/smal/adder", "smal is not there; did you mean 'small'?"),
        ("{}/small/adder", "it is a task"),
        ("{}/small/adder/repository", "no folder in it has a task.toml"),
        ("starter/e3n", "suite starter has no task 'e3n'; did you mean 'e3nn'?"),
        ("starter/e3nn", "it is a task of starter"),
        ("/no/such", "/no is not there"),
    ],
)
def test_what_is_wrong_with_the_folder_of_a_suite_is_said(name: str, said: str) -> None:
    with pytest.raises(TaskError) as caught:
        load_suite(name.format(SUITES))
    assert said in str(caught.value)
    assert caught.value.advice


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("{}/small/ader", "has no task 'ader'; did you mean 'adder'?"),
        ("{}/small", "it has no task.toml"),
        ("{}/smal/adder", "smal is not there; did you mean 'small'?"),
        ("starter/e3n", "did you mean 'e3nn'?"),
        ("/nonesuch", "/nonesuch is not there"),
        ("a\0/b", "there is no task"),
        ("/" + "x" * 5000, "there is no task"),
    ],
)
def test_what_is_wrong_with_the_name_of_a_task_is_said(name: str, said: str) -> None:
    with pytest.raises(TaskError) as caught:
        find_task(name.format(SUITES))
    assert said in str(caught.value)
    assert find_task(f"{SUITES}/small/adder").name == "adder"
    assert find_task("starter/e3nn").name == "e3nn"


def test_a_mistyped_suite_is_suggested() -> None:
    bundled = bundled_suites()
    assert bundled, "no suite comes with the package"
    with pytest.raises(TaskError) as caught:
        load_suite(f"{bundled[0]}s")
    assert f"did you mean '{bundled[0]}'?" in str(caught.value)
    assert caught.value.advice.startswith("bundled suites: ")


# --- placeholders, digest --------------------------------------------------------------


def test_only_known_placeholders_are_filled_in() -> None:
    values = {"repo": "/r", "assets.data": "/d"}
    assert fill("{repo}/{assets.data}/{other}/{}{ repo }", values) == "/r//d/{other}/{}{ repo }"
    assert fill("{repo}", {"repo": "{work}", "work": "x"}) == "{work}"


@pytest.mark.parametrize(
    ("old", "new", "same"),
    [
        ('domain = "statistics"', 'domain = "statistics"\nnotes = "x"', True),
        ("[gold]\n", "[gold]\nseed = ['pip']\n", True),
        ("numpy is gone", "numpy was removed", True),
        ("time_limit_s = 60", "time_limit_s = 61", False),
        ("max = 5.0", "max = 5.5", False),
        ('["torch"]', "[]", False),
    ],
)
def test_the_digest_is_of_what_can_change_a_verdict(
    folder: Path, old: str, new: str, *, same: bool
) -> None:
    before = load(folder, GOOD).digest
    assert (load(folder, changed(old, new)).digest == before) is same


# --- robustness ------------------------------------------------------------------------


def _toml(value: Any) -> str:
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, str):
        return '"' + "".join(f"\\U{ord(letter):08x}" for letter in value) + '"'
    if isinstance(value, list):
        return f"[{', '.join(map(_toml, value))}]"
    if isinstance(value, dict):
        return "{" + ", ".join(f"{_toml(key)} = {_toml(item)}" for key, item in value.items()) + "}"
    return str(value)


_TEXT = st.text(st.characters(exclude_categories=["Cs"]), max_size=8) | st.sampled_from(
    ["git", "sdist", "folder", "output", "http", "file", "exit", "cpu", "multi_gpu", "{repo}"]
)
_KEYS = _TEXT | st.sampled_from(
    [
        "schema",
        "name",
        "source",
        "kind",
        "stages",
        "evidence",
        "command",
        "groups",
        "pattern",
        "services",
        "gold",
        "steps",
        "breakages",
        "assets",
        "path",
        "c0",
        "roots",
        "url",
        "folder",
    ]
)
_VALUES = st.recursive(
    st.booleans() | st.integers(-(2**70), 2**70) | st.floats() | _TEXT,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(_KEYS, inner, max_size=4),
    max_leaves=15,
)


def _only_task_errors(folder: Path, text: str) -> None:
    (folder / "task.toml").write_bytes(text.encode())
    try:
        load_task(folder)
    except TaskError as error:
        assert str(folder) in str(error)  # noqa: PT017 - that there is none is also fine


_FAST = settings(
    max_examples=60,
    deadline=None,
    derandomize=True,
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)


@_FAST
@given(data=st.dictionaries(_KEYS, _VALUES, max_size=5))
def test_no_data_gives_a_traceback(folder: Path, data: dict[str, Any]) -> None:
    text = "\n".join(f"{_toml(key)} = {_toml(value)}" for key, value in data.items())
    tomllib.loads(text)  # else the test tests nothing
    _only_task_errors(folder, text)


@_FAST
@given(where=st.integers(0, 60), key=_KEYS, value=_VALUES)
def test_no_damage_to_a_good_file_gives_a_traceback(
    folder: Path, where: int, key: str, value: Any
) -> None:
    lines = GOOD.splitlines()
    lines[where % len(lines)] = f"{_toml(key)} = {_toml(value)}"
    _only_task_errors(folder, "\n".join(lines))


@_FAST
@given(text=st.text(st.characters(exclude_categories=["Cs"])), cut=st.integers(0, len(GOOD)))
def test_no_text_gives_a_traceback(folder: Path, text: str, cut: int) -> None:
    _only_task_errors(folder, GOOD[:cut] + text)


# --- stages that count, and where a commit is ------------------------------------------

APPLICABLE = """
[applicable]
cpu = true
single_gpu = true
multi_gpu = true
"""
GIT = """\
[source]
kind = "git"
url = "https://example.org/curves.git"
commit = "{commit}"
"""
SDIST = GOOD[GOOD.index("[source]") : GOOD.index("[c0]")]


def test_a_stage_that_counts_and_is_not_there_is_unwritten(folder: Path) -> None:
    task = load(folder, GOOD + APPLICABLE)
    unwritten = [name for name in StageName if task.is_unwritten(name)]
    assert unwritten == [StageName.SINGLE_GPU]
    none = [name for name in StageName if load(folder, GOOD).is_unwritten(name)]
    assert none == [], "without the table the stages that are there are all"


def test_why_a_stage_does_not_apply(folder: Path) -> None:
    why = APPLICABLE.replace("single_gpu = true", "single_gpu = false")
    said = '[applicable.why_not]\nsingle_gpu = "it has no GPU code"\n'
    task = load(folder, GOOD + why + said)
    assert task.why_not_applicable(StageName.SINGLE_GPU) == "it has no GPU code"
    single = load(folder, GOOD + why).why_not_applicable(StageName.SINGLE_GPU)
    assert single == "the task has no single_gpu stage"
    assert faults(folder, GOOD + APPLICABLE + said) == [
        "applicable: why_not.single_gpu: the stage applies; leave this out"
    ]


def test_a_stage_that_is_there_must_apply(folder: Path) -> None:
    text = GOOD + APPLICABLE.replace("cpu = true", "cpu = false")
    assert faults(folder, text) == [
        "stages.cpu: applicable.cpu says that it does not apply",
    ]


@pytest.mark.parametrize("commit", ["main", "v1.0", "abc1234", "AB" * 20, "ab" * 20 + "0", ""])
def test_a_commit_is_no_branch_and_no_part_of_one(folder: Path, commit: str) -> None:
    [fault] = faults(folder, changed(SDIST, GIT.format(commit=commit)))
    assert fault == (
        f"source.commit: not a full commit id of 40 hexadecimal digits: {commit!r}; a branch or "
        "a tag can move, and names no fixed source"
    )


def test_keys_that_change_no_verdict_change_no_digest(folder: Path) -> None:
    text = changed(SDIST, GIT.format(commit="ab" * 20))
    digest = load(folder, text).digest
    also = text.replace('url = "https', 'also_at = ["https://example.org/fork.git"]\nurl = "https')
    assert load(folder, also).digest == digest
    total = text.replace('roots = ["curves"]', 'roots = ["curves"]\ntotal_paper = 4')
    assert load(folder, total).digest == digest
    facts = '[native_extensions]\nfast = "C"\n[provenance]\nstars_at_selection = 5\n'
    assert load(folder, text + facts).digest == digest
    gone = text.replace('url = "https', 'unavailable = "deleted"\nurl = "https')
    assert load(folder, gone).digest != digest
    assert load(folder, text + APPLICABLE).digest != digest


def test_a_day_is_written_as_text(folder: Path) -> None:
    task = load(folder, GOOD + '[provenance]\nselected_on = "2025-12-31"\n')
    assert str(task.provenance.selected_on) == "2025-12-31"
    assert faults(folder, GOOD + '[provenance]\nselected_on = "today"\n')


def test_the_digest_of_a_task_without_the_new_keys_is_as_it_was(folder: Path) -> None:
    text = "schema = 1\nname = 'x'\ndomain = 'd'\n[source]\nkind = 'folder'\npath = '.'\n"
    digest = load(folder, text).digest
    assert digest == "242972f3773c37bb1314e6aac3df74f5cbf43238870099bf36d1efdee56d62c1"
