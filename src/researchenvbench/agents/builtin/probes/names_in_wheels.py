"""Runs in the box: whether a module in the newest wheel of a folder has a name.

The module is read, never imported: a name counts when it is assigned, defined or imported at
its top, or is a module beside it. Written for Python 3.8 and newer.
Usage: names_in_wheels.py FOLDER DISTRIBUTION BELOW MODULE NAME ANSWER
"""

from __future__ import annotations

import ast
import json
import re
import sys
import zipfile
from pathlib import Path


def numbers(version: str) -> list[int]:
    """A release as numbers that compare."""
    return [int(part) for part in re.findall(r"\d+", version)[:4]]


def defines(source: str, name: str) -> bool:
    """Whether a module's source gives a name a meaning."""
    try:
        tree = ast.parse(source)
    except SyntaxError:
        return False
    for node in ast.walk(tree):
        if isinstance(node, (ast.FunctionDef, ast.ClassDef)):
            found = [node.name]
        elif isinstance(node, (ast.Import, ast.ImportFrom)):
            found = [alias.asname or alias.name.split(".")[0] for alias in node.names]
        elif isinstance(node, ast.Assign):
            found = [target.id for target in node.targets if isinstance(target, ast.Name)]
        else:
            continue
        if name in found:
            return True
    return False


def has(wheel: zipfile.ZipFile, module: str, name: str) -> bool:
    """Whether a wheel's module has a name, or exists where no name is asked for."""
    base = module.replace(".", "/")
    files = wheel.namelist()
    beside = (f"{base}/{name}.py", f"{base}/{name}/")
    for path in (f"{base}/__init__.py", f"{base}.py"):
        if path not in files:
            continue
        if not name or any(one.startswith(beside) for one in files):
            return True
        if defines(wheel.read(path).decode("utf-8", "replace"), name):
            return True
    return False


def main(folder: str, distribution: str, below: str, module: str, name: str, answer: str) -> None:
    """Answer for the newest wheel of the distribution below a version."""
    found = []
    for path in Path(folder).glob("*.whl"):
        project, version = path.name.split("-")[:2]
        same = re.sub(r"[-_.]+", "-", project).lower() == distribution
        if same and numbers(version) < numbers(below):
            found.append((numbers(version), version, path))
    said: dict[str, object] = {"version": None, "has": False}
    if found:
        _, newest, path = max(found)
        with zipfile.ZipFile(path) as wheel:
            said = {"version": newest, "has": has(wheel, module, name)}
    Path(answer).write_text(json.dumps(said), encoding="utf-8")


if __name__ == "__main__":
    main(*sys.argv[1:])
