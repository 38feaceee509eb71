"""`reb tasks totals` counts over git's objects; `reb sources mirror` keeps them."""

from __future__ import annotations

import json
import os

import pytest

from researchenvbench.mirrors import Mirror

from .conftest import record_of

CODE = {
    "pack/__init__.py": "import os\nimport numpy\n",
    "pack/a.py": "import pack\nfrom torch import nn\n",
    "marked.py": "\ufeffimport unseen\n",
    "notes.txt": "import nothing\n",
}
#: os, numpy, pack, torch; a file with a byte-order mark adds nothing to the paper's number.
IMPORTED, THIRD_PARTY = 4, 3


@pytest.fixture
def counted(repository, tmp_path):
    """A suite of one task, whose source is a real repository with a link."""
    (repository.folder / "alias").symlink_to("pack")
    commit = repository.commit(CODE)
    folder = tmp_path / "suite"
    write_task(folder, "one", repository.folder, commit, f"[c0]\ntotal_paper = {IMPORTED}\n")
    return folder, commit


def write_task(suite, name, url, commit, more="", source=""):
    place = suite / name
    place.mkdir(parents=True, exist_ok=True)
    (place / "task.toml").write_text(
        f'schema = 1\nname = "{name}"\ndomain = "d"\n\n[source]\nkind = "git"\nurl = "{url}"\n'
        f'commit = "{commit}"\n{source}\n{more}'
    )


def test_a_count_that_is_the_published_one(counted, reb):
    done = reb("tasks", "totals", counted[0], "--compare-checkout", "--json")
    assert done.returncode == 0, done.stderr
    data = json.loads(done.stdout)
    [task] = data["tasks"]
    count, checkout = task["count"], task["checkout"]
    assert (count["files"], count["total_paper"], count["third_party"]) == (
        *(3, IMPORTED, THIRD_PARTY),
    )
    assert task["equal"] is True
    assert {**checkout, "seconds": 0} == {**count, "seconds": 0}


def test_a_count_that_differs_fails_and_is_marked(counted, reb):
    path = counted[0] / "one" / "task.toml"
    path.write_text(path.read_text().replace(f"= {IMPORTED}", "= 5"))
    done = reb("tasks", "totals", counted[0])
    assert done.returncode == 1
    assert "NO" in done.stdout.splitlines()[1]


def test_a_sum_that_differs_fails(counted, reb):
    (counted[0] / "suite.toml").write_text("schema = 1\nc0_total = 4\n")
    done = reb("tasks", "totals", counted[0])
    assert (done.returncode, "4 is expected: equal" in done.stdout) == (0, True)
    (counted[0] / "suite.toml").write_text("schema = 1\nc0_total = 7\n")
    done = reb("tasks", "totals", counted[0])
    assert (done.returncode, "7 is expected: NOT equal" in done.stdout) == (1, True)


def test_a_suite_file_that_is_wrong_is_named(counted, reb):
    (counted[0] / "suite.toml").write_text("c0_totl = 4\n")
    done = reb("tasks", "list", counted[0])
    assert done.returncode == 2
    assert "suite.toml: c0_totl: unknown key; did you mean 'c0_total'?" in done.stderr


def test_the_mirror_serves_when_the_repository_is_gone(counted, reb, repository, tmp_path):
    folder, commit = counted
    done = reb("sources", "mirror", tmp_path / "mirrors", folder)
    assert done.returncode == 0, done.stderr
    assert "1 of 1 commits are in" in done.stdout
    assert "there already" in reb("sources", "mirror", tmp_path / "mirrors", folder).stdout
    (repository.folder / ".git").rename(tmp_path / "away")
    own_cache = {"REB_CACHE": str(tmp_path / "empty")}
    lost = reb("tasks", "totals", folder, **own_cache)
    assert (lost.returncode, "could not be had: one" in lost.stdout) == (3, True)
    asked = ("tasks", "totals", folder, "--source-mirror", tmp_path / "mirrors")
    assert reb(*asked, **own_cache).returncode == 0
    found = reb("tasks", "totals", folder, "--from", tmp_path / "away", **own_cache)
    assert found.returncode == 0, found.stdout
    named = {**own_cache, "REB_SOURCE_MIRROR": str(tmp_path / "mirrors")}
    assert reb("tasks", "totals", folder, "--compare-checkout", **named).returncode == 0
    assert Mirror(tmp_path / "mirrors").find(commit).is_dir()


def test_a_commit_that_nobody_has_keeps_its_place_and_fails_nothing(counted, reb, tmp_path):
    folder, _ = counted
    source = 'unavailable = "deleted"\n'
    write_task(folder, "two", "https://example.invalid/x", "ab" * 20, source=source)
    facts = "c0_total = 9\nc0_total_available = 4\n"
    (folder / "suite.toml").write_text(facts)
    done = reb("tasks", "totals", folder)
    assert done.returncode == 0, done.stdout
    assert "4 is expected: equal" in done.stdout
    assert "the other 5 are of those whose source is not available: two" in done.stdout
    mirrored = reb("sources", "mirror", tmp_path / "mirrors", folder)
    assert mirrored.returncode == 0
    assert "two: source not available: deleted" in mirrored.stdout
    checked = reb("tasks", "check", folder)
    assert checked.returncode == 0
    assert "two: good; source not available: deleted" in checked.stdout


