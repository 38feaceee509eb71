"""Byte code in place of a source, and modules that were added to a standard library."""

from __future__ import annotations

import hashlib
import json
import shutil
from pathlib import Path

import pytest
from environments import findings, needs_work, pyenv_python, run, site_of, told, uv_venv

MARKS = "import sys\nsys.marked = True\n"
SAYS = "import sys; print(hasattr(sys, 'marked'))"
FORMS = ["unchecked", "unchecked, right hash", "checked", "time"]


def a_base(folder, version="3.11"):
    """A Python of its own, whose library can be damaged."""
    real = pyenv_python(version).parent.parent
    (folder / "bin").mkdir(parents=True)
    shutil.copy2((real / f"bin/python{version}").resolve(), folder / f"bin/python{version}")
    shutil.copytree(
        real / f"lib/python{version}",
        folder / f"lib/python{version}",
        ignore=shutil.ignore_patterns("test", "tests", "__pycache__", "config-*", "idlelib",
                                      "site-packages", "ensurepip", "lib2to3"),
    )  # fmt: skip
    (folder / f"lib/python{version}/site-packages").mkdir()
    return folder / f"bin/python{version}"


@pytest.fixture
def base(tmp_path):
    """The interpreter of such a Python."""
    return a_base(tmp_path / "base")


def a_hook(python):
    """A hook that does nothing, and so is none that is a finding."""
    source = site_of(python) / "sitecustomize.py"
    if not source.exists():
        source.write_text('"""Nothing."""\n')
    return source


def forge(python, source, form, code=MARKS):
    """Byte code of other code in the cache of a source, that the interpreter believes."""
    script = """if 1:
        import importlib.util, marshal, os, sys
        source, form, code = sys.argv[1:]
        content = open(source, "rb").read()
        status = os.stat(source)
        word = lambda number: int(number).to_bytes(4, "little")
        right = importlib.util.source_hash(content)
        head = {
            "unchecked": word(1) + bytes(8),
            "unchecked, right hash": word(1) + right,
            "checked": word(3) + right,
            "time": word(0) + word(status.st_mtime) + word(status.st_size),
            "old": word(0) + word(status.st_mtime - 9) + word(status.st_size),
        }[form]
        cache = importlib.util.cache_from_source(source)
        os.makedirs(os.path.dirname(cache), exist_ok=True)
        code = marshal.dumps(compile(code, source, "exec"))
        open(cache, "wb").write(importlib.util.MAGIC_NUMBER + head + code)
        print(cache)
    """
    return run(python, "-I", "-S", "-B", "-c", script, source, form, code).strip()


class TestOfHooks:
    @pytest.mark.parametrize("form", FORMS)
    def test_of_a_tool_that_is_known(self, tmp_path, form):
        python = uv_venv(tmp_path / "env")
        cache = forge(python, a_hook(python), form)
        needs_work(python, SAYS)
        [found] = findings(python)
        assert (found.kind, found.disqualifies) == ("start-up-hook", True)
        assert (found.where, "byte code" in found.what) == (cache, True)

    @pytest.mark.parametrize("version", ["3.8", "3.13"])
    def test_of_other_versions(self, tmp_path, version):
        python = uv_venv(tmp_path / "env", pyenv_python(version))
        forge(python, a_hook(python), "time", "import sys, evl\n")
        assert told(findings(python)) == [("start-up-hook", True)]
        forge(python, a_hook(python), "unchecked", "import sys\n")
        assert told(findings(python)) == [("start-up-hook", True)]

    def test_one_that_is_made_anew_is_not_run(self, tmp_path):
        python = uv_venv(tmp_path / "env")
        forge(python, a_hook(python), "old")
        assert findings(python) == []
        assert run(python, "-c", SAYS) == "False\n"

    @pytest.mark.parametrize("version", ["3.6", "3.7", "3.9", "3.11", "3.13"])
    def test_what_the_interpreter_makes_belongs_to_it(self, tmp_path, version):
        python = uv_venv(tmp_path / "env", pyenv_python(version))
        source = a_hook(python)
        modes = ("TIMESTAMP", "CHECKED_HASH", "UNCHECKED_HASH") if version != "3.6" else ("",)
        for mode in modes:
            kind = f", invalidation_mode=py_compile.PycInvalidationMode.{mode}" if mode else ""
            code = f"import py_compile; py_compile.compile({str(source)!r}{kind})"
            run(python, "-c", code)
            assert list(source.parent.glob("__pycache__/sitecustomize.*.pyc"))
            assert findings(python) == [], mode

    def test_byte_code_that_cannot_be_read(self, tmp_path):
        python = uv_venv(tmp_path / "env")
        cache = forge(python, a_hook(python), "time")
        cache = Path(cache)
        whole = cache.read_bytes()
        cache.write_bytes(whole[:40])
        assert told(findings(python)) == [("start-up-hook", True)]
        cache.write_bytes(whole[:16] + b"(\xff\xff\xff\x7f" + b"(\1\0\0\0" * 100_000)
        assert told(findings(python)) == [("start-up-hook", True)]


