"""Runs in the environment that is built: what is installed, and which modules each brings.

Written for Python 3.8 and newer. It imports nothing that is installed.
Usage: installed.py ANSWER
"""

from __future__ import annotations

import importlib.metadata
import json
import re
import sys
from pathlib import Path


def modules(distribution: importlib.metadata.Distribution) -> list[str]:
    """Top-level modules of a distribution, by its list of files."""
    names = set()
    for path in distribution.files or ():
        parts = path.parts
        if not parts[-1].endswith((".py", ".so")):
            continue
        if len(parts) == 1:
            names.add(parts[0].split(".")[0])
        elif parts[0].isidentifier():
            names.add(parts[0])
    return sorted(names)


def main(answer: str) -> None:
    """Answer for every distribution, by its normalised name."""
    found = {}
    for distribution in importlib.metadata.distributions():
        name = distribution.metadata["Name"]
        if name:
            found[re.sub(r"[-_.]+", "-", name).lower()] = {
                "version": distribution.version,
                "modules": modules(distribution),
            }
    Path(answer).write_text(json.dumps(found), encoding="utf-8")


main(sys.argv[1])
