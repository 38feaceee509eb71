"""A policy in five commands: builds an environment for a task and has it judged.

    .venv/bin/python examples/episode.py              # the quickest task of the suite starter
    .venv/bin/python examples/episode.py SUITE/TASK

It needs a package index. Whoever learns puts a model where `policy` is: what it is shown is an
observation and then each command's output and exit status, and what it is told in the end is
the reward. This one only installs the repository, with what its manifests ask for.
"""

from __future__ import annotations

import shlex
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from researchenvbench import Episode, reward

if TYPE_CHECKING:
    from collections.abc import Iterator

    from researchenvbench.run.episode import Observation, StepResult

TASK = "starter/hmmlearn"


def policy(begin: Observation) -> Iterator[str]:
    """Yields commands; is sent what each came to, and ends when it has nothing more to do."""
    env = shlex.quote(str(Path(begin.repo).parent / "env"))
    python = f"{env}/bin/python"
    made: StepResult = yield f"python3 -m venv {env}"
    if made.exit_status != 0:
        return
    installed: StepResult = yield f"{python} -m pip install --quiet {shlex.quote(begin.repo)}"
    if installed.exit_status != 0:  # an old build script that needs older tools
        yield f"{python} -m pip install --quiet 'setuptools<70' wheel numpy"
        yield f"{python} -m pip install --quiet --no-build-isolation {shlex.quote(begin.repo)}"
    yield f"{python} -m pip list"


def main(task: str) -> int:
    """Play one episode."""
    with Episode(task, time_limit_s=900) as episode:
        begin = episode.reset()
        deciding = policy(begin)
        command = next(deciding, None)
        while command is not None:
            done = episode.step(command)
            print(
                f"$ {command}\n{done.output[-500:]}[{done.exit_status}, {done.left_s:.0f} s left]"
            )
            try:
                command = deciding.send(done)
            except StopIteration:
                command = None
        python = Path(begin.repo).parent / "env" / "bin" / "python"
        record = episode.finish({"python_path": str(python), "env_tool": "venv"})
    for level, result in record.results.items():
        print(f"{level} {level.label:10} {result.verdict} {result.reason}")
    print(f"reward: {reward(record)}")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1] if len(sys.argv) > 1 else TASK))
