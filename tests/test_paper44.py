"""The paper's suite: 44 repositories, their places in the denominators, and where they are."""

from __future__ import annotations

import json
import re
import time
from pathlib import Path

import pytest

from researchenvbench.attempt import Level
from researchenvbench.cli.task_words import stage_standings
from researchenvbench.task import StageName
from researchenvbench.taskfile import load_suite
from researchenvbench.verify.evidence import describe
from researchenvbench.verify.pyramid import STAGES

PUBLISHED = json.loads((Path(__file__).parent / "data" / "c0_totals.json").read_text())


@pytest.fixture(scope="module")
def suite():
    return load_suite("paper44")


def test_it_is_loaded_and_checked_within_a_second():
    load_suite("paper44")  # what is imported is not counted
    # Of this process: what else the machine does is not counted either.
    started = time.process_time()
    assert len(load_suite("paper44").tasks) == 44
    assert time.process_time() - started < 1


def test_the_denominators_are_the_papers(suite):
    counts = {
        name: sum(task.applicable.applies(name) for task in suite.tasks) for name in StageName
    }
    assert counts == {"cpu": 29, "single_gpu": 43, "multi_gpu": 32}


def test_what_does_not_apply_says_why(suite):
    for task in suite.tasks:
        assert set(task.applicable.why_not) == {
            name for name in StageName if not task.applicable.applies(name)
        }, task.name


def test_a_task_is_named_after_its_repository(suite):
    for task in suite.tasks:
        owner, name = re.fullmatch(
            r"https://github\.com/([^/]+)/([^/]+)\.git", task.source.url
        ).groups()
        assert task.name == task.folder.name == f"{owner}__{name}"
        assert task.homepage == f"https://github.com/{owner}/{name}"
        assert task.source.url not in task.source.also_at


def test_the_published_totals_are_the_tasks(suite):
    published = {
        name.replace("/", "__"): (entry["commit"], entry["total"])
        for name, entry in PUBLISHED["repositories"].items()
    }
    assert {
        task.name: (task.source.commit, task.c0.total_paper)
        for task in suite.tasks
        if task.c0.total_paper is not None
    } == published
    assert suite.facts.c0_total == PUBLISHED["sum_of_all_44"]


def test_two_commits_cannot_be_had_and_keep_their_places(suite):
    gone = [task for task in suite.tasks if task.unavailable]
    assert [task.name for task in gone] == ["InternLM__InternEvo", "thu-pacman__chitu"]
    for task in gone:
        places = {StageName.SINGLE_GPU: "no source", StageName.MULTI_GPU: "no source"}
        assert stage_standings(task) == places


def test_what_is_not_known_is_not_filled_in(suite):
    for task in suite.tasks:
        assert task.provenance.paper == "arXiv:2603.06739"
        assert task.provenance.facts
        assert task.provenance.stars_at_selection is None
        assert task.provenance.selected_on is None
    without = [task for task in suite.tasks if task.licence is None]
    assert all("icence" in task.notes for task in without)


def test_no_breakage_is_told_by_the_words_of_the_evidence_alone(suite):
    # The reason of a failure repeats the entry that failed, whatever it failed for.
    loose = [
        f"{task.name} {name}: {breakage.because}"
        for task in suite.tasks
        for name, breakage in task.breakages.items()
        if breakage.because and (stage := task.stages.get(STAGES.get(Level(breakage.level))))
        if any(re.search(breakage.because, describe(entry)) for entry in stage.evidence)
    ]
    assert loose == []


def test_several_gpus_are_asked_for_by_their_number(suite):
    written_out = re.compile(r"(devices|nproc[-_]per[-_]node|num_processes)=[2-9]")
    assert [
        f"{task.name}: {text}"
        for task in suite.tasks
        for stage in task.stages.values()
        for text in stage.command
        if written_out.search(text)
    ] == []


def test_stand_ins_draw_nothing_that_differs_between_processors(suite):
    scripts = {path for task in suite.tasks for path in task.folder.glob("stand_ins/*.py")}
    drawn = re.compile(r"torch\.(rand|manual_seed|Generator|normal)|\.(standard_)?normal\(")
    assert scripts
    assert [str(path) for path in sorted(scripts) if drawn.search(path.read_text())] == []
