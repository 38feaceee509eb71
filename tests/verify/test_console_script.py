"""A console script is run by the judged interpreter, by whatever of its names; nothing else is."""

from __future__ import annotations

import shutil
import subprocess
import sys
import venv
import zipfile
from typing import TYPE_CHECKING

import pytest
import uv

from researchenvbench.sandbox.local.adopted import adopted_box
from researchenvbench.verify.console_script import path_problem, script_problem
from researchenvbench.verify.interpreter import Interpreter, ask

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from researchenvbench.sandbox import StageBox

UV = uv.find_uv_bin()
LONG = "x" * 130


@pytest.fixture
def box(tmp_path: Path) -> Iterator[StageBox]:
    (tmp_path / "repo").mkdir()
    with adopted_box(tmp_path / "repo", None, tmp_path / "scratch", network=False) as opened:
        yield opened


def make_wheel(folder: Path) -> None:
    """A wheel with a console script."""
    info = "gradkit-1.0.dist-info"
    with zipfile.ZipFile(folder / "gradkit-1.0-py3-none-any.whl", "w") as wheel:
        wheel.writestr("gradkit.py", "def main(): print('done')\n")
        wheel.writestr(f"{info}/METADATA", "Metadata-Version: 2.1\nName: gradkit\nVersion: 1.0\n")
        wheel.writestr(
            f"{info}/WHEEL", "Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n"
        )
        wheel.writestr(
            f"{info}/entry_points.txt", "[console_scripts]\ngradkit-run = gradkit:main\n"
        )
        names = ("gradkit.py", *(f"{info}/{name}" for name in ("METADATA", "WHEEL", "RECORD")))
        wheel.writestr(f"{info}/RECORD", "".join(f"{name},,\n" for name in names))


def interpreter_at(box: StageBox, python: Path) -> Interpreter:
    answer, why = ask(box, str(python), {"PATH": "/usr/bin:/bin"}, box.layout.repo.with_name("log"))
    assert answer, why
    return answer


def problem(box: StageBox, env: Path, script: str, judged: str = "python") -> str | None:
    """What is said of a script in the environment, which judges by another name of its Python."""
    file = env / "bin" / "run-it"
    file.write_text(script.replace("BIN", str(env / "bin")))
    return script_problem(file, interpreter_at(box, env / "bin" / judged), frozenset(), box)


@pytest.fixture
def env(tmp_path: Path) -> Path:
    made = tmp_path / "env"
    venv.create(made, symlinks=True)
    return made


@pytest.mark.parametrize("judged", ["python", "python3"])
@pytest.mark.parametrize(
    "script",
    [
        "#!BIN/python\nimport adder",
        "#!BIN/python3 -sE\nimport adder",
        "#!/usr/bin/env python\nimport adder",
        "#!/usr/bin/env python3\nimport adder",
        "#!/bin/sh\n'''exec' \"BIN/python\" \"$0\" \"$@\"\n' '''\nimport adder",
        "#!/bin/sh\n'''exec' \"BIN/python\" \"$0\" \"$@\" #'''\nimport adder",
        "#!/bin/sh\n'''exec' 'BIN/python3' \"$0\" \"$@\"\n' '''\nimport adder",
        "#!/bin/sh\n'''exec' BIN/python3 \"$0\" \"$@\"\n' '''\nimport adder",
    ],
)
def test_each_name_of_the_judged_python_is_its_own(
    box: StageBox, env: Path, script: str, judged: str
) -> None:
    assert problem(box, env, script, judged) is None


@pytest.mark.parametrize(
    "script",
    [
        "#!/usr/bin/env\n# BIN/python\n",
        "#!/bin/sh\n# BIN/python\necho done",
        "#!python\nimport adder",
        "#!BIN/python -cprint('done')\n",
        "#!BIN/absent\n",
        "#!/a\0b\n",
        "#!/bin/sh\n'''exec' BIN/python -c 'print()' \"$0\" \"$@\"\n' '''\n",
        "#!/bin/sh\n'''exec' BIN/python;echo \"$0\" \"$@\"\n' '''\n",
        "#!/bin/sh\n'''exec' \"BIN/$(echo python)\" \"$0\" \"$@\"\n' '''\n",
        "#!/bin/sh\n'''exec' \"BIN/python \"$0\" \"$@\"\n' '''\n",
        f"#!{sys.base_prefix}/bin/python3\nimport adder",  # the same program in another prefix
    ],
)
def test_what_is_run_by_something_else_is_said(box: StageBox, env: Path, script: str) -> None:
    told = problem(box, env, script)
    assert told
    assert "another interpreter" in told


