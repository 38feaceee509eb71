"""Variables by which processes load other code are named; some of them are tampering."""

from __future__ import annotations

import subprocess
import zipfile
from contextlib import nullcontext
from dataclasses import replace
from typing import TYPE_CHECKING

import pytest
from environments import bundled_tools, site_of

from researchenvbench.attempt import Report
from researchenvbench.sandbox import HostEnvironment
from researchenvbench.sandbox.local.adopted import adopted_box
from researchenvbench.source import snapshot_in_place
from researchenvbench.standalone.look import modules
from researchenvbench.verify.integrity.variables import search_path, start_variables, user_bases
from researchenvbench.verify.interpreter import Interpreter
from researchenvbench.verify.subject import Subject, stage_environment

if TYPE_CHECKING:
    from pathlib import Path

    from researchenvbench.source import Snapshot


def test_variables_that_load_other_code_are_findings() -> None:
    env = {"LD_LIBRARY_PATH": "/x", "PYTHONPATH": "/repo", "HF_HOME": "/x", "PYTHONHASHSEED": "0"}
    found = start_variables(Report(env=env))
    assert [finding.what.split("=")[0].split()[-1] for finding in found] == [
        "LD_LIBRARY_PATH",
        "PYTHONPATH",
    ]
    assert not any(finding.disqualifies for finding in found)
    assert start_variables(None) == ()


@pytest.mark.parametrize(
    ("name", "value", "disqualifies"),
    [
        ("LD_PRELOAD", "/tmp/x.so", True),
        ("LD_AUDIT", "/usr/lib/libgomp.so.1", True),
        ("LD_PRELOAD", "/usr/lib/x86_64-linux-gnu/libgomp.so.1", False),
        ("LD_PRELOAD", "libjemalloc.so.2:/env/lib/libstdc++.so.6", False),
        ("LD_PRELOAD", "/env/libgomp-a34b3233.so.1.0.0", False),
        ("LD_PRELOAD", "libtcmalloc_minimal.so.4 /env/libmine.so", True),
        ("LD_LIBRARY_PATH", "/anywhere", False),
        ("PYTHONHOME", "/evil", True),
        ("PYTHONPYCACHEPREFIX", "/evil", True),
        ("PYTHONPLATLIBDIR", "evil", True),
        ("PYTHON_PRESITE", "evil", True),
        ("PYTHONUSERBASE", "/elsewhere", False),
        ("PYTHONOPTIMIZE", "2", False),
        ("PYTHONUSERBASE", "../elsewhere", True),
        ("HOME", "/elsewhere", False),
        ("HOME", "", False),
        ("HOME", "elsewhere", True),
        ("COVERAGE_PROCESS_START", "/box/cov.rc", True),
        ("COV_CORE_SOURCE", "/box", True),
        ("PYTHONHUNTER", "action=print", True),
        ("PYTHONMANHOLE", "exit()", True),
        ("__MODIN_AUTOIMPORT_PANDAS__", "1", True),
        ("PYTHONSAFEPATH", "1", True),
        ("BASH_FUNC_python%%", "() { :; }", True),
        ("BASH_FUNC_a\nb%%", "() { :; }", True),
        ("BASH_ENV", "/box/x.sh", True),
        ("PS4", "$(x)", True),
        ("GCONV_PATH", "/box", True),
        ("LOCPATH", "/box", True),
        ("NLSPATH", "/box/%N", True),
        ("HOSTALIASES", "/box/hosts", True),
        ("RESOLV_HOST_CONF", "/box/hosts", True),
        ("OPENSSL_CONF", "/box/o.cnf", True),
        ("OPENSSL_MODULES", "/box", True),
        ("OPENSSL_ENGINES", "/box", True),
        ("CUDA_INJECTION64_PATH", "/box/x.so", True),
        ("NVTX_INJECTION64_PATH", "/box/x.so", True),
        ("NCCL_NET_PLUGIN", "/box/x.so", True),
        ("NCCL_TUNER_PLUGIN", "/box/x.so", True),
        ("NCCL_PROFILER_PLUGIN", "x", True),
        ("TF_PLUGGABLE_DEVICE_LIBRARY_PATH", "/box", True),
        ("PJRT_NAMES_AND_LIBRARY_PATHS", "cpu:/box/x.so", True),
        ("HDF5_PLUGIN_PATH", "/box", True),
        ("PERL5OPT", "-Mx", True),
        ("PERL5LIB", "/box", True),
        ("NODE_OPTIONS", "--require /box/x.js", True),
        ("PYENV_VERSION", "other", False),
        ("PYENV_DIR", "/box", False),
    ],
)
def test_a_library_in_every_process_is_tampering(name: str, value: str, disqualifies: bool) -> None:
    (finding,) = start_variables(Report(env={name: value}))
    assert finding.disqualifies is disqualifies


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("NCCL_NET_PLUGIN", "none"),
        ("NCCL_DEBUG", "INFO"),
        ("SSL_CERT_FILE", "/env/ssl/cacert.pem"),
        ("PYENV_ROOT", "/root/.pyenv"),
        ("CUDA_HOME", "/usr/local/cuda"),
        ("PATH", "/box/bin:/usr/bin"),
    ],
)
def test_variables_that_load_nothing_are_none(name: str, value: str) -> None:
    assert start_variables(Report(env={name: value})) == ()


