"""The versions that a bug report needs."""

from __future__ import annotations

import platform
import shutil
import subprocess
from importlib import metadata

from .. import __version__


def versions() -> list[tuple[str, str]]:
    """This package, its interpreter, and the programs that it drives."""
    return [
        ("researchenvbench", __version__),
        ("python", platform.python_version()),
        ("uv", metadata.version("uv")),
        ("pyright", metadata.version("pyright")),
        ("git", _first_line("git", "--version").removeprefix("git version ")),
        ("util-linux", _first_line("unshare", "--version").rpartition(" ")[2]),
    ]


def _first_line(program: str, *arguments: str) -> str:
    if shutil.which(program) is None:
        return "not installed"
    done = subprocess.run([program, *arguments], capture_output=True, text=True, check=False)
    lines = done.stdout.splitlines()
    return lines[0].strip() if lines else "unknown"
