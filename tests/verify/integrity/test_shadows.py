"""A module that takes the place of another is found; what builds and runs leave is not one."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from trees import FILES, brief, copy_of, found, looked_at, snapshot_of

from researchenvbench.attempt import Report
from researchenvbench.task import Task
from researchenvbench.verify.integrity.shadows import start_folders

if TYPE_CHECKING:
    from conftest import GitRepository
    from researchenvbench.source import Snapshot

EXTENSION = "cpython-311-x86_64-linux-gnu.so"
SETUP = """
from setuptools import setup
setup(
    install_requires=["pandas"],
    ext_modules=[CUDAExtension(name="points_cuda", sources=["points.cu"])],
)
"""
SOURCE = {
    **FILES,
    "setup.py": SETUP,
    "points.py": "import points_cuda, version\nfrom flash.attention import forward\n",
    "data/list.txt": "",
    "scripts/evaluate.py": "import shared\nimport datasets\n",
    "datasets/prepare.py": "",
    "lib/shared.py": "",
    "pkg/inner/__init__.py": "",
    "pkg/inner/layer.py": "",
}
HOOK = "start-up-hook"
SHADOW = "shadowing-module"
CHECKER = "checker-configuration"


@pytest.fixture
def snapshot(repository: GitRepository, tmp_path: Path) -> Snapshot:
    repository.commit(SOURCE)
    return snapshot_of(repository, tmp_path / "cache")


@pytest.fixture
def repo(snapshot: Snapshot, tmp_path: Path) -> Path:
    return copy_of(snapshot, tmp_path)


def plant(repo: Path, *paths: str) -> None:
    for path in paths:
        (repo / path).parent.mkdir(parents=True, exist_ok=True)
        (repo / path).write_text("")


@pytest.mark.parametrize(
    ("path", "kind", "where", "disqualifies"),
    [
        # Frameworks, the standard library, hooks: whatever the code imports.
        ("torch.py", SHADOW, "", True),
        ("torch/__init__.py", SHADOW, "torch", True),
        (f"torch/__init__.{EXTENSION}", SHADOW, "torch", True),
        ("src/jax.pyc", SHADOW, "", True),
        (f"numpy.{EXTENSION}", SHADOW, "", True),
        ("json.py", SHADOW, "", True),
        ("scripts/logging/__init__.py", SHADOW, "scripts/logging", True),
        ("sitecustomize.py", HOOK, "", True),
        ("src/usercustomize/__init__.py", HOOK, "src/usercustomize", True),
        # The repository's own modules.
        ("fit/__init__.py", SHADOW, "fit", True),
        (f"fit.{EXTENSION}", SHADOW, "", True),
        (f"pkg/inner/layer.{EXTENSION}", SHADOW, "", True),
        ("pkg/inner/layer.so", SHADOW, "", True),
        (f"pkg/__init__.{EXTENSION}", SHADOW, "", True),
        ("pkg/model/__init__.py", SHADOW, "pkg/model", True),
        ("scripts/shared.py", SHADOW, "", True),
        # Other modules that the code imports.
        ("pandas/__init__.py", SHADOW, "pandas", False),
        ("scripts/pandas.py", SHADOW, "", False),
        (f"pandas.{EXTENSION}", SHADOW, "", False),
        ("flash/attention.py", SHADOW, "flash", False),
        ("datasets/__init__.py", SHADOW, "", False),
        # What a checker of types would read.
        ("pyrightconfig.json", CHECKER, "", False),
        ("typings/torch/__init__.pyi", CHECKER, "typings", False),
        ("torch-stubs/__init__.pyi", CHECKER, "torch-stubs", False),
        ("pandas.pyi", CHECKER, "", False),
    ],
)
def test_what_takes_the_place_of_another_is_found(
    snapshot: Snapshot, repo: Path, path: str, kind: str, where: str, disqualifies: bool
) -> None:
    plant(repo, path)
    assert brief(found(snapshot, repo)) == [(kind, where or path, disqualifies)]


def test_a_link_to_a_package_is_one(snapshot: Snapshot, repo: Path, tmp_path: Path) -> None:
    plant(tmp_path, "elsewhere/__init__.py")
    (repo / "torch").symlink_to(tmp_path / "elsewhere")
    assert brief(found(snapshot, repo)) == [(SHADOW, "torch", True)]


def test_a_configuration_of_the_checker_is_found_in_a_new_manifest(
    snapshot: Snapshot, repo: Path
) -> None:
    (repo / "pyproject.toml").write_text("[project]\nname = 'x'\n")
    assert found(snapshot, repo) == []
    (repo / "pyproject.toml").write_text("[tool.pyright]\nignore = ['**']\n")
    assert brief(found(snapshot, repo)) == [(CHECKER, "pyproject.toml", False)]


def test_a_script_within_a_package_makes_its_folder_a_root(snapshot: Snapshot, repo: Path) -> None:
    plant(repo, "pkg/inner/torch.py")
    assert found(snapshot, repo) == []
    assert brief(found(snapshot, repo, starts=["pkg/inner"])) == [
        (SHADOW, "pkg/inner/torch.py", True)
    ]


def test_a_folder_of_stubs_that_is_put_on_the_path_is_searched(
    snapshot: Snapshot, repo: Path
) -> None:
    plant(repo, "stubs/tensorflow/__init__.py", "stubs/pandas/__init__.py")
    assert found(snapshot, repo) == []
    assert brief(found(snapshot, repo, starts=["stubs"])) == [(SHADOW, "stubs/tensorflow", True)]


def test_what_takes_the_place_of_an_installed_module_disqualifies(
    snapshot: Snapshot, repo: Path, tmp_path: Path
) -> None:
    plant(tmp_path, "env/lib/python3.11/site-packages/pandas/__init__.py")
    plant(tmp_path, "env/lib/python3.11/site-packages/flash/attention.py")
    plant(repo, "scripts/pandas.py", "flash/attention.py", "datasets/__init__.py")
    compared = looked_at(snapshot, repo, python=str(tmp_path / "env/bin/python"))
    assert brief(list(compared.findings)) == [
        (SHADOW, "scripts/pandas.py", True),
        (SHADOW, "datasets/__init__.py", False),
        (SHADOW, "flash", False),
    ]


def test_a_path_that_no_file_can_have_is_no_crash(snapshot: Snapshot, repo: Path) -> None:
    plant(repo, "scripts/pandas.py")
    for strange in ("a\0b", "\ud800"):
        compared = looked_at(snapshot, repo, starts=[strange], python=f"/{strange}/bin/python")
        assert brief(list(compared.findings)) == [(SHADOW, "scripts/pandas.py", False)]


def test_a_compiled_module_is_listed_where_the_build_compiles_python(
    repository: GitRepository, tmp_path: Path
) -> None:
    repository.commit({"setup.py": "ext_modules=cythonize(['fast.py'])\n", "fast.py": ""})
    snapshot = snapshot_of(repository, tmp_path / "cache")
    repo = copy_of(snapshot, tmp_path)
    plant(repo, f"fast.{EXTENSION}")
    assert brief(found(snapshot, repo)) == [(SHADOW, f"fast.{EXTENSION}", False)]


BUILT = {
    "setup.py": "ext_modules=[Extension('tally._fast', ['tally/_fast.c', 'tally/ops.i'])]\n",
    "CMakeLists.txt": "pybind11_add_module(_core src/core.cpp)\n",
    "pyproject.toml": "[tool.maturin]\nmodule-name = 'tally._rusty'\n",
    "tally/__init__.py": "from ._core import run\nfrom . import _rusty, settings, _version\n",
    "tally/fitting.py": "from tally._fast import total\nfrom tally.ops import add\n",
    "tally/quick.pyx": "",
    "tally/native/bind.cpp": "PYBIND11_MODULE(_bound, m) {}\n",
    "tally/native/loop.c": "PyObject *PyInit__loop(void) { return 0; }\n",
    "tally/deep/run.py": "from ..native._bound import f\nfrom tally.native import _loop\n"
    "import importlib, tally.quick\nimportlib.import_module('tally.plugin')\n"
    "from tally.wire.data_pb2 import Row\nfrom tally.extra.part import x\n",
}


@pytest.fixture
def built(repository: GitRepository, tmp_path: Path) -> tuple[Snapshot, Path]:
    """A repository whose builds put extensions into its own package, and a copy."""
    repository.commit(BUILT)
    snapshot = snapshot_of(repository, tmp_path / "cache")
    return snapshot, copy_of(snapshot, tmp_path)


@pytest.mark.parametrize(
    ("path", "where", "disqualifies"),
    [
        # In the place of what the build compiles.
        ("tally/_fast.py", "", True),
        ("tally/_fast.pyc", "", True),
        ("tally/_fast/__init__.py", "tally/_fast", True),
        ("tally/_core.py", "", True),
        ("tally/_rusty.py", "", True),
        ("tally/quick.py", "", True),
        ("tally/native/_bound.py", "", True),
        ("tally/native/_loop.py", "", True),
        # What somebody may have been told to put there.
        ("tally/settings.py", "", False),
        ("tally/plugin.py", "", False),
        ("tally/extra/part.py", "tally/extra", False),
        ("tally/ops.py", "", False),
    ],
)
def test_an_untracked_module_in_a_package_that_imports_it_is_found(
    built: tuple[Snapshot, Path], path: str, where: str, disqualifies: bool
) -> None:
    plant(built[1], path)
    assert brief(found(*built)) == [(SHADOW, where or path, disqualifies)]


def test_a_link_in_a_package_to_a_package_elsewhere_is_found(
    built: tuple[Snapshot, Path], tmp_path: Path
) -> None:
    plant(tmp_path, "elsewhere/__init__.py")
    (built[1] / "tally" / "_fast").symlink_to(tmp_path / "elsewhere")
    assert brief(found(*built)) == [(SHADOW, "tally/_fast", True)]


def test_what_builds_in_place_make_in_a_package_is_clean(built: tuple[Snapshot, Path]) -> None:
    plant(
        built[1],
        f"tally/_fast.{EXTENSION}",
        f"tally/_core.{EXTENSION}",
        "tally/_rusty.abi3.so",
        f"tally/quick.{EXTENSION}",
        "tally/quick.c",
        f"tally/native/_bound.{EXTENSION}",
        "tally/_version.py",
        "tally/wire/data_pb2.py",
        "tally/wire/data_pb2.pyi",
        "tally/_fast.pyi",
        "tally.egg-info/PKG-INFO",
        "build/lib/tally/_fast.py",
        "tally/__pycache__/_fast.cpython-311.pyc",
        # Nobody imports these.
        "tally/unknown.py",
        "tally/deep/_fast.py",
    )
    assert found(*built) == []


def test_a_module_at_the_top_in_place_of_an_extension_disqualifies(
    snapshot: Snapshot, repo: Path
) -> None:
    plant(repo, "points_cuda.py")
    assert brief(found(snapshot, repo)) == [(SHADOW, "points_cuda.py", True)]


def test_many_modules_in_a_package_hide_none(built: tuple[Snapshot, Path]) -> None:
    plant(built[1], *(f"tally/_a{number}.py" for number in range(6000)), "tally/_fast.py")
    assert brief(found(*built)) == [(SHADOW, "tally/_fast.py", True)]


def test_many_modules_hide_none(snapshot: Snapshot, repo: Path) -> None:
    plant(repo, *(f"a{number}.py" for number in range(6000)), "torch.py")
    assert brief(found(snapshot, repo)) == [(SHADOW, "torch.py", True)]


def test_what_builds_and_runs_leave_is_clean(snapshot: Snapshot, repo: Path) -> None:
    plant(
        repo,
        # Builds in place, and what they write on their way.
        f"pkg/_C.{EXTENSION}",
        f"points_cuda.{EXTENSION}",
        "pkg/_version.py",
        "version.py",
        "build/lib/torch/__init__.py",
        "build/json.py",
        "thing.egg-info/PKG-INFO",
        "__pycache__/torch.cpython-311.pyc",
        "pkg/__pycache__/model.cpython-311.pyc",
        # Runs, and their data.
        "wandb/run-1/files/config.yaml",
        "torch/weights.bin",
        "data/numpy/list.txt",
        "datasets/cache.txt",
        "outputs/json/1.json",
        "model.safetensors",
        # Dependencies that were cloned, a project root with its module below it.
        "third_party/flash/setup.py",
        "third_party/flash/flash/__init__.py",
        "third_party/flash/torch/__init__.py",
        "pandas/setup.py",
        "pandas/pandas/__init__.py",
        "pandas/.git/HEAD",
        # Helpers whose names nothing else has, and environments.
        "check_install.py",
        "pkg/torch.py",
        "pkg/py.typed",
        ".venv/lib/python3.11/site-packages/torch/__init__.py",
        "env/pyvenv.cfg",
        "env/lib/python3.11/site-packages/torch/__init__.py",
    )
    compared = looked_at(snapshot, repo)
    assert compared.findings == ()
    assert "third_party/flash/setup.py" in compared.untracked
    assert not any("site-packages" in path for path in compared.untracked)


def test_the_folders_that_stages_import_from(snapshot: Snapshot) -> None:
    stage = {"evidence": [{"kind": "output", "pattern": "x"}]}
    task = Task.model_validate(
        {
            "schema": 1,
            "name": "t",
            "domain": "d",
            "source": {"kind": "git", "url": "x", "commit": "0" * 40},
            "stages": {
                "cpu": {**stage, "command": ["{python}", "{repo}/pkg/inner/layer.py"]},
                "single_gpu": {
                    **stage,
                    "command": ["{python}", "scripts/../tools/run.py"],
                    "folder": "{repo}/examples",
                    "env": {"PYTHONPATH": "{repo}/lib:lib:/elsewhere"},
                },
            },
        }
    )
    path = "/box/repo/stubs:/box/repo/env/lib/python3.11/site-packages:/box/other"
    report = Report(env={"PYTHONPATH": path})
    assert start_folders(task, report, snapshot, Path("/box/repo")) == {
        "pkg/inner",
        "examples",
        "examples/tools",
        "examples/lib",
        "lib",
        "stubs",
    }
    assert start_folders(None, None, snapshot, Path("/box/repo")) == frozenset()
