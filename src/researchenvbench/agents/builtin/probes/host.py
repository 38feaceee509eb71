"""Runs inside the box: the Pythons, compilers, local wheels and GPUs that a build can use.

Written for Python 3.8 and newer, with the standard library alone. It changes nothing.
Usage: host.py QUESTION ANSWER, where QUESTION is a JSON file with `candidates` (paths of
interpreters) and `find_links` (what pip and uv are told to look through).
"""

from __future__ import annotations

import ctypes
import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

ABOUT = (
    "import json, os, sys, sysconfig, importlib.util as u; print(json.dumps({"
    "'version': '%d.%d.%d' % sys.version_info[:3],"
    "'final': sys.version_info[3] == 'final', 'implementation': sys.implementation.name,"
    "'venv': all(u.find_spec(m) for m in ('venv', 'ssl', 'zlib', 'ctypes')),"
    "'headers': os.path.exists(os.path.join(sysconfig.get_path('include'), 'Python.h'))}))"
)
PROGRAMS = ("nvcc", "cc", "gcc", "c++", "g++", "git", "ninja", "cmake", "conda")


def candidates(given: list[str]) -> list[Path]:
    """Interpreters by path: those given, those on PATH, and those that pyenv holds."""
    found = [Path(path) for path in given]
    versions = [path.parent.parent.parent for path in found]
    for name in os.environ.get("PATH", "").split(os.pathsep):
        folder = Path(name)
        if folder.name == "shims":
            versions.append(folder.parent / "versions")
        elif name:
            found += [
                path for path in sorted(folder.glob("python3*"))
                if re.fullmatch(r"python3(\.\d+)?", path.name)
            ]  # fmt: skip
    for folder in versions:
        if folder.name == "versions":
            found += sorted(folder.glob("*/bin/python3"))
    return found


def interpreters(given: list[str]) -> list[dict[str, object]]:
    """What each distinct interpreter says of itself."""
    seen, answers = set(), []
    for path in candidates(given):
        real = path.resolve()
        if real in seen or not os.access(path, os.X_OK):
            continue
        seen.add(real)
        try:
            answer = subprocess.run(
                [str(path), "-I", "-c", ABOUT],
                stdout=subprocess.PIPE,
                stderr=subprocess.DEVNULL,
                timeout=20,
                check=True,
            )
            about = json.loads(answer.stdout.decode())
        except (OSError, ValueError, subprocess.SubprocessError):
            continue
        answers.append({**about, "path": str(path)})
    return answers


def wheels(places: list[str]) -> list[str]:
    """File names of the wheels in the folders among `places`."""
    found: list[str] = []
    for place in places:
        folder = Path(place[len("file://") :] if place.startswith("file://") else place)
        if folder.is_dir():
            found += sorted(path.name for path in folder.glob("*.whl"))
    return found


def gpus() -> dict[str, object]:
    """Devices and the newest CUDA that the driver supports, asked of the driver itself."""
    try:
        cuda = ctypes.CDLL("libcuda.so.1")
    except OSError:
        return {"count": 0, "cuda": None}
    version, count = ctypes.c_int(0), ctypes.c_int(0)
    if cuda.cuInit(0) or cuda.cuDeviceGetCount(ctypes.byref(count)):
        return {"count": 0, "cuda": None}
    cuda.cuDriverGetVersion(ctypes.byref(version))
    major, minor = version.value // 1000, version.value % 1000 // 10
    return {"count": count.value, "cuda": f"{major}.{minor}"}


def main(question: str, answer: str) -> None:
    """Answer all at once."""
    asked = json.loads(Path(question).read_text(encoding="utf-8"))
    said = {
        "interpreters": interpreters(asked["candidates"]),
        "programs": {name: shutil.which(name) for name in PROGRAMS},
        "wheels": wheels(asked["find_links"]),
        "gpus": gpus(),
    }
    Path(answer).write_text(json.dumps(said), encoding="utf-8")


main(sys.argv[1], sys.argv[2])
