"""Runs of the smallest suite: real builds and real verification, in seconds, offline."""

import json
import os
import signal
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

import pytest

SUITE = Path(__file__).parent.parent / "suites" / "small"


@dataclass
class Reb:
    """The command line, with a cache of its own."""

    cache: Path
    cwd: Path

    @property
    def environment(self):
        return {**os.environ, "REB_CACHE": str(self.cache), "NO_COLOR": "1", "COLUMNS": "100"}

    def __call__(self, *arguments, **more):
        return subprocess.run(
            self.argv(*arguments),
            env={**self.environment, **more},
            cwd=self.cwd,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=400,
            check=False,
        )

    def argv(self, *arguments):
        return [sys.executable, "-m", "researchenvbench", *map(str, arguments)]

    def start(self, *arguments, **more):
        return subprocess.Popen(
            self.argv(*arguments),
            env={**self.environment, **more},
            cwd=self.cwd,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            # A shell starts what it runs in the background with SIGINT ignored, these tests
            # among it, and that is handed on.
            preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),
        )


@pytest.fixture(scope="session")
def shared_cache(tmp_path_factory):
    return tmp_path_factory.mktemp("cache")


@pytest.fixture
def reb(shared_cache, tmp_path):
    return Reb(shared_cache, tmp_path)


@pytest.fixture
def suite(tmp_path):
    """A copy of the smallest suite that a test may change."""
    import shutil

    return Path(shutil.copytree(SUITE, tmp_path / "small"))


def record_of(run, name="adder--1"):
    return json.loads((run / "attempts" / name / "record.json").read_text())
