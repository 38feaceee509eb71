"""Runs in the box: whether a module in the newest wheel of a folder has a name.

The module is read, never imported: a name counts when it is assigned, defined or imported at
its top, or is a module beside it. Written for Python 3.8 and newer.
Usage: names_in_wheels.py FOLDER DISTRIBUTION BELOW MODULE NAME ANSWER
"""

import ast
import glob
import json
import os
import re
import sys
import zipfile


def numbers(version):
    return [int(part) for part in re.findall(r"\d+", version)[:4]]


def has(wheel, module, name):
    base = module.replace(".", "/")
    files = set(wheel.namelist())
    for path in (base + "/__init__.py", base + ".py"):
        if path not in files:
            continue
        if not name or any(one.startswith(base + "/" + name + ".") or
                           one.startswith(base + "/" + name + "/") for one in files):
            return True
        try:
            tree = ast.parse(wheel.read(path).decode("utf-8", "replace"))
        except SyntaxError:
            return False
        for node in ast.walk(tree):
            if isinstance(node, (ast.FunctionDef, ast.ClassDef)) and node.name == name:
                return True
            if isinstance(node, (ast.Import, ast.ImportFrom)):
                if any((alias.asname or alias.name.split(".")[0]) == name for alias in node.names):
                    return True
            if isinstance(node, ast.Assign) and any(
                    getattr(target, "id", None) == name for target in node.targets):
                return True
    return False


def main(folder, distribution, below, module, name, answer):
    best = None
    for path in glob.glob(os.path.join(folder, "*.whl")):
        project, version = os.path.basename(path).split("-")[:2]
        same = re.sub(r"[-_.]+", "-", project).lower() == distribution
        if same and numbers(version) < numbers(below) and (
                best is None or numbers(version) > numbers(best[0])):
            best = (version, path)
    found = {"version": best[0] if best else None, "has": False}
    if best:
        with zipfile.ZipFile(best[1]) as wheel:
            found["has"] = has(wheel, module, name)
    with open(answer, "w", encoding="utf-8") as stream:
        json.dump(found, stream)


main(*sys.argv[1:])
