"""The example plays an episode to its end."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

EXAMPLE = Path(__file__).parents[2] / "examples" / "episode.py"


@pytest.mark.slow
@pytest.mark.network
def test_the_example_builds_the_quickest_task(shared_cache, tmp_path):
    done = subprocess.run(
        [sys.executable, EXAMPLE],
        env={**os.environ, "REB_CACHE": str(shared_cache), "TMPDIR": str(tmp_path)},
        cwd=tmp_path,
        capture_output=True,
        text=True,
        timeout=900,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert "reward: 1.0" in done.stdout, done.stdout
    assert "C1 CPU run    passed" in done.stdout
    left = [path.name for path in tmp_path.iterdir() if path.name.startswith("reb-")]
    assert left == [], "it removes what it has made"
