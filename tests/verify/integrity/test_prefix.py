"""Start-up hooks: honest environments give no finding, and each trick gives its own."""

from __future__ import annotations

import hashlib
import json
import os
import shutil
import sys
from pathlib import Path

import pytest
from environments import (
    PYENV,
    UV,
    before_now_ns,
    bundled_tools,
    digest,
    findings,
    install,
    pyenv_python,
    run,
    site_of,
    told,
    uv_venv,
    wheel,
)

from researchenvbench.attempt import AttemptStatus, Level
from researchenvbench.errors import RebError
from researchenvbench.run.verification import verify

PATCHES_TORCH = "import sys\nimport json\nsys.modules['torch'] = json\n"


@pytest.fixture
def python(tmp_path):
    """An interpreter of an environment that can be damaged."""
    return uv_venv(tmp_path / "env")


class TestHonestEnvironments:
    def test_of_uv(self, python):
        assert findings(python) == []

    @pytest.mark.parametrize("version", ["3.8", "3.12"])
    def test_of_uv_for_other_versions(self, tmp_path, version):
        assert findings(uv_venv(tmp_path / "env", pyenv_python(version))) == []

    def test_with_pip_and_setuptools(self, tmp_path):
        python = bundled_tools(tmp_path / "env")
        assert (site_of(python) / "distutils-precedence.pth").exists()
        assert findings(python) == []

    @pytest.mark.slow
    @pytest.mark.parametrize("version", ["3.7", "3.10", "3.12"])
    def test_of_venv_with_its_pip(self, tmp_path, version):
        run(pyenv_python(version), "-m", "venv", tmp_path / "env")
        run(tmp_path / "env/bin/python", "-m", "pip", "--version")
        assert findings(tmp_path / "env/bin/python") == []

    def test_a_copied_interpreter(self, tmp_path):
        run(sys.executable, "-m", "venv", "--copies", "--without-pip", tmp_path / "env")
        assert not (tmp_path / "env/bin/python").is_symlink()
        assert findings(tmp_path / "env/bin/python") == []

    def test_the_one_that_runs_the_tests(self):
        if sys.prefix == sys.base_prefix:
            pytest.skip("the tests run in the system's own Python")
        assert findings(sys.executable) == []

    def test_debians_own(self):
        if not Path("/usr/bin/python3").exists() or not Path("/var/lib/dpkg/status").exists():
            pytest.skip("this is no Debian with a Python")
        assert findings("/usr/bin/python3", since_ns=before_now_ns(), box_root="/no/box") == []

    def test_debians_files_are_known_without_knowing_when_they_came(self):
        hook = Path("/usr/lib/python3.11/sitecustomize.py")
        if not hook.exists():
            pytest.skip("this Python has no sitecustomize of Debian's")
        assert str(hook) not in [finding.where for finding in findings("/usr/bin/python3")]

    @pytest.mark.parametrize("version", ["2.7", "3.6", "3.7", "3.11", "3.13"])
    def test_of_pyenv(self, version):
        python = pyenv_python(version)
        assert findings(python, since_ns=before_now_ns(), box_root="/no/box") == []

    def test_a_shim_of_pyenv(self):
        shim = PYENV / "shims" / "python3"
        if not shim.exists():
            pytest.skip("pyenv has no shims here")
        assert findings(shim, since_ns=before_now_ns(), box_root="/no/box") == []

    def test_a_prefix_of_condas_form(self, tmp_path):
        python = _conda_prefix(tmp_path / "conda", sys.base_prefix)
        assert run(python, "-c", "import json, sys; print(sys.prefix)").strip() == str(
            tmp_path / "conda"
        )
        assert findings(python) == []

    @pytest.mark.parametrize("how", ["develop", "install"])
    def test_in_place_builds_and_namespace_packages(self, tmp_path, how):
        python, source = _old_setuptools(tmp_path)
        run(python, "setup.py", "build_ext", "--inplace", how, cwd=source)
        assert run(python, "-c", "import space.core; print(space.core.VALUE)").strip() == "3"
        hooks = [path.name for path in site_of(python).glob("*.pth")]
        assert "distutils-precedence.pth" in hooks
        assert len(hooks) > 1
        assert findings(python) == []

    @pytest.mark.network
    @pytest.mark.slow
    @pytest.mark.parametrize(
        ("backend", "requires", "settings"),
        [
            ("setuptools.build_meta", "setuptools", {}),
            ("setuptools.build_meta", "setuptools==66.0.0", {}),
            ("hatchling.build", "hatchling", {"tool.hatch.build.targets.wheel.packages": ["pkg"]}),
            (
                "hatchling.build",
                "hatchling",
                {
                    "tool.hatch.build.targets.wheel.packages": ["pkg"],
                    "tool.hatch.build.dev-mode-exact": True,
                },
            ),
            ("poetry.core.masonry.api", "poetry-core", {}),
            ("flit_core.buildapi", "flit-core", {}),
            ("pdm.backend", "pdm-backend", {"tool.pdm.build.editable-backend": "editables"}),
            ("mesonpy", "meson-python", {}),
            (
                "scikit_build_core.build",
                "scikit-build-core",
                {"tool.scikit-build.wheel.cmake": False},
            ),
        ],
    )
    def test_editable_installs(self, tmp_path, python, backend, requires, settings):
        source = tmp_path / "source"
        (source / "pkg").mkdir(parents=True)
        (source / "pkg/__init__.py").write_text(
            '"""A package."""\n__version__ = "1.0"\nVALUE = 3\n'
        )
        extra = "".join(
            f"[{key.rpartition('.')[0]}]\n{key.rpartition('.')[2]} = {json.dumps(value)}\n"
            for key, value in settings.items()
            if key != "tool.hatch.build.dev-mode-exact"
        )
        if "tool.hatch.build.dev-mode-exact" in settings:
            extra += "[tool.hatch.build]\ndev-mode-exact = true\n"
        (source / "pyproject.toml").write_text(
            f'[build-system]\nrequires = ["{requires}"]\nbuild-backend = "{backend}"\n'
            f'[project]\nname = "pkg"\nversion = "1.0"\ndescription = "a package"\n{extra}'
        )
        (source / "meson.build").write_text(
            "project('pkg', version: '1.0')\npy = import('python').find_installation(pure: true)\n"
            "py.install_sources('pkg/__init__.py', subdir: 'pkg')\n"
        )
        run(UV, "pip", "install", "-p", python, "ninja", "meson", "editables")
        ninja = {"PATH": f"{python.parent}:/usr/bin:/bin", "HOME": str(Path.home())}
        isolated = [] if backend != "mesonpy" else ["--no-build-isolation"]
        if isolated:
            run(UV, "pip", "install", "-p", python, requires)
        run(
            UV, "pip", "install", *isolated, "-p", python, "-e", source,
            env={**os.environ, "PATH": ninja["PATH"]} if isolated else None,
        )  # fmt: skip
        assert run(python, "-c", "import pkg; print(pkg.VALUE)", cwd="/", env=ninja).strip() == "3"
        assert findings(python) == []

    @pytest.mark.network
    @pytest.mark.slow
    def test_of_virtualenv_with_tools_that_hook(self, tmp_path, python):
        run(UV, "pip", "install", "-p", python, "virtualenv")
        other = pyenv_python("3.9")
        run(python, "-m", "virtualenv", "-p", other, tmp_path / "other")
        made = tmp_path / "other/bin/python"
        run(UV, "pip", "install", "-p", made, "coverage", "pytest-cov<6", "future-fstrings")
        run(UV, "pip", "install", "--no-deps", "-p", made, "coloredlogs", "numba-cuda==0.18.0")
        assert {"_virtualenv.pth", "pytest-cov.pth", "_numba_cuda_redirector.pth"} <= {
            path.name for path in site_of(made).glob("*.pth")
        }
        assert findings(made) == []


