"""The repository as the agent sees it: its files, what they import, and which names are its own.

A name is the repository's own where Python, run on the importing file, would find it in the
tree; everything else that is not the standard library's is third-party.
"""

from __future__ import annotations

import posixpath
import re
import sys
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

_TEST = re.compile(
    r"(^|/)(tests?|testing|docs?|benchmarks?|ci|\.github)/|(^|/)(test_[^/]*|[^/]*_test|conftest|noxfile|tasks)\.py$"
)
_BUILD = re.compile(r"^(setup|versioneer|_version|fabfile|conf)\.py$")
#: Modules of older standard libraries: their absence is Python's doing, not the environment's.
_ONCE_STANDARD = frozenset(
    [
        "asynchat",
        "asyncore",
        "cgi",
        "cgitb",
        "crypt",
        "distutils",
        "imp",
        "imghdr",
        "nntplib",
        "pipes",
        "smtpd",
        "sndhdr",
        "spwd",
        "telnetlib",
        "uu",
        "xdrlib",
        "audioop",
        "aifc",
        "chunk",
        "mailcap",
        "msilib",
        "nis",
        "ossaudiodev",
        "sunau",
        "urllib2",
        "urlparse",
        "ConfigParser",
        "StringIO",
        "cPickle",
        "Queue",
        "Tkinter",
        "commands",
        "__builtin__",
        "HTMLParser",
        "httplib",
        "cookielib",
        "itertools_recipes",
    ]
)


@dataclass(frozen=True)
class Use:
    """One import statement in one file."""

    statement: str
    module: str
    how: str  #: certain, lazy (in a function) or guarded (allowed to fail)
    file: str


@dataclass(frozen=True)
class SourceTree:
    """Files and imports, from the survey probe."""

    files: tuple[str, ...]
    manifests: Mapping[str, str]
    uses: tuple[Use, ...]
    unreadable: Mapping[str, str] = field(default_factory=dict)

    @classmethod
    def from_survey(cls, survey: Mapping[str, Any]) -> SourceTree:
        """From the answer of the probe."""
        uses = [
            Use(str(statement), str(module), str(how), str(file))
            for file, imports in survey["python"].items()
            for statement, module, how in imports
        ]
        return cls(tuple(survey["files"]), survey["manifests"], tuple(uses), survey["unreadable"])

    @cached_property
    def _python_files(self) -> frozenset[str]:
        return frozenset(name for name in self.files if name.endswith(".py"))

    @cached_property
    def _importable_in(self) -> dict[str, set[str]]:
        """For each folder, the names that Python finds when the folder is on its path."""
        found: dict[str, set[str]] = {}
        for name in self._python_files:
            folder, file = posixpath.split(name)
            found.setdefault(folder, set()).add(file.removesuffix(".py"))
            while folder:
                folder, last = posixpath.split(folder)
                found.setdefault(folder, set()).add(last)
        return found

    @cached_property
    def _roots(self) -> set[str]:
        """Names at the top of the tree, under src/, and in folders that are no packages."""
        packages = {
            posixpath.dirname(name) for name in self._python_files if name.endswith("/__init__.py")
        }
        names: set[str] = set()
        for folder, inside in self._importable_in.items():
            if folder not in packages:
                names |= inside
        return names

    def is_own(self, use: Use) -> bool:
        """Whether a statement imports something of the repository itself."""
        folder = posixpath.dirname(use.file)
        return use.module in self._importable_in.get(folder, ()) or use.module in self._roots

    def third_party(self) -> list[Use]:
        """Imports of what is neither the repository's nor the standard library's."""
        standard = sys.stdlib_module_names | _ONCE_STANDARD
        return [
            use
            for use in self.uses
            if use.module not in standard
            and not use.module.startswith("_")
            and not _BUILD.match(use.file)
            and not self.is_own(use)
        ]

    def packages(self) -> list[str]:
        """Top-level packages of the repository that an installation would bring."""
        found = {
            match.group(1)
            for name in self._python_files
            if (match := re.match(r"^(?:src/|lib/|python/)?([A-Za-z_]\w*)/__init__\.py$", name))
        }
        return sorted(name for name in found if not _TEST.search(f"{name}/"))

    def closure(self, starts: Iterable[str]) -> set[str]:
        """Files that importing `starts` imports in turn, within the repository."""
        by_file: dict[str, list[Use]] = {}
        for use in self.uses:
            by_file.setdefault(use.file, []).append(use)
        waiting, seen = list(starts), set()
        while waiting:
            file = waiting.pop()
            if file in seen or file not in self._python_files:
                continue
            seen.add(file)
            for use in by_file.get(file, []):
                if use.how == "certain":
                    waiting += self._files_of(use, file)
        return seen

    def _files_of(self, use: Use, file: str) -> list[str]:
        dotted = use.statement.split()[1]
        names = use.statement.partition(" import ")[2].split(", ")
        targets = [dotted] + [f"{dotted}.{name}" for name in names if name.isidentifier()]
        found = []
        for base in {"", "src/", posixpath.dirname(file) + "/"}:
            for target in targets:
                parts = target.split(".")
                for length in range(1, len(parts) + 1):
                    path = base + "/".join(parts[:length])
                    found += [f"{path}.py", f"{path}/__init__.py"]
        return found


def is_test(file: str) -> bool:
    """Whether a file serves tests, documentation or benchmarks only."""
    return bool(_TEST.search(file))
