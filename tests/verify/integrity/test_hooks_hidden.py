"""Start-up hooks where, and in forms in which, one might overlook them."""

from __future__ import annotations

import hashlib
import py_compile
import shutil
import time
import zipfile

import pytest
from environments import (
    before_now_ns,
    findings,
    install,
    needs_work,
    pyenv_python,
    run,
    site_of,
    told,
    uv_venv,
    wheel,
)

from researchenvbench.standalone.look import hooks, prefix
from researchenvbench.standalone.look.paths import Root
from researchenvbench.verify.integrity import harmless
from researchenvbench.verify.integrity.prefix import findings_of
from researchenvbench.verify.integrity.variables import user_bases

MARKS = "import sys\nsys.marked = True\n"
#: As modin 0.37 and manhole 1.8 install them.
MODIN = 'import os; os.environ.get("__MODIN_AUTOIMPORT_PANDAS__", None) and __import__("pandas")\n'
MANHOLE = (
    'import os, sys;exec(\'if "PYTHONMANHOLE" in os.environ:\\n try:\\n  from manhole import '
    'install\\n  eval("install({0[PYTHONMANHOLE]})".format(os.environ))\\n '
    "except Exception as exc:\\n  sys.stderr.write("
    '"Failed to manhole.install({[PYTHONMANHOLE]}): {!r}\\\\n".format(os.environ, exc))\\n'
    "')\n"
)
SHARED = "include-system-site-packages"
SAYS = "import sys; print(hasattr(sys, 'marked'))"


@pytest.fixture
def python(tmp_path):
    """An interpreter of an environment that can be damaged."""
    return uv_venv(tmp_path / "env")


@pytest.fixture
def base(tmp_path):
    """A Python of its own, whose library can be damaged."""
    real = pyenv_python("3.11").parent.parent
    folder = tmp_path / "base"
    (folder / "bin").mkdir(parents=True)
    shutil.copy2((real / "bin/python3.11").resolve(), folder / "bin/python3.11")
    shutil.copytree(
        real / "lib/python3.11",
        folder / "lib/python3.11",
        ignore=shutil.ignore_patterns("test", "tests", "__pycache__", "config-*", "idlelib",
                                      "site-packages", "ensurepip", "lib2to3"),
    )  # fmt: skip
    (folder / "lib/python3.11/site-packages").mkdir()
    return folder


def zipped(path, name, content=MARKS):
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("other.py", "")
        archive.writestr(name, content)