@pytest.mark.parametrize(
    ("plays", "script"),
    [
        ("#!/bin/sh\necho step 1 loss 0.1\n", "#!BIN/python\n"),
        ("#!/bin/sh\necho step 1 loss 0.1\n", "#!/usr/bin/env python\n"),
        ('#!/bin/sh\nPYTHONPATH=/evil exec BIN/python3 "$@"\n', "#!BIN/python\n"),
        ('#!/bin/sh\nexec OTHER/bin/python "$@"\n', "#!BIN/python\n"),
    ],
)
def test_a_second_python_is_no_other_name_of_the_judged_one(
    box: StageBox, env: Path, tmp_path: Path, plays: str, script: str
) -> None:
    venv.create(tmp_path / "other", symlinks=True)
    python = env / "bin" / "python"
    for name in ("python", "python3"):
        (env / "bin" / name).unlink()
    (env / "bin" / "python3").symlink_to(sys._base_executable)  # type: ignore[attr-defined]
    text = plays.replace("BIN", str(env / "bin")).replace("OTHER", str(tmp_path / "other"))
    python.write_text(text)
    python.chmod(0o755)
    told = problem(box, env, script, "python3")
    assert told
    assert "another interpreter" in told
    beside = path_problem(interpreter_at(box, env / "bin" / "python3"), box)
    assert (beside is not None) is ("OTHER" not in plays)


def test_a_script_that_only_starts_the_judged_one_is_fine(box: StageBox, env: Path) -> None:
    (env / "bin" / "python").unlink()
    (env / "bin" / "python3").unlink()
    (env / "bin" / "python3").symlink_to(sys._base_executable)  # type: ignore[attr-defined]
    (env / "bin" / "python").write_text(f'#!/bin/sh\nexec {env}/bin/python3 "$@"\n')
    (env / "bin" / "python").chmod(0o755)
    assert problem(box, env, "#!BIN/python\n", "python3") is None
    assert path_problem(interpreter_at(box, env / "bin" / "python3"), box) is None


def test_a_venv_of_copies_has_one_interpreter(box: StageBox, env: Path) -> None:
    for name in ("python", "python3"):
        (env / "bin" / name).unlink()
        shutil.copy(sys._base_executable, env / "bin" / name)  # type: ignore[attr-defined]
    assert problem(box, env, "#!BIN/python3\n") is None
    with (env / "bin" / "python3").open("ab") as stream:
        stream.write(b"\0")
    told = problem(box, env, "#!BIN/python3\n")
    assert told
    assert "another interpreter" in told


def test_a_script_that_was_changed_or_is_not_there_is_said(box: StageBox, env: Path) -> None:
    script, python = env / "bin" / "run-it", interpreter_at(box, env / "bin" / "python")
    told = script_problem(script, python, frozenset(), box)
    assert told
    assert "is not in the environment" in told
    script.write_text(f"#!{env}/bin/python\n")
    told = script_problem(script, python, frozenset({str(script)}), box)
    assert told
    assert "not what its distribution brought" in told


@pytest.mark.parametrize(
    ("folder", "options"), [("env", ()), (LONG, ()), ("a b", ()), ("env", ("--relocatable",))]
)
def test_what_uv_writes_is_fine(
    box: StageBox, tmp_path: Path, folder: str, options: tuple[str, ...]
) -> None:
    made = tmp_path / folder
    make_wheel(tmp_path)
    python = made / "bin" / "python"
    offline = ("--offline", "--no-config", "--quiet")
    base = sys._base_executable  # type: ignore[attr-defined]
    subprocess.run([UV, "venv", *offline, *options, "--python", base, made], check=True)
    subprocess.run(
        [
            *(UV, "pip", "install", *offline, "--no-index", "--python", python),
            *("--find-links", tmp_path, "gradkit"),
        ],
        check=True,
    )
    judged = interpreter_at(box, python)
    script = made / "bin" / "gradkit-run"
    assert script_problem(script, judged, frozenset(), box) is None
    assert path_problem(judged, box) is None
    # A shell finds by PATH what a script that can be moved calls, and nothing else does.
    for name in ("dirname", "realpath"):
        (made / "bin" / name).write_text("#!/bin/sh\necho /elsewhere\n")
        found = script_problem(script, judged, frozenset(), box)
        calls = bool(options) and f"$({name} " in script.read_text()
        assert (f"/bin/{name} comes before the system's" in (found or "")) is calls
        (made / "bin" / name).unlink()
    assert not options or "$(dirname " in script.read_text()
