"""How the tests of the built-in agent read a fixture repository: with the real probe."""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
from pathlib import Path

import researchenvbench.agents.builtin as builtin
from researchenvbench.agents.builtin.manifests import Manifests, read_all
from researchenvbench.agents.builtin.tree import SourceTree

REPOSITORIES = Path(__file__).parents[2] / "repositories"
PROBES = Path(builtin.__file__).parent / "probes"


def probe(name: str, *arguments: object, python: str = sys.executable):
    """The answer of a probe that really ran."""
    with tempfile.TemporaryDirectory() as folder:
        answer = Path(folder) / "answer.json"
        subprocess.run(
            [python, str(PROBES / f"{name}.py"), *map(str, arguments), str(answer)],
            check=True,
            capture_output=True,
        )
        return json.loads(answer.read_text())


def survey(repository: str | Path) -> SourceTree:
    return SourceTree.from_survey(probe("survey", REPOSITORIES / repository))


def manifests(repository: str | Path) -> Manifests:
    return read_all(survey(repository).manifests)


def asked(found: Manifests, *kinds: str) -> list[str]:
    return [str(one.requirement) for one in found.of(*kinds)]
