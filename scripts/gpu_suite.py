"""Tasks of a suite on GPUs, in the environment of this interpreter: a part of gpu_acceptance.py.

What is judged is the environment that runs this, with its framework: take one that you can throw
away. The wheels of a task and its repository are put beside the host's packages; what they
replace is moved away meanwhile. What `gpu_wheels.py` has put together is read, and nothing else.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
from contextlib import contextmanager, suppress
from importlib import metadata
from pathlib import Path
from typing import TYPE_CHECKING

from gpu_wheels import TASKS

from researchenvbench import load_suite
from researchenvbench.attempt import Verdict
from researchenvbench.proofs import GpuProof, gpu_key
from researchenvbench.run.found import prove_as_found, run_as_found, subject_as_found
from researchenvbench.source import fetch_source
from researchenvbench.task import StageName

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from researchenvbench.attempt import LevelResult

SUITE = "paper44"
#: Where a host turns NVLink multicast off by them, no program may turn it on again.
LINKS = ("NCCL_NVLS_ENABLE", "TORCH_SYMM_MEM_DISABLE_MULTICAST", "NVSHMEM_DISABLE_NVLS")
#: What stands in the way: where MPI cannot start, Lightning ends with it.
HIDDEN = ("mpi4py",)
#: Their wheel was carried: the repository's own build needs what such a host lacks.
AS_WHEEL = ("meta-pytorch__torchft",)
#: Seconds that a stage and the breakages of its level take, guessed from earlier runs.
ESTIMATE_S = {"NVIDIA__kvpress": 100.0, "lightly-ai__lightly-train": 110.0, "alephpi__Texo": 110.0}
OTHER_S = 75.0
GPU_STAGES = (StageName.SINGLE_GPU, StageName.MULTI_GPU)


def plan(gpus: int) -> list[tuple[str, StageName, float]]:
    """(task, stage, seconds that it may take) of all that this host has GPUs for."""
    suite = load_suite(SUITE)
    gpus = gpus or 2  # where it is only planned
    found = []
    for name in TASKS:
        task = suite.task(name)
        for stage in GPU_STAGES:
            written = stage in task.stages and not task.stages[stage].not_distributed
            if written and task.gpus(stage) <= gpus:
                found.append((name, stage, ESTIMATE_S.get(name, OTHER_S)))
    return sorted(found, key=lambda one: one[1] is StageName.MULTI_GPU)


def links_set(tree: Path) -> str:
    """Which file sets one of the variables that keep NVLink multicast off; empty: none."""
    for path in sorted(tree.rglob("*")):
        if path.suffix in (".py", ".sh", ".yaml", ".yml", ".toml") and path.is_file():
            text = path.read_text(errors="replace")
            for name in LINKS:
                if name in text:
                    return f"{path.relative_to(tree)} names {name}"
    return ""


def run_task(
    name: str,
    stage: StageName,
    carried: Path,
    folder: Path,
    damages: bool,
    say: Callable[[str], None],
) -> tuple[LevelResult | None, GpuProof | None, str]:
    """(what the stage came to, its proof, why it was left out)."""
    task = load_suite(SUITE).task(name)
    snapshot = fetch_source(task)
    if setting := links_set(snapshot.tree):
        return None, None, f"left out: {setting}"
    repository = folder / "repository"
    shutil.copytree(snapshot.tree, repository, symlinks=True)
    shelf = carried / "wheels"
    listed = json.loads((shelf / "tasks.json").read_text())
    wheels = [shelf / one for one in listed[name]]
    own = None if name in AS_WHEEL else repository
    names = tuple("-".join(one.split("-")[:2]) for one in (*listed["reb"], *listed[name]))
    with installed(wheels, own):
        subject = subject_as_found(
            repository,
            sys.executable,
            task,
            folder / "out",
            snapshot,
            say=lambda text, **_: say(text),
        )
        result = run_as_found(subject, stage)
        tried = damages and result.verdict is Verdict.PASSED
        proof = prove_as_found(subject, stage, result, carried=names, damages=tried, say=say)
    return result, proof, ""


@contextmanager
def installed(wheels: list[Path], repository: Path | None) -> Iterator[None]:
    """Have the wheels and the repository in this interpreter's environment.

    What they replace is moved away, and moved back when the context ends.
    """
    pip = [sys.executable, "-m", "pip", "--disable-pip-version-check"]
    put = [*pip, "install", "--quiet", "--no-index", "--no-deps", "--no-warn-script-location"]
    new = [wheel for wheel in wheels if not _is_there(wheel)]
    before = _names()
    with tempfile.TemporaryDirectory(prefix="reb-suite-") as place:
        moved: list[tuple[Path, Path]] = []
        try:
            for name in (*(wheel.name.split("-")[0] for wheel in new), *HIDDEN):
                moved += _move_away(name, Path(place) / "kept" / name)
            if new:
                _pip([*put, *map(str, new)])
            if repository and any(
                (repository / one).exists() for one in ("pyproject.toml", "setup.py")
            ):
                # A build leaves folders in what it builds.
                copy = Path(place) / "repository"
                shutil.copytree(repository, copy, symlinks=True)
                _pip([*put, "--no-build-isolation", str(copy)])
            yield
        finally:
            added = _names() - before
            names = sorted(added | {wheel.name.split("-")[0] for wheel in new})
            if names:
                subprocess.run([*pip, "uninstall", "--quiet", "--yes", *names], check=False)
            for origin, kept in moved:
                origin.parent.mkdir(parents=True, exist_ok=True)
                shutil.move(kept, origin)


def _pip(argv: list[str]) -> None:
    """Run pip, of which nobody reads what it says where all is well."""
    done = subprocess.run(argv, capture_output=True, text=True, check=False)
    if done.returncode:
        raise RuntimeError(f"pip ended with {done.returncode}: {done.stderr[-600:]}")


def _names() -> set[str]:
    """Of the distributions that are there; what an interrupted installer left has none."""
    return {name for one in metadata.distributions() if (name := one.metadata["Name"])}


def _is_there(wheel: Path) -> bool:
    name, version = wheel.name.split("-")[:2]
    try:
        return metadata.version(name) == version
    except metadata.PackageNotFoundError:
        return False


def _move_away(name: str, place: Path) -> list[tuple[Path, Path]]:
    """Move the files of a distribution; (where each was, where it is)."""
    moved = []
    prefix = Path(sys.prefix)
    for found in metadata.distributions(name=re.sub(r"[-_.]+", "-", name)):
        for file in found.files or ():
            origin = Path(os.path.normpath(str(found.locate_file(file))))
            if origin.is_relative_to(prefix) and (origin.is_file() or origin.is_symlink()):
                kept = place / origin.relative_to(prefix)
                kept.parent.mkdir(parents=True, exist_ok=True)
                shutil.move(origin, kept)
                moved.append((origin, kept))
    # What is left of a distribution's folder would be taken for a broken one.
    for folder in sorted({one.parent for one, _ in moved}, reverse=True):
        with suppress(OSError):
            folder.rmdir()
    return moved


def keep(proofs: dict[str, GpuProof], proof: GpuProof) -> None:
    """Put a proof among others, in the place of an older one of its stage."""
    proofs[gpu_key(proof.task, proof.stage.stage)] = proof


def use_carried(place: Path) -> None:
    """Have sources and stand-ins be taken from what was carried, and from nowhere else."""
    if (place / "mirrors").is_dir():
        os.environ["REB_SOURCE_MIRROR"] = str(place / "mirrors")
    if (place / "cache").is_dir():
        os.environ["REB_CACHE"] = str(place / "cache")
