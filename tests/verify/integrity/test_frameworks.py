"""Frameworks against their RECORD, and against what they cannot be without."""

from __future__ import annotations

import hashlib
import json
import shutil

import pytest
from environments import UV, findings, install, run, site_of, told, uv_venv, wheel

from researchenvbench.attempt import Level, Owner, Report, Verdict
from researchenvbench.gpu.inventory import GpuInventory
from researchenvbench.run.verification import verify
from researchenvbench.sandbox.host_environment import host_environment
from researchenvbench.sandbox.local.namespace import namespace_support
from researchenvbench.sandbox.local.sandbox import LocalSandbox
from researchenvbench.source import fetch_source
from researchenvbench.task import Breakage, FolderSource, Task
from researchenvbench.verify.damage import damaged
from researchenvbench.verify.device import check_devices
from researchenvbench.verify.pyramid import with_interpreter
from researchenvbench.verify.subject import Subject


@pytest.fixture(scope="module")
def built_torch(tmp_path_factory):
    """The files of a torch as a build makes them: real libraries, and no list of them."""
    if shutil.which("gcc") is None:
        pytest.skip("gcc is not installed: apt-get install gcc")
    folder = tmp_path_factory.mktemp("build")
    (folder / "x.c").write_text("char weight[SIZE] = {1};\n")
    files = {
        "torch/__init__.py": '__version__ = "2.9.0"\nfrom torch.nn.modules.module import Module\n',
        "torch/nn/__init__.py": "",
        "torch/nn/modules/__init__.py": "",
        "torch/nn/modules/module.py": "class Module: pass\n",
        "torch/functional.py": "",
    }
    for path, size in {
        "torch/_C.cpython-311-x86_64-linux-gnu.so": 8,
        "torch/lib/libtorch_python.so": 2_000_000,
        "torch/lib/libtorch_cpu.so": 6_000_000,
        "torch/lib/libc10.so": 100_000,
    }.items():
        run("gcc", "-shared", f"-DSIZE={size}", "-o", folder / "x.so", folder / "x.c")
        files[path] = (folder / "x.so").read_bytes()
    return files


@pytest.fixture
def python(tmp_path):
    return uv_venv(tmp_path / "env")


@pytest.fixture
def installed(python, tmp_path, built_torch):
    """An environment in which torch was installed from a wheel."""
    install(python, wheel(tmp_path, "torch", "2.9.0", built_torch))
    return python


def rewrite(path, content):
    """Write a file anew: it may be the cache's own by a second name."""
    path.unlink(missing_ok=True)
    path.write_text(content)


def put(site, files):
    for name, content in files.items():
        path = site / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content if isinstance(content, bytes) else content.encode())


class TestHonestFrameworks:
    def test_installed_from_a_wheel(self, installed):
        assert findings(installed) == []

    def test_compiled_and_cached_files_are_no_difference(self, installed):
        run(installed, "-c", "import torch", env={})
        assert list(site_of(installed).glob("torch/__pycache__/*"))
        assert findings(installed) == []

    def test_built_in_place(self, python, tmp_path, built_torch):
        put(tmp_path / "source", built_torch)
        (site_of(python) / "easy-install.pth").write_text(f"{tmp_path}/source\n")
        (site_of(python) / "torch.egg-link").write_text(f"{tmp_path}/source\n.")
        assert findings(python) == []

    def test_copied_without_metadata(self, python, built_torch):
        put(site_of(python), built_torch)
        assert findings(python) == []

    def test_what_another_distribution_puts_into_it(self, installed, tmp_path):
        install(installed, wheel(tmp_path, "addon", "1.0", {"torch/addon.py": "X = 1\n"}))
        assert findings(installed) == []

    def test_without_any(self, python):
        assert findings(python) == []

    @pytest.mark.slow
    @pytest.mark.network
    @pytest.mark.parametrize(
        "what", ["torch", "torch==2.4.1", "jax[cpu]", "jax==0.4.30", "tensorflow-cpu"]
    )
    def test_the_real_ones(self, python, what):
        run(UV, "pip", "install", "-p", python, what)
        assert findings(python) == []
        name = what.partition("=")[0].partition("[")[0].partition("-")[0]
        core = next(site_of(python).glob(f"{'jaxlib' if name == 'jax' else name}/**/*.so"))
        shutil.rmtree(core.parent)
        assert told(findings(python))[0][0] in ("framework-stub", "framework-changed")


