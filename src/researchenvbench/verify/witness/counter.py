"""The library that counts launches: compiled on this host, and how a stage's processes load it."""

from __future__ import annotations

import functools
import hashlib
import os
import shutil
import subprocess
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from ...places import default_cache

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from ..interpreter import Interpreter

_SOURCE = Path(__file__).parent / "counter.c"
_COMPILERS = ("cc", "gcc", "clang")
#: CUPTI's header of callbacks asks for this one of the compiler of CUDA, and uses nothing of it.
_STAND_IN = ("builtin_types.h", "#include <cuda.h>\n")
_FLAGS = ("-std=gnu11", "-O2", "-shared", "-fPIC")
_LIBRARIES = ("-ldl", "-lpthread")
_COMPILE_S = 60.0
#: Major versions of CUDA whose CUPTI is looked for.
_MAJORS = (13, 12, 11)


@dataclass(frozen=True)
class Compiled:
    """The library on this host, or why there is none."""

    library: Path | None
    why_none: str = ""


def compiled() -> Compiled:
    """The counter, compiled once and kept in the cache."""
    return _compiled(os.environ.get("CUDA_HOME") or os.environ.get("CUDA_PATH") or "")


@functools.cache
def _compiled(cuda_home: str) -> Compiled:
    compiler = next((found for name in _COMPILERS if (found := shutil.which(name))), None)
    if compiler is None:
        return Compiled(None, "there is no C compiler: apt-get install gcc")
    headers = find_headers([cuda_home] if cuda_home else [])
    if not headers:
        advice = "pip install nvidia-cuda-cupti-cu12 nvidia-cuda-runtime-cu12"
        return Compiled(None, f"there are no headers of CUPTI here: {advice}")
    key = hashlib.sha256(_SOURCE.read_bytes() + repr((compiler, headers)).encode()).hexdigest()
    library = default_cache() / "gpu-counter" / key[:16] / "counter.so"
    if not library.exists():
        try:
            if said := compile_counter(compiler, headers, library):
                return Compiled(None, f"it cannot be compiled: {said}")
        except OSError as error:
            return Compiled(None, f"it cannot be kept: {error}")
    return Compiled(library)


def find_headers(homes: Sequence[str] = ()) -> tuple[str, ...]:
    """Folders with the headers of CUPTI and CUDA: of wheels beside the harness, of a toolkit.

    Never the judged environment's own, which are the agent's.
    """
    roots = [Path(entry) / "nvidia" for entry in sys.path if entry.endswith("-packages")]
    roots += [Path(home) for home in homes] + sorted(Path("/usr/local").glob("cuda*"))
    inner = ("include", "extras/CUPTI/include", "*/include", "targets/*/include")
    for root in roots:
        folders = sorted({folder for one in inner for folder in root.glob(one)})
        callbacks = [one for one in folders if (one / "cupti_callbacks.h").exists()]
        driver = [one for one in folders if (one / "cuda.h").exists()]
        if callbacks and driver:
            # Of any version, since what is used of it is the same in all; of one place if it can.
            one = next((folder for folder in callbacks if folder in driver), callbacks[-1])
            return (str(one),) if one in driver else (str(one), str(driver[-1]))
    return ()


def compile_counter(compiler: str, headers: Sequence[str], library: Path) -> str:
    """Compile it to `library`; what the compiler said where that fails, else empty.

    Raises:
        OSError: the folder cannot be written.
    """
    library.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=library.parent) as name:
        folder = Path(name)
        (folder / _STAND_IN[0]).write_text(_STAND_IN[1])
        made = folder / "counter.so"
        include = [f"-I{one}" for one in (folder, *headers)]
        argv = [compiler, *_FLAGS, *include, str(_SOURCE), "-o", str(made), *_LIBRARIES]
        try:
            done = subprocess.run(  # a compiler of this host, and our source
                argv, capture_output=True, text=True, timeout=_COMPILE_S, check=False
            )
        except subprocess.TimeoutExpired:
            return f"{compiler} takes more than {_COMPILE_S:.0f} s"
        if done.returncode or not made.exists():
            return next((line for line in done.stderr.splitlines() if "error" in line), "no reason")
        made.replace(library)
    return ""


def counter_variables(
    library: Path, counts: Path, interpreter: Interpreter | None
) -> Mapping[str, str]:
    """What has a process load the counter, as paths in its box.

    Args:
        library: The counter.
        counts: The folder for its files.
        interpreter: Of the environment whose libraries of CUPTI are looked for.
    """
    places = []
    for major in _MAJORS:
        name = f"libcupti.so.{major}"
        for folder in _folders(major, interpreter):
            places.append(f"{major}={folder}/{name}")
        places.append(f"{major}={name}")
    return {
        "CUDA_INJECTION64_PATH": str(library),
        "REB_COUNTS": str(counts),
        "REB_CUPTI": ":".join(places),
    }


def _folders(major: int, interpreter: Interpreter | None) -> list[str]:
    """Where wheels and toolkits keep CUPTI of a version."""
    found = []
    if interpreter is not None:
        sites = dict.fromkeys((interpreter.purelib, interpreter.platlib))
        inner = ("cuda_cupti/lib", f"cu{major}/lib")
        found += [f"{site}/nvidia/{one}" for site in sites for one in inner]
        found.append(f"{interpreter.prefix}/lib")
    toolkits = (f"/usr/local/cuda-{major}", "/usr/local/cuda")
    found += [f"{home}/{one}" for home in toolkits for one in ("lib64", "extras/CUPTI/lib64")]
    return [folder for folder in found if ":" not in folder]
