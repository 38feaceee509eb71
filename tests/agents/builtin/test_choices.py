"""Which Python and which build of the framework the agent chooses, and for what reason."""

from datetime import UTC, datetime

import pytest
from packaging.specifiers import SpecifierSet
from packaging.version import Version

from researchenvbench.agents.builtin import framework, interpreter
from researchenvbench.agents.builtin.framework import Host
from researchenvbench.agents.builtin.interpreter import Python
from researchenvbench.agents.builtin.manifests import Manifests, read_all

from .reading import manifests, survey


def host_with(*versions: str, headers: bool = True) -> list[Python]:
    return [Python(f"/python{version}", Version(version), headers) for version in versions]


def chosen(pythons, found=None, **more):
    said: list[str] = []
    python = interpreter.choose(pythons, found or Manifests(), decide=said.append, **more)
    return (python.minor if python else None), said


ALL = host_with("3.13.0", "3.12.1", "3.11.7", "3.10.2", "3.8.1")


def test_a_bound_of_the_repository_is_kept_and_named():
    minor, said = chosen(ALL, read_all({"pyproject.toml": "[project]\nrequires-python='<3.12'"}))
    assert minor == "3.11"
    assert "pyproject.toml requires-python <3.12" in said[-1]


def test_a_python_that_the_classifiers_name_goes_before_newer_ones():
    minor, said = chosen(ALL, manifests("poetry_project"))
    assert minor == "3.10"
    assert "the classifiers name 3.10" in said[-1]


def test_a_build_of_the_framework_at_hand_decides_among_those_allowed():
    minor, said = chosen(ALL, framework_at_hand=lambda python: python.minor == "3.11")
    assert minor == "3.11"
    assert "a build of the framework for it at hand" in said[-1]


def test_the_date_of_the_source_bounds_the_python():
    minor, _ = chosen(ALL, date=datetime(2022, 6, 1, tzinfo=UTC))
    assert minor == "3.10"


def test_a_source_can_be_older_than_the_python_at_hand():
    python_311 = host_with("3.11.7")[0]
    assert interpreter.is_older(python_311, datetime(2024, 1, 1, tzinfo=UTC))
    assert not interpreter.is_older(python_311, datetime(2021, 6, 1, tzinfo=UTC))


def test_pinned_versions_want_a_python_with_wheels():
    minor, said = chosen(ALL, wheels_exist=lambda python: python.minor == "3.8")
    assert minor == "3.13"  # 3.8 is not among the four that are looked at
    minor, said = chosen(ALL, wheels_exist=lambda python: python.minor == "3.10")
    assert minor == "3.10"
    assert "have wheels" in said[-1]


def test_a_bound_that_the_host_cannot_keep_is_said_and_dropped():
    minor, said = chosen(host_with("3.11.7"), manifests("conda_environment"))
    assert minor == "3.11"
    assert "environment.yml:6 asks for Python ==3.9.*" in said[0]
    assert "it has 3.11" in said[0]


def test_a_host_without_python():
    assert chosen([]) == (None, [])


def test_of_two_builds_of_a_minor_version_the_one_with_headers_is_taken():
    common = {"implementation": "cpython", "final": True, "venv": True}
    answers = [
        {"path": "/a", "version": "3.11.9", "headers": False, **common},
        {"path": "/b", "version": "3.11.2", "headers": True, **common},
        {"path": "/c", "version": "3.12.0", "headers": True, **common, "venv": False},
    ]
    assert [python.path for python in interpreter.usable(answers)] == ["/b"]


WHEELS = (
    "torch-2.13.0+cpu-cp311-cp311-manylinux_2_28_x86_64.whl",
    "torch-2.12.0+cpu-cp311-cp311-manylinux_2_28_x86_64.whl",
    "torch-2.13.0+cu130-cp311-cp311-manylinux_2_28_x86_64.whl",
    "torch-2.9.0+cu126-cp311-cp311-manylinux_2_28_x86_64.whl",
    "torch-2.14.0-cp311-cp311-win_amd64.whl",
    "torch-nonsense.whl",
)
PYTHON_311 = host_with("3.11.7")[0]


@pytest.mark.parametrize(
    ("host", "bound", "version"),
    [
        (Host(), "", "2.13.0+cpu"),
        (Host(), "<2.13", "2.12.0+cpu"),
        (Host(), "<2", None),
        (Host(gpus=1, cuda=Version("13.0")), "", "2.13.0+cu130"),
        (Host(gpus=1, cuda=Version("12.8")), "", "2.9.0+cu126"),
        (Host(gpus=1, cuda=Version("12.4")), "", None),
    ],
)
def test_the_build_of_the_framework_follows_the_host(host, bound, version):
    found = framework.at_hand(WHEELS, PYTHON_311, host, SpecifierSet(bound))
    assert found == (Version(version) if version else None)


def test_a_wheel_for_another_python_is_none_at_hand():
    other = host_with("3.12.1")[0]
    assert framework.at_hand(WHEELS, other, Host(), SpecifierSet()) is None


def test_the_suffix_of_a_pinned_framework_is_not_the_hosts():
    assert framework.bound_of("torch", manifests("requirements_of_every_kind")) == SpecifierSet(
        "==2.1.0"
    )


def test_a_framework_is_needed_when_it_is_named_or_imported():
    tree = survey("asks_for_a_cuda_compiler")
    found = framework.needed(read_all(tree.manifests), tree.third_party())
    assert found == {"torch": "setup.py install_requires names torch"}
    tree = survey("declares_nothing")
    assert framework.needed(read_all(tree.manifests), tree.third_party()) == {}
