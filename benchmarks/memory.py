"""How much memory the harness takes while four attempts run.

    python benchmarks/memory.py

Starts `reb run` on four attempts of the smallest suite, whose entry points wait, and adds up
the proportional set sizes (PSS: pages that processes share are divided among them) of
`reb run`, its jobs and their supervisors. The judged programs are not the harness. The limit
is 150 MB.
"""

from __future__ import annotations

import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path

LIMIT_MB = 150.0
SMALL = Path(__file__).parent.parent / "tests" / "suites" / "small"
ATTEMPTS = 4


def main() -> int:
    """Measure and print."""
    with tempfile.TemporaryDirectory(prefix="reb-memory-") as made:
        suite = Path(shutil.copytree(SMALL, Path(made) / "small"))
        task = suite / "adder" / "task.toml"
        waiting = 'time_limit_s = 600\nenv = { ADDER_SLEEP_S = "30" }'
        task.write_text(task.read_text().replace("time_limit_s = 60", waiting))
        run = Path(made) / "run"
        command = [sys.executable, "-m", "researchenvbench", "run", str(suite), "--agent", "gold"]
        command += ["--only", "adder"]
        command += ["--attempts", str(ATTEMPTS), "--jobs", str(ATTEMPTS), "--out", str(run)]
        process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        try:
            highest = 0.0
            deadline = time.monotonic() + 300
            while time.monotonic() < deadline and process.poll() is None:
                highest = max(highest, harness_mb(process.pid))
                logs = list(run.glob("attempts/*/logs/cpu.log"))
                if len(logs) == ATTEMPTS and all("step 1" in log.read_text() for log in logs):
                    break
                time.sleep(0.2)
            running = harness_mb(process.pid)
        finally:
            process.send_signal(signal.SIGINT)
            process.wait()
    print(f"while {ATTEMPTS} stages run   {running:6.0f} MB")
    print(f"highest on the way   {highest:6.0f} MB   limit {LIMIT_MB:.0f}")
    return 0 if 0 < highest <= LIMIT_MB else 1


def harness_mb(root: int) -> float:
    """PSS of the process `root` and of those below it that run code of the harness."""
    children: dict[int, list[int]] = {}
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            try:
                parent = int(entry.joinpath("stat").read_text().rpartition(")")[2].split()[1])
            except OSError:
                continue
            children.setdefault(parent, []).append(int(entry.name))
    total, waiting = 0.0, [root]
    while waiting:
        pid = waiting.pop()
        waiting += children.get(pid, [])
        try:
            executable = os.path.realpath(f"/proc/{pid}/exe")
            command = Path(f"/proc/{pid}/cmdline").read_bytes()
            if executable == os.path.realpath(sys.executable) and (
                b"researchenvbench" in command or b"standalone" in command
            ):
                rollup = Path(f"/proc/{pid}/smaps_rollup").read_text()
                total += int(re.search(r"^Pss:\s+(\d+) kB", rollup, re.M)[1]) / 1000
        except OSError:
            continue
    return total


if __name__ == "__main__":
    sys.exit(main())
