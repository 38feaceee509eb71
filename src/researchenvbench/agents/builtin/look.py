"""The built-in agent's first step: what the repository and the host are like."""

from __future__ import annotations

import os
import sys
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from packaging.version import Version

from . import interpreter
from .framework import Host
from .manifests import Manifests, read_all
from .tree import SourceTree

if TYPE_CHECKING:
    from collections.abc import Mapping

    from .. import Assignment
    from .interpreter import Python
    from .workbench import Workbench


@dataclass(frozen=True)
class Facts:
    """What was found before anything is decided."""

    tree: SourceTree
    manifests: Manifests
    host: Host
    pythons: list[Python]
    programs: Mapping[str, str | None]


def look(bench: Workbench, assignment: Assignment) -> Facts | None:
    """Survey the repository and the host."""
    known = [os.path.realpath(getattr(sys, "_base_executable", None) or sys.executable)]
    question = {
        "candidates": known,
        "find_links": _find_links(bench.environment),
    }
    for python in ("python3", *known):
        survey = bench.probe(python, "survey", str(bench.layout.repo))
        if survey is not None:
            host: dict[str, Any] | None = bench.ask(python, "host", question)
            break
    else:
        return None
    tree = SourceTree.from_survey(survey)
    manifests = read_all(tree.manifests)
    if host is None:
        return None
    gpus = len(assignment.gpus)
    cuda = host["gpus"]["cuda"]
    facts = Facts(
        tree,
        manifests,
        Host(gpus, Version(cuda) if cuda and gpus else None, tuple(host["wheels"])),
        interpreter.usable(host["interpreters"]),
        host["programs"],
    )
    _say_what_was_found(bench, facts)
    return facts


def _find_links(environment: Mapping[str, str]) -> list[str]:
    text = f"{environment.get('UV_FIND_LINKS', '')} {environment.get('PIP_FIND_LINKS', '')}"
    return list(dict.fromkeys(text.replace(",", " ").split()))


def _say_what_was_found(bench: Workbench, facts: Facts) -> None:
    manifests = facts.manifests
    if manifests.declared or manifests.installable:
        kinds = ", ".join(
            f"{count} {kind}"
            for kind in ("package", "file", "conda", "readme", "extra", "developer", "optional")
            if (count := len(manifests.of(kind)))
        )
        bench.decide(f"read {', '.join(manifests.read)}: {kinds or 'no'} requirements")
    else:
        bench.decide("the repository declares nothing: going by what its files import")
    for fault in manifests.faults:
        bench.decide(f"not heeded: {fault}")
    for name, error in facts.tree.unreadable.items():
        bench.decide(f"{name} does not parse ({error}): what it imports is not known")
    if manifests.conda_only:
        bench.decide(
            f"no Python distributions, left to the host: {', '.join(manifests.conda_only)}"
        )
