"""The harness's programs as one folder that runs in any Linux container of this machine.

Python and node are copied with every shared library that they need and with the loader that
loads them, and are started by that loader. So they use no file of the image that they run
in, which may be of another distribution, and whose files whoever built in it may have
changed. The loader's copy does not look for the image's `ld.so.preload`.
"""

from __future__ import annotations

import compileall
import fcntl
import hashlib
import os
import re
import secrets
import shutil
import subprocess
import sys
import sysconfig
from pathlib import Path

from ...errors import HostError
from ...owner import own_folder
from ..tools import Checker, Tools, find_checker

#: What the loader's copy looks for instead is below a file of the kernel, so never there.
_PRELOAD, _NO_PRELOAD = b"/etc/ld.so.preload", b"/proc/version/none"
#: What of the standard library no module of ours could need. Byte code is made here.
_LEFT_OUT = (
    "__pycache__",
    "config-*",
    "dist-packages",
    "ensurepip",
    "idlelib",
    "lib2to3",
    "site-packages",
    "test",
    "tests",
    "tkinter",
    "turtledemo",
)
#: Extension modules that would bring libraries of windows, terminals and directories along.
_NOT_NEEDED = re.compile(r"_tkinter|_curses|readline|nis|_dbm|_gdbm|_test|_xx|xxlimited|ossaudio")
#: As ldd prints a library that it found.
_LIBRARY = re.compile(r"(/\S+) \(0x")
_VERSION = f"python{sys.version_info[0]}.{sys.version_info[1]}"


def bundles_of(cache: Path) -> Path:
    """Where bundles are kept, and made, below the cache."""
    return cache / "tools"


def bundle(cache: Path) -> Path:
    """The bundle's folder below `cache`, made where there is none of the same content.

    Raises:
        HostError: a program is missing, or this host's are not such as can be copied.
    """
    checker = find_checker()
    parent = bundles_of(cache)
    folder = parent / _key(checker)
    if folder.is_dir():
        return folder
    try:
        parent.mkdir(parents=True, exist_ok=True)
        with (parent / ".lock").open("w") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            if folder.is_dir():
                return folder
            with own_folder("bundle", parent) as made:
                _make(made, checker)
                made.chmod(0o755)
                made.rename(folder)
    except OSError as error:
        raise HostError(
            f"the harness's programs cannot be copied to {parent}: {error.strerror or error}",
            advice="free room there, or name another cache by REB_CACHE",
        ) from error
    return folder


def new_place() -> Path:
    """Where a container sees the bundle: below the root, by a name that nobody can foresee.

    So nothing is planted there. Whoever is root in the container cannot put something else
    in its place, as with a place in a folder, which could be renamed with all that it holds.
    """
    return Path(f"/reb-{secrets.token_hex(8)}")


def bundled_tools(folder: Path, place: Path) -> Tools:
    """What starts the programs of a bundle in a container that sees it at `place`."""
    loader = next(file.name for file in (folder / "lib").iterdir() if file.name.startswith("ld-"))
    load = (str(place / "lib" / loader), "--library-path", str(place / "lib"))
    return Tools(
        python=(*load, str(place / "python" / "bin" / "python3")),
        package=place / "package",
        checker=Checker(
            node=(*load, str(place / "node")),
            script=place / "pyright" / "index.js",
            version=find_checker().version,
        ),
    )


def _key(checker: Checker) -> str:
    """A digest of what decides the content."""
    digest = hashlib.sha256(f"1 {sys.version} {checker.version}".encode())
    sources = sorted((Path(__file__).parents[2] / "standalone").rglob("*.py"))
    for source in (*sources, Path(__file__)):
        digest.update(source.name.encode() + source.read_bytes())
    for program in (sys.executable, checker.node[0]):
        status = Path(program).resolve().stat()
        digest.update(f" {status.st_size} {status.st_mtime_ns}".encode())
    return digest.hexdigest()[:16]


def _make(folder: Path, checker: Checker) -> None:
    library = folder / "lib"
    library.mkdir()
    python = folder / "python"
    (python / "bin").mkdir(parents=True)
    executable = python / "bin" / "python3"
    shutil.copy2(Path(sys.executable).resolve(), executable)
    standard = python / sys.platlibdir / _VERSION
    shutil.copytree(
        sysconfig.get_path("stdlib"), standard, ignore=shutil.ignore_patterns(*_LEFT_OUT)
    )
    extensions = standard / "lib-dynload"
    for file in extensions.glob("*.so"):
        if _NOT_NEEDED.match(file.name):
            file.unlink()
    package = folder / "package" / "standalone"
    shutil.copytree(
        Path(__file__).parents[2] / "standalone",
        package,
        ignore=shutil.ignore_patterns("__pycache__"),
    )
    node = folder / "node"
    shutil.copy2(Path(checker.node[0]).resolve(), node)
    shutil.copytree(checker.script.parent, folder / "pyright")
    # The mount is read-only, so byte code that is not there now is made at every start.
    for sources in (standard, package):
        compileall.compile_dir(sources, quiet=2)
    for needed in _libraries([executable, node, *extensions.glob("*.so")]):
        shutil.copy2(needed.resolve(), library / needed.name)
    _without_preload(library)


def _libraries(programs: list[Path]) -> set[Path]:
    """Every shared library that the programs load, the loader among them."""
    # Origin-relative libraries of an interpreter are found from where it was.
    environment = {
        "PATH": os.environ.get("PATH", "/usr/bin:/bin"),
        "LD_LIBRARY_PATH": str(Path(sys.base_prefix) / "lib"),
    }
    said = subprocess.run(
        ["ldd", *map(str, programs)], capture_output=True, text=True, env=environment, check=False
    ).stdout
    if missing := re.search(r"(\S+) => not found", said):
        raise HostError(f"{missing[1]}, which the harness's programs need, is not found by ldd")
    found = {Path(path) for path in _LIBRARY.findall(said)}
    if not any(path.name.startswith("ld-linux") for path in found):
        raise HostError(
            "the harness's Python cannot be carried into containers: it does not use glibc",
            advice="run reb by a Python that is built for glibc",
        )
    return found


def _without_preload(library: Path) -> None:
    loader = next(file for file in library.iterdir() if file.name.startswith("ld-"))
    content = loader.read_bytes()
    loader.chmod(0o755)
    loader.write_bytes(content.replace(_PRELOAD, _NO_PRELOAD))
