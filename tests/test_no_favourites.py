"""The product knows no package of its own suites: every ability is general."""

import re
from pathlib import Path

import pytest

import researchenvbench
from researchenvbench.task import SdistSource
from researchenvbench.taskfile import bundled_suites, load_suite

PACKAGE = Path(researchenvbench.__file__).parent


def names():
    """Names of tasks and of the distributions that they come from, as they may be written."""
    found = set()
    for suite in bundled_suites():
        for task in load_suite(suite).tasks:
            found.add(task.name)
            if isinstance(task.source, SdistSource):
                found.add(task.source.name)
    return sorted(found)


def pattern_of(name):
    """Finds the name in any of its spellings, also as a part of an identifier."""
    parts = [re.escape(part) for part in re.split("[-_.]+", name)]
    return re.compile(rf"(?<![A-Za-z0-9]){'[-_.]?'.join(parts)}(?![A-Za-z0-9])", re.IGNORECASE)


@pytest.mark.parametrize("name", ["some-model", "some_model", "some.model"])
@pytest.mark.parametrize(
    "text",
    ["import some_model", "uv pip install some-model", "SomeModel = 1", "no_some_model_here = 1"],
)
def test_a_name_is_found_however_it_is_written(name, text):
    assert pattern_of(name).search(text)


def test_a_name_within_another_word_is_not_one():
    assert not pattern_of("jam").search("the jammed benjam jam2")


@pytest.mark.parametrize("name", names())
def test_neither_the_product_nor_the_agents_tests_name_it(name):
    pattern = pattern_of(name)
    tests = Path(__file__).parent
    places = [*PACKAGE.rglob("*"), *(tests / "agents").rglob("*")]
    for path in places:
        if not path.is_file() or path.suffix not in (".py", ".toml", ".j2"):
            continue
        if (PACKAGE / "suites") in path.parents:
            continue
        match = pattern.search(path.read_text(encoding="utf-8"))
        assert match is None, f"{path} names {match[0]}"