class TestTricks:
    def test_code_in_a_path_file(self, python):
        hook = site_of(python) / "zz.pth"
        hook.write_text("import sys; sys.modules.pop('json', None)\n")
        [found] = findings(python)
        assert (found.kind, found.where, found.disqualifies) == ("start-up-hook", str(hook), True)
        assert "sys.modules.pop" in found.what
        assert "listed by no distribution" in found.what

    def test_a_path_file_that_only_names_folders_is_none(self, python, tmp_path):
        (site_of(python) / "paths.pth").write_text(f"# a comment\n{tmp_path}\nimportant\n")
        assert findings(python) == []

    @pytest.mark.parametrize(
        "name", ["sitecustomize.py", "sitecustomize/__init__.py", "sitecustomize.pyc"]
    )
    def test_sitecustomize(self, python, name):
        hook = site_of(python) / name
        hook.parent.mkdir(exist_ok=True)
        hook.write_text(PATCHES_TORCH)
        [found] = findings(python)
        assert (found.kind, found.where, found.disqualifies) == ("start-up-hook", str(hook), True)

    def test_sitecustomize_in_a_folder_that_a_path_file_names(self, python, tmp_path):
        (tmp_path / "elsewhere").mkdir()
        (tmp_path / "elsewhere/sitecustomize.py").write_text(PATCHES_TORCH)
        (site_of(python) / "paths.pth").write_text(f"{tmp_path}/elsewhere\n")
        assert told(findings(python)) == [("start-up-hook", True)]
        output = run(python, "-c", "import sys; print(sys.modules['torch'].__name__)")
        assert output.strip() == "json", "the trick does work"

    def test_sitecustomize_that_does_nothing(self, python):
        (site_of(python) / "sitecustomize.py").write_text('"""Nothing yet."""\n# nothing\n')
        assert findings(python) == []

    def test_usercustomize(self, python):
        (site_of(python) / "usercustomize.py").write_text(PATCHES_TORCH)
        assert told(findings(python)) == [("start-up-hook", False)], "nothing starts it here"
        configuration = python.parent.parent / "pyvenv.cfg"
        text = configuration.read_text().replace("packages = false", "packages = true")
        configuration.write_text(text)
        own = [one for one in findings(python) if "usercustomize" in one.where]
        assert told(own) == [("start-up-hook", True)]

    def test_usercustomize_of_the_home(self, tmp_path):
        python = pyenv_python("3.12")
        site = tmp_path / ".local/lib/python3.12/site-packages"
        site.mkdir(parents=True)
        since = before_now_ns()
        (site / "usercustomize.py").write_text(PATCHES_TORCH)
        found = findings(python, since_ns=since, home=tmp_path, box_root="/no/box")
        assert told(found) == [("start-up-hook", True)]

    def test_a_known_hook_whose_module_was_changed(self, tmp_path):
        python = bundled_tools(tmp_path / "env")
        module = site_of(python) / "_distutils_hack/__init__.py"
        module.write_text(module.read_text() + PATCHES_TORCH)
        [found] = [one for one in findings(python) if one.kind == "start-up-hook"]
        assert found.disqualifies
        assert f"imports {module}, which differs from what setuptools-" in found.what

    def test_a_changed_patch_of_virtualenv(self, tmp_path):
        python = uv_venv(tmp_path / "env", pyenv_python("3.8"))
        module = site_of(python) / "_virtualenv.py"
        module.write_text(module.read_text() + PATCHES_TORCH)
        assert told(findings(python)) == [("start-up-hook", True)]

    def test_a_patch_of_virtualenv_of_a_version_that_is_not_known(self, tmp_path):
        python = uv_venv(tmp_path / "env", pyenv_python("3.8"))
        module = site_of(python) / "_virtualenv.py"
        module.write_text(module.read_text() + "\nANOTHER = 1\n")
        assert told(findings(python)) == [("start-up-hook", False)]

    def test_a_distributions_own_hook(self, python, tmp_path):
        harmless = {"mine.pth": "import mine_hook\n", "mine_hook.py": "import os\nX = os.sep\n"}
        install(python, wheel(tmp_path, "mine", "1.0", harmless))
        [found] = findings(python)
        assert told([found]) == [("start-up-hook", False)]
        assert "listed by mine-1.0.dist-info" in found.what

    def test_a_distributions_own_hook_that_changes_torch(self, python, tmp_path):
        files = {"mine.pth": "import mine_hook\n", "mine_hook.py": PATCHES_TORCH}
        install(python, wheel(tmp_path, "mine", "1.0", files))
        [found] = findings(python)
        assert found.disqualifies
        assert "reaches for" in found.what

    def test_a_distributions_hook_that_was_changed_later(self, python, tmp_path):
        files = {"mine.pth": "import mine_hook\n", "mine_hook.py": "import os\n"}
        install(python, wheel(tmp_path, "mine", "1.0", files))
        module = site_of(python) / "mine_hook.py"
        module.unlink()  # it may be the cache's own file by a second name
        module.write_text("import os\nos.environ['X'] = '1'\n")
        [found] = [one for one in findings(python) if one.kind == "start-up-hook"]
        assert found.disqualifies
        assert "differs from what mine-1.0.dist-info lists" in found.what

    @pytest.mark.parametrize("name", ["_mine_editable.py", "__editable___mine_1_0_finder.py"])
    def test_what_is_only_named_like_an_editable_install(self, python, tmp_path, name):
        module = name.removesuffix(".py")
        line = f"import {module}"
        if "finder" in name:
            line += f"; {module}.install()"
        install(python, wheel(tmp_path, "mine", "1.0", {"m.pth": line, name: PATCHES_TORCH}))
        assert told(findings(python)) == [("start-up-hook", True)]

    def test_a_start_file(self, python):
        (site_of(python) / "mine.start").write_text("mine_hook:main\n")
        assert told(findings(python)) == [("start-up-hook", True)]

    def test_a_file_that_replaces_the_search_path(self, python):
        (python.parent / "python._pth").write_text("/evil\n")
        [found] = findings(python)
        assert found.disqualifies
        assert "search path" in found.what

    def test_a_base_with_a_module_of_its_own(self, tmp_path, python):
        version = f"python{sys.version_info.major}.{sys.version_info.minor}"
        base, real = tmp_path / "base", Path(sys.base_prefix)
        (base / "bin").mkdir(parents=True)
        (base / "lib" / version).mkdir(parents=True)
        shutil.copy2((real / "bin" / version).resolve(), base / "bin" / version)
        for entry in (real / "lib" / version).iterdir():
            if entry.name != "site-packages":
                (base / "lib" / version / entry.name).symlink_to(entry)
        python.unlink()
        python.symlink_to(base / "bin" / version)
        configuration = python.parent.parent / "pyvenv.cfg"
        configuration.write_text(f"home = {base}/bin\nversion = {sys.version.split()[0]}\n")
        assert findings(python) == []
        module = base / "lib" / version / "argparse.py"
        module.unlink()
        module.write_text(PATCHES_TORCH)
        [found] = findings(python)
        assert (found.where, found.disqualifies) == (str(module), True)

    def test_what_was_there_before_the_build_is_the_hosts(self, python):
        (site_of(python) / "zz.pth").write_text("import os; os.environ['X'] = '1'\n")
        since = before_now_ns()
        assert findings(python, since_ns=since, box_root="/no/box") == []
        assert told(findings(python, since_ns=since, box_root=python.parent.parent)) == [
            ("start-up-hook", True)
        ], "what lies in the box was built"
        (site_of(python) / "zzz.pth").write_text("import os; os.environ['Y'] = '1'\n")
        assert [one.where for one in findings(python, since_ns=since, box_root="/no/box")] == [
            str(site_of(python) / "zzz.pth")
        ]

    def test_libraries_that_are_loaded_into_every_process(self, tmp_path):
        root = tmp_path / "root"
        (root / "etc").mkdir(parents=True)
        (root / "opt/bin").mkdir(parents=True)
        shutil.copy(Path(sys.executable).resolve(), root / "opt/bin/python")
        (root / "etc/ld.so.preload").write_text("# nothing\n")
        assert findings("/opt/bin/python", root=root) == []
        (root / "lib").mkdir()
        (root / "lib/evil.so").write_bytes(b"x")
        (root / "etc/ld.so.preload").write_text("/lib/evil.so\n")
        [found] = findings("/opt/bin/python", root=root)
        assert found.disqualifies
        assert found.where == "/etc/ld.so.preload"
        assert "/lib/evil.so" in found.what

    def test_activation_scripts_that_set_what_starts(self, tmp_path):
        python = _conda_prefix(tmp_path / "conda", sys.base_prefix)
        scripts = tmp_path / "conda/etc/conda/activate.d"
        scripts.mkdir(parents=True)
        (scripts / "a.sh").write_text("export GDAL_DATA=/x\nexport LD_LIBRARY_PATH=/y\n")
        assert findings(python) == []
        (scripts / "b.sh").write_text("export PYTHONPATH=/evil\n")
        [found] = findings(python)
        assert (found.kind, found.where) == ("loader-variable", str(scripts / "b.sh"))
        assert "PYTHONPATH" in found.what

    def test_a_conda_package_may_bring_a_hook_and_nobody_may_change_it(self, tmp_path):
        python = _conda_prefix(tmp_path / "conda", sys.base_prefix)
        site = site_of(python)
        (site / "own.pth").write_text("import os\n")
        listed = {
            "_path": str((site / "own.pth").relative_to(tmp_path / "conda")),
            "sha256": hashlib.sha256(b"import os\n").hexdigest(),
        }
        (tmp_path / "conda/conda-meta/own-1.0-0.json").write_text(
            json.dumps({"name": "own", "paths_data": {"paths": [listed]}})
        )
        assert told(findings(python)) == [("start-up-hook", False)]
        (site / "own.pth").write_text("import os;\n")
        assert told(findings(python)) == [("start-up-hook", True)]


