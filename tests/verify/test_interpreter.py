"""Is the reported interpreter one? Asked of real ones, and of things that pretend to be one."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
import sys
import sysconfig
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from researchenvbench.sandbox.host_environment import host_environment
from researchenvbench.sandbox.local.sandbox import LocalSandbox
from researchenvbench.verify import interpreter
from researchenvbench.verify.integrity.launch import wrapper_findings
from researchenvbench.verify.interpreter import Interpreter, ask

if TYPE_CHECKING:
    from collections.abc import Iterator

    from researchenvbench.sandbox import StageBox


PYENV = Path.home() / ".pyenv"
SHIM = """#!/usr/bin/env bash
set -e
[ -n "$PYENV_DEBUG" ] && set -x

program="${{0##*/}}"

{more}export PYENV_ROOT="{root}"
exec "{root}/libexec/pyenv" exec "$program" "$@"
"""


@pytest.fixture(scope="module")
def environment(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """An attempt whose frozen environment has a space in its path."""
    attempt = tmp_path_factory.mktemp("an attempt")
    source = tmp_path_factory.mktemp("source")
    sandbox = LocalSandbox()
    with sandbox.build_box(attempt, source, key="") as box:
        layout = box.layout
        subprocess.run([sys.executable, "-m", "venv", "--without-pip", str(layout.env)], check=True)
        [site] = (layout.env / "lib").glob("python*/site-packages")
        metadata = site / "torch-2.4.0+cpu.dist-info"
        metadata.mkdir()
        (metadata / "METADATA").write_text(
            "Metadata-Version: 2.1\nName: torch\nVersion: 2.4.0+cpu\n"
        )
        scripts = {
            "exits": "#!/bin/sh\nexit 0\n",
            "fails": "#!/bin/sh\necho no >&2\nexit 3\n",
            "sleeps": "#!/bin/sh\nsleep 600\n",
            "writes": '#!/bin/sh\necho \'{"nonce": 1}\' > "$6"\n',
            "broken": "#!/no/such/interpreter\n",
            "echoes": '#!/bin/sh\nprintf \'{"nonce": "%s", "product": 1}\' "$4" > "$6"\n',
            "kills": "#!/bin/sh\nkill -9 $$\n",
        }
        (layout.root / "fakes").mkdir()
        real = layout.env / "bin" / "python"
        wrappers = {
            "executes": f'#!/bin/sh\n# only this\nset -e\nexec "{real}" "$@"\n',
            "beside": f'#!/usr/bin/bash -e\nexec "{layout.root}/fakes/linked" "$@"\n',
            "exports": f'#!/bin/sh\nexport PYTHONPATH=/evil\nexec "{sys.executable}" "$@"\n',
            "adds": f'#!/bin/bash\nexec {sys.executable} -B "$@"\n',
            "assigns": f'#!/bin/sh\nX=1 exec {sys.executable} "$@"\n',
            "computes": '#!/bin/sh\nPY=$(command -v python3)\nexec "$PY" "$@"\n',
            "own-shell": f'#!{layout.root}/fakes/sh\nexec "{real}" "$@"\n',
            "by-env": f'#!/usr/bin/env bash\nexec "{real}" "$@"\n',
            "dirname": '#!/bin/sh\nexec "$(dirname "$0")/linked-python" "$@"\n',
            "beside-0": '#!/bin/sh\nexec "${0%/*}/linked-python" "$@"\n',
            "continued": f'#!/bin/sh\n# a \\\nX=1 exec "{real}" "$@"\nexec "{real}" "$@"\n',
            "form-feed": f'#!/bin/sh\n:\x0cX\n"{real}" "$@"\n',
            "long": f'#!/bin/sh\n{"#" * 70_000}\nX=1\nexec "{real}" "$@"\n',
            "braces": f'#!/bin/bash\nexec {sys.executable}{{,-c}} "$@"\n',
            "shim": SHIM.format(root=PYENV, more=""),
            "shim-more": SHIM.format(root=PYENV, more="export PYTHONPATH=/evil\n"),
            "shim-of-nothing": SHIM.format(root=layout.root, more=""),
            "pythons": (
                f"#!{sys.executable} -I\nimport os, sys\n"
                f"os.execv({sys.executable!r}, [{sys.executable!r}, *sys.argv[1:]])\n"
            ),
        }
        scripts |= wrappers
        (layout.root / "fakes" / "linked").symlink_to(real)
        (layout.root / "fakes" / "proc").symlink_to(f"/proc/self/root{sys._base_executable}")
        (layout.root / "fakes" / "linked-python").symlink_to(real)
        (layout.root / "fakes" / "sh").symlink_to("/bin/sh")
        up = "../" * len((layout.root / "fakes").parts)
        (layout.root / "fakes" / "cwd").symlink_to(f"{up}proc/self/cwd/x/python")
        (layout.root / "fakes" / "fd").symlink_to("/dev/fd/3")
        (layout.root / "fakes" / "way").symlink_to("/proc/self/cwd")
        (layout.root / "fakes" / "by-way").symlink_to("way/../python")
        (layout.root / "fakes" / "circle").symlink_to("circle")
        for name, text in scripts.items():
            (layout.root / "fakes" / name).write_text(text)
            (layout.root / "fakes" / name).chmod(0o755)
        (layout.root / "fakes" / "plain").write_text("#!/bin/sh\nexit 0\n")
        (layout.root / "fakes" / "folder").mkdir()
        # What would change an interpreter that reads the environment or the folder it is in.
        (layout.repo / "json.py").write_text("raise SystemExit('shadowed')\n")
    sandbox.freeze(attempt)
    return attempt


@pytest.fixture
def box(environment: Path) -> Iterator[StageBox]:
    with LocalSandbox().stage_box(environment, network=False, gpus=()) as opened:
        yield opened


def question(box: StageBox, path: str, log: Path) -> tuple[Interpreter | None, str]:
    variables = box.variables(host_environment({"PATH": "/usr/bin:/bin"}), installs=False)
    return ask(box, path, {**variables, "PYTHONHOME": "/nowhere"}, log)


def test_a_real_interpreter_answers(box: StageBox, tmp_path: Path) -> None:
    path = str(box.layout.env / "bin" / "python")
    assert " " in path
    found, why = question(box, path, tmp_path / "log")
    assert found is not None, why
    assert found.executable == path
    assert found.version == ".".join(map(str, sys.version_info[:3]))
    assert (found.kind, found.prefix) == ("venv", str(box.layout.env))
    assert found.frameworks == {"torch": "2.4.0+cpu"}
    assert found.purelib.startswith(found.prefix)


def test_the_systems_own_python(box: StageBox, tmp_path: Path) -> None:
    found, why = question(box, sys._base_executable, tmp_path / "log")
    assert found is not None, why
    assert found.kind in ("system", "conda")


@pytest.mark.parametrize(
    ("name", "why"),
    [
        (
            "fakes/exits",
            "is no Python interpreter: it ended with exit status 0 and no right answer",
        ),
        ("fakes/fails", "it ended with exit status 3"),
        ("fakes/writes", "no right answer"),
        ("fakes/echoes", "no right answer"),
        ("fakes/kills", "it ended with SIGKILL"),
        ("fakes/plain", "cannot be run: .*[Pp]ermission"),
        ("fakes/folder", "cannot be run: "),
        ("fakes/broken", "cannot be run: "),
        ("fakes/missing", "cannot be run: .*not found"),
    ],
)
def test_what_is_no_interpreter(box: StageBox, tmp_path: Path, name: str, why: str) -> None:
    found, reason = question(box, str(box.layout.root / name), tmp_path / "log")
    assert found is None
    assert re.search(why, reason), reason


@pytest.mark.parametrize("path", ["python", "env/bin/python", "", "~/python", "/a\0b", "-c"])
def test_a_path_that_is_not_absolute(box: StageBox, tmp_path: Path, path: str) -> None:
    found, reason = question(box, path, tmp_path / "log")
    assert found is None
    assert "is not an absolute path" in reason


def test_one_that_never_answers(
    box: StageBox, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(interpreter, "_TIME_LIMIT_S", 1.0)
    found, reason = question(box, str(box.layout.root / "fakes/sleeps"), tmp_path / "log")
    assert found is None
    assert "did not answer within 1 s" in reason


def test_activation_scripts_of_a_conda_prefix(
    tmp_path: Path,
) -> None:
    attempt, source = tmp_path / "attempt", tmp_path / "source"
    attempt.mkdir()
    source.mkdir()
    sandbox = LocalSandbox()
    with sandbox.build_box(attempt, source, key="") as box:
        prefix = box.layout.env
        subprocess.run([sys.executable, "-m", "venv", "--without-pip", str(prefix)], check=True)
        (prefix / "conda-meta").mkdir()
        scripts = prefix / "etc/conda/activate.d"
        scripts.mkdir(parents=True)
        (scripts / "a.sh").write_text('export GDAL_DATA="$CONDA_PREFIX/share"\nexport HOME=/x\n')
        (scripts / "b.csh").write_text("setenv NOT_OURS 1\n")
    sandbox.freeze(attempt)
    with sandbox.stage_box(attempt, network=False, gpus=()) as stage:
        found, why = question(stage, str(prefix / "bin/python"), tmp_path / "log")
    assert found is not None, why
    assert found.kind == "conda"
    assert found.activation == {"GDAL_DATA": f"{prefix}/share", "CONDA_PREFIX": str(prefix)}


#: What an interpreter answers beside the number that it was asked for.
OTHER_FIELDS = {
    **dict.fromkeys(("prefix", "base_prefix", "purelib", "platlib", "stdlib", "platstdlib"), "/"),
    "version": "3.11.2",
    "implementation": "cpython",
    "frameworks": {},
    "conda": False,
}


class TestWhatIsStartedInTheEnd:
    """Links, scripts and programs in front of the interpreter, or in its place."""

    @pytest.mark.parametrize("name", ["executes", "beside", "linked"])
    def test_what_only_starts_it_is_usable(self, box: StageBox, tmp_path: Path, name: str) -> None:
        path = str(box.layout.root / "fakes" / name)
        found, why = question(box, path, tmp_path / "log")
        assert found is not None, why
        if name == "executes":  # a link from elsewhere leads out of the environment
            assert found.prefix == str(box.layout.env)
        assert told(box, path) == []
        words = "(a link) -> " if name == "linked" else "(a script that only starts it) -> "
        assert f"{path} {words}" in found.leads
        assert found.leads in (tmp_path / "log").read_text()

    @pytest.mark.parametrize(
        "name",
        [
            "exports", "adds", "assigns", "own-shell", "by-env", "dirname", "beside-0",
            "continued", "form-feed", "long", "braces",
        ],
    )  # fmt: skip
    def test_what_alters_it_disqualifies(self, box: StageBox, tmp_path: Path, name: str) -> None:
        path = str(box.layout.root / "fakes" / name)
        assert told(box, path) == [("interpreter-wrapper-alters", True)]
        found, why = question(box, path, tmp_path / "log")
        if name in ("exports", "adds", "assigns", "by-env"):
            assert found is not None, why  # it is a Python, and what it says does not count

    def test_only_pyenvs_own_shim_is_one(self, box: StageBox) -> None:
        fakes = box.layout.root / "fakes"
        if not (PYENV / "libexec/pyenv").exists():
            pytest.skip("there is no pyenv here")
        assert told(box, str(fakes / "shim")) == []
        for name in ("shim-more", "shim-of-nothing"):
            assert told(box, str(fakes / name)) == [("interpreter-wrapper-alters", True)], name

    @pytest.mark.parametrize(
        ("told_by", "version"),
        [
            ("", "one"),
            ("two\n", "two"),
            ("# mine\n\n gone\ntwo more\n", "two"),
            ("3.11\n", "3.11.10"),
            ("python-3.11.9\n", "3.11.9"),
            ("../../x\n", ""),
            ("gone\n", ""),
        ],
    )
    def test_a_shim_is_what_it_starts_from_the_work_tree(
        self, box: StageBox, tmp_path: Path, told_by: str, version: str
    ) -> None:
        pyenv = tmp_path / "pyenv"
        for name in ("libexec/pyenv", "libexec/pyenv-exec", "libexec/pyenv-rehash"):
            (pyenv / name).parent.mkdir(parents=True, exist_ok=True)
            (pyenv / name).write_text("#!/bin/sh\nexit 1\n")  # nobody asks pyenv itself
        for name in ("one", "two", "3.11.9", "3.11.10"):
            (pyenv / "versions" / name / "bin").mkdir(parents=True)
            (pyenv / "versions" / name / "bin/python").symlink_to(sys.executable)
        (pyenv / "version").write_text("one\n")
        shim = pyenv / "shims/python"
        shim.parent.mkdir()
        shim.write_text(SHIM.format(root=pyenv, more=""))
        shim.chmod(0o755)
        if told_by:
            box.put(box.layout.repo / ".python-version", told_by.encode())
        variables = box.variables(host_environment({"PATH": "/usr/bin:/bin"}), installs=False)
        found, why = ask(box, str(shim), {**variables, "PYENV_VERSION": "3.11.9"}, tmp_path / "log")
        if version:
            assert found is not None, why
            assert found.executable == f"{pyenv}/versions/{version}/bin/python"
        else:
            assert found is None
            assert "ended with exit status 1" in why or "is a shim of pyenv" in why

    @pytest.mark.parametrize("name", ["computes", "pythons"])
    def test_a_script_whose_end_nobody_knows_is_none(
        self, box: StageBox, tmp_path: Path, name: str
    ) -> None:
        path = str(box.layout.root / "fakes" / name)
        found, why = question(box, path, tmp_path / "log")
        assert found is None
        assert "is a script that does not simply hand over to an interpreter" in why

    @pytest.mark.parametrize("name", ["circle", "proc", "cwd", "fd", "by-way"])
    def test_links_that_lead_nowhere_for_good(
        self, box: StageBox, tmp_path: Path, name: str
    ) -> None:
        found, why = question(box, str(box.layout.root / "fakes" / name), tmp_path / "log")
        assert found is None
        assert "leads through /proc" in why or "cannot be run" in why

    @pytest.mark.parametrize("options", [[], ["-rdynamic"]])
    def test_a_program_that_pretends(
        self, compiled: Compile, options: list[str], box: StageBox, tmp_path: Path
    ) -> None:
        path = compiled(
            """
            #include <stdio.h>
            #include <stdlib.h>
            const char *said = "Py_BytesMain PyRun_SimpleFileExFlags Py_Main";
            int Py_BytesMain(int count, char **given) { return 0; }
            int Py_Main(int count, char **given) { return 0; }
            int PyRun_SimpleFileExFlags(void) { return 0; }
            int main(int count, char **given) {
                long a, b;
                FILE *answer = fopen(given[6], "w");
                sscanf(given[5], "%ld*%ld", &a, &b);
                fprintf(answer, "{\\"nonce\\": \\"%s\\", \\"product\\": %ld, ", given[4], a * b);
                fputs(REST, answer);
                return 0;
            }
            """.replace("REST", json.dumps(json.dumps(OTHER_FIELDS)[1:])),
            *options,
        )
        found, why = question(box, path, tmp_path / "log")
        assert found is None
        assert "is a program, but neither CPython nor PyPy" in why

    @pytest.mark.parametrize("padded", [False, True])
    def test_a_program_with_all_names_that_starts_another(
        self, compiled: Compile, box: StageBox, tmp_path: Path, padded: bool
    ) -> None:
        names = [f"Py_Fake{number}" for number in range(800)]
        names += ["Py_Main", "Py_BytesMain", "PyRun_SimpleFileExFlags"]
        code = "#include <unistd.h>\n" + "".join(
            f"int {name}(void) {{ return 0; }}\n" for name in names
        )
        code += "char pad[2000000] = {1};\n" if padded else ""
        path = compiled(
            code
            + f"int main(int c, char **v) {{ return execv({json.dumps(sys.executable)}, v); }}",
            "-rdynamic",
        )
        found, why = question(box, path, tmp_path / "log")
        assert found is None
        assert "is a program, but neither CPython nor PyPy" in why

    def test_a_library_that_only_has_the_name(
        self, compiled: Compile, box: StageBox, tmp_path: Path
    ) -> None:
        folder = tmp_path / "own"
        folder.mkdir()
        (folder / "l.c").write_text(
            "#include <unistd.h>\nint Py_BytesMain(int c, char **v) "
            f"{{ return execv({json.dumps(sys.executable)}, v); }}"
        )
        library = folder / "libpython3.11.so"
        argv = ["gcc", "-shared", "-fPIC", "-o", str(library), str(folder / "l.c")]
        subprocess.run(argv, check=True)
        path = compiled(
            "int Py_BytesMain(int, char **);\n"
            "int main(int c, char **v) { return Py_BytesMain(c, v); }",
            f"-L{folder}", f"-Wl,-rpath,{folder}", "-lpython3.11",
        )  # fmt: skip
        found, why = question(box, path, tmp_path / "log")
        assert found is None
        assert "is a program, but neither CPython nor PyPy" in why

    def test_a_program_around_the_library(
        self, compiled: Compile, box: StageBox, tmp_path: Path
    ) -> None:
        folder = sysconfig.get_config_var("LIBDIR")
        library = sysconfig.get_config_var("LDLIBRARY") or ""
        if not library.endswith(".so"):
            pytest.skip("this Python has no shared library")
        path = compiled(
            """
            int Py_BytesMain(int, char **);
            int PyImport_AppendInittab(const char *, void *);
            void *evil(void) { return 0; }
            int main(int count, char **given) {
                PyImport_AppendInittab("torch", evil);
                return Py_BytesMain(count, given);
            }
            """,
            f"-L{folder}",
            f"-Wl,-rpath,{folder}",
            f"-l{library.removeprefix('lib').removesuffix('.so')}",
        )
        [(kind, disqualifies)] = told(box, path)
        assert (kind, disqualifies) == ("interpreter-wrapper-alters", True)


Compile = Callable[..., str]


@pytest.fixture
def compiled(tmp_path: Path) -> Compile:
    """Makes a program of C code."""
    if shutil.which("gcc") is None:
        pytest.skip("gcc is not installed: apt-get install gcc")

    def make(code: str, *options: str) -> str:
        (tmp_path / "program.c").write_text(code)
        program = tmp_path / "python3"
        argv = ["gcc", "-w", "-o", str(program), str(tmp_path / "program.c"), *options]
        subprocess.run(argv, check=True)
        return str(program)

    return make


def told(box: StageBox, path: str) -> list[tuple[str, bool]]:
    """The kinds of findings on a path, each with whether it disqualifies."""
    facts = box.examine("launch", {"path": path})
    return [(one.kind, one.disqualifies) for one in wrapper_findings(facts["steps"])]
