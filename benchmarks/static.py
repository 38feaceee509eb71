"""C0 costs one start of the checker, however many folders a repository has.

    python benchmarks/static.py

Judges the imports of two made-up repositories with the same number of files, one in a single
folder and one in fifty, and counts the starts of the checker by the processes that ran. The
times are printed with their ratio; the starts are what is tested.
"""

from __future__ import annotations

import sys
import tempfile
import threading
import time
from pathlib import Path

from researchenvbench.attempt import Level
from researchenvbench.run.verification import verify

FILES, FOLDERS = 200, 50


def repository(folder: Path, folders: int) -> Path:
    """Files that import a few names each, spread over so many folders."""
    for number in range(FILES):
        place = folder / f"part{number % folders}"
        place.mkdir(parents=True, exist_ok=True)
        text = "import json\nimport os\nimport numpy\n\n\ndef work():\n    return json, os, numpy\n"
        (place / f"module{number}.py").write_text(text)
    return folder


class Starts(threading.Thread):
    """Counts processes that run pyright, by looking often."""

    def __init__(self) -> None:
        super().__init__(daemon=True)
        self.seen: set[str] = set()
        self.ended = False

    def run(self) -> None:
        """Look until told to stop."""
        while not self.ended:
            for entry in Path("/proc").iterdir():
                if entry.name.isdigit() and entry.name not in self.seen:
                    try:
                        command = entry.joinpath("cmdline").read_bytes().split(b"\0")
                    except OSError:
                        continue
                    if any(part.endswith(b"pyright/dist/index.js") for part in command):
                        executable = command[0].rpartition(b"/")[2]
                        if executable == b"node":
                            self.seen.add(entry.name)
            time.sleep(0.02)


def measure(folders: int) -> tuple[float, int]:
    """Seconds of C0, and starts of the checker."""
    with tempfile.TemporaryDirectory(prefix="reb-static-") as made:
        repo = repository(Path(made) / "repository", folders)
        starts = Starts()
        starts.start()
        began = time.monotonic()
        verify(repo, sys.executable, levels=(Level.C0,), out=Path(made) / "results")
        seconds = time.monotonic() - began
        starts.ended = True
        starts.join()
        return seconds, len(starts.seen)


def main() -> int:
    """Measure and print."""
    one, one_starts = measure(1)
    many, many_starts = measure(FOLDERS)
    for folders, seconds, starts in ((1, one, one_starts), (FOLDERS, many, many_starts)):
        print(f"{FILES} files in {folders:2} folders   {seconds:6.2f} s   {starts} starts")
    print(f"ratio                    {many / one:6.2f}")
    return 0 if one_starts == many_starts == 1 else 1


if __name__ == "__main__":
    sys.exit(main())