def test_what_a_report_adds_to_path_comes_last(tmp_path: Path) -> None:
    def path_of(env: dict[str, str]) -> list[str]:
        tmp_path.joinpath("repo").mkdir(exist_ok=True)
        subject = Subject(
            folder=tmp_path,
            open_box=nullcontext,
            host=HostEnvironment(path="/usr/bin:/bin"),
            snapshot=snapshot_in_place(tmp_path / "repo"),
            report=Report(env=env),
            interpreter=INTERPRETER,
        )
        with adopted_box(tmp_path / "repo", None, tmp_path / "scratch", network=False) as box:
            made = stage_environment(subject, box, network=False, task={}, gpus=())
        return made["PATH"].split(":")

    before = path_of({})
    assert before[0] == "/env/bin"
    assert path_of({"PATH": "/box/first:/bin"}) == [*before, "/box/first", "/bin"]


def test_variables_that_move_the_users_packages() -> None:
    assert user_bases({"HOME": "/h", "PYTHONUSERBASE": "/b"}) == ["/h/.local", "/b"]
    assert user_bases({"HOME": "", "PYTHONUSERBASE": "relative"}) == ["/.local"]
    assert user_bases({"HOME": "h", "PYTHONUSERBASE": ""}) == []
    assert start_variables(Report(env={"PYTHONUNBUFFERED": "1", "XDG_CACHE_HOME": "/x"})) == ()


INTERPRETER = Interpreter(
    executable="/env/bin/python",
    version="3.11.7",
    implementation="cpython",
    prefix="/env",
    base_prefix="/env",
    purelib="/env/lib/python3.11/site-packages",
    platlib="/env/lib/python3.11/site-packages",
    kind="conda",
)


def searched(
    tmp_path: Path,
    repo: Path,
    env: dict[str, str],
    activation: dict[str, str] | None = None,
    commit: Snapshot | None = None,
    site: str = "/env/lib/python3.11/site-packages",
) -> list[tuple[str, str, bool]]:
    """What the variables of a report, and of a conda prefix's activation, lead to."""
    subject = Subject(
        folder=tmp_path,
        open_box=nullcontext,
        host=HostEnvironment(),
        snapshot=commit or snapshot_in_place(repo),
        report=Report(env=env),
        interpreter=replace(INTERPRETER, activation=activation or {}, purelib=site, platlib=site),
    )
    with adopted_box(repo, None, tmp_path / "scratch", network=False) as box:
        return [(f.kind, f.where, f.disqualifies) for f in search_path(subject, box)]


def test_modules_before_the_standard_library_are_tampering(tmp_path: Path) -> None:
    folder, repo = tmp_path / "fakes", tmp_path / "repo"
    (folder / "importlib").mkdir(parents=True)
    (folder / "importlib" / "__init__.py").touch()
    for name in ("json.py", "sitecustomize.py", "numlite.py", "csv.txt"):
        (folder / name).touch()
    (folder / "logging").mkdir()  # without __init__ it comes after the standard library
    repo.mkdir()

    def found(value: str) -> list[tuple[str, str, bool]]:
        return searched(tmp_path, repo, {"PYTHONPATH": value})

    assert found(f"/nowhere:{folder}") == [
        ("shadowing-module", f"{folder}/importlib", True),
        ("shadowing-module", f"{folder}/json.py", True),
        ("start-up-hook", f"{folder}/sitecustomize.py", True),
    ]
    assert found("relative:/nowhere") == []


