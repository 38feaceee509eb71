"""Runs in the environment that is built: what is installed, and which modules each brings.

Written for Python 3.8 and newer. It imports nothing that is installed.
Usage: installed.py QUESTION ANSWER; QUESTION is ignored.
"""

import importlib.metadata
import json
import re
import sys


def modules(distribution):
    """Top-level modules of a distribution, by its list of files."""
    names = set()
    for path in distribution.files or ():
        parts = path.parts
        if len(parts) > 1 and parts[0].isidentifier() and parts[-1].endswith((".py", ".so")):
            names.add(parts[0])
        elif len(parts) == 1 and parts[0].endswith((".py", ".so")):
            names.add(parts[0].split(".")[0])
    return sorted(names)


def main(answer):
    found = {}
    for distribution in importlib.metadata.distributions():
        name = distribution.metadata["Name"]
        if name:
            found[re.sub(r"[-_.]+", "-", name).lower()] = {
                "version": distribution.version,
                "modules": modules(distribution),
                "requires": distribution.requires or [],
                "scripts": sorted(point.name for point in distribution.entry_points
                                  if point.group == "console_scripts"),
            }
    with open(answer, "w", encoding="utf-8") as stream:
        json.dump(found, stream)


main(sys.argv[2])
