"""Where a repository is judged without a task, what was not given is said, and how to give it."""

from .conftest import SUITE
from .test_choosing_python import environment


def test_levels_without_an_entry_point_blame_nobody(reb, tmp_path):
    venv = environment(tmp_path / "venv")
    levels = [word for level in ("C1", "C3", "C4") for word in ("--level", level)]
    done = reb("verify", SUITE / "adder" / "repository", "--python", venv, *levels)
    assert done.returncode == 3, done.stderr
    assert "--entry 'python train.py --steps 3'" in done.stderr
    said = " ".join(done.stdout.split())
    assert "C1 CPU run inconclusive no entry point was given: --entry COMMAND" in said
    assert "inconclusive no single_gpu stage was given: --task SUITE/NAME or FOLDER" in said
    assert "(task)" not in said
    assert done.stderr.count("asking ") == 1