def test_what_relative_entries_lead_to(tmp_path: Path) -> None:
    repo = tmp_path / "repo"
    (tmp_path / "fakes").mkdir()
    repo.mkdir()
    (tmp_path / "fakes" / "json.py").touch()
    assert searched(tmp_path, repo, {"PYTHONPATH": "../fakes"}) == [
        ("shadowing-module", f"{tmp_path}/fakes/json.py", True)
    ]
    assert searched(tmp_path, repo, {"PYTHONPATH": ":nowhere:../repo"}) == []


@pytest.mark.parametrize("name", ["fakes.zip", "fakes.egg", "fakes.zip/below/it"])
def test_archives_are_looked_into(tmp_path: Path, name: str) -> None:
    repo = tmp_path / "repo"
    repo.mkdir()
    archive, _, inner = name.partition("/")
    inner = f"{inner}/" if inner else ""
    with zipfile.ZipFile(tmp_path / archive, "w") as stream:
        for entry in (
            "sitecustomize.py",
            "json/__init__.pyc",
            "mine.py",
            "mine/json.py",
            "csv.txt",
        ):
            stream.writestr(inner + entry, "")
    assert searched(tmp_path, repo, {"PYTHONPATH": f"{tmp_path}/{name}"}) == [
        ("start-up-hook", f"{tmp_path}/{archive}/{inner}sitecustomize.py", True),
        ("shadowing-module", f"{tmp_path}/{archive}/{inner}json/__init__.pyc", True),
    ]


def test_a_tracked_module_is_the_sources_own(tmp_path: Path) -> None:
    repo = tmp_path / "repo"
    (repo / "statistics").mkdir(parents=True)
    (repo / "profile.py").write_text("x = 1\n")
    (repo / "statistics" / "__init__.py").write_text("x = 1\n")
    for command in (["init", "-q"], ["add", "."], ["commit", "-q", "-m", "all"]):
        person = ["-c", "user.name=A", "-c", "user.email=a@b.c"]
        subprocess.run(["git", *person, *command], cwd=repo, check=True)
    commit = snapshot_in_place(repo)
    (tmp_path / "link").symlink_to(repo)
    for way in (repo, tmp_path / "link", "."):
        assert searched(tmp_path, repo, {"PYTHONPATH": str(way)}, commit=commit) == []
    (repo / "json.py").touch()
    (repo / "profile").mkdir()
    (repo / "profile" / "__init__.py").touch()
    assert searched(tmp_path, repo, {"PYTHONPATH": str(repo)}, commit=commit) == [
        ("shadowing-module", f"{repo}/json.py", True),
        ("shadowing-module", f"{repo}/profile", True),
    ]


def test_what_activation_sets_is_judged_as_the_reports(tmp_path: Path) -> None:
    repo, fakes = tmp_path / "repo", tmp_path / "fakes"
    repo.mkdir()
    fakes.mkdir()
    (fakes / "sitecustomize.py").touch()
    scripts = "/env/etc/conda/activate.d"
    values = {"CONDA_X": "1", "LD_PRELOAD": "/x.so", "PYTHONPATH": str(fakes), "PYTHONHUNTER": "x"}
    assert searched(tmp_path, repo, {}, values) == [
        ("loader-variable", scripts, True),
        ("loader-variable", scripts, True),
        ("loader-variable", scripts, False),
        ("start-up-hook", f"{fakes}/sitecustomize.py", True),
    ]


def test_plug_ins_of_conda_packages_are_where_these_have_them(tmp_path: Path) -> None:
    repo = tmp_path / "repo"
    repo.mkdir()
    assert searched(tmp_path, repo, {}, {"HDF5_PLUGIN_PATH": "/env/lib/hdf5/plugin"}) == []
    (found,) = searched(tmp_path, repo, {}, {"HDF5_PLUGIN_PATH": "/box"})
    assert found[0] == "loader-variable"
    assert found[2]


def test_a_folder_by_way_of_proc(tmp_path: Path) -> None:
    repo = tmp_path / "repo"
    repo.mkdir()
    assert searched(tmp_path, repo, {"PYTHONPATH": "/proc/self/cwd"}) == [
        ("loader-variable", "/proc/self/cwd", True)
    ]


def test_a_category_of_warnings_is_a_module(tmp_path: Path) -> None:
    repo, fakes = tmp_path / "repo", tmp_path / "fakes"
    repo.mkdir()
    fakes.mkdir()
    (fakes / "mine.py").touch()
    env = {"PYTHONPATH": str(fakes)}
    assert searched(tmp_path, repo, {**env, "PYTHONWARNINGS": "ignore,error::UserWarning"}) == []
    assert searched(tmp_path, repo, {**env, "PYTHONWARNINGS": "ignore,error::mine.Own"}) == [
        ("shadowing-module", f"{fakes}/mine.py", True)
    ]


