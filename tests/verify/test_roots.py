"""C0's verdict looks at what the stages' entry points reach, however a stage names them."""

from __future__ import annotations

from pathlib import Path

import pytest

from researchenvbench.evidence import OutputEvidence
from researchenvbench.source import fetch_source
from researchenvbench.task import C0Scope, FolderSource, ReadmeBlock, Stage, StageName, Task
from researchenvbench.verify.roots import console_script_module, static_roots

#: `train.py` and `curves.command` reach `curves.model`; nothing reaches `unused.py`.
FILES = {
    "train.py": "from curves import model",
    "unused.py": "import nothing",
    "curves/__init__.py": "",
    "curves/model.py": "import numpy",
    "curves/command.py": "from . import model",
    "curves/__main__.py": "from .command import main",
    "README.md": "```python\nimport elsewhere\n```\n\n```python\nimport curves.command\n```\n",
}
COMMAND = {"curves/__init__.py", "curves/command.py", "curves/model.py"}

PYPROJECT = '[project]\nname = "curves"\n[project.scripts]\nfit-curves = "curves.command:main"\n'
POETRY = '[tool.poetry.scripts]\nfit-curves = "curves.command:main"\n'
SETUP_CFG = """
[options.entry_points]
console_scripts =
    other = elsewhere:main
    fit-curves = curves.command:main
"""
SETUP_PY = """
from setuptools import setup
setup(entry_points={"console_scripts": ["other=elsewhere:main", "fit-curves=curves.command:main"]})
"""
ENTRY_POINTS = "[console_scripts]\nother = elsewhere:main\nfit-curves = curves.command:main\n"
MANIFESTS = {
    "pyproject.toml": PYPROJECT,
    "setup.cfg": SETUP_CFG,
    "setup.py": SETUP_PY,
    "curves.egg-info/entry_points.txt": ENTRY_POINTS,
}


@pytest.fixture
def source(tmp_path, monkeypatch):
    monkeypatch.setenv("REB_CACHE", str(tmp_path / "cache"))
    folder = tmp_path / "source"
    write(folder, FILES)
    return folder


def write(folder, files):
    for name, text in files.items():
        path = Path(folder, name)
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)


def roots(source, stage=None, **more):
    stages = {StageName.CPU: stage} if stage else {}
    task = Task(
        schema=1,
        name="curves",
        domain="tests",
        source=FolderSource(kind="folder", path=str(source)),
        stages=stages,
        **{"folder": source.parent, **more},
    )
    found = static_roots(task, fetch_source(task))
    return None if found is None else set(found)


def stage(*command, **more):
    evidence = (OutputEvidence(kind="output", pattern="done"),)
    return Stage(command=command, evidence=evidence, **more)


def test_without_a_stage_all_tracked_files_count(source):
    assert roots(source) is None


def test_a_script_of_the_repository_and_what_it_imports(source):
    found = roots(source, stage("{python}", "{repo}/train.py", "{repo}/data.csv"))
    assert found == {"train.py", "curves/__init__.py", "curves/model.py"}


@pytest.mark.parametrize(
    ("module", "expected"),
    [("curves.command", COMMAND), ("curves", COMMAND | {"curves/__main__.py"})],
)
def test_a_module_that_is_run_by_its_name(source, module, expected):
    assert roots(source, stage("{python}", "-m", module)) == expected


@pytest.mark.parametrize("manifest", MANIFESTS)
def test_a_console_script_by_each_manifest(source, manifest):
    write(source, {manifest: MANIFESTS[manifest]})
    found = roots(source, stage("fit-curves", launcher="console_script"))
    assert found == COMMAND


def test_a_readme_block_is_the_one_of_that_number(source):
    block = ReadmeBlock(file="README.md", number=2)
    assert roots(source, stage(readme_block=block)) == COMMAND


def test_a_block_or_a_driver_that_is_not_there_is_left_to_the_stage(source):
    block = ReadmeBlock(file="README.md", number=3)
    assert roots(source, stage(readme_block=block)) is None
    assert roots(source, stage("{python}", "{task}/drive.py")) is None


def test_a_driver_of_the_task(source):
    write(source.parent, {"drive.py": "import curves.command"})
    assert roots(source, stage("{python}", "{task}/drive.py")) == COMMAND


def test_roots_that_the_task_names_are_taken_alone(source):
    by_stage = stage("{python}", "{repo}/unused.py")
    found = roots(source, by_stage, c0=C0Scope(roots=("curves/", "train.py")))
    assert found == {name for name in FILES if name.startswith("curves/")} | {"train.py"}
    assert roots(source, by_stage, c0=C0Scope(roots=("curv",))) == set()


@pytest.mark.parametrize(
    ("manifest", "text", "module"),
    [
        ("pyproject.toml", PYPROJECT, "curves.command"),
        ("pyproject.toml", POETRY, "curves.command"),
        ("pyproject.toml", PYPROJECT + "[broken", "curves.command"),
        ("pyproject.toml", PYPROJECT.replace("fit-curves", "fit"), None),
        ("pyproject.toml", "project = 3", None),
        ("setup.cfg", SETUP_CFG, "curves.command"),
        ("setup.cfg", SETUP_CFG.replace("fit-curves", "re-fit-curves"), None),
        ("setup.py", SETUP_PY, "curves.command"),
        ("setup.py", "import setuptools", None),
        ("curves.egg-info/entry_points.txt", ENTRY_POINTS, "curves.command"),
        ("docs/entry_points.txt", ENTRY_POINTS, None),
    ],
)
def test_what_a_console_script_imports(tmp_path, manifest, text, module):
    write(tmp_path, {manifest: text})
    assert console_script_module("fit-curves", tmp_path, [manifest]) == module


def test_a_manifest_that_is_not_tracked_says_nothing(tmp_path):
    write(tmp_path, {"pyproject.toml": PYPROJECT})
    assert console_script_module("fit-curves", tmp_path, []) is None
