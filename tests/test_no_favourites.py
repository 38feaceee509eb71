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


@pytest.mark.parametrize("name", names())
def test_neither_the_product_nor_the_agents_tests_name_it(name):
    pattern = re.compile(rf"\b{re.escape(name).replace('-', '[-_]')}\b", re.IGNORECASE)
    tests = Path(__file__).parent
    places = [*PACKAGE.rglob("*"), *(tests / "agents").rglob("*")]
    for path in places:
        if not path.is_file() or path.suffix not in (".py", ".toml", ".j2"):
            continue
        if (PACKAGE / "suites") in path.parents:
            continue
        match = pattern.search(path.read_text(encoding="utf-8"))
        assert match is None, f"{path} names {match[0]}"
