"""What the harness itself adds to an attempt.

    python benchmarks/overhead.py [SUITE] [TASK] [AGENT]

Runs both phases of one attempt and subtracts from their wall time that of the programs that
they ran (pyright among them) and of digesting the frozen files, which is printed apart. The
limit is 1 s or 3 % of the programs' time, whichever is more.
"""

from __future__ import annotations

import sys
import tempfile
import time
from pathlib import Path

from researchenvbench.process import seconds_in_programs
from researchenvbench.run.job import AttemptRun
from researchenvbench.run.store import AttemptFolder, Job
from researchenvbench.taskfile import load_suite

SMALL = Path(__file__).parent.parent / "tests" / "suites" / "small"


def main() -> int:
    """Measure and print."""
    suite = load_suite(sys.argv[1] if len(sys.argv) > 1 else SMALL)
    task = suite.task(sys.argv[2] if len(sys.argv) > 2 else suite.tasks[0].name)
    agent = sys.argv[3] if len(sys.argv) > 3 else "gold"
    with tempfile.TemporaryDirectory(prefix="reb-overhead-") as made:
        folder = AttemptFolder(Path(made) / "attempts" / f"{task.name}--1")
        folder.path.mkdir(parents=True)
        Job(suite=suite.name, task_folder=str(task.folder), task=task.name, agent=agent).save(
            folder.job_file
        )
        AttemptRun(folder.path).source()  # fetching is a download, and cached
        started, cpu = time.monotonic(), time.process_time()
        attempt = AttemptRun(folder.path)
        built = attempt.build()
        record = attempt.verify()
        wall, cpu = time.monotonic() - started, time.process_time() - cpu
    programs = seconds_in_programs()
    frozen = built.environment
    digest = frozen.digest_s if frozen else 0.0
    own = wall - programs - digest
    limit = max(1.0, 0.03 * programs)
    verdicts = " ".join(f"{level}:{result.verdict}" for level, result in record.results.items())
    print(f"{task.name} by {agent}: {verdicts}")
    print(f"wall time      {wall:8.2f} s")
    print(f"programs       {programs:8.2f} s")
    if frozen:
        rate = frozen.size_bytes / 1e6 / max(digest, 1e-9)
        print(f"digesting      {digest:8.2f} s   {frozen.files} files, {rate:.0f} MB/s")
    print(f"the harness    {own:8.2f} s   {own / programs:.1%}; limit {limit:.2f} s")
    print(f"its CPU time   {cpu:8.2f} s   digesting included")
    return 0 if own <= limit else 1


if __name__ == "__main__":
    sys.exit(main())