def test_what_cannot_be_mirrored_is_named_with_every_place(counted, reb, tmp_path):
    folder, _ = counted
    write_task(folder, "two", "gone", "ab" * 20, source='also_at = ["lost"]\n')
    done = reb("sources", "mirror", tmp_path / "mirrors", folder)
    assert done.returncode == 1
    assert "gone: there is no folder" in done.stderr
    assert "lost: there is no folder" in done.stderr
    assert "1 of 2 commits" in done.stdout


def test_a_mirror_that_is_no_folder_is_a_usage_error(counted, reb, tmp_path):
    (tmp_path / "file").write_text("x")
    for place in ("nothing", "file"):
        done = reb("tasks", "totals", counted[0], "--source-mirror", tmp_path / place)
        assert (done.returncode, done.stdout) == (2, "")
        assert "--source-mirror" in done.stderr
        assert "Traceback" not in done.stderr


def test_a_suite_without_commits_has_nothing_to_mirror(reb, suite, tmp_path):
    done = reb("sources", "mirror", tmp_path / "mirrors", suite)
    assert (done.returncode, done.stdout) == (
        *(0, "no source there is a commit of a git repository: nothing to mirror\n"),
    )


def test_an_attempt_without_a_source_keeps_its_places(reb, tmp_path):
    more = "[applicable]\ncpu = false\nsingle_gpu = true\nmulti_gpu = false\n"
    more += '[applicable.why_not]\ncpu = "needs CUDA"\n'
    source = 'unavailable = "deleted"\n'
    write_task(
        tmp_path / "suite", "gone", "https://example.invalid/x", "ab" * 20, more, source=source
    )
    path = tmp_path / "suite" / "gone" / "task.toml"
    path.write_text(path.read_text().replace("[source]", 'frameworks = ["torch"]\n[source]'))
    done = reb("run", tmp_path / "suite", "--out", tmp_path / "run", "--json")
    assert done.returncode == 0, done.stderr
    record = json.loads((tmp_path / "run/attempts/gone--1/record.json").read_text())
    assert record["status"] == "ok"
    said = {level: (r["verdict"], r["owner"]) for level, r in record["results"].items()}
    open_by_task = ("inconclusive", "task")
    assert said == {
        "C0": open_by_task,
        "C1": ("not_applicable", None),
        "C2": open_by_task,
        "C3": open_by_task,
        "C4": ("not_applicable", None),
        "C5": open_by_task,
    }
    assert record["results"]["C3"]["reason"] == "source not available: deleted"
    assert record["results"]["C1"]["reason"] == "needs CUDA"


def test_an_unwritten_stage_is_inconclusive_by_the_task(reb, suite, tmp_path):
    path = suite / "adder" / "task.toml"
    table = "[applicable]\ncpu = true\nsingle_gpu = true\nmulti_gpu = false\n"
    path.write_text(path.read_text().replace("[source]", f"{table}\n[source]"))
    run = ("run", suite, "--only", "adder", "--agent", "gold", "--out", tmp_path / "run")
    assert reb(*run).returncode == 0
    results = record_of(tmp_path / "run")["results"]
    single = results["C3"]
    assert (single["verdict"], single["owner"]) == ("inconclusive", "task")
    assert single["reason"].startswith("not written: the single_gpu stage applies")
    assert (results["C1"]["verdict"], results["C4"]["verdict"]) == ("passed", "not_applicable")
    listed = json.loads(reb("tasks", "list", suite, "--json").stdout)
    assert listed[0]["stages"] == {"cpu": "unproven", "single_gpu": "not written"}
    shown = reb("tasks", "show", suite / "adder").stdout
    assert "stage single_gpu applies and is not written yet" in shown
    assert "stage multi_gpu does not apply: the task has no multi_gpu stage" in shown
    assert "unwritten" in reb("tasks", "list", suite).stdout
    said = "adder: good; options not read: cpu; not written: single_gpu\n"
    assert said in reb("tasks", "check", suite).stdout


def test_a_run_takes_its_source_from_the_mirror(counted, reb, repository, tmp_path):
    folder, _ = counted
    gold = '[gold]\nsteps = [["{uv}", "--version"]]\n'
    path = folder / "one" / "task.toml"
    path.write_text(path.read_text() + gold)
    assert reb("sources", "mirror", tmp_path / "mirrors", folder).returncode == 0
    (repository.folder / ".git").rename(tmp_path / "away")
    run = ("run", folder, "--agent", "gold", "--out", tmp_path / "run")
    mirror = ("--source-mirror", tmp_path / "mirrors")
    assert reb(*run, *mirror, REB_CACHE=str(tmp_path / "empty")).returncode == 0
    result = record_of(tmp_path / "run", "one--1")["results"]["C0"]
    assert (result["verdict"], result["details"]["total_paper"]) == ("failed", IMPORTED)


@pytest.mark.skipif(
    not os.environ.get("REB_PAPER_SOURCES"),
    reason="REB_PAPER_SOURCES names no folder of mirrors or clones of the paper's repositories",
)
def test_the_papers_totals_to_the_letter(reb):
    places = os.environ["REB_PAPER_SOURCES"]
    done = reb("tasks", "totals", "paper44", "--from", places, "--json")
    assert done.returncode == 0, done.stderr
    data = json.loads(done.stdout)
    assert data["sum"]["total_paper"] == data["sum"]["published"] == 2669
    assert sum(task["equal"] is True for task in data["tasks"]) == 21
