"""Runs inside the box: what a repository says about itself and what its Python files import.

Written for Python 3.8 and newer, with the standard library alone, since whatever Python the
box has runs it. It executes nothing of the repository. Usage: survey.py REPO ANSWER
"""

import ast
import json
import os
import re
import subprocess
import sys

SKIPPED_FOLDERS = {
    ".git", ".venv", "venv", "env", "build", "dist", "node_modules", "__pycache__",
    ".tox", ".nox", ".eggs", ".mypy_cache", ".pytest_cache", ".ruff_cache",
}
MANIFEST = re.compile(
    r"^(pyproject\.toml|setup\.py|setup\.cfg|PKG-INFO|\.python-version|runtime\.txt"
    r"|[^/]*requirements[^/]*\.(txt|in|pip)|requirements/[^/]+\.(txt|in)|constraints[^/]*\.txt"
    r"|[^/]*environment[^/]*\.ya?ml|[^/]*conda[^/]*\.ya?ml|(README|INSTALL)[^/]*"
    r"|(docs?/)?(install|installation|INSTALL)[^/]*\.(md|rst|txt))$",
    re.IGNORECASE,
)
MANIFEST_LIMIT_BYTES = 400_000
PYTHON_LIMIT_BYTES = 2_000_000
FILES_LIMIT = 20_000


def listed(repo):
    """Paths of the repository's files, relative: git's where it answers, else those found."""
    if os.path.exists(os.path.join(repo, ".git")):
        command = ["git", "-c", "safe.directory=*", "-c", "core.fsmonitor=false", "-C", repo,
                   "ls-files", "-z"]
        try:
            answer = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL,
                                    timeout=60, check=True)
            return [name for name in answer.stdout.decode("utf-8", "replace").split("\0") if name]
        except (OSError, subprocess.SubprocessError):
            pass
    found = []
    for folder, folders, files in os.walk(repo):
        folders[:] = sorted(name for name in folders if name not in SKIPPED_FOLDERS)
        found.extend(os.path.relpath(os.path.join(folder, name), repo) for name in sorted(files))
        if len(found) > FILES_LIMIT:
            break
    return found


def content(repo, name, limit):
    """The text of a regular file, or None; links are not followed."""
    path = os.path.join(repo, name)
    if os.path.islink(path) or not os.path.isfile(path) or os.path.getsize(path) > limit:
        return None
    with open(path, "rb") as stream:
        return stream.read().decode("utf-8-sig", "replace")


def catches_import_errors(node):
    """Whether a try statement makes the imports in its body optional."""
    for handler in node.handlers:
        kinds = handler.type.elts if isinstance(handler.type, ast.Tuple) else [handler.type]
        for kind in kinds:
            name = getattr(kind, "id", getattr(kind, "attr", None))
            if kind is None or name in ("ImportError", "ModuleNotFoundError", "Exception",
                                        "BaseException"):
                return True
    return False


def is_condition_on_host(test):
    """Whether an `if` asks for TYPE_CHECKING or for the platform."""
    text = ast.dump(test)
    return "TYPE_CHECKING" in text or "platform" in text or "version_info" in text


def imports(tree):
    """All absolute imports: (statement, top-level module, how sure it is to be executed)."""
    found = []

    def visit(node, how):
        if isinstance(node, ast.Import):
            for alias in node.names:
                found.append(["import " + alias.name, alias.name.split(".")[0], how])
        elif isinstance(node, ast.ImportFrom):
            if node.level == 0 and node.module and node.module != "__future__":
                names = ", ".join(alias.name for alias in node.names)
                found.append(["from %s import %s" % (node.module, names),
                              node.module.split(".")[0], how])
        elif isinstance(node, ast.Try):
            inner = "guarded" if catches_import_errors(node) else how
            for child in node.body:
                visit(child, inner)
            for handler in node.handlers:
                for child in handler.body:
                    visit(child, inner)
            for child in node.orelse + node.finalbody:
                visit(child, how)
        elif isinstance(node, ast.If):
            if is_main(node.test):
                inner = how
            else:
                inner = "guarded" if is_condition_on_host(node.test) else how
            for child in node.body + node.orelse:
                visit(child, inner)
        elif isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda)):
            for child in ast.iter_child_nodes(node):
                visit(child, "lazy" if how == "certain" else how)
        else:
            for child in ast.iter_child_nodes(node):
                visit(child, how)

    visit(tree, "certain")
    return found


def is_main(test):
    return "__main__" in ast.dump(test)


def main(repo, answer):
    files = listed(repo)
    manifests, python, unreadable = {}, {}, {}
    for name in files:
        if MANIFEST.match(name) or re.match(r"^[^/]+\.egg-info/PKG-INFO$", name):
            text = content(repo, name, MANIFEST_LIMIT_BYTES)
            if text is not None:
                manifests[name] = text
        if name.endswith(".py") and not set(name.split("/")[:-1]) & SKIPPED_FOLDERS:
            text = content(repo, name, PYTHON_LIMIT_BYTES)
            if text is None:
                continue
            try:
                python[name] = imports(ast.parse(text))
            except (SyntaxError, ValueError, RecursionError) as error:
                unreadable[name] = str(error)[:200]
    with open(answer, "w", encoding="utf-8") as stream:
        json.dump({"files": files[:FILES_LIMIT], "manifests": manifests, "python": python,
                   "unreadable": unreadable, "stdlib": sorted(getattr(sys, "stdlib_module_names", ())),
                   "is_git": os.path.exists(os.path.join(repo, ".git"))}, stream)


main(sys.argv[1], sys.argv[2])