class TestWhereTheyLie:
    def test_a_base_without_any_is_clean(self, base):
        assert findings(base / "bin/python3.11") == []
        assert run(base / "bin/python3.11", "-c", SAYS) == "False\n"

    def test_beside_the_compiled_modules(self, base):
        hook = base / "lib/python3.11/lib-dynload/sitecustomize.py"
        hook.write_text(MARKS)
        needs_work(base / "bin/python3.11", SAYS)
        [found] = findings(base / "bin/python3.11")
        assert (found.where, found.disqualifies) == (str(hook), True)

    @pytest.mark.parametrize("name", ["sitecustomize.py", "site-packages/mine.pth"])
    def test_in_the_library_of_a_python_by_another_name(self, base, name):
        python = (base / "bin/python3.11").rename(base / "bin/python3.12")
        (base / "lib/python3.12").mkdir()
        (base / "lib/python3.12/os.py").touch()
        code = MARKS if name.endswith(".py") else MARKS.replace("\n", "; ", 1)
        (base / "lib/python3.11" / name).write_text(code)
        assert run(python, "-c", SAYS) == "True\n", "the trick does work"
        assert told(findings(python)) == [("start-up-hook", True)]

    def test_in_a_folder_above_the_program(self, base):
        (base / "a/b/bin").mkdir(parents=True)
        python = (base / "bin/python3.11").rename(base / "a/b/bin/python3.11")
        (base / "a/lib/python3.11").mkdir(parents=True)
        shutil.move(base / "lib/python3.11/lib-dynload", base / "a/lib/python3.11")
        (base / "a/lib/python3.11/lib-dynload/sitecustomize.py").write_text(MARKS)
        assert run(python, "-c", SAYS) == "True\n", "the trick does work"
        assert told(findings(python)) == [("start-up-hook", True)]

    def test_in_the_library_of_a_build(self, base):
        (base / "bin/pybuilddir.txt").touch()
        shutil.copytree(base / "lib/python3.11", base / "bin/Lib")
        (base / "bin/Lib/sitecustomize.py").write_text(MARKS)
        assert run(base / "bin/python3.11", "-c", SAYS) == "True\n", "the trick does work"
        [found] = findings(base / "bin/python3.11")
        assert (found.where, found.disqualifies) == (str(base / "bin/pybuilddir.txt"), True)

    @pytest.mark.parametrize("folder", [False, True])
    def test_in_the_archive_before_the_library(self, base, folder):
        place = base / "lib/python311.zip"
        if folder:
            place.mkdir()
            (place / "sitecustomize.py").write_text(MARKS)
        else:
            zipped(place, "sitecustomize.py")
        needs_work(base / "bin/python3.11", SAYS)
        [found] = findings(base / "bin/python3.11")
        assert (found.where, found.disqualifies) == (str(place), True)

    def test_a_known_line_whose_module_lies_in_the_library(self, base):
        (base / "lib/python3.11/_virtualenv.py").write_text(MARKS)
        (base / "lib/python3.11/site-packages/a.pth").write_text("import _virtualenv\n")
        needs_work(base / "bin/python3.11", SAYS)
        assert told(findings(base / "bin/python3.11")) == [("start-up-hook", True)]

    @pytest.mark.parametrize("name", ["sitecustomize.py", "sitecustomize/__init__.py"])
    def test_in_an_egg_that_a_path_file_names(self, python, tmp_path, name):
        egg = tmp_path / "thing.egg"
        zipped(egg, name)
        (site_of(python) / "paths.pth").write_text(f"{egg}\n")
        needs_work(python, SAYS)
        assert told(findings(python)) == [("start-up-hook", True)]

    def test_an_egg_with_other_modules_is_none(self, python, tmp_path):
        zipped(tmp_path / "thing.egg", "thing/sitecustomize.py")
        (site_of(python) / "paths.pth").write_text(f"{tmp_path}/thing.egg\n")
        assert run(python, "-c", SAYS) == "False\n"
        assert findings(python) == []

    @pytest.mark.parametrize("name", ["sitecustomize.pyc", "sitecustomize/__init__.pyc"])
    def test_as_byte_code(self, python, tmp_path, name):
        source = tmp_path / "x.py"
        source.write_text(MARKS)
        hook = site_of(python) / name
        hook.parent.mkdir(exist_ok=True)
        py_compile.compile(str(source), cfile=str(hook), doraise=True)
        needs_work(python, SAYS)
        [found] = findings(python)
        assert (found.where, found.disqualifies) == (str(hook), True)

    def test_as_an_extension(self, python):
        hook = site_of(python) / "sitecustomize.abi3.so"
        hook.write_bytes(b"\x7fELF")
        assert told(findings(python)) == [("start-up-hook", True)]

    def test_a_path_by_way_of_proc(self, python):
        (site_of(python) / "paths.pth").write_text("/proc/self/cwd\n")
        assert told(findings(python)) == [("start-up-hook", True)]

    def test_a_home_that_the_report_names(self, tmp_path):
        site = tmp_path / "h/.local/lib/python3.12/site-packages"
        site.mkdir(parents=True)
        since = before_now_ns()
        (site / "usercustomize.py").write_text(MARKS)
        order = {
            "path": str(pyenv_python("3.12")),
            "home": "/no/home",
            "hooks": True,
            "user_bases": user_bases({"HOME": f"{tmp_path}/h"}),
        }
        assert told(findings_of(prefix.examine(order), since, "/no/box")) == [
            ("start-up-hook", True)
        ]


class TestWhatAnEnvironmentShares:
    @pytest.mark.parametrize(
        ("said", "shares"),
        [
            ("", True),
            ("include-system-site-packages = false\n", False),
            ("Include-System-Site-Packages=FALSE\n", False),
            ("include-system-site-packages = true\nprompt = x\f%s = false\n", True),
            ("include-system-site-packages = false\ninclude-system-site-packages\n", False),
            ("include-system-site-packages = true\rprompt = x\n", True),
            (f"%s = false\n{'#' * 66_000}\n%s = true\n", True),
        ],
    )
    def test_as_site_reads_it(self, tmp_path, said, shares):
        # Those from 3.11 on do not start by a large one.
        python = uv_venv(tmp_path / "env", pyenv_python("3.10"))
        configuration = tmp_path / "env/pyvenv.cfg"
        lines = configuration.read_text().splitlines()
        kept = [line for line in lines if not line.startswith(SHARED)]
        text = "\n".join([*kept, said.replace("%s", SHARED)])
        configuration.write_text(text, newline="")
        asks = "import site; print(site.ENABLE_USER_SITE is not False)"
        assert run(python, "-c", asks) == f"{shares}\n", "what the interpreter does"
        found = prefix.examine({"path": str(python), "home": "/no/home"})
        assert found["places"]["user_site"] is shares