class TestWhatHooksImport:
    @pytest.fixture
    def env(self, tmp_path: Path) -> Path:
        """The site-packages of an environment."""
        folder = tmp_path / "env/lib/python3.11/site-packages"
        folder.mkdir(parents=True)
        (tmp_path / "repo").mkdir()
        (tmp_path / "more").mkdir()
        return folder

    @staticmethod
    def found(tmp_path: Path, env: Path, value: Path) -> list[tuple[str, str, bool]]:
        variables = {"PYTHONPATH": str(value)}
        return searched(tmp_path, tmp_path / "repo", variables, site=str(env))

    @pytest.mark.parametrize(
        "name",
        ["_distutils_hack.py", "_virtualenv.so", "__editable___x_1_0_finder.py",
         "_editable_impl_x.py", "_x_editable_loader.py", "_distutils_hack/__init__.py",
         "_virtualenv/__init__.cpython-311-x86_64-linux-gnu.so"],
    )  # fmt: skip
    def test_on_the_path_in_place_of_its_own(self, tmp_path: Path, env: Path, name: str) -> None:
        place = tmp_path / "more" / name
        place.parent.mkdir(exist_ok=True)
        place.write_text("import sys\nsys.modules['torch'] = None\n")
        where = str(tmp_path / "more" / name.partition("/")[0])
        assert self.found(tmp_path, env, tmp_path / "more") == [("start-up-hook", where, True)]

    def test_whatever_a_path_file_names(self, tmp_path: Path, env: Path) -> None:
        (tmp_path / "more/wakes.py").write_text("x = 1\n")
        (tmp_path / "more/starts").mkdir()
        (tmp_path / "more/starts/__init__.py").write_text("x = 1\n")
        assert self.found(tmp_path, env, tmp_path / "more") == []
        (env / "a.pth").write_text("# nothing\nimport os; import wakes.up\n")
        (env / "b.start").write_text("starts.it:now\n")
        assert self.found(tmp_path, env, tmp_path / "more") == [
            ("start-up-hook", f"{tmp_path}/more/starts", True),
            ("start-up-hook", f"{tmp_path}/more/wakes.py", True),
        ]

    def test_the_environments_own_and_copies_of_it_are_none(
        self, tmp_path: Path, env: Path
    ) -> None:
        for folder in (env, tmp_path / "more"):
            (folder / "_distutils_hack").mkdir()
            (folder / "_distutils_hack/__init__.py").write_text("x = 1\n")
            (folder / "_distutils_hack/override.py").write_text("x = 1\n")
        (env / "_virtualenv.py").write_text("x = 1\n")
        assert self.found(tmp_path, env, env) == []
        assert self.found(tmp_path, env, tmp_path / "more") == []
        (tmp_path / "more/_distutils_hack/__init__.abi3.so").touch()
        [(kind, where, _)] = self.found(tmp_path, env, tmp_path / "more")
        assert (kind, where) == ("start-up-hook", f"{tmp_path}/more/_distutils_hack")

    def test_those_of_known_tools_are_none(self, tmp_path: Path, env: Path) -> None:
        tools = site_of(bundled_tools(tmp_path / "other"))
        assert (tools / "_distutils_hack/__init__.py").exists()
        assert self.found(tmp_path, env, tools) == []


def test_a_compiled_package_is_one(tmp_path: Path) -> None:
    repo = tmp_path / "repo"
    repo.mkdir()
    (tmp_path / "more/sitecustomize").mkdir(parents=True)
    name = "__init__.cpython-311-x86_64-linux-gnu.so"
    (tmp_path / "more/sitecustomize" / name).touch()
    assert searched(tmp_path, repo, {"PYTHONPATH": f"{tmp_path}/more"}) == [
        ("start-up-hook", f"{tmp_path}/more/sitecustomize", True)
    ]


def test_a_folder_of_more_than_is_looked_at(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(modules, "_MOST_NAMES", 3)
    for number in range(4):
        (tmp_path / f"{number}.txt").touch()
    order = {"folders": [str(tmp_path), str(tmp_path / "no")], "names": ["json"]}
    assert modules.examine(order)["crowded"] == [str(tmp_path)]