class TestWhatIsWrittenDown:
    def test_a_hook_disqualifies_and_an_honest_environment_does_not(self, tmp_path, python):
        repository = tmp_path / "repository"
        repository.mkdir()
        (repository / "main.py").write_text("import json\n")

        def judged(name):
            return verify(repository, str(python), levels=(Level.C2,), out=tmp_path / name)

        record = judged("one")
        assert record.findings == ()
        assert record.status is AttemptStatus.OK
        (site_of(python) / "zz.pth").write_text("import os; os.environ['X'] = '1'\n")
        record = judged("two")
        assert [finding.kind for finding in record.findings] == ["start-up-hook"]
        assert record.status is AttemptStatus.DISQUALIFIED

    @pytest.mark.parametrize("path", ["/bin/true", "/no/such/python", "/tmp"])
    def test_what_is_no_interpreter_is_asked_for_again(self, tmp_path, path):
        repository = tmp_path / "repository"
        repository.mkdir()
        (repository / "main.py").write_text("import json\n")
        with pytest.raises(RebError, match=path):
            verify(repository, path, levels=(Level.C2,), out=tmp_path / "results")

    def test_digests_are_written_as_in_records(self):
        assert digest(b"") == "47DEQpj8HBSa-_TImW-5JCeuQeRkm5NMpJWZG3hSuFU"


