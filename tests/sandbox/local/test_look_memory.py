"""A look that takes more memory than the job may have is no fault of the host's."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

#: Run in a control group of its own: it looks at an environment with lists that do not fit.
LOOKS = """
import os, sys
from pathlib import Path
group, env, scratch = sys.argv[1:]
Path(group, "cgroup.procs").write_text(str(os.getpid()))
from researchenvbench.errors import RefusedError, SandboxError
from researchenvbench.sandbox.local.adopted import adopted_box
order = {"path": f"{env}/bin/python", "home": "/no", "hooks": True, "frameworks": {}}
(Path(scratch) / "repo").mkdir()
with adopted_box(Path(scratch, "repo"), None, Path(scratch, "box"), network=False) as box:
    try:
        box.examine("prefix", order)
    except RefusedError as error:
        print("refused:", error.args[0])
    except SandboxError as error:
        print("host:", error.args[0])
"""


@pytest.fixture
def group():
    """A memory control group with a limit of 300 MiB; its folder."""
    base = Path("/sys/fs/cgroup/memory")
    kind = base / "memory.limit_in_bytes"
    if not kind.exists():
        base, kind = Path("/sys/fs/cgroup"), Path("memory.max")
    folder = base / f"reb-test-{os.getpid()}"
    try:
        folder.mkdir()
        (folder / kind.name).write_text(str(300 << 20))
    except OSError as error:
        pytest.skip(f"no control group can be made here: {error.strerror}")
    yield folder
    folder.rmdir()


def test_it_is_the_environments(group, tmp_path):
    env = tmp_path / "env"
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", env], check=True)
    [site] = (env / "lib").glob("python*/site-packages")
    (site / "x.pth").write_text("import x\n")
    for number in range(3):
        info = site / f"x-{number}.dist-info"
        info.mkdir()
        (info / "RECORD").write_text("x.dist-info/RECORD,sha256=x,1\n" * 2_100_000)
    said = subprocess.run(
        [sys.executable, "-c", LOOKS, group, env, tmp_path],
        capture_output=True, text=True, check=True, timeout=120,
    ).stdout  # fmt: skip
    assert said.startswith("refused: ")
    assert "it took more memory than there may be for it" in said
