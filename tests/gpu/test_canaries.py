"""The framework by itself: what canaries answer, how that is read, and what it means."""

import json
import os
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace

import pytest

from researchenvbench.gpu_use import Canary
from researchenvbench.verify import canary
from researchenvbench.verify.canary import _read, canary_words

PROBE = Path(canary.__file__).parent / "probes" / "canaries.py"
PRODUCT, END = {"name": "matrix product", "passed": True}, {"name": "end"}


def lines(*facts):
    return [json.dumps(one) for one in facts]


class TestRead:
    def test_all_passed(self):
        assert list(_read(lines({"name": "matrix product", "begun": True}, PRODUCT, END), "x")) == [
            Canary(name="matrix product", passed=True, said="x")
        ]

    def test_one_that_was_begun_and_did_not_end_failed(self):
        found = list(_read(lines(PRODUCT, {"name": "attention", "begun": True}), "signal 11"))
        assert [(one.name, one.passed) for one in found] == [
            ("matrix product", True),
            ("attention", False),
        ]
        assert found[1].said == "signal 11"

    @pytest.mark.parametrize(
        ("answer", "name"),
        [([], "start"), (["no JSON", "3", "[]", '{"name": []}'], "start"), (lines(PRODUCT), "end")],
    )
    def test_an_answer_that_is_not_whole_is_a_failure(self, answer, name):
        found = [one for one in _read(answer, "No module named 'torch'") if not one.passed]
        assert found
        assert found[-1].name in (name, "[]")

    @pytest.mark.parametrize("passed", ["yes", 1, None, "true"])
    def test_only_true_is_a_pass(self, passed):
        (one,) = _read(lines({"name": "x", "passed": passed}, END), "")
        assert not one.passed


def test_what_they_mean():
    good, bad = Canary(name="a", passed=True), Canary(name="b", passed=False, said="wrong by 1")
    assert canary_words(()) == ""
    assert "the repository's own dependencies" in canary_words((good, good))
    assert "the framework by itself fails too (b: wrong by 1)" in canary_words((good, bad))


@pytest.mark.parametrize(
    ("named", "there", "expected"),
    [
        (("torch",), ("torch", "jax"), "torch"),
        (("jax",), ("torch", "jax"), "jax"),
        (("jax",), ("torch",), ""),
        (("torch", "jax"), ("jax",), "jax"),
        ((), ("torch",), "torch"),
        (("tensorflow",), ("torch",), "torch"),
        ((), (), ""),
    ],
)
def test_those_of_the_task_s_framework_are_run(named, there, expected):
    asked = SimpleNamespace(
        task=SimpleNamespace(frameworks=named),
        interpreter=SimpleNamespace(frameworks=dict.fromkeys(there, "1")),
    )
    assert canary.framework_of(asked) == expected


@pytest.fixture(scope="module")
def torch_python(tmp_path_factory):
    """An environment with torch."""
    folder = tmp_path_factory.mktemp("torch")
    uv = Path(sys.exec_prefix) / "bin/uv"
    subprocess.run([uv, "venv", "--quiet", "--python", sys.executable, folder], check=True)
    subprocess.run(
        [uv, "pip", "install", "--quiet", "-p", folder, "torch==2.13.0", "numpy"], check=True
    )
    return folder / "bin/python"


@pytest.mark.slow
@pytest.mark.network
class TestTorch:
    def ask(self, python, tmp_path, count, before=""):
        answer = tmp_path / "answer"
        code = f"import runpy, sys; exec({before!r}); sys.argv[0] = {str(PROBE)!r}"
        code += f"; runpy.run_path({str(PROBE)!r}, run_name='__main__')"
        done = subprocess.run(
            [python, "-c", code, "77", str(count), answer, "cpu"],
            env={**os.environ, "OMP_NUM_THREADS": "1"},
            capture_output=True,
            text=True,
            check=False,
        )
        text = answer.read_text() if answer.exists() else ""
        return {one.name: one for one in _read(text.splitlines(), done.stderr[-300:])}

    def test_what_computes_passes(self, torch_python, tmp_path):
        found = self.ask(torch_python, tmp_path, 1)
        assert len(found) == 6
        assert all(one.passed for one in found.values()), found

    @pytest.mark.parametrize("answer", ["q * float('nan')", "v * 1.5"])
    def test_what_computes_something_else_fails(self, torch_python, tmp_path, answer):
        before = (
            "import torch; torch.nn.functional.scaled_dot_product_attention = "
            f"lambda q, k, v: {answer}"
        )
        found = self.ask(torch_python, tmp_path, 1, before)
        assert {name for name, one in found.items() if not one.passed} == {
            "attention, float32",
            "attention, bfloat16",
        }

    def test_processes_that_talk(self, torch_python, tmp_path):
        found = self.ask(torch_python, tmp_path, 2)
        assert set(found) == {"all-reduce", "broadcast", "step of DistributedDataParallel"}
        assert all(one.passed for one in found.values()), found


@pytest.fixture(scope="module")
def jax_python(tmp_path_factory):
    """An environment with jax."""
    folder = tmp_path_factory.mktemp("jax")
    uv = Path(sys.exec_prefix) / "bin/uv"
    subprocess.run([uv, "venv", "--quiet", "--python", sys.executable, folder], check=True)
    subprocess.run([uv, "pip", "install", "--quiet", "-p", folder, "jax==0.10.2"], check=True)
    return folder / "bin/python"


@pytest.mark.slow
@pytest.mark.network
class TestJax:
    def ask(self, python, tmp_path, count, before=""):
        answer = tmp_path / "answer"
        probe = str(PROBE.with_name("jax_canaries.py"))
        code = f"import runpy, sys; exec({before!r}); sys.argv[0] = {probe!r}"
        code += f"; runpy.run_path({probe!r}, run_name='__main__')"
        done = subprocess.run(
            [python, "-c", code, "77", str(count), answer, "cpu"],
            env={**os.environ, "XLA_FLAGS": "--xla_force_host_platform_device_count=2"},
            capture_output=True,
            text=True,
            check=False,
        )
        text = answer.read_text() if answer.exists() else ""
        return {one.name: one for one in _read(text.splitlines(), done.stderr[-300:])}

    @pytest.mark.parametrize(("count", "cases"), [(1, 4), (2, 9)])
    def test_what_computes_passes(self, jax_python, tmp_path, count, cases):
        found = self.ask(jax_python, tmp_path, count)
        assert len(found) == cases
        assert all(one.passed for one in found.values()), found

    @pytest.mark.parametrize("answer", ["0 * real(*a) + float('nan')", "real(*a) * 1.5"])
    def test_what_computes_something_else_fails(self, jax_python, tmp_path, answer):
        before = f"import jax; real = jax.lax.conv; jax.lax.conv = lambda *a: {answer}"
        found = self.ask(jax_python, tmp_path, 1, before)
        assert {name for name, one in found.items() if not one.passed} == {
            "jax: convolution, float32",
            "jax: convolution, bfloat16",
        }
