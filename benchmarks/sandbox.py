"""What containers cost beside `local`: start, copy, freeze, a fresh start, and looking at them.

    python benchmarks/sandbox.py [--engine podman] [--image NAME] [--gigabytes N] [--torch]

Each step is measured on its own, in both sandboxes, within one run; ratios are to `local`.
Then what a freeze costs over a base of some megabytes and over one of N GB, which must come to
the same: only what was added is copied. Last, integrity over a repository of 4,000 files and,
with --torch, over an environment that holds torch, whose limit is 5 s once it is warm.
"""

from __future__ import annotations

import argparse
import hashlib
import sys
import tempfile
import time
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from researchenvbench.process import Command
from researchenvbench.sandbox import make_sandbox
from researchenvbench.sandbox.host_environment import host_environment
from researchenvbench.source import snapshot_in_place
from researchenvbench.verify.integrity.prefix import look_at_prefix
from researchenvbench.verify.integrity.worktree import compare

if TYPE_CHECKING:
    from collections.abc import Iterator

    from researchenvbench.sandbox import Box, Sandbox

_FILES = 4000
_ADDED_MB = 50
_LIMIT_S = 5.0


class Laps:
    """Named durations, in seconds."""

    def __init__(self) -> None:
        self.seconds: dict[str, float] = {}

    @contextmanager
    def lap(self, name: str) -> Iterator[None]:
        """Measure what happens within."""
        began = time.monotonic()
        yield
        self.seconds[name] = time.monotonic() - began


def main() -> int:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--engine", default="podman", choices=("podman", "docker"))
    parser.add_argument("--image", default="", help="base image; default: the newest of ours")
    parser.add_argument("--gigabytes", type=float, default=1.0, help="of the large base")
    parser.add_argument("--torch", action="store_true", help="install torch, and look at it")
    chosen = parser.parse_args()
    options = {"image": chosen.image} if chosen.image else {}
    container = make_sandbox(chosen.engine, options)
    with tempfile.TemporaryDirectory(prefix="reb-bench-") as made:
        folder = Path(made)
        source = _source(folder / "source")
        names = {"local": make_sandbox("local"), chosen.engine: container}
        laps = {name: _life(box, folder / name, source) for name, box in names.items()}
        _table(laps["local"], laps[chosen.engine], chosen.engine)
        _freezing(chosen.engine, options, folder, chosen.gigabytes)
        return _integrity(container, folder / "integrity", source, torch=chosen.torch)


def _source(folder: Path) -> Path:
    """A repository of 4,000 files."""
    for number in range(_FILES):
        file = folder / f"package{number % 40}" / f"module{number}.py"
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(f"value = {number}\n" * 50)
    return folder


def _life(sandbox: Sandbox, attempt: Path, source: Path) -> Laps:
    """The steps of an attempt, each on its own."""
    attempt.mkdir()
    laps = Laps()
    sandbox.check()
    opened = sandbox.build_box(attempt, source, key="benchmark")
    with laps.lap("start and copy of 4,000 files"):
        box = opened.__enter__()
    try:
        with laps.lap("a command while building"):
            _run(box, "true", attempt)
        with laps.lap("put of a file"):
            box.put(box.layout.report, b"{}")
        with laps.lap("read of a file"):
            box.read(box.layout.report, 100)
        _run(box, f"head -c {_ADDED_MB}000000 /dev/urandom > {box.layout.repo}/added", attempt)
    finally:
        opened.__exit__(None, None, None)
    with laps.lap(f"freeze of {_ADDED_MB} MB"):
        sandbox.freeze(attempt)
    stage = sandbox.stage_box(attempt, network=False, gpus=())
    with laps.lap("fresh start"):
        inside = stage.__enter__()
    try:
        with laps.lap("a command in a stage"):
            _run(inside, "true", attempt)
        with laps.lap("put of 100 files"):
            inside.put_all({inside.layout.tools / str(n): b"x" for n in range(100)})
        with laps.lap("look at a folder"):
            inside.examine("sizes", {"root": str(inside.layout.work)})
    finally:
        with laps.lap("end of a stage"):
            stage.__exit__(None, None, None)
    with laps.lap("removal"):
        sandbox.discard(attempt)
    return laps


def _run(box: Box, line: str, attempt: Path, *, installs: bool = False) -> None:
    variables = box.variables(host_environment(), installs=installs)
    command = Command(["/bin/sh", "-c", line], box.layout.repo, variables, 1800)
    finished = box.run(command, attempt / "log")
    if not finished.ok:
        sys.exit(f"{line}: {(attempt / 'log').read_text(errors='replace')[-2000:]}")


def _table(local: Laps, container: Laps, engine: str) -> None:
    print(f"{'':32}{'local':>10}{engine:>10}{'ratio':>8}")
    for name, seconds in local.seconds.items():
        other = container.seconds[name]
        print(f"{name:32}{seconds:9.2f}s{other:9.2f}s{other / max(seconds, 1e-3):7.1f}x")


def _freezing(engine: str, options: dict[str, str], folder: Path, gigabytes: float) -> None:
    """Freeze the same addition over a small base and over a large one."""
    empty = folder / "empty"
    empty.mkdir()
    base = make_sandbox(engine, options)
    attempt = folder / "base"
    attempt.mkdir()
    print()
    with base.build_box(attempt, empty, key="base") as box:
        _run(box, f"head -c {int(gigabytes * 1e9)} /dev/urandom > /base", attempt)
    large = base.freeze(attempt)
    print(f"freeze of {gigabytes:g} GB{large.digest_s:>20.2f} s")
    for name, image in (("the base image", options.get("image", "")), ("it", large.digest)):
        of_image = {**options, "image": image} if image else options
        sandbox = make_sandbox(engine, of_image)
        on_base = folder / f"on-{hashlib.sha256(name.encode()).hexdigest()[:8]}"
        on_base.mkdir()
        with sandbox.build_box(on_base, empty, key="added") as box:
            _run(box, f"head -c {_ADDED_MB}000000 /dev/urandom > /added", on_base)
        frozen = sandbox.freeze(on_base)
        print(f"freeze of {_ADDED_MB} MB over {name:16}{frozen.digest_s:.2f} s")
        sandbox.discard(on_base)
    base.discard(attempt)


def _integrity(sandbox: Sandbox, attempt: Path, source: Path, *, torch: bool) -> int:
    """Look at a work tree of 4,000 files, and at an environment, twice each."""
    attempt.mkdir()
    prefix, packages = "/workspace/env", "torch" if torch else "six"
    with sandbox.build_box(attempt, source, key="integrity") as box:
        line = f"uv venv {prefix} && uv pip install --python {prefix}/bin/python {packages}"
        _run(box, line, attempt, installs=True)
    sandbox.freeze(attempt)
    snapshot = snapshot_in_place(source)
    print()
    seconds = 0.0
    for which in ("first", "again"):
        began = time.monotonic()
        with sandbox.stage_box(attempt, network=False, gpus=()) as stage:
            python = f"{prefix}/bin/python"
            compared = compare(snapshot, stage, (), judge=True, python=python)
            look_at_prefix(stage, python, None)
        seconds = time.monotonic() - began
        changed = [finding for finding in compared.findings if finding.disqualifies]
        print(
            f"integrity of 4,000 files and {packages}, {which}: {seconds:.2f} s, "
            f"{len(changed)} changes; limit {_LIMIT_S:.0f} s once warm"
        )
    sandbox.discard(attempt)
    return 0 if seconds <= _LIMIT_S else 1


if __name__ == "__main__":
    sys.exit(main())
