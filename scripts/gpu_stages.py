"""Runs the GPU stages of tasks on a host that has GPUs and a framework, and no network.

    python scripts/gpu_stages.py --wheels DIR --work DIR --out DIR TASK…

What is judged is the environment of this interpreter, with its framework: take one that you
can throw away. For each task its source comes from REB_SOURCE_MIRROR, a folder that
`reb sources mirror` makes; the wheels of `WHEELS/TASK/` and the repository itself are
installed; then C2, C3 and C4 are judged with stand-ins from the cache (REB_CACHE;
`reb assets fetch` fills it elsewhere). Prints a line a level and keeps the records. Exits
with 1 where an entry point failed.
"""

from __future__ import annotations

import argparse
import shutil
import subprocess
import sys
from pathlib import Path

from researchenvbench import load_suite, verify
from researchenvbench.attempt import Level, Verdict
from researchenvbench.gpu.inventory import inventory
from researchenvbench.source import fetch_source

LEVELS = (Level.C2, Level.C3, Level.C4)


def install(repository: Path, wheels: Path) -> None:
    """Put the wheels and the repository into this interpreter's environment."""
    pip = [sys.executable, "-m", "pip", "install", "--quiet", "--no-index", "--no-deps"]
    if found := sorted(wheels.glob("*.whl")):
        subprocess.run([*pip, *found], check=True)
    if (repository / "pyproject.toml").exists() or (repository / "setup.py").exists():
        editable = ["--no-build-isolation", "--editable", repository]
        done = subprocess.run([*pip, *editable], check=False)
        if done.returncode:
            print(f"  the repository cannot be installed (exit {done.returncode})")


def main() -> int:
    """All of them, one after the other."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("tasks", nargs="+", metavar="TASK")
    parser.add_argument("--suite", default="paper44")
    parser.add_argument("--wheels", type=Path, required=True)
    parser.add_argument("--work", type=Path, required=True, help="an empty folder")
    parser.add_argument("--out", type=Path, required=True, help="for records and logs")
    chosen = parser.parse_args()
    suite = load_suite(chosen.suite)
    print(f"{len(inventory().gpus)} GPUs: {', '.join(gpu.name for gpu in inventory().gpus)}")
    failed = 0
    for name in chosen.tasks:
        task = suite.task(name)
        repository = chosen.work / name
        shutil.copytree(fetch_source(task).tree, repository, symlinks=True)
        install(repository, chosen.wheels / name)
        record = verify(
            repository,
            python=sys.executable,
            task=task,
            levels=LEVELS,
            out=chosen.out / name,
            assets="stand-in",
        )
        for level, result in record.results.items():
            program = result.details.get("entry_point", "")
            failed += result.verdict is Verdict.FAILED or program == Verdict.FAILED
            shown = f"entry point {program}: {result.details.get('why', '')}" if program else ""
            print(f"{name} {level} {result.verdict} {result.seconds:.1f} s {result.reason} {shown}")
            for entry in result.evidence:
                print(f"    {entry.verdict}: {entry.entry} | {entry.seen}")
    return int(failed > 0)


if __name__ == "__main__":
    sys.exit(main())