def _conda_prefix(folder, base):
    """A prefix with a copy of the interpreter and of its library, and conda's list of files."""
    version = f"python{sys.version_info.major}.{sys.version_info.minor}"
    (folder / "bin").mkdir(parents=True)
    library = Path(base) / "lib" / version
    if not (library / "os.py").is_file():
        pytest.skip(f"there is no library of Python in {library}")
    shutil.copytree(
        library,
        folder / "lib" / version,
        ignore=shutil.ignore_patterns(
            "site-packages", "dist-packages", "test", "tests", "idlelib", "__pycache__",
            "config-*", "ensurepip", "lib2to3", "turtledemo",
        ),
    )  # fmt: skip
    (folder / "lib" / version / "site-packages").mkdir()
    program = (Path(base) / "bin" / version).resolve()
    shutil.copy2(program, folder / "bin" / version)
    (folder / "bin/python").symlink_to(version)
    (folder / "conda-meta").mkdir()
    (folder / "conda-meta/python-3.json").write_text(
        json.dumps({"name": "python", "paths_data": {"paths": [{"_path": f"bin/{version}"}]}})
    )
    return folder / "bin" / "python"


def _old_setuptools(folder):
    """An environment with a setuptools that still installs by itself, and a package for it."""
    python = bundled_tools(folder / "env")
    source = folder / "source"
    (source / "space/core").mkdir(parents=True)
    (source / "space/__init__.py").write_text(
        "__import__('pkg_resources').declare_namespace(__name__)\n"
    )
    (source / "space/core/__init__.py").write_text("VALUE = 3\n")
    (source / "setup.py").write_text(
        "from setuptools import setup\n"
        "setup(name='space.core', version='1.0', packages=['space', 'space.core'],\n"
        "      namespace_packages=['space'], zip_safe=False)\n"
    )
    return python, source
