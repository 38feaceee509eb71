"""How long `reb --help` takes, as a ratio to a bare interpreter.

    python benchmarks/help_time.py [ROUNDS]

Both are started in turn, so that a noisy machine disturbs them alike; the medians are
compared. The limit is ten times.
"""

from __future__ import annotations

import statistics
import subprocess
import sys
import time
from pathlib import Path

LIMIT = 10.0


def seconds(argv: list[str]) -> float:
    """Wall time of one run of a program."""
    started = time.perf_counter()
    subprocess.run(argv, check=True, stdout=subprocess.DEVNULL)
    return time.perf_counter() - started


def main() -> int:
    """Measure and print."""
    rounds = int(sys.argv[1]) if len(sys.argv) > 1 else 20
    reb = str(Path(sys.executable).with_name("reb"))
    bare, with_help = [], []
    for _ in range(rounds):
        bare.append(seconds([sys.executable, "-c", "pass"]))
        with_help.append(seconds([reb, "--help"]))
    base, full = statistics.median(bare), statistics.median(with_help)
    print(f"python -c pass  {base * 1000:7.1f} ms   median of {rounds}")
    print(f"reb --help      {full * 1000:7.1f} ms   {full / base:.1f} times; limit {LIMIT:.0f}")
    return 0 if full / base <= LIMIT else 1


if __name__ == "__main__":
    sys.exit(main())