class TestTricks:
    def test_a_stub_with_metadata(self, python):
        put(
            site_of(python),
            {
                "torch/__init__.py": '__version__ = "2.9.0+cu128"\n',
                "torch-2.9.0+cu128.dist-info/METADATA": "Name: torch\nVersion: 2.9.0+cu128\n",
            },
        )
        [found] = findings(python)
        assert (found.kind, found.disqualifies) == ("framework-stub", False)
        assert "torch/_C" in found.what

    def test_a_stub_whose_record_fits(self, python, tmp_path):
        install(python, wheel(tmp_path, "torch", "2.9.0", {"torch/__init__.py": "x = 1\n"}))
        assert told(findings(python)) == [("framework-stub", False)]

    def test_a_stub_that_is_a_single_module(self, python):
        put(site_of(python), {"jax.py": "__version__ = '0.4'\n"})
        [found] = findings(python)
        assert found.kind == "framework-stub"
        assert "jax" in found.what

    def test_libraries_that_are_no_libraries(self, python, tmp_path, built_torch):
        fake = {**built_torch, "torch/lib/libtorch_cpu.so": b"x" * 9_000_000}
        install(python, wheel(tmp_path, "torch", "2.9.0", fake))
        [found] = findings(python)
        assert found.kind == "framework-stub"
        assert "is no ELF file" in found.what

    @pytest.mark.parametrize(
        ("name", "content", "words"),
        [
            ("torch/__init__.py", "__version__ = '2.9.0'\n", "1 changed (torch/__init__.py)"),
            ("torch/functional.py", None, "1 missing (torch/functional.py)"),
            ("torch/lib/libc10.so", None, "libc10.so"),
            ("torch/cuda.py", "x = 1\n", "1 added that it does not list (torch/cuda.py)"),
            ("torch/functional.abi3.so", "x", "functional.abi3.so"),
            ("torch/hidden.pyc", "x", "torch/hidden.pyc"),
        ],
    )
    def test_differs_from_its_record(self, installed, name, content, words):
        path = site_of(installed) / name
        if content is None:
            path.unlink()
        else:
            rewrite(path, content)
        [found] = findings(installed)
        assert found.kind in ("framework-changed", "framework-stub")
        assert words in found.what
        assert not found.disqualifies

    def test_a_change_that_keeps_the_size(self, installed):
        path = site_of(installed) / "torch/nn/modules/module.py"
        rewrite(path, path.read_text().replace("pass", "1234"))
        assert told(findings(installed)) == [("framework-changed", False)]

    def test_a_digest_of_an_unknown_kind_proves_nothing(self, installed):
        record = next(site_of(installed).glob("torch-*.dist-info/RECORD"))
        text = record.read_text()
        rewrite(record, text.replace("torch/functional.py,sha256=", "torch/functional.py,none="))
        assert told(findings(installed)) == [("framework-changed", False)]

    @pytest.mark.parametrize("line", ["mkfifo functional.py", "ln -s /dev/zero functional.py"])
    def test_what_is_no_file_is_missing(self, installed, line):
        folder = site_of(installed) / "torch"
        run("sh", "-c", f"rm functional.py; {line}", cwd=folder)
        (finding,) = findings(installed)
        assert finding.kind == "framework-changed"
        assert "1 missing (torch/functional.py)" in finding.what

    @pytest.mark.parametrize(
        ("row", "words"),
        [
            ("torch/functional.py,shake_128=abc,0", "1 changed (torch/functional.py)"),
            (f"torch/functional.py,,{'9' * 5000}", "1 changed (torch/functional.py)"),
            ("torch/\0/f.py,,", "1 missing (torch/\0/f.py)"),
        ],
    )
    def test_a_record_that_asks_for_too_much(self, installed, row, words):
        with next(site_of(installed).glob("torch-*/RECORD")).open("a") as stream:
            stream.write(f"{row}\n")
        told_of = [finding.what for finding in findings(installed)]
        assert any(words in what for what in told_of), told_of

    def test_the_list_of_conda_stands_before_the_record(self, installed):
        prefix = installed.parent.parent
        site = site_of(installed).relative_to(prefix)
        library = prefix / site / "torch/lib/libc10.so"
        content = library.read_bytes() + b"a new rpath"
        library.unlink()
        library.write_bytes(content)  # as conda-build does when the RECORD is written
        assert told(findings(installed)) == [("framework-changed", False)]
        paths = [
            {
                "_path": str(path.relative_to(prefix)),
                "sha256": hashlib.sha256(path.read_bytes()).hexdigest(),
            }
            for path in (prefix / site).glob("torch*/**/*")
            if path.is_file()
        ]
        (prefix / "conda-meta").mkdir()
        listed = prefix / "conda-meta/pytorch-2.9.0-0.json"
        listed.write_text(json.dumps({"name": "pytorch", "paths_data": {"paths": paths}}))
        assert findings(installed) == []
        rewrite(prefix / site / "torch/functional.py", "x = 2\n")
        assert told(findings(installed)) == [("framework-changed", False)]


