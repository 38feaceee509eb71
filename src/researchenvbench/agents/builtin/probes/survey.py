"""Runs inside the box: what a repository says about itself and what its Python files import.

Written for Python 3.8 and newer, with the standard library alone, since whatever Python the
box has runs it. It executes nothing of the repository. Usage: survey.py REPO ANSWER
"""

from __future__ import annotations

import ast
import json
import os
import re
import subprocess
import sys
from pathlib import Path

SKIPPED_FOLDERS = {
    ".git", ".venv", "venv", "env", "build", "dist", "node_modules", "__pycache__",
    ".tox", ".nox", ".eggs", ".mypy_cache", ".pytest_cache", ".ruff_cache",
}  # fmt: skip
MANIFEST = re.compile(
    r"^(pyproject\.toml|setup\.py|setup\.cfg|PKG-INFO|[^/]+\.egg-info/PKG-INFO|\.python-version"
    r"|([^/]*/)?[^/]*requirements[^/]*\.(txt|in|pip)|requirements/[^/]+\.(txt|in)"
    r"|([^/]*/)?[^/]*(environment|conda)[^/]*\.ya?ml|(README|INSTALL)[^/]*"
    r"|docs?/[^/]*install[^/]*\.(md|rst|txt))$",
    re.IGNORECASE,
)
MANIFEST_LIMIT_BYTES = 400_000
PYTHON_LIMIT_BYTES = 2_000_000
FILES_LIMIT = 50_000
LENIENT = {"ImportError", "ModuleNotFoundError", "Exception", "BaseException"}


def listed(repo: Path) -> list[str]:
    """Paths of the repository's files, relative: git's where it answers, else those found."""
    if (repo / ".git").exists():
        command = ["git", "-c", "safe.directory=*", "-c", "core.fsmonitor=false", "ls-files", "-z"]
        try:
            answer = subprocess.run(
                command,
                cwd=str(repo),
                stdout=subprocess.PIPE,
                stderr=subprocess.DEVNULL,
                timeout=60,
                check=True,
            )
        except (OSError, subprocess.SubprocessError):
            sys.stderr.write("git does not list the files: walking through the folders\n")
        else:
            names = answer.stdout.decode("utf-8", "replace").split("\0")
            return [name for name in names if name][:FILES_LIMIT]
    found: list[str] = []
    for folder, folders, files in os.walk(repo):
        folders[:] = sorted(name for name in folders if name not in SKIPPED_FOLDERS)
        inside = Path(folder).relative_to(repo)
        found.extend(str(inside / name) for name in sorted(files))
        if len(found) > FILES_LIMIT:
            break
    return found[:FILES_LIMIT]


def content(path: Path, limit: int) -> str | None:
    """The text of a regular file, or None; links are not followed."""
    if path.is_symlink() or not path.is_file() or path.stat().st_size > limit:
        return None
    return path.read_bytes().decode("utf-8-sig", "replace")


class Imports(ast.NodeVisitor):
    """All absolute imports: statement, top-level module, how sure it is to be executed."""

    def __init__(self) -> None:
        self.found: list[tuple[str, str, str]] = []
        self._how = "certain"

    def visit_Import(self, node: ast.Import) -> None:
        """`import a.b`."""
        for alias in node.names:
            self._add(f"import {alias.name}", alias.name)

    def visit_ImportFrom(self, node: ast.ImportFrom) -> None:
        """`from a.b import c`; a relative import is no absolute one."""
        if not node.level and node.module and node.module != "__future__":
            names = ", ".join(alias.name for alias in node.names)
            self._add(f"from {node.module} import {names}", node.module)

    def visit_Try(self, node: ast.Try) -> None:
        """What may fail to import is guarded, and so is what is imported instead."""
        names: set[str] = set()
        for handler in node.handlers:
            kinds = handler.type.elts if isinstance(handler.type, ast.Tuple) else [handler.type]
            names |= {getattr(one, "id", getattr(one, "attr", "BaseException")) for one in kinds}
        inner = "guarded" if names & LENIENT else self._how
        handlers = [child for handler in node.handlers for child in handler.body]
        self._within(inner, [*node.body, *handlers])
        self._within(self._how, [*node.orelse, *node.finalbody])

    def visit_If(self, node: ast.If) -> None:
        """A condition on the host, or on type checking, makes an import optional."""
        test = ast.dump(node.test)
        asks = any(word in test for word in ("TYPE_CHECKING", "platform", "version_info"))
        self._within("guarded" if asks else self._how, [*node.body, *node.orelse])

    def visit_FunctionDef(self, node: ast.FunctionDef) -> None:
        """An import in a function happens when it is called."""
        self._within("lazy" if self._how == "certain" else self._how, node.body)

    def visit_AsyncFunctionDef(self, node: ast.AsyncFunctionDef) -> None:
        """Likewise."""
        self._within("lazy" if self._how == "certain" else self._how, node.body)

    def _within(self, how: str, nodes: list[ast.stmt]) -> None:
        before, self._how = self._how, how
        for node in nodes:
            self.visit(node)
        self._how = before

    def _add(self, statement: str, dotted: str) -> None:
        self.found.append((statement, dotted.split(".")[0], self._how))


def main(repo: Path, answer: Path) -> None:
    """Answer with the manifests' texts and the imports of each Python file."""
    files = listed(repo)
    manifests, python, unreadable = {}, {}, {}
    for name in files:
        if MANIFEST.match(name):
            text = content(repo / name, MANIFEST_LIMIT_BYTES)
            if text is not None:
                manifests[name] = text
        if name.endswith(".py") and not set(name.split("/")[:-1]) & SKIPPED_FOLDERS:
            text = content(repo / name, PYTHON_LIMIT_BYTES)
            if text is None:
                continue
            try:
                visitor = Imports()
                visitor.visit(ast.parse(text))
            except (SyntaxError, ValueError, RecursionError) as error:
                unreadable[name] = str(error)[:200]
            else:
                python[name] = visitor.found
    said = {"files": files, "manifests": manifests, "python": python, "unreadable": unreadable}
    answer.write_text(json.dumps(said), encoding="utf-8")


main(Path(sys.argv[1]), Path(sys.argv[2]))
