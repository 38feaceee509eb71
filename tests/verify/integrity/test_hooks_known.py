"""Start-up hooks of well-known tools: no findings, and no way in for anybody else."""

from __future__ import annotations

import zipfile

import pytest
from environments import UV, findings, install, run, site_of, told, uv_venv, wheel

from researchenvbench.standalone.look import prefix
from researchenvbench.verify.integrity import frameworks
from researchenvbench.verify.integrity.prefix import findings_of
from researchenvbench.verify.integrity.templates import Tracked

MARKS = "import sys\nsys.marked = True\n"
#: As nvidia-cutlass-dsl 4.8, pdbpp 0.12 and 0.10, and tbvaccine 0.3 install them.
CUTLASS = (
    "import sys, os, nvidia_cutlass_dsl; "
    "sys.path.insert(0, os.path.join(nvidia_cutlass_dsl.__path__[0], 'dsl_packages'))"
)
PDBPP = (
    'import os; _pdbpp_path = f"{os.path.sep}_pdbpp_path_hack"; import sys; sys.path.insert(0, '
    "makepath(sitedir, \"_pdbpp_path_hack\")[0]) if int(os.environ.get('PDBPP_HIJACK_PDB', 1)) "
    "and not sys.path[0].endswith(_pdbpp_path) else None\n"
)
OLD_PDBPP = (
    'import sys; _pdbpp_path = os.path.sep + "_pdbpp_path_hack"; '
    "sys.path.insert(0, sys.path.pop()) if sys.path[-1].endswith(_pdbpp_path) and not "
    "sys.path[0].endswith(_pdbpp_path) else None\n"
)
TBVACCINE = (
    "import os; exec(\"if os.environ.get('TBVACCINE'):\\n    import tbvaccine\\n    "
    'tbvaccine.add_hook(isolate=True)")'
)
PACKAGES = "nvidia_cutlass_dsl/dsl_packages"


@pytest.fixture
def python(tmp_path):
    """An interpreter of an environment that can be damaged."""
    return uv_venv(tmp_path / "env")


@pytest.fixture
def cutlass(tmp_path, python):
    """The same with a package in the form of nvidia-cutlass-dsl."""
    files = {"nvidia_cutlass_dsl_packages.pth": CUTLASS, f"{PACKAGES}/cutlass/__init__.py": ""}
    install(python, wheel(tmp_path, "nvidia_cutlass_dsl", "4.8.1", files))
    return python


def is_marked(python):
    """Whether what a folder before the standard library holds was imported as `colorsys`."""
    code = "import colorsys, sys; print(hasattr(sys, 'marked'))"
    return run(python, "-I", "-c", code) == "True\n"


@pytest.mark.network
@pytest.mark.slow
@pytest.mark.parametrize(
    "packages",
    [
        ("pdbpp", "better_exceptions", "tbvaccine", "cuda-bindings==12.9.4", "pynvml==13.0.1"),
        ("pdbpp==0.11.7", "cuda-bindings==12.9.0", "rapids-dask-dependency", "pip-system-certs"),
        ("pdbpp==0.10.3", "cuda-bindings==12.9.10", "nvidia-cutlass-dsl==4.8.1"),
    ],
)
def test_what_the_tools_install(python, packages):
    run(UV, "pip", "install", "--no-deps", "-p", python, *packages)
    assert list(site_of(python).glob("*.pth"))
    assert findings(python) == []


