"""Whatever a new machine lacks is named in one line, with the command that installs it."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
#: What every Debian has; the rest is put on PATH by the tests.
BASE = ("sh", "dirname", "cksum", "cat", "date", "id", "rm")


@pytest.fixture
def checkout(tmp_path: Path) -> Path:
    """A checkout in a folder with a space in its name, and an empty folder of programs."""
    folder = tmp_path / "a checkout"
    (folder / "scripts").mkdir(parents=True)
    shutil.copy2(ROOT / "scripts/bootstrap", folder / "scripts")
    shutil.copy2(ROOT / "pyproject.toml", folder)
    (folder / "bin").mkdir()
    for name in BASE:
        found = shutil.which(name)
        assert found
        (folder / "bin" / name).symlink_to(found)
    return folder


def program(checkout: Path, name: str, text: str) -> None:
    path = checkout / "bin" / name
    path.write_text(f"#!/bin/sh\n{text}\n")
    path.chmod(0o755)


def bootstrap(checkout: Path, mode: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [checkout / "scripts/bootstrap", mode],
        env={"PATH": str(checkout / "bin"), "PIP_USER": "1"},
        capture_output=True,
        text=True,
        check=False,
    )


REAL = f'exec "{sys.executable}" "$@"'
WITHOUT_VENV = f'case "$*" in *ensurepip*) exit 1;; *) {REAL};; esac'
OLD = 'case "$*" in *version_info\\[:2\\]*) echo 3.9;; *) exit 1;; esac'
SUDO = "" if os.getuid() == 0 else "sudo "


@pytest.mark.parametrize(
    ("programs", "line"),
    [
        (
            {},
            (
                "Python 3.11 or newer, git and a C++ compiler are missing: "
                f"{SUDO}apt-get install python3 python3-venv python3-dev git g++"
            ),
        ),
        (
            {"python3": OLD, "git": "", "g++": ""},
            (
                "Python 3.11 or newer (python3 is 3.9) is missing: "
                f"{SUDO}apt-get install python3.11 python3.11-venv python3.11-dev"
            ),
        ),
        (
            {"python3": WITHOUT_VENV, "g++": ""},
            f"Python's venv and git are missing: {SUDO}apt-get install python3-venv git",
        ),
        ({"python3": REAL, "c++": ""}, f"git is missing: {SUDO}apt-get install git"),
    ],
    ids=["nothing", "old Python", "no venv", "no git"],
)
def test_what_is_missing_is_one_line(checkout: Path, programs: dict[str, str], line: str) -> None:
    for name, text in programs.items():
        program(checkout, name, text)
    done = bootstrap(checkout, "demo")
    assert (done.returncode, done.stderr, done.stdout) == (1, f"{line}\n", "")


def test_tests_go_on_without_what_only_some_need(checkout: Path) -> None:
    """The environment is made; that no package can be installed then ends it with a reason."""
    program(checkout, "python3", REAL)
    (checkout / "pyproject.toml").write_text(
        '[build-system]\nrequires = []\nbuild-backend = "no"\n'
    )
    done = bootstrap(checkout, "dev")
    assert done.returncode == 1
    assert done.stderr.startswith(
        "git and a C++ compiler are missing, so that some tests will be skipped: "
    )
    assert done.stdout.startswith("Making a virtual environment in .venv with Python 3.")


def test_what_is_done_takes_no_time(checkout: Path) -> None:
    binaries = checkout / ".venv" / "bin"
    binaries.mkdir(parents=True)
    for name in ("python", "reb"):
        (binaries / name).write_text("#!/bin/sh\n")
        (binaries / name).chmod(0o755)
    state = subprocess.run(
        ["sh", "-c", "pwd; cksum pyproject.toml scripts/bootstrap"],
        cwd=checkout,
        capture_output=True,
        text=True,
        check=True,
    )
    (checkout / ".venv/.ready-demo").write_text(state.stdout)
    done = bootstrap(checkout, "demo")
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")
    (checkout / "pyproject.toml").write_text("# changed\n")
    assert bootstrap(checkout, "demo").returncode == 1
