"""Building one old distribution with the tools that it was written for.

Distributions from before 2022 can have setup scripts and metadata that today's tools refuse.
They are built alone, by an old pip in a folder of its own, with old build tools that never
enter the environment, and the wheel's metadata is made legal, so that any resolver reads it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pathlib import Path

    from .workbench import Workbench

PIP = "pip<24.1"  #: the last that accepts metadata from before PEP 440 and PEP 508
_BUILD_TOOLS = "setuptools==65.5.0\nwheel==0.38.4\n"
_LIMIT_S = 1_800


def folder(bench: Workbench, name: str = "wheelhouse") -> Path:
    """A folder of wheels that were built this way."""
    return bench.folder / name


def build(bench: Workbench, requirement: str, into: str = "wheelhouse") -> list[str] | None:
    """Build, or fetch, a wheel; what was made legal in it, None where it failed."""
    python = _pip_of_old(bench)
    if python is None:
        return None
    constraint = bench.write("build-constraint.txt", _BUILD_TOOLS)
    built = bench.run(
        [python, "-m", "pip", "wheel", "--no-deps", "--wheel-dir", str(folder(bench, into)),
         requirement],
        limit_s=_LIMIT_S,
        env={"PIP_CONSTRAINT": str(constraint)},
    )  # fmt: skip
    if not built.ok:
        return None
    answer = bench.probe(python, "mend_wheels", str(folder(bench, into)))
    for line in answer or ():
        bench.decide(f"metadata made legal in {line}")
    return answer if isinstance(answer, list) else None


def _pip_of_old(bench: Workbench) -> str | None:
    """The interpreter of a folder that holds the old pip and nothing of the environment."""
    home = bench.folder / "old-pip"
    python = str(home / "bin" / "python")
    if bench.run([python, "-c", "import pip"], limit_s=60).ok:
        return python
    for command in (
        [bench.uv, "venv", "--quiet", "--python", str(bench.python), str(home)],
        [bench.uv, "pip", "install", "--quiet", "--python", python, PIP, "setuptools<66",
         "wheel<0.39"],
    ):  # fmt: skip
        if not bench.run(command, limit_s=300).ok:
            return None
    return python
