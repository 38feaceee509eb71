"""How much the packages of an environment weigh as they come from an index: what a build fetches.

Nothing that can count bytes sees into an installer's cache, so the index is asked instead: for
the versions that are there, by uv, which takes the archives that fit the interpreter and builds
none. What a source builds besides (its tools, what lies in the repository) is not in it.
"""

from __future__ import annotations

import subprocess
import tomllib
from importlib import metadata
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import unquote, urlsplit

import uv

from ..owner import own_folder

if TYPE_CHECKING:
    from collections.abc import Mapping

    from ..verify.interpreter import Interpreter

#: A hundred packages take seconds; an index that does not answer is no reason to wait.
_LIMIT_S = 300.0


def archive_bytes(interpreter: Interpreter, installs: Mapping[str, str]) -> tuple[int | None, str]:
    """The size of the archives of all that is installed, and why it is not known where it is None.

    Args:
        interpreter: Of the environment; its files lie on this host.
        installs: By which this host's package index is found.
    """
    if interpreter.kind != "venv":
        return None, f"its Python is of the kind {interpreter.kind}"
    pins, unknown = _pinned(interpreter)
    if unknown:
        return None, f"{unknown} came from an address that lists no size"
    if not pins:
        return 0, ""
    command = [
        *(uv.find_uv_bin(), "pip", "compile", "--quiet", "--no-config", "--no-deps"),
        *("--no-header", "--format", "pylock.toml", "--python", interpreter.executable, "-"),
    ]
    try:
        with own_folder("look") as home:
            done = subprocess.run(
                command,
                input="\n".join(pins),
                env={
                    "PATH": "/usr/bin:/bin",
                    "HOME": str(home),
                    **installs,
                    "UV_CACHE_DIR": str(home / "uv"),
                },
                capture_output=True,
                text=True,
                timeout=_LIMIT_S,
                check=False,
            )
    except subprocess.TimeoutExpired:
        return None, f"the index did not answer within {_LIMIT_S:.0f} s"
    if done.returncode != 0:
        said = done.stderr.strip().splitlines() or [f"uv ended with {done.returncode}"]
        return None, said[0]
    return _summed(done.stdout)


def _pinned(interpreter: Interpreter) -> tuple[list[str], str]:
    """`NAME==VERSION` of what came from an index, and the first that came from elsewhere.

    What was installed from a folder of this host, such as the repository, has no archive.
    """
    pins = set()
    for found in metadata.distributions(path=sorted({interpreter.purelib, interpreter.platlib})):
        direct = found.read_text("direct_url.json")
        if direct is None:
            pins.add(f"{found.name}=={found.version}")
        elif '"dir_info"' not in direct:
            return [], found.name
    return sorted(pins), ""


def _summed(lock: str) -> tuple[int | None, str]:
    """The size of all packages of a lock file of the form that PEP 751 defines."""
    total = 0
    for package in tomllib.loads(lock).get("packages", ()):
        wheels = package.get("wheels") or ()
        archive = wheels[0] if wheels else package.get("sdist") or {}
        size = _size(archive)
        if size is None:
            return None, f"the index lists no size of {package['name']}"
        total += size
    return total, ""


def _size(archive: Mapping[str, Any]) -> int | None:
    """As the index lists it; a file of this host is looked at itself."""
    listed = archive.get("size")
    if isinstance(listed, int):
        return listed
    parts = urlsplit(str(archive.get("url", "")))
    path = archive.get("path") or (unquote(parts.path) if parts.scheme == "file" else "")
    try:
        return Path(path).stat().st_size if path else None
    except OSError:
        return None