class TestPreloadedLibraries:
    @pytest.mark.parametrize(
        ("text", "found"),
        [
            ("", False),
            ("# /usr/lib/x.so\n\n", False),
            ("libx.so.1\n", True),
            ("/not/there.so", True),
            ("#\0/usr/lib/x.so", True),
            ("# none\n:$LIB/x.so", True),
        ],
    )
    def test_any_word_is_one(self, tmp_path, text, found):
        (tmp_path / "etc").mkdir()
        (tmp_path / "etc/ld.so.preload").write_text(text)
        nowhere = {"sites": [], "libraries": [], "archives": [], "prefixes": [], "path_files": []}
        told = hooks.hooks(Root(str(tmp_path)), {**nowhere, "user_site": True})
        assert [hook["kind"] for hook in told] == ["preload"] * found


class TestFormsOfPathFiles:
    @pytest.mark.parametrize("end", ["\x0c", "\x0b", "\x1c", "\x85", "\u2028"])
    def test_lines_end_where_the_interpreter_says(self, base, end):
        site = base / "lib/python3.11/site-packages"
        (site / "a.pth").write_text(f"import os;{end}import sys; sys.marked = True\n", "utf-8")
        assert told(findings(base / "bin/python3.11")) == [("start-up-hook", True)]
        (site / "a.pth").write_text(f"# a{end}import sys; sys.marked = True\n", "utf-8")
        assert told(findings(base / "bin/python3.11")) == [("start-up-hook", True)], "as in 3.13"

    def test_a_known_line_with_more_behind_another_end(self, base):
        site = base / "lib/python3.11/site-packages"
        (site / "a.pth").write_text("import _virtualenv\x0c; import sys; sys.marked = True\n")
        (site / "_virtualenv.py").write_text("")
        needs_work(base / "bin/python3.11", SAYS)
        assert told(findings(base / "bin/python3.11")) == [("start-up-hook", True)]

    def test_a_long_one(self, python):
        hook = site_of(python) / "long.pth"
        hook.write_text("#" * 2_000_000 + f"\nimport sys; {MARKS.splitlines()[1]}\n")
        needs_work(python, SAYS)
        [found] = findings(python)
        assert (found.where, found.disqualifies) == (str(hook), True)

    def test_very_many(self, python):
        site = site_of(python)
        for number in range(5_000):
            (site / f"h{number}.pth").write_text("import os; os.sep\n")
        start = time.monotonic()
        found = findings(python)
        assert time.monotonic() - start < 30
        assert len(found) == 201
        assert all(one.disqualifies for one in found)
        assert "more start-up hooks" in found[-1].what


