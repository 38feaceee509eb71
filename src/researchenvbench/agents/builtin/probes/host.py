"""Runs inside the box: the Pythons, compilers, local wheels and GPUs that a build can use.

Written for Python 3.8 and newer, with the standard library alone. It changes nothing.
Usage: host.py QUESTION ANSWER, where QUESTION is a JSON file with `candidates` (paths of
interpreters) and `find_links` (what pip and uv are told to look through).
"""

import ctypes
import glob
import json
import os
import re
import shutil
import subprocess
import sys

ABOUT = (
    "import json, os, sys, sysconfig, importlib.util as u; print(json.dumps({"
    "'version': '%d.%d.%d' % sys.version_info[:3], 'base': sys.base_prefix,"
    "'final': sys.version_info[3] == 'final', 'implementation': sys.implementation.name,"
    "'venv': all(u.find_spec(m) for m in ('venv', 'ssl', 'zlib', 'ctypes')),"
    "'headers': os.path.exists(os.path.join(sysconfig.get_path('include'), 'Python.h'))}))"
)


def candidates(given):
    """Interpreters by path: those given, those on PATH, and those beside pyenv's shims."""
    found = list(given)
    for folder in os.environ.get("PATH", "").split(os.pathsep):
        if folder.rstrip("/").endswith("shims"):
            root = os.path.dirname(folder.rstrip("/"))
            found += sorted(glob.glob(os.path.join(root, "versions", "*", "bin", "python3")))
        else:
            found += sorted(path for path in glob.glob(os.path.join(folder, "python3*"))
                            if re.search(r"/python3(\.\d+)?$", path))
    for path in given:
        beside = re.match(r"(.*/versions)/[^/]+/bin/[^/]+$", path)
        if beside:
            found += sorted(glob.glob(os.path.join(beside.group(1), "*", "bin", "python3")))
    return found


def interpreters(given):
    """What each distinct interpreter says of itself."""
    seen, answers = set(), []
    for path in candidates(given):
        real = os.path.realpath(path)
        if real in seen or not os.access(path, os.X_OK):
            continue
        seen.add(real)
        try:
            answer = subprocess.run([path, "-I", "-c", ABOUT], stdout=subprocess.PIPE,
                                    stderr=subprocess.DEVNULL, timeout=20, check=True)
            about = json.loads(answer.stdout.decode())
        except (OSError, ValueError, subprocess.SubprocessError):
            continue
        about["path"] = path
        answers.append(about)
    return answers


def wheels(places):
    """File names of the wheels in the folders among `places`."""
    found = []
    for place in places:
        folder = place[len("file://"):] if place.startswith("file://") else place
        if os.path.isdir(folder):
            found += sorted(name for name in os.listdir(folder) if name.endswith(".whl"))
    return found


def gpus():
    """Devices and the newest CUDA that the driver supports, asked of the driver itself."""
    try:
        cuda = ctypes.CDLL("libcuda.so.1")
    except OSError:
        return {"count": 0, "cuda": None}
    version, count = ctypes.c_int(0), ctypes.c_int(0)
    if cuda.cuInit(0) or cuda.cuDeviceGetCount(ctypes.byref(count)):
        return {"count": 0, "cuda": None}
    cuda.cuDriverGetVersion(ctypes.byref(version))
    return {"count": count.value,
            "cuda": "%d.%d" % (version.value // 1000, version.value % 1000 // 10)}


def main(question, answer):
    with open(question, encoding="utf-8") as stream:
        asked = json.load(stream)
    with open(answer, "w", encoding="utf-8") as stream:
        json.dump({
            "interpreters": interpreters(asked["candidates"]),
            "programs": {name: shutil.which(name) for name in
                         ("nvcc", "cc", "gcc", "c++", "g++", "git", "ninja", "cmake", "conda")},
            "wheels": wheels(asked["find_links"]),
            "gpus": gpus(),
        }, stream)


main(sys.argv[1], sys.argv[2])
