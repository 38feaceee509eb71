"""The environment of mini-swe-agent: made once, of pinned versions, and kept in the cache.

    CACHE/agents/mini-swe-agent-VERSION-DIGEST/     a virtual environment

It is the harness's own, beside its own environment: litellm brings 200 MB of libraries, with
other versions than ours.
"""

from __future__ import annotations

import hashlib
import os
import re
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from filelock import FileLock

from ...errors import RebError
from ...places import default_cache
from ...process import run
from ...sandbox.host_environment import host_environment
from ...sandbox.removing import remove_tree

if TYPE_CHECKING:
    from collections.abc import Callable

REQUIREMENTS = Path(__file__).with_name("requirements.txt")
_LIMIT_S = 1800.0
_TAIL_BYTES = 1500
#: Written when all is installed: a folder without it is of an installation that was ended.
_DONE = "installed"


def version() -> str:
    """Of mini-swe-agent, as it is pinned."""
    found = re.search(r"^mini-swe-agent==(\S+)$", REQUIREMENTS.read_text(), re.MULTILINE)
    assert found is not None  # noqa: S101 - a file of ours
    return found[1]


def environment(cache: Path | None = None) -> Path:
    """Where it is, or would be: for these versions and this Python."""
    words = REQUIREMENTS.read_text() + sys.version
    digest = hashlib.sha256(words.encode()).hexdigest()[:12]
    return (cache or default_cache()) / "agents" / f"mini-swe-agent-{version()}-{digest}"


def is_installed(place: Path) -> bool:
    """Whether all of it is there."""
    return (place / _DONE).is_file()


def install(say: Callable[[str], None], cache: Path | None = None) -> Path:
    """The environment's Python, with mini-swe-agent installed where it is not yet.

    Raises:
        RebError: it cannot be installed; the end of what was printed is in the message.
    """
    import uv

    place = environment(cache)
    python = place / "bin" / "python"
    if is_installed(place):
        return python
    place.parent.mkdir(parents=True, exist_ok=True)
    log = place.parent / f"{place.name}.log"
    with FileLock(place.parent / f".{place.name}.lock"):
        if is_installed(place):  # another attempt has installed it meanwhile
            return python
        say(f"installing mini-swe-agent {version()} into {place} (once, some 400 MB)")
        remove_tree(place)
        host, tool = host_environment(), uv.find_uv_bin()
        shared = os.environ.get("UV_CACHE_DIR")
        variables = {
            "PATH": host.path,
            "HOME": str(place.parent),
            # It is done once: a cache of its own would only take the room again.
            **({"UV_CACHE_DIR": shared} if shared else {"UV_NO_CACHE": "1"}),
            **host.installs,
        }
        own = ["--no-config", "--python"]
        for argv in (
            [tool, "venv", "--no-project", *own, sys.executable, str(place)],
            # Pinned to the last one, so nothing is resolved, and what is left out stays out.
            [
                *(tool, "pip", "install", "--no-deps", "--compile-bytecode", *own, str(python)),
                *("--requirements", str(REQUIREMENTS)),
            ],
        ):
            finished = run(
                argv, cwd=place.parent, env=variables, log=log, time_limit_s=_LIMIT_S, append=True
            )
            if not finished.ok:
                said = log.read_bytes()[-_TAIL_BYTES:].decode(errors="replace").strip()
                raise RebError(
                    f"mini-swe-agent cannot be installed: {said}",
                    advice="it needs a package index, as pip is configured to use here; "
                    f"the whole output is in {log}",
                )
        (place / _DONE).touch()
    return python
