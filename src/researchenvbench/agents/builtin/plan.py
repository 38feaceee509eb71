"""From what the repository says to what is asked of the resolver first, each with its reason.

Asked first is what an installer would enforce and what the main files list. What extras,
pages and developers' lists offer is asked later, and only where the code imports it.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from packaging.utils import canonicalize_name

from . import names
from .manifests import Declared, Manifests, contradictions
from .request import Request, requirement_of
from .tree import SourceTree, is_test

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from .tree import Use

_EVERYBODYS = {"pip", "setuptools", "wheel", "python"}


def first_request(
    manifests: Manifests, decide: Callable[[str], None], *, installs_itself: bool
) -> Request:
    """What is asked of the resolver before anything is known of imports."""
    request = Request(source_name=manifests.name)
    left_out = set()
    for taken, other in contradictions(manifests):
        left_out.add(id(other))
        decide(
            f"{other.where} asks for {other.requirement}, {taken.where} for {taken.requirement}: "
            f"taking the latter, since it is the more binding of the two"
        )
    kinds = ("file", "conda") if installs_itself else ("package", "file", "conda")
    for one in manifests.of(*kinds):
        if (
            one.name not in _EVERYBODYS
            and id(one) not in left_out
            and not _is_itself(one, manifests)
        ):
            request.add(one.requirement, one.where, one.hashes)
    by_file: dict[str, int] = {}
    for wish in request.wishes:
        file = wish.why.split(":")[0]
        by_file[file] = by_file.get(file, 0) + 1
    for file, count in by_file.items():
        decide(f"{file}: {count} requirements taken")
    return request


def _is_itself(one: Declared, manifests: Manifests) -> bool:
    return bool(manifests.name) and one.name == canonicalize_name(manifests.name)


@dataclass(frozen=True)
class Wanted:
    """A module that code imports, and how much hangs on it."""

    module: str
    statements: tuple[str, ...]
    files: tuple[str, ...]
    level: str  #: needed (the repository's package), code (scripts, examples) or tests


def wanted_modules(tree: SourceTree, needed_files: Iterable[str]) -> list[Wanted]:
    """Third-party modules by how much hangs on them, with the statements that import them."""
    needed = set(needed_files)
    by_module: dict[str, list[Use]] = {}
    for use in tree.third_party():
        by_module.setdefault(use.module, []).append(use)
    found = []
    for module, uses in sorted(by_module.items()):
        certain = [use for use in uses if use.how != "guarded"]
        if not certain:
            continue
        code = [use for use in certain if not is_test(use.file)]
        if any(use.file in needed and use.how == "certain" for use in code):
            level, chosen = "needed", code
        elif any(use.how == "certain" for use in code):
            level, chosen = "code", code
        elif code:
            level, chosen = "lazy", code
        else:
            level, chosen = "tests", certain
        found.append(
            Wanted(
                module,
                tuple(dict.fromkeys(use.statement for use in chosen)),
                tuple(dict.fromkeys(use.file for use in chosen)),
                level,
            )
        )
    return found


def needed_files(tree: SourceTree, manifests: Manifests) -> set[str]:
    """The files that the repository's own packages need to be imported.

    Without a package every file that is no test counts, since each may be what is run.
    """
    packages = tree.packages()
    starts = [
        name
        for name in tree.files
        for package in packages
        if name in (f"{package}/__init__.py", f"src/{package}/__init__.py",
                    f"lib/{package}/__init__.py", f"python/{package}/__init__.py")
    ]  # fmt: skip
    for module in manifests.scripts.values():
        path = module.replace(".", "/")
        starts += [f"{place}{path}{end}" for place in ("", "src/", "lib/", "python/")
                   for end in (".py", "/__init__.py")]  # fmt: skip
    starts = [start for start in starts if start in set(tree.files)]
    if not manifests.installable or not starts:
        return {use.file for use in tree.uses if not is_test(use.file)}
    return tree.closure(starts)


def distribution_for(module: str, manifests: Manifests) -> tuple[str, str] | None:
    """What to ask for so that a module can be imported, and why; None where nothing is known.

    What the repository itself declares anywhere goes first, then what is generally known, then
    a distribution of the same name.
    """
    for one in manifests.declared:
        unreachable = one.kind == "readme" and one.requirement.url
        if one.kind == "build" or unreachable:
            continue
        if module in names.modules_of(one.requirement.name):
            return str(one.requirement), one.where
    brings = names.known(module)
    if brings is not None:
        return (brings, "generally known") if brings else None
    same = names.same_name(module)
    return (same, "the name is the same") if same else None


__all__ = [
    "Wanted",
    "distribution_for",
    "first_request",
    "needed_files",
    "requirement_of",
    "wanted_modules",
]
