"""C0 on real virtual environments, with the real checker, in the real sandbox."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from researchenvbench.attempt import Level, Owner, Verdict
from researchenvbench.errors import HostError
from researchenvbench.sandbox import tools as checker_module
from researchenvbench.sandbox.local.sandbox import LocalSandbox
from researchenvbench.sandbox.tools import Checker, find_checker
from researchenvbench.verify import checker as checking
from researchenvbench.verify import finders
from researchenvbench.verify.finders import find_modules
from researchenvbench.verify.static import check
from researchenvbench.verify.static_details import StaticDetails

REPOSITORIES = Path(__file__).parents[1] / "repositories"

#: What an editable install by setuptools leaves: a finder, and a line that starts it.
FINDER = """
import importlib.util, sys
class Finder:
    @staticmethod
    def find_spec(name, path=None, target=None):
        if name == "edited":
            return importlib.util.spec_from_file_location(name, {file!r})
def install():
    sys.meta_path.append(Finder)
"""


class Place:
    """An attempt with a repository and a virtual environment that tests fill by hand."""

    def __init__(self, folder, python=sys.executable):
        self.attempt = folder / "attempt"
        self.attempt.mkdir(parents=True)
        self.source = folder / "source"
        self.source.mkdir()
        self.sandbox = LocalSandbox()
        self.layout = self.sandbox.layout(self.attempt)
        self.python = self.layout.env / "bin" / "python"
        self.log = folder / "C0.log"
        with self.sandbox.build_box(self.attempt, self.source):
            subprocess.run([python, "-m", "venv", "--without-pip", self.layout.env], check=True)
        self.packages = next((self.layout.env / "lib").glob("python*")) / "site-packages"

    def install(self, **modules):
        for name, text in modules.items():
            package, init, _ = name.partition("____init__")
            path = f"{package.replace('__', '/')}{'/__init__' if init else ''}.py"
            place = self.packages / path
            place.parent.mkdir(parents=True, exist_ok=True)
            place.write_text(text)

    def track(self, **texts):
        for name, text in texts.items():
            file = self.source / f"{name.replace('__', '/')}.py"
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_text(text)

    def track_folder(self, name):
        shutil.copytree(REPOSITORIES / name, self.source, dirs_exist_ok=True)

    def check(self, roots=None, *, python="own", **options):
        shutil.copytree(self.source, self.layout.repo, dirs_exist_ok=True, symlinks=True)
        found = (path for path in self.source.rglob("*") if path.is_symlink() or path.is_file())
        tracked = sorted(str(path.relative_to(self.source)) for path in found)
        self.sandbox.freeze(self.attempt)
        with self.sandbox.stage_box(self.attempt, network=False, gpus=()) as box:
            result = check(
                box,
                self.python if python == "own" else python,
                self.source,
                tracked,
                roots,
                self.log,
                environment={"PATH": "/usr/bin:/bin", "HOME": str(box.layout.home)},
                **options,
            )
        assert result.level is Level.C0
        return result, StaticDetails.model_validate(result.details)


@pytest.fixture
def place(tmp_path):
    return Place(tmp_path)


def missing(details):
    return {module.name: module for module in details.missing}


def test_an_environment_with_everything_passes(place):
    place.track(train="import alpha.part\nimport os\nfrom beta import thing\nimport own\n", own="")
    place.install(alpha____init__="", alpha__part="", beta="thing = 1")
    result, details = place.check()
    assert (result.verdict, result.owner) == (Verdict.PASSED, None)
    assert result.reason == "all 2 third-party modules are found"
    assert (details.files, details.third_party, details.total_paper) == (2, 2, 4)
    assert details.missing == ()
    assert details.missing_paper == 0
    assert details.checker_version == find_checker().version
    assert details.python_version == ".".join(map(str, sys.version_info[:3]))
    assert 0 < result.seconds_in_processes < result.seconds


def test_a_required_module_that_is_missing_fails_and_is_named(place):
    place.track(
        train="import torch\nimport torch.nn\nfrom alpha import x\nimport alpha.gone\n",
        other="try:\n    import torch\n    import wished\nexcept ImportError:\n    pass\n",
    )
    place.install(alpha____init__="x = 1")
    result, details = place.check()
    assert (result.verdict, result.owner) == (Verdict.FAILED, Owner.AGENT)
    assert "required modules are missing: alpha, torch (3 of 3" in result.reason
    found = missing(details)
    assert found["torch"].modules == ("torch", "torch.nn")
    assert found["torch"].files == ("other.py", "train.py")
    assert found["alpha"].modules == ("alpha.gone",)
    assert found["torch"].required
    assert not found["wished"].required
    assert details.missing_paper == 3


def test_an_optional_module_that_is_missing_does_not_fail(place):
    place.track(train="import alpha\ntry:\n    import alpha.gone, fast\nexcept ImportError: ...\n")
    place.install(alpha____init__="")
    result, details = place.check()
    assert result.verdict is Verdict.PASSED
    assert set(missing(details)) == {"alpha", "fast"}
    assert "none of them required in the files that count: alpha, fast" in result.reason


def test_what_is_planted_beside_the_code_changes_nothing(place):
    place.track(
        pack__train="import torch  # type: ignore\nimport jax  # pyright: ignore\n",
        pack__quiet="# pyright: basic, reportMissingImports=false\nimport flax\n",
        all_quiet="# type: ignore\nimport optax\n",
    )
    (place.source / "pyrightconfig.json").write_text('{"reportMissingImports": false}')
    repo = place.layout.repo
    (repo / "typings" / "jax").mkdir(parents=True)
    (repo / "typings" / "jax" / "__init__.pyi").touch()
    (repo / "pack").mkdir()
    (repo / "torch.py").touch()
    (repo / "pack" / "torch.py").touch()
    (repo / "pyproject.toml").write_text("[tool.pyright]\nreportMissingImports = false\n")
    result, details = place.check()
    assert result.verdict is Verdict.FAILED
    assert set(missing(details)) == {"torch", "jax", "flax", "optax"}


def test_a_module_of_which_only_a_stub_is_known_is_missing_but_not_in_the_papers_reading(place):
    place.track(train="import yaml\nfrom yaml import load\ndef f():\n    import requests\n")
    result, details = place.check()
    assert result.verdict is Verdict.FAILED
    assert set(missing(details)) == {"yaml", "requests"}
    assert details.missing_paper == 0


def test_what_an_editable_finder_finds_is_importable(place):
    place.track(train="import edited\n")
    (place.layout.root / "elsewhere.py").touch()
    place.install(_finder=FINDER.format(file=str(place.layout.root / "elsewhere.py")))
    (place.packages / "edited.pth").write_text("import _finder; _finder.install()\n")
    result, details = place.check()
    assert result.verdict is Verdict.PASSED
    assert details.importable == ("edited",)
    assert details.missing == ()
    assert details.missing_paper_names == ("edited",)


def test_a_submodule_that_exists_once_its_package_is_imported_is_importable(place):
    place.track(train="import late.moves\nimport crash.inner\n")
    place.install(
        late="import sys, types\n__path__ = []\n"
        "moves = types.ModuleType('late.moves')\nsys.modules['late.moves'] = moves\n"
        "import importlib.machinery as m\nmoves.__spec__ = m.ModuleSpec('late.moves', None)\n",
        crash____init__="import os\nos.abort()\n",
    )
    result, details = place.check()
    assert details.importable == ("late.moves",)
    assert set(missing(details)) == {"crash"}
    assert result.verdict is Verdict.FAILED


@pytest.mark.parametrize(
    "code",
    [
        "signal.signal(signal.SIGALRM, signal.SIG_IGN)\nwhile True: time.sleep(1000)",
        # Somebody else holds the pipe.
        "if os.fork(): os._exit(0)\ntime.sleep(1000)",
        "if os.fork(): os._exit(0)\nos.setsid()\ntime.sleep(6)\nos._exit(0)",
    ],
)
def test_a_package_that_does_not_end_being_imported_has_no_more_than_it_shows(
    place, monkeypatch, code
):
    monkeypatch.setattr(finders, "_PARENT_LIMIT_S", 1.0)
    monkeypatch.setattr(finders, "_PROBE_LIMIT_S", 20.0)
    place.track(train="import alpha.gone\nimport beta\n")
    place.install(alpha____init__=f"import os, signal, time\n{code}\n", beta="")
    result, details = place.check()
    assert (result.verdict, result.owner) == (Verdict.FAILED, Owner.AGENT)
    assert list(missing(details)) == ["alpha"]
    assert result.seconds < 30


def test_what_a_package_starts_does_not_keep_its_answer_back(place):
    place.track(train="import alpha.made\n")
    place.install(
        alpha____init__="import os, sys, time\nsys.modules['alpha.made'] = sys\n"
        "if not os.fork():\n    time.sleep(1000)\n"
    )
    result, _ = place.check()
    assert result.verdict is Verdict.PASSED


def test_an_interpreter_that_never_says_what_it_finds_is_the_agents(place, monkeypatch):
    monkeypatch.setattr(finders, "_PROBE_LIMIT_S", 2.0)
    place.track(train="import alpha\n")
    place.install(alpha="")
    (place.packages / "slow.pth").write_text("import time; time.sleep(1000)\n")
    result, details = place.check()
    assert (result.verdict, result.owner) == (Verdict.FAILED, Owner.AGENT)
    assert "did not say which modules it finds within 2 s" in result.reason
    assert list(missing(details)) == ["alpha"]


def test_a_folder_that_a_removed_package_leaves_behind_is_missing(place):
    place.track(train="import left\nimport space.part\n")
    (place.packages / "left" / "__pycache__").mkdir(parents=True)
    (place.packages / "left" / "data.bin").touch()
    place.install(space__part____init__="")
    result, details = place.check()
    assert result.verdict is Verdict.FAILED
    assert set(missing(details)) == {"left"}
    assert "no module in it" in missing(details)["left"].why
    assert details.missing_paper == 0


def test_names_that_the_checker_mistakes_for_the_repositorys_own_are_missing(place):
    place.track_folder("name_clash")
    _, details = place.check()
    assert set(missing(details)) == {"datasets", "tracker"}
    assert missing(details)["datasets"].files == ("train.py",)
    place.install(datasets____init__="load_dataset = prepare = 1", tracker="")
    result, details = place.check()
    assert (result.verdict, details.missing) == (Verdict.PASSED, ())


def test_the_verdict_looks_at_the_roots_and_the_rate_at_everything(place):
    place.track_folder("src_layout")
    place.install(alpha="")
    result, details = place.check(["src", "examples/show.py"])
    assert result.verdict is Verdict.FAILED
    assert details.scope_files == 3
    assert "required modules are missing: beta (2 of 3" in result.reason
    assert {name: m.decides for name, m in missing(details).items()} == {
        "beta": True,
        "gamma": False,
    }
    result, _ = place.check(["./src/"])
    assert result.verdict is Verdict.PASSED
    result, _ = place.check(["srcs"])
    assert (result.verdict, result.owner) == (Verdict.INCONCLUSIVE, Owner.TASK)


def test_own_modules_that_are_not_there_are_listed_and_decide_nothing(place):
    place.track_folder("src_layout")
    place.install(alpha="", beta__part="", gamma="")
    result, details = place.check()
    assert result.verdict is Verdict.PASSED
    assert details.first_party_missing == (
        "layered._native",
        "layered._version",
        "src/layered/core.py: .generated",
    )


def test_code_behind_a_tracked_link_is_the_repositorys_own(place):
    place.track(shared__common="", app__run="import common.common\nimport linked\n")
    (place.source / "app" / "common").symlink_to("../shared")
    (place.source / "linked.py").symlink_to("shared/common.py")
    result, details = place.check()
    assert (result.verdict, details.third_party, details.files) == (Verdict.PASSED, 0, 2)


def test_files_that_do_not_parse_are_named_and_the_rest_is_judged(place):
    place.track_folder("imports_of_every_kind")
    result, details = place.check(["scripts"])
    assert details.total_paper == 24
    assert [bad.file for bad in details.unparsable] == [
        "scripts/null.py",
        "scripts/two.py",
        "scripts/undeclared_latin.py",
    ]
    assert "urllib2" not in missing(details)
    assert {"after_byte_order_mark", "in_latin_1"} <= set(missing(details))
    assert not missing(details)["torch"].decides
    assert result.verdict is Verdict.FAILED


def test_without_an_interpreter_every_third_party_import_is_missing(place):
    place.track(train="import torch, os\ntry:\n    import fast\nexcept ImportError: ...\n")
    result, details = place.check(python=None, why_no_python="there is no report")
    assert (result.verdict, result.owner) == (Verdict.FAILED, Owner.AGENT)
    assert result.reason == (
        "there is no usable interpreter: there is no report; "
        "required modules are missing: torch (2 of 2 third-party modules are missing)"
    )
    assert set(missing(details)) == {"torch", "fast"}
    assert details.missing_paper is None


def test_a_program_that_is_no_python_is_no_usable_interpreter(place):
    place.track(train="import torch\n")
    false = place.layout.env / "bin" / "false-python"
    false.write_text('#!/bin/sh\nfor last; do :; done\necho "{}" > "$last"\n')
    false.chmod(0o755)
    result, details = place.check(python=false)
    assert (result.verdict, result.owner) == (Verdict.FAILED, Owner.AGENT)
    assert "cannot say which modules it finds" in result.reason
    assert set(missing(details)) == {"torch"}
    assert details.missing_paper is None


def test_a_repository_without_python_is_not_applicable(place):
    (place.source / "README.md").touch()
    result, details = place.check()
    assert (result.verdict, details.files) == (Verdict.NOT_APPLICABLE, 0)


# --- a checker that gives no answer ----------------------------------------------------


SAYS_NOTHING = '{"version": "1", "generalDiagnostics": [], "summary": {"filesAnalyzed": 0}}'


@pytest.mark.parametrize(
    ("script", "reason"),
    [
        ("process.exit(3)", "exit status 3 and no usable answer"),
        ("console.log('{}')", "no usable answer"),
        ("console.log('nothing missing')", "no usable answer"),
        ("process.kill(process.pid, 'SIGKILL')", "SIGKILL and no usable answer"),
        (f"console.log({SAYS_NOTHING!r})", "read 0 of 1 files"),
        ("setTimeout(() => {}, 60000)", "did not end within 1 s"),
    ],
)
def test_no_usable_answer_is_inconclusive_and_never_nothing_missing(
    place, tmp_path, script, reason
):
    place.track(train="import torch\n")
    fake = tmp_path / "fake.js"
    fake.write_text(script)
    broken = Checker(find_checker().node, fake, "0")
    result, details = place.check(checker=broken, time_limit_s=1.0)
    assert (result.verdict, result.owner) == (Verdict.INCONCLUSIVE, Owner.UNKNOWN)
    assert reason in result.reason
    assert details.missing_paper is None
    assert details.missing == ()


#: Ends well only where it is told of no interpreter.
ENDS_WITH_AN_ENVIRONMENT = """
if (process.argv.includes("--pythonpath")) {how};
console.log(JSON.stringify({
    version: "0", summary: {filesAnalyzed: 1}, generalDiagnostics: []
}));
"""


@pytest.mark.parametrize(
    ("how", "reason"),
    [
        ("process.abort()", "SIGABRT and no usable answer"),
        ("while (true) {}", "did not end within 2 s"),
    ],
)
def test_a_checker_that_only_the_environment_ends_is_the_agents(place, tmp_path, how, reason):
    place.track(train="import torch\n")
    fake = tmp_path / "fake.js"
    fake.write_text(ENDS_WITH_AN_ENVIRONMENT.replace("{how}", how))
    broken = Checker(find_checker().node, fake, "0")
    result, details = place.check(checker=broken, time_limit_s=2.0)
    assert (result.verdict, result.owner) == (Verdict.FAILED, Owner.AGENT)
    assert "pyright ends well without the environment; with it, pyright" in result.reason
    assert reason in result.reason
    assert list(missing(details)) == ["torch"]


def test_a_stub_that_pyright_does_not_get_over_is_the_agents(place, monkeypatch):
    monkeypatch.setattr(checking, "_HEAP_LIMIT_MB", 150)  # the files alone need less
    place.track(train="import alpha\nimport torch\n")
    place.install(alpha____init__="")
    stub = "".join(f"def f{n}(a: int=({n},[1,2,3])): ...\n" for n in range(60_000))
    (place.packages / "alpha" / "__init__.pyi").write_text(stub)
    result, _ = place.check()
    assert (result.verdict, result.owner) == (Verdict.FAILED, Owner.AGENT)
    assert "pyright ends well without the environment" in result.reason


def test_a_node_that_is_not_there_is_the_hosts_fault(place):
    place.track(train="import torch\n")
    nowhere = Checker(("/nonexistent/node",), find_checker().script, "0")
    result, _ = place.check(checker=nowhere)
    assert result.verdict is Verdict.INCONCLUSIVE


def test_a_pyright_that_would_download_itself_is_refused(monkeypatch, tmp_path):
    (tmp_path / "pyright").mkdir()
    (tmp_path / "pyright" / "__init__.py").touch()
    monkeypatch.syspath_prepend(str(tmp_path))
    monkeypatch.delitem(sys.modules, "pyright", raising=False)
    with pytest.raises(HostError, match="would download it") as refused:
        checker_module.find_checker()
    assert 'pip install -U "pyright[nodejs]"' in refused.value.advice


# --- other Pythons ---------------------------------------------------------------------


def other_pythons():
    """One interpreter a version, of those that start."""
    folders = Path.home().glob(".pyenv/versions/3.*/bin")
    found = [str(folder / "python3") for folder in folders]
    found += [path for n in range(6, 15) if (path := shutil.which(f"python3.{n}"))]
    said = {path: subprocess.run([path, "-V"], capture_output=True, text=True) for path in found}
    versions = {done.stdout.split()[1]: path for path, done in said.items() if not done.returncode}
    return [pytest.param(path, id=version) for version, path in sorted(versions.items())]


@pytest.mark.parametrize("python", other_pythons())
def test_the_probe_runs_on_every_python_of_this_host(tmp_path, python):
    place = Place(tmp_path, python)
    place.install(alpha____init__="", alpha__part="")
    place.sandbox.freeze(place.attempt)
    names = ["os", "alpha.part", "alpha.gone", "gone"]
    with place.sandbox.stage_box(place.attempt, network=False, gpus=()) as box:
        found = find_modules(
            box, place.python, names, place.log, parents=True, environment={"PATH": "/bin"}
        )
    assert found.answers == {
        "os": "module",
        "alpha.part": "module",
        "alpha.gone": "missing",
        "gone": "missing",
    }
    assert "sys" in found.standard
    assert f"python{'.'.join(found.version.split('.')[:2])}" == place.packages.parent.name


def test_details_survive_json(place):
    place.track(train="import torch\n")
    result, details = place.check()
    assert StaticDetails.model_validate(json.loads(json.dumps(result.details))) == details