class TestC2:
    """What is wrong with a framework fails C2, on a host without a GPU too."""

    @pytest.fixture
    def subject(self, tmp_path, built_torch):
        repository = tmp_path / "repository"
        repository.mkdir()
        (repository / "main.py").write_text("import torch\n")
        source = FolderSource(kind="folder", path=str(repository))
        task = Task(schema=1, name="t", domain="tests", source=source, folder=repository)
        attempt = tmp_path / "attempt"
        attempt.mkdir()
        sandbox = LocalSandbox()
        snapshot = fetch_source(task, cache=tmp_path / "cache")
        with sandbox.build_box(attempt, snapshot.tree, key="") as box:
            python = uv_venv(box.layout.env)
            install(python, wheel(tmp_path, "torch", "2.9.0", built_torch))
        sandbox.freeze(attempt)
        subject = Subject(
            folder=tmp_path / "results",
            open_box=lambda **asked: sandbox.stage_box(
                attempt, **{"network": False, "gpus": (), **asked}
            ),
            host=host_environment(),
            snapshot=snapshot,
            task=task,
            report=Report(python_path=str(python)),
        )
        return with_interpreter(subject, str(python))

    def test_an_honest_one_waits_for_a_gpu(self, subject):
        result = check_devices(subject, ["torch"], GpuInventory(why_none="hidden"))
        assert (result.verdict, result.owner) == (Verdict.INCONCLUSIVE, Owner.HOST)
        [installed] = result.details["installed"]["torch"]
        assert installed == {
            "distribution": "torch 2.9.0",
            "listed_by": "RECORD",
            "files_compared": 9,
        }

    def test_a_changed_one_fails(self, subject):
        rewrite(site_of(subject.interpreter.executable) / "torch/functional.py", "x = 1\n")
        result = check_devices(subject, ["torch"], GpuInventory(why_none="hidden"))
        assert (result.verdict, result.owner) == (Verdict.FAILED, Owner.AGENT)
        assert "differs from its RECORD" in result.reason

    @pytest.mark.parametrize("how", ["stub", "remove"])
    def test_a_breakage_fails(self, subject, how, tmp_path):
        if namespace_support(tmp_path)[0] != "overlay":
            pytest.skip("this host gives stages no layer of their own")
        what = {"stub": ["torch"]} if how == "stub" else {"remove": ["torch/lib/*.so"]}
        breakage = Breakage(description="x", level="C2", because="torch", **what)
        broken = damaged(subject, breakage, subject.interpreter, subject.host)
        result = check_devices(broken, ["torch"], GpuInventory(why_none="hidden"))
        assert (result.verdict, result.owner) == (Verdict.FAILED, Owner.AGENT)
        assert "it is a stub" in result.reason

    def test_of_a_folder(self, tmp_path, python):
        repository = tmp_path / "repository"
        repository.mkdir()
        (repository / "main.py").write_text("import torch\n")
        put(site_of(python), {"torch/__init__.py": "__version__ = '2.9.0'\n"})
        record = verify(repository, str(python), levels=(Level.C2,), out=tmp_path / "results")
        assert [finding.kind for finding in record.findings] == ["framework-stub"]
        result = record.results[Level.C2]
        assert (result.verdict, result.owner) == (Verdict.FAILED, Owner.AGENT)
