"""Is the reported interpreter one? Asked of real ones, and of things that pretend to be one."""

from __future__ import annotations

import re
import subprocess
import sys
from typing import TYPE_CHECKING

import pytest

from researchenvbench.sandbox.host_environment import base_environment, host_environment
from researchenvbench.sandbox.local import LocalSandbox
from researchenvbench.verify import interpreter
from researchenvbench.verify.interpreter import Interpreter, ask

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from researchenvbench.sandbox import StageBox


@pytest.fixture(scope="module")
def environment(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """An attempt whose frozen environment has a space in its path."""
    attempt = tmp_path_factory.mktemp("an attempt")
    source = tmp_path_factory.mktemp("source")
    sandbox = LocalSandbox()
    with sandbox.build_box(attempt, source) as box:
        layout = box.layout
        subprocess.run([sys.executable, "-m", "venv", "--without-pip", str(layout.env)], check=True)
        [site] = (layout.env / "lib").glob("python*/site-packages")
        metadata = site / "torch-2.4.0+cpu.dist-info"
        metadata.mkdir()
        (metadata / "METADATA").write_text(
            "Metadata-Version: 2.1\nName: torch\nVersion: 2.4.0+cpu\n"
        )
        scripts = {
            "exits": "#!/bin/sh\nexit 0\n",
            "fails": "#!/bin/sh\necho no >&2\nexit 3\n",
            "sleeps": "#!/bin/sh\nsleep 600\n",
            "writes": '#!/bin/sh\necho \'{"nonce": 1}\' > "$6"\n',
            "broken": "#!/no/such/interpreter\n",
            "echoes": '#!/bin/sh\nprintf \'{"nonce": "%s", "product": 1}\' "$4" > "$6"\n',
            "kills": "#!/bin/sh\nkill -9 $$\n",
        }
        (layout.root / "fakes").mkdir()
        for name, text in scripts.items():
            (layout.root / "fakes" / name).write_text(text)
            (layout.root / "fakes" / name).chmod(0o755)
        (layout.root / "fakes" / "plain").write_text("#!/bin/sh\nexit 0\n")
        (layout.root / "fakes" / "folder").mkdir()
        # What would change an interpreter that reads the environment or the folder it is in.
        (layout.repo / "json.py").write_text("raise SystemExit('shadowed')\n")
    sandbox.freeze(attempt)
    return attempt


@pytest.fixture
def box(environment: Path) -> Iterator[StageBox]:
    with LocalSandbox().stage_box(environment, network=False, gpus=()) as opened:
        yield opened


def question(box: StageBox, path: str, log: Path) -> tuple[Interpreter | None, str]:
    variables = base_environment(
        box.layout, host_environment({"PATH": "/usr/bin:/bin"}), installs=False
    )
    return ask(box, path, {**variables, "PYTHONHOME": "/nowhere"}, log)


def test_a_real_interpreter_answers(box: StageBox, tmp_path: Path) -> None:
    path = str(box.layout.env / "bin" / "python")
    assert " " in path
    found, why = question(box, path, tmp_path / "log")
    assert found is not None, why
    assert found.executable == path
    assert found.version == ".".join(map(str, sys.version_info[:3]))
    assert (found.kind, found.prefix) == ("venv", str(box.layout.env))
    assert found.frameworks == {"torch": "2.4.0+cpu"}
    assert found.purelib.startswith(found.prefix)


def test_the_systems_own_python(box: StageBox, tmp_path: Path) -> None:
    found, why = question(box, sys._base_executable, tmp_path / "log")
    assert found is not None, why
    assert found.kind in ("system", "conda")


@pytest.mark.parametrize(
    ("name", "why"),
    [
        (
            "fakes/exits",
            "is no Python interpreter: it ended with exit status 0 and no right answer",
        ),
        ("fakes/fails", "it ended with exit status 3"),
        ("fakes/writes", "no right answer"),
        ("fakes/echoes", "no right answer"),
        ("fakes/kills", "it ended with SIGKILL"),
        ("fakes/plain", "cannot be run: .*[Pp]ermission"),
        ("fakes/folder", "cannot be run: "),
        ("fakes/broken", "cannot be run: "),
        ("fakes/missing", "cannot be run: .*not found"),
    ],
)
def test_what_is_no_interpreter(box: StageBox, tmp_path: Path, name: str, why: str) -> None:
    found, reason = question(box, str(box.layout.root / name), tmp_path / "log")
    assert found is None
    assert re.search(why, reason), reason


@pytest.mark.parametrize("path", ["python", "env/bin/python", "", "~/python", "/a\0b", "-c"])
def test_a_path_that_is_not_absolute(box: StageBox, tmp_path: Path, path: str) -> None:
    found, reason = question(box, path, tmp_path / "log")
    assert found is None
    assert "is not an absolute path" in reason


def test_one_that_never_answers(
    box: StageBox, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(interpreter, "_TIME_LIMIT_S", 1.0)
    found, reason = question(box, str(box.layout.root / "fakes/sleeps"), tmp_path / "log")
    assert found is None
    assert "did not answer within 1 s" in reason


def test_activation_scripts_of_a_conda_prefix(
    tmp_path: Path,
) -> None:
    attempt, source = tmp_path / "attempt", tmp_path / "source"
    attempt.mkdir()
    source.mkdir()
    sandbox = LocalSandbox()
    with sandbox.build_box(attempt, source) as box:
        prefix = box.layout.env
        subprocess.run([sys.executable, "-m", "venv", "--without-pip", str(prefix)], check=True)
        (prefix / "conda-meta").mkdir()
        scripts = prefix / "etc/conda/activate.d"
        scripts.mkdir(parents=True)
        (scripts / "a.sh").write_text('export GDAL_DATA="$CONDA_PREFIX/share"\nexport HOME=/x\n')
        (scripts / "b.csh").write_text("setenv NOT_OURS 1\n")
    sandbox.freeze(attempt)
    with sandbox.stage_box(attempt, network=False, gpus=()) as stage:
        found, why = question(stage, str(prefix / "bin/python"), tmp_path / "log")
    assert found is not None, why
    assert found.kind == "conda"
    assert found.activation == {"GDAL_DATA": f"{prefix}/share", "CONDA_PREFIX": str(prefix)}