class TestHooksThatDistributionsList:
    @pytest.mark.parametrize(
        "code",
        [
            "import os as o\no.execv('/bin/true', ['x'])\n",
            "import subprocess\n",
            "raise SystemExit(0)\n",
            "from os import _exit as leave\nleave(0)\n",
            "import sys\nsys.settrace(None)\n",
            "getattr(__import__('o' + 's'), 'ex' + 'ecv')\n",
            "x = open('/tmp/x')\n",
            "import sys\nsys.path.insert(0, '/tmp')\n",
            "# coding: utf-7\n# +AAo-import json\n",
            "print 'old'\n",
            "#" * 70_000 + "\nimport sys\nsys.marked = True\n",
        ],
    )
    def test_what_is_not_known_to_be_harmless(self, python, tmp_path, code):
        files = {"mine.pth": "import mine_hook\n", "mine_hook.py": code}
        install(python, wheel(tmp_path, "mine", "1.0", files))
        assert told(findings(python)) == [("start-up-hook", True)]

    @pytest.mark.parametrize(
        "code",
        [
            "import warnings\nwarnings.filterwarnings('ignore', category=UserWarning)\n",
            "import os, sys\nif os.environ.get('X') and sys.version_info > (3, 5):\n    Y = 1\n",
            "import sys\nsys.path.append('/opt/mine')\n",
            "import os\ndef at(name):\n    return os.path.join('/', name)\nat('x')\n",
        ],
    )
    def test_what_is_harmless(self, python, tmp_path, code):
        files = {"mine.pth": "import mine_hook\n", "mine_hook.py": code}
        install(python, wheel(tmp_path, "mine", "1.0", files))
        assert told(findings(python)) == [("start-up-hook", False)]

    @pytest.mark.parametrize(
        ("name", "line", "module"), [("modin", MODIN, "pandas"), ("manhole", MANHOLE, "manhole")]
    )
    def test_what_sleeps_until_a_variable_is_set(self, python, tmp_path, name, line, module):
        files = {f"{name}-it.pth": line, f"{module}/__init__.py": "import json, os\nos.fork\n"}
        install(python, wheel(tmp_path, name, "1.0", files))
        run(python, "-c", "")
        assert findings(python) == []
        with (site_of(python) / f"{name}-it.pth").open("a") as stream:
            stream.write("import os; os.abort()\n")
        assert told(findings(python)) == [("start-up-hook", True)]

    def test_a_patched_tool_with_its_record(self, python, tmp_path):
        line = (
            "import os; var = 'SETUPTOOLS_USE_DISTUTILS'; enabled = os.environ.get(var, 'local') "
            "== 'local'; enabled and __import__('_distutils_hack').add_shim();"
        )
        code = "import os\n\ndef add_shim():\n    os.execv('/bin/true', ['python'])\n"
        files = {"distutils-precedence.pth": line, "_distutils_hack/__init__.py": code}
        install(python, wheel(tmp_path, "setuptools", "99.0", files))
        assert told(findings(python)) == [("start-up-hook", True)]

    def test_what_is_empty_to_us_alone(self, python):
        hook = site_of(python) / "sitecustomize.py"
        for code in ("print 'old'\n", "# coding: utf-7\n# +AAo-import json\n", "#" * 70_000):
            hook.write_text(code)
            assert told(findings(python)) == [("start-up-hook", True)], code[:20]

    def test_a_hook_of_debians_is_known_by_its_content(self, tmp_path, base):
        root = tmp_path / "root"
        (root / "usr/lib").mkdir(parents=True)
        shutil.move(base / "bin", root / "usr/bin")
        shutil.move(base / "lib/python3.11", root / "usr/lib/python3.11")
        (root / "var/lib/dpkg/info").mkdir(parents=True)
        hook, library = root / "usr/lib/python3.11/sitecustomize.py", root / "usr/lib/python3.11"

        def listed(*files):
            lines = [
                f"{hashlib.md5(file.read_bytes(), usedforsecurity=False).hexdigest()}  "
                f"{file.relative_to(root)}\n"
                for file in files
            ]
            (root / "var/lib/dpkg/info/python3.md5sums").write_text("".join(lines))

        hook.write_text("import os\nos.execv('/bin/true', ['python'])\n")
        listed(hook, library / "argparse.py", library / "json/__init__.py")
        assert told(findings("/usr/bin/python3.11", root=root)) == [("start-up-hook", True)]
        hook.unlink()
        assert findings("/usr/bin/python3.11", root=root) == []
        (library / "argparse.py").write_text("import os\n")
        [found] = findings("/usr/bin/python3.11", root=root)
        assert (found.kind, found.disqualifies) == ("distribution-changed", False)
        assert found.files == ("/usr/lib/python3.11/argparse.py",)


@pytest.mark.parametrize(
    "code",
    [
        "import mine\nmine.os.execv('a', [])\n",
        "from mine import __builtins__\n",
        "from os import execv as len\nlen('a', [])\n",
        "import sys\nf = sys.path.append\nf(1)\n",
        "import sys\na = sys.path\na[:] = []\n",
        "len = exec\nlen('1')\n",
        "def f(a=exec('1')):\n    pass\n",
        "import os\nos.environ['A'] = '1'\n",
    ],
)
def test_other_names_hide_nothing(code):
    assert harmless.strange(code, {"mine"})
    assert not harmless.strange("import mine\nmine.install('x')\n", {"mine"})


@pytest.mark.parametrize(
    "code",
    [
        "import os\nos.execv('a', [])\n",
        "import sys\nsys.settrace(None)\n",
        "import os\ndef f(x):\n    return getattr(x, 'exe' + 'cv')\nf(os)\n",
        "import importlib\nimportlib.import_module('os').system('a')\n",
        "import os as o\n",
        "def f(**k):\n    k['o' + 's'].execv('a', [])\nf(**locals())\n",
        "from os import system\n",
    ],
)
def test_a_finder_has_no_need_of(code):
    assert harmless.wild(code)
    assert not harmless.wild("import sys\nsys.meta_path.insert(0, object())\n")