class TestOfTheLibrary:
    def test_what_no_start_imports(self, base):
        library = base.parent.parent / "lib/python3.11"
        cache = forge(base, library / "fnmatch.py", "unchecked")
        needs_work(base, f"import fnmatch; {SAYS}")
        [found] = findings(base)
        assert (found.kind, found.where, found.disqualifies) == ("start-up-hook", cache, True)

    @pytest.mark.parametrize("form", FORMS)
    def test_what_a_start_imports(self, base, form):
        source = base.parent.parent / "lib/python3.11/encodings/__init__.py"
        code = source.read_text() + MARKS
        forge(base, source, form, code)
        needs_work(base, SAYS)
        assert told(findings(base)) == [("start-up-hook", True)]

    @pytest.mark.parametrize("version", ["3.9", "3.11"])
    def test_all_of_it_with_a_hash_that_is_not_looked_at(self, tmp_path, version):
        python = a_base(tmp_path / "base", version)
        library = tmp_path / f"base/lib/python{version}"
        mode = ["--invalidation-mode", "unchecked-hash"]
        run(python, "-I", "-m", "compileall", "-f", "-q", *mode, library)
        assert findings(python) == []
        (library / "encodings/aliases.py").write_text("")
        assert told(findings(python)) == [("start-up-hook", True)]

    def test_those_of_this_machine_are_clean(self):
        for version in ("3.8", "3.10", "3.12", "3.13"):
            found = findings(pyenv_python(version), since_ns=0)
            assert [one for one in found if "byte code" in one.what] == []


class TestAddedModules:
    def test_a_package_before_a_module(self, base):
        library = base.parent.parent / "lib/python3.11"
        (library / "fnmatch").mkdir()
        (library / "fnmatch/__init__.py").write_text(MARKS)
        needs_work(base, f"import fnmatch; {SAYS}")
        [found] = findings(base)
        assert found.kind == "distribution-changed"
        assert found.files == (f"{library}/fnmatch/__init__.py",)

    def test_an_extension_before_a_module(self, base):
        library = base.parent.parent / "lib/python3.11"
        (library / "json/decoder.abi3.so").write_bytes(b"\x7fELF")
        [found] = findings(base)
        assert found.files == (f"{library}/json/decoder.abi3.so",)

    @pytest.mark.parametrize(
        "name", ["torch.py", "torch.pyc", "torch/__init__.so", "lib-dynload/torch.so"]
    )
    def test_what_condas_list_does_not_have(self, base, name):
        prefix = base.parent.parent
        library = prefix / "lib/python3.11"
        paths = [
            {
                "_path": str(file.relative_to(prefix)),
                "sha256": hashlib.sha256(file.read_bytes()).hexdigest(),
            }
            for file in library.rglob("*")
            if file.is_file()
        ]
        (prefix / "conda-meta").mkdir()
        listed = {"paths_data": {"paths": paths}}
        (prefix / "conda-meta/python-3.11.7-0.json").write_text(json.dumps(listed))
        (library / "EXTERNALLY-MANAGED").touch()
        (library / "_sysconfigdata__linux_x86_64-linux-gnu.py").touch()
        (library / "site-packages/mine.py").touch()
        run(base, "-I", "-c", "import fnmatch, json")
        assert (library / "__pycache__").is_dir()
        assert findings(base) == []
        added = library / name
        added.parent.mkdir(exist_ok=True)
        added.touch()
        [found] = findings(base)
        assert (found.kind, found.files) == ("distribution-changed", (str(added),))

    def test_python_2_has_its_byte_code_beside_the_source(self, tmp_path):
        from researchenvbench.standalone.look.distributions import changed_library
        from researchenvbench.standalone.look.paths import Root

        library = tmp_path / "lib/python2.7"
        (library / "json").mkdir(parents=True)
        for name in ("os.py", "os.pyc", "os.pyo", "json/__init__.py", "json/__init__.pyc"):
            (library / name).touch()
        order = {"prefixes": [str(tmp_path)], "libraries": [str(library)]}
        assert changed_library(Root(), order) == []