class TestFoldersBeforeTheLibrary:
    def test_the_tools_own_packages_are_no_finding(self, cutlass):
        assert run(cutlass, "-c", "import cutlass; print(cutlass.__name__)") == "cutlass\n"
        assert findings(cutlass) == []

    @pytest.mark.parametrize("name", ["colorsys.py", "colorsys/__init__.py", "colorsys.pyc"])
    def test_what_else_is_in_such_a_folder(self, cutlass, name):
        place = site_of(cutlass) / PACKAGES / name
        place.parent.mkdir(exist_ok=True)
        place.write_text(MARKS)
        assert name.endswith(".pyc") or is_marked(cutlass)
        [found] = findings(cutlass)
        assert (found.kind, found.disqualifies) == ("start-up-hook", True)
        assert f"/{PACKAGES}/colorsys" in found.where

    def test_an_empty_module_is_not_the_tools_either(self, cutlass):
        (site_of(cutlass) / PACKAGES / "colorsys.py").touch()
        assert told(findings(cutlass)) == [("start-up-hook", True)]

    def test_a_folder_of_that_name_elsewhere_on_the_path(self, cutlass, tmp_path):
        first = tmp_path / "first"
        (first / PACKAGES).mkdir(parents=True)
        (first / PACKAGES / "colorsys.py").write_text(MARKS)
        (site_of(cutlass) / "a.pth").write_text(f"{first}\n")
        assert told(findings(cutlass)) == [("start-up-hook", True)]

    def test_one_in_an_archive(self, cutlass, tmp_path):
        with zipfile.ZipFile(tmp_path / "a.zip", "w") as archive:
            archive.writestr(f"{PACKAGES}/colorsys.py", MARKS)
        (site_of(cutlass) / "a.pth").write_text(f"{tmp_path}/a.zip\n")
        assert told(findings(cutlass)) == [("start-up-hook", True)]

    def test_a_module_where_the_tool_has_a_mere_folder(self, python, tmp_path):
        files = {
            "nvidia_cutlass_dsl_packages.pth": CUTLASS,
            "nvidia_cutlass_dsl/__init__.py": "__path__ = ['/opt/mine']\n",
        }
        install(python, wheel(tmp_path, "nvidia_cutlass_dsl", "4.9.0", files))
        assert told(findings(python)) == [("start-up-hook", True)]

    def test_a_package_of_the_repositorys_name(self, cutlass):
        order = {"path": str(cutlass), "root": "/", "home": "/no/home", "hooks": True,
                 "frameworks": frameworks.wanted()}  # fmt: skip
        facts = prefix.examine(order)
        other = Tracked("/repo", frozenset({"tests/cutlass/test_it.py"}))
        assert findings_of(facts, tracked=other) == ()
        mine = Tracked("/repo", frozenset({"python/cutlass/__init__.py"}))
        assert told(findings_of(facts, tracked=mine)) == [("start-up-hook", True)]

    @pytest.mark.parametrize("name", ["pdb.py", "colorsys.py"])
    def test_a_folder_of_pdbpp_with_other_code(self, python, tmp_path, name):
        files = {"pdbpp_hijack_pdb.pth": PDBPP, f"_pdbpp_path_hack/{name}": MARKS}
        install(python, wheel(tmp_path, "pdbpp", "0.12.1", files))
        assert name == "pdb.py" or is_marked(python)
        [found] = findings(python)
        assert (found.kind, found.disqualifies) == ("start-up-hook", True)
        assert found.where.endswith(f"/_pdbpp_path_hack/{name}")

    def test_any_folder_that_an_old_pdbpp_takes_for_its_own(self, python, tmp_path):
        folder = tmp_path / "_pdbpp_path_hack"
        folder.mkdir()
        (folder / "colorsys.py").write_text(MARKS)
        (site_of(python) / "pdbpp_hijack_pdb.pth").write_text(f"{folder}\n{OLD_PDBPP}")
        assert is_marked(python)
        assert told(findings(python)) == [("start-up-hook", True)]


class TestRedirectors:
    @pytest.mark.parametrize("name", ["_cuda_bindings_redirector", "_pynvml_redirector"])
    def test_another_code_under_a_known_name(self, python, tmp_path, name):
        files = {f"{name}.pth": f"import {name}\n", f"{name}.py": "import os\nos.fork\n"}
        install(python, wheel(tmp_path, "cuda_bindings", "12.9.4", files))
        assert told(findings(python)) == [("start-up-hook", True)]

    def test_what_one_imports_at_each_start_takes_part(self, python):
        site = site_of(python)
        (site / "_cuda_bindings_redirector.pth").write_text("import _cuda_bindings_redirector\n")
        (site / "_cuda_bindings_redirector.py").write_text("import cuda.bindings\n")
        (site / "cuda/bindings").mkdir(parents=True)
        (site / "cuda/bindings/__init__.py").write_text(MARKS)
        facts = prefix.examine({"path": str(python), "root": "/", "home": "/no/home",
                                "hooks": True, "frameworks": {}})  # fmt: skip
        [hook] = [hook for hook in facts["hooks"] if "redirector" in hook["path"]]
        assert [file["path"] for file in hook["files"]][-1] == f"{site}/cuda/bindings/__init__.py"

    def test_a_finder_of_rapids_is_believed_as_it_is_listed(self, python, tmp_path):
        files = {
            "_rapids_dask_dependency.pth": "import rapids_dask_dependency\n",
            "rapids_dask_dependency/__init__.py": "import sys\nsys.meta_path.append(None)\n",
        }
        install(python, wheel(tmp_path, "rapids_dask_dependency", "26.10.0", files))
        assert findings(python) == []
        (site_of(python) / "rapids_dask_dependency/__init__.py").write_text(MARKS)
        assert ("start-up-hook", True) in told(findings(python))


def test_a_traceback_printer_sleeps_until_a_variable_is_set(python, tmp_path):
    files = {"tbvaccine.pth": TBVACCINE, "tbvaccine/__init__.py": "import json\n"}
    install(python, wheel(tmp_path, "tbvaccine", "0.3.1", files))
    assert findings(python) == []
