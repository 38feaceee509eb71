"""Whole builds of small repositories, each with the difficulty that its folder's name says.

Nothing is pretended: the real package index, real compilers, the local sandbox.
"""

from __future__ import annotations

import json
import subprocess
import time
from pathlib import Path

import pytest

from researchenvbench.agents import Assignment
from researchenvbench.agents.builtin import BuiltinAgent
from researchenvbench.errors import RebError
from researchenvbench.sandbox.host_environment import host_environment
from researchenvbench.sandbox.local.sandbox import LocalSandbox

from .reading import REPOSITORIES


class Built:
    """What a build left, and the reasons that it gave."""

    def __init__(self, attempt: Path, source: Path, *, limit_s: float = 280, **more) -> None:
        self.said: list[str] = []
        host = host_environment()
        with LocalSandbox().build_box(attempt, source) as box:
            environment = box.variables(host, installs=True)
            environment |= more.pop("environment", {})
            self.outcome = BuiltinAgent(**more).build(
                Assignment(
                    box=box,
                    environment=environment,
                    log=attempt / "build.log",
                    say=self.said.append,
                    deadline=time.monotonic() + limit_s,
                )
            )
            self.layout = box.layout
        self.report = json.loads(self.layout.report.read_text())

    def runs(self, code: str) -> str:
        """What the environment's interpreter prints, in an empty folder."""
        self.layout.work.mkdir(exist_ok=True)
        done = subprocess.run(
            [self.report["python_path"], "-c", code],
            cwd=self.layout.work,
            check=True,
            capture_output=True,
            text=True,
        )
        return done.stdout.strip()

    def says(self, words: str) -> bool:
        return any(words in line for line in self.said)


@pytest.fixture
def build(tmp_path):
    def made(repository, **more):
        return Built(tmp_path / "attempt", REPOSITORIES / repository, **more)

    (tmp_path / "attempt").mkdir()
    return made


network = [pytest.mark.network, pytest.mark.slow]


class TestWithTheIndex:
    pytestmark = network

    def test_imports_alone_are_enough(self, build):
        built = build("declares_nothing")
        assert built.outcome.exit_code == 0
        assert built.says("the repository declares nothing")
        assert built.says("train.py imports yaml: generally known")
        assert built.runs("import numpy, yaml; print('both')") == "both"
        assert built.report["python_version"] in built.runs("import sys; print(sys.version)")
        assert built.report["torch_version"] is None
        assert not list(built.layout.tmp.iterdir())
        tree = [path.name for path in built.layout.repo.iterdir()]
        assert sorted(tree) == ["helpers.py", "train.py"]

    def test_an_extra_that_examples_need_is_asked_for_by_what_they_import(self, build):
        built = build("examples_need_an_extra")
        assert built.outcome.exit_code == 0
        assert built.says("examples/draw.py imports yaml: setup.py extra examples")
        assert built.runs("import shapes.cli, yaml; print(shapes.__version__)") == "0.3"
        found = built.runs("import importlib.util as u; print(u.find_spec('tabulate'))")
        assert found == "None"  # another extra, which nothing imports

    def test_of_two_contradicting_declarations_the_binding_one_holds(self, build):
        built = build("contradicts_itself")
        assert built.outcome.exit_code == 0
        assert built.says("requirements.txt:1 asks for packaging==25.0")
        assert built.runs("import packaging; print(packaging.__version__)").startswith("24.")

    def test_an_extension_is_compiled_against_what_its_script_imports_undeclared(self, build):
        built = build("compiles_an_extension")
        assert built.outcome.exit_code == 0
        assert built.says("its setup script imports numpy undeclared")
        assert built.runs("import compiled_sum; print(compiled_sum.add(1, 2))") == "3.0"

    def test_pins_that_cannot_be_had_are_dropped_one_by_one_and_said(self, build):
        built = build("pins_what_is_not_there")
        assert built.outcome.exit_code == 0
        assert built.says("bound of six dropped: six==99.0 (requirements.txt:1)")
        assert built.says("no-such-distribution-of-any-kind-7f3a left out")

    def test_a_name_that_is_gone_leads_to_the_release_that_had_it(self, build):
        built = build("needs_an_older_release")
        assert built.outcome.exit_code == 0
        assert built.says("2.0.1 is the newest before")
        built.runs("from itsdangerous import TimedJSONWebSignatureSerializer")

    @pytest.mark.timeout(900)
    def test_an_extension_of_torch_is_built_on_a_host_with_nvcc_but_no_gpu(self, build, tmp_path):
        links = host_environment().installs.get("UV_FIND_LINKS", "").split(",")
        if not any(any(Path(folder).glob("torch-*cpu*.whl")) for folder in links):
            pytest.skip("no CPU build of torch is at hand on this host")
        stand_in = tmp_path / "bin"
        stand_in.mkdir()
        (stand_in / "nvcc").write_text("#!/bin/sh\necho 'release 13.0, V13.0.48'\n")
        (stand_in / "nvcc").chmod(0o755)
        path = f"{stand_in}:{host_environment().path}"
        built = build("asks_for_a_cuda_compiler", environment={"PATH": path}, limit_s=800)
        assert built.says("CPU build; the newest in find-links")
        assert built.outcome.exit_code == 0
        assert built.says("hidden from builds")
        assert built.says("which must be the environment's")
        twice = "import torch, grown; print(grown.twice(torch.ones(1)).item())"
        assert built.runs(twice) == "2.0"
        assert built.report["torch_version"] == built.runs("import torch; print(torch.__version__)")
        assert built.report["cuda_available"] is False


def test_an_index_that_is_down_is_named_and_the_report_says_what_is_true(build):
    down = {"UV_DEFAULT_INDEX": "http://127.0.0.1:9/simple", "UV_HTTP_RETRIES": "0"}
    down |= {"UV_INDEX": "", "UV_FIND_LINKS": "", "UV_CONSTRAINT": ""}
    built = build("pins_what_is_not_there", environment=down)
    assert built.outcome.exit_code == 1
    assert built.says("the package index cannot be reached")
    assert "six" in built.outcome.reason
    assert built.report["python_path"].endswith("/bin/python")
    assert "six" in built.report["notes"]


def test_no_time_at_all_is_a_time_limit(build):
    built = build("declares_nothing", limit_s=0.5)
    assert built.outcome.outcome == "time_limit"


def test_a_date_that_is_none_is_said():
    with pytest.raises(RebError, match="neither `commit`, `none` nor a day"):
        BuiltinAgent(index_date="soon")
    assert BuiltinAgent(index_date="2023-05-01").name == "builtin"


def test_the_options_are_in_the_digest():
    assert BuiltinAgent().digest(None) != BuiltinAgent(index_date="none").digest(None)
