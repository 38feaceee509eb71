"""What the agent reads out of the files in which repositories say what they need."""

import pytest
from packaging.specifiers import SpecifierSet

from researchenvbench.agents.builtin.manifests import contradictions, read_all
from researchenvbench.agents.builtin.manifests.requirement import parse, poetry_specifier

from .reading import asked, manifests


def test_a_repository_without_manifests_declares_nothing():
    found = manifests("declares_nothing")
    assert found.declared == []
    assert not found.installable


def test_setup_py_is_followed_as_far_as_it_is_literal():
    found = manifests("examples_need_an_extra")
    assert found.name == "shapes-of-things"
    assert asked(found, "package") == ["six>=1.10"]
    assert {(one.extra, str(one.requirement)) for one in found.of("extra")} == {
        ("examples", "PyYAML>=5"),
        ("plots", "tabulate>=0.8"),
    }
    assert found.classified_pythons == ["3.9", "3.11"]
    assert found.scripts == {"shapes": "shapes.cli"}
    assert found.python_bounds[0][0] == SpecifierSet(">=3.8")


def test_a_requirements_file_that_setup_py_names_is_read_in_its_place():
    found = manifests("computes_its_requirements")
    assert found.dynamic
    assert asked(found, "package", "file") == ["six>=1.12"]


def test_readme_lines_are_commands_and_not_prose():
    found = manifests("examples_need_an_extra")
    assert asked(found, "readme") == [
        "tabulate==0.9.0",
        "rich",
        "torch==2.1.*",
        "nothing @ git+https://example.org/nobody/nothing.git",
    ]
    assert found.readme_extras == ["examples"]
    assert found.conda_only == ["cudatoolkit"]


def test_every_kind_of_line_in_a_requirements_file():
    found = manifests("requirements_of_every_kind")
    assert asked(found, "file") == [
        "six",
        "numpy==1.26.4",
        'tqdm>=4; python_version >= "3.8"',
        "old-style>=1.0",
        "torch==2.1.0+cu118",
        (
            "flash_attn @ "
            "https://example.org/wheels/flash_attn-2.5.8+cu122-cp310-cp310-linux_x86_64.whl"
        ),
        "renderer @ git+https://example.org/someone/renderer.git@main#egg=renderer",
    ]
    assert asked(found, "developer") == ["pytest"]
    numpy = next(one for one in found.declared if one.name == "numpy")
    assert len(numpy.hashes) == 2
    assert any("includes itself" in fault for fault in found.faults)
    assert any("this is not a requirement" in fault for fault in found.faults)


def test_conda_names_and_versions_become_those_of_the_index():
    found = manifests("conda_environment")
    assert asked(found, "conda") == [
        "torch==1.13.1",
        "numpy==1.23.*",
        "scikit-learn<2,>=1.0",
        "opencv-python-headless",
        "einops==0.6.0",
        "hydra-core>=1.2",
    ]
    assert asked(found, "file") == ["tqdm"]
    assert found.conda_only == ["pytorch-cuda", "ffmpeg", "pip"]
    assert found.python_bounds == [(SpecifierSet("==3.9.*"), "environment.yml:6")]


def test_poetry():
    found = manifests("poetry_project")
    assert asked(found, "package") == [
        "six<2,>=1.15",
        "packaging<24.2,>=24.1",
        "tool @ git+https://example.org/someone/tool.git#egg=tool",
    ]
    assert asked(found, "extra") == ["rich"]
    assert asked(found, "developer") == ["pytest<9,>=8.0"]
    assert found.python_bounds[0][0] == SpecifierSet(">=3.10,<4")
    assert found.scripts == {"poetic": "poetic.main"}


def test_what_an_installer_enforces_goes_before_a_list():
    taken, other = contradictions(manifests("contradicts_itself"))[0]
    assert (str(taken.requirement), taken.where) == ("packaging<25", "setup.cfg install_requires")
    assert (str(other.requirement), other.where) == ("packaging==25.0", "requirements.txt:1")


def test_build_requirements_and_what_the_setup_script_imports():
    found = manifests("asks_for_a_cuda_compiler")
    assert [one.name for one in found.build_requires] == ["setuptools", "wheel", "torch"]
    assert found.compiles
    assert found.asks_for_nvcc
    assert found.setup_imports == {"setuptools", "torch"}


def test_an_archives_metadata_fills_gaps_only():
    metadata = (
        "Metadata-Version: 2.1\nName: thing\nRequires-Python: >=3.7\nRequires-Dist: six>=1\n"
        'Requires-Dist: rich; extra == "pretty"\n'
        "Requires-Dist: tomli; python_version < '3.11' and extra == \"old\"\n"
    )
    found = read_all({"PKG-INFO": metadata})
    assert asked(found, "package") == ["six>=1"]
    assert {(one.extra, str(one.requirement)) for one in found.of("extra")} == {
        ("pretty", "rich"),
        ("old", 'tomli; python_version < "3.11"'),
    }
    both = read_all({"PKG-INFO": metadata, "setup.cfg": "[options]\ninstall_requires =\n  six<2\n"})
    assert asked(both, "package") == ["six<2"]


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("pyproject.toml", "[project\nname="),
        ("setup.cfg", "no section\n"),
        ("setup.py", "def (:"),
        ("pyproject.toml", "[project]\nname='x'\nrequires-python='soon'"),
        (".python-version", "\0\0"),
    ],
)
def test_a_broken_manifest_is_named_and_costs_nothing_else(name, text):
    found = read_all({name: text, "requirements.txt": "six\n"})
    assert asked(found, "file") == ["six"]
    assert name == ".python-version" or any(name in fault for fault in found.faults)


@pytest.mark.parametrize(
    ("text", "specifier"),
    [
        ("^1.2.3", ">=1.2.3,<2"),
        ("^0.2.3", ">=0.2.3,<0.3"),
        ("^0.0.3", ">=0.0.3,<0.0.4"),
        ("~1.2", ">=1.2,<1.3"),
        ("~1", ">=1,<2"),
        ("1.4", "==1.4"),
        (">=1,<3", ">=1,<3"),
        ("*", ""),
    ],
)
def test_poetrys_constraints(text, specifier):
    assert poetry_specifier(text) == SpecifierSet(specifier)


@pytest.mark.parametrize("text", ["", "# only a comment", "--no-binary :all:", "a b c", "=="])
def test_what_is_no_requirement(text):
    assert parse(text) is None
