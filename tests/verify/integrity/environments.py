"""Real environments for tests, and what verification finds in them."""

from __future__ import annotations

import base64
import hashlib
import os
import shutil
import subprocess
import sys
import time
import zipfile
from pathlib import Path

import pytest

from researchenvbench.standalone.look import prefix
from researchenvbench.verify.integrity import frameworks
from researchenvbench.verify.integrity.prefix import findings_of

PYENV = Path.home() / ".pyenv"
UV = shutil.which("uv", path=f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}")


def run(*command, **options):
    """Run a program that must end well."""
    done = subprocess.run(
        [str(part) for part in command], capture_output=True, text=True, check=False, **options
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def findings(python, *, since_ns=0, box_root="/", root="/", home="/no/home"):
    """The findings on the environment of an interpreter."""
    facts = prefix.examine(
        {
            "path": str(python),
            "root": str(root),
            "home": str(home),
            "hooks": True,
            "frameworks": frameworks.wanted(),
        }
    )
    return list(findings_of(facts, since_ns, str(box_root)))


def told(found):
    """The kinds of findings, each with whether it disqualifies."""
    return [(finding.kind, finding.disqualifies) for finding in found]


def before_now_ns():
    """A time after everything that this machine already had."""
    time.sleep(0.02)
    now_ns = time.time_ns()
    time.sleep(0.02)  # the clock of files is up to 10 ms behind
    return now_ns


def uv_venv(folder, python=sys.executable):
    """An environment of uv's; its interpreter."""
    if UV is None:
        pytest.skip("uv is not installed")
    run(UV, "venv", "--no-project", "--offline", "-p", python, folder)
    return folder / "bin" / "python"


def pyenv_python(version):
    """The newest Python of that version that pyenv has here."""
    found = sorted(PYENV.glob(f"versions/{version}.*/bin/python"))
    if not found:
        pytest.skip(f"pyenv has no Python {version} here")
    return found[-1]


def bundled_tools(folder):
    """An environment with the pip and setuptools that its Python brings; its interpreter."""
    base = pyenv_python("3.9")
    run(base, "-m", "venv", "--without-pip", folder)
    wheels = sorted(base.parent.parent.glob("lib/python3.9/ensurepip/_bundled/*.whl"))
    install(folder / "bin/python", *wheels)
    return folder / "bin" / "python"


def site_of(python):
    """The site-packages of an environment."""
    return next(Path(python).parent.parent.glob("lib/python3*/site-packages"))


def wheel(folder, name, version, files):
    """A wheel with these files; paths below the site-packages, bytes or text."""
    path = folder / f"{name}-{version}-py3-none-any.whl"
    info = f"{name}-{version}.dist-info"
    files = {
        **files,
        f"{info}/METADATA": f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n",
        f"{info}/WHEEL": "Wheel-Version: 1.0\nGenerator: tests\nRoot-Is-Purelib: true\n"
        "Tag: py3-none-any\n",
    }
    lines = []
    with zipfile.ZipFile(path, "w") as archive:
        for inside, content in files.items():
            data = content if isinstance(content, bytes) else content.encode()
            archive.writestr(inside, data)
            lines.append(f"{inside},sha256={digest(data)},{len(data)}\n")
        archive.writestr(f"{info}/RECORD", "".join([*lines, f"{info}/RECORD,,\n"]))
    return path


def digest(data):
    """A digest as RECORDs write it."""
    return base64.urlsafe_b64encode(hashlib.sha256(data).digest()).rstrip(b"=").decode()


def install(python, *what):
    """Install with uv, from files of this machine alone.

    Copied, since a link would let a test that changes a file change uv's cache with it.
    """
    offline = ["--offline", "--no-index", "--no-deps", "--link-mode", "copy"]
    run(UV, "pip", "install", *offline, "-p", python, *what)


def needs_work(python, code):
    """See that a trick does work, by what `code` says of it; on some systems it cannot."""
    if run(python, "-c", code) == "True\n":
        return
    asked = "from importlib.util import find_spec; print(find_spec('sitecustomize'))"
    if "/usr/lib/" in run(python, "-I", "-c", asked):
        pytest.skip("the system's Python has a sitecustomize of its own, which comes first")
    pytest.fail("the trick does not work")
