"""What a repository says about its environment, in all the places where people say it.

Only texts are read, nothing of the repository runs. What each kind of file holds is the
business of its module; here the order, and what the answers add up to.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from packaging.specifiers import InvalidSpecifier, SpecifierSet
from packaging.utils import canonicalize_name

from . import conda, pyproject, readme, requirements_file, setup_script
from .requirement import Declared, pins

if TYPE_CHECKING:
    from collections.abc import Mapping


@dataclass
class Manifests:
    """What was found, with where it was found."""

    name: str = ""
    installable: bool = False
    backend: str = ""
    dynamic: bool = False  #: its requirements are computed while it is built
    compiles: bool = False
    asks_for_nvcc: bool = False
    declared: list[Declared] = field(default_factory=list)
    build_requires: list[Declared] = field(default_factory=list)
    setup_imports: set[str] = field(default_factory=set)
    python_bounds: list[tuple[SpecifierSet, str]] = field(default_factory=list)
    classifiers: list[str] = field(default_factory=list)
    scripts: dict[str, str] = field(default_factory=dict)  #: console script to its module
    readme_extras: list[str] = field(default_factory=list)
    conda_only: list[str] = field(default_factory=list)
    places: list[str] = field(default_factory=list)  #: indexes and wheel pages a README names
    read: list[str] = field(default_factory=list)
    faults: list[str] = field(default_factory=list)

    @property
    def classified_pythons(self) -> list[str]:
        """Minor versions of Python 3 that the classifiers name, such as `3.9`."""
        found = [re.search(r":: (3\.\d+)\s*$", line) for line in self.classifiers]
        return [match.group(1) for match in found if match]

    def of(self, *kinds: str) -> list[Declared]:
        """The declarations of some kinds, in the order in which they were found."""
        return [one for one in self.declared if one.kind in kinds]


def read_all(texts: Mapping[str, str]) -> Manifests:
    """Read the manifests of a repository, given as path and text."""
    found = Manifests()
    if "pyproject.toml" in texts:
        pyproject.read(texts["pyproject.toml"], found)
    if "setup.cfg" in texts:
        setup_script.read_setup_cfg(texts["setup.cfg"], found)
    if "setup.py" in texts:
        setup_script.read_setup_py(texts["setup.py"], texts, found)
    if found.backend.split(".")[0] in ("scikit_build_core", "mesonpy", "maturin"):
        found.compiles = True
    for path in sorted(path for path in texts if path.endswith("PKG-INFO")):
        setup_script.read_metadata(texts[path], path, found)
    _read_requirements_files(texts, found)
    for path in sorted(path for path in texts if re.search(r"\.ya?ml$", path)):
        if path.count("/") <= 1:
            conda.read(texts[path], path, found)
    if ".python-version" in texts:
        _read_python_version(texts[".python-version"], found)
    for path in sorted(texts):
        if re.search(r"(^|/)(readme|install)[^/]*$", path, re.IGNORECASE) and path.count("/") <= 1:
            readme.read(texts[path], path, found)
    found.read = sorted(texts)
    return found


def _read_requirements_files(texts: Mapping[str, str], found: Manifests) -> None:
    paths = sorted(path for path in texts if requirements_file.is_requirements_file(path))
    paths = [path for path in paths if path.count("/") <= 1]
    roles = {path: requirements_file.role(path) for path in paths}
    shallow = [path for path in paths if roles[path] == "optional"]
    if "file" not in roles.values() and len(shallow) == 1:
        roles[shallow[0]] = "file"  # the only one there is, whatever its name
    for path in paths:
        if any(one.where.startswith(f"{path}:") for one in found.declared):
            continue  # setup.py, or another file, has brought it in
        declared, faults = requirements_file.read(path, texts, roles[path])
        found.declared += declared
        found.faults += faults


def _read_python_version(text: str, found: Manifests) -> None:
    version = re.match(r"\s*(?:cpython-)?(3\.\d+)", text)
    if version is None:
        return
    try:
        found.python_bounds.append((SpecifierSet(f"=={version.group(1)}.*"), ".python-version"))
    except InvalidSpecifier:
        found.faults.append(f".python-version is none: {text[:40]!r}")


def contradictions(manifests: Manifests) -> list[tuple[Declared, Declared]]:
    """Pairs of declarations of one package that no version satisfies: (taken, left out).

    What an installer enforces goes before a list in a file, and that before a page.
    """
    order = ("package", "file", "conda", "readme", "optional")
    taken: dict[str, Declared] = {}
    pairs = []
    for kind in order:
        for one in manifests.of(kind):
            other = taken.setdefault(one.name, one)
            if other is not one and not _agree(other, one):
                pairs.append((other, one))
    return pairs


def _agree(left: Declared, right: Declared) -> bool:
    versions = pins(left.requirement.specifier) + pins(right.requirement.specifier)
    return all(
        left.requirement.specifier.contains(version, prereleases=True)
        and right.requirement.specifier.contains(version, prereleases=True)
        for version in versions
    )


__all__ = ["Declared", "Manifests", "canonicalize_name", "contradictions", "read_all"]
