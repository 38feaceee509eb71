"""What is placed so is found by the library that looks for it there, offline and read-only."""

from __future__ import annotations

import os
import subprocess
import textwrap
from typing import TYPE_CHECKING

import pytest
import uv

from researchenvbench.assets import Ready, check_ready
from researchenvbench.sandbox.host_environment import host_environment

from .servers import REVISION

if TYPE_CHECKING:
    from pathlib import Path

    from .conftest import Tasks
    from .servers import Server

FILES = {"config.json": b'{"layers": 2}', "deep/model.bin": b"weights"}
HUB = f"""\
[assets.net]
kind = "hub"
repo = "o/net"
revision = "{REVISION}"
placed = "hub"
[assets.net.stand_in]
script = "make.py"
"""
NOT_PINNED = "\n".join(line for line in HUB.splitlines() if "revision" not in line)
MAKE = "out.mkdir(); (out / 'config.json').write_text('{}')"
#: Asked with and without a revision, as code does.
_ASK = """\
    from huggingface_hub import hf_hub_download, snapshot_download
    for revision in (None, "main", {revision!r}):
        folder = snapshot_download("o/net", revision=revision)
        file = hf_hub_download("o/net", "config.json", revision=revision)
        print(folder, file)
"""


@pytest.fixture
def hub(server: Server, tasks: Tasks) -> Server:
    tasks.script(MAKE)
    server.repos["models/o/net"] = FILES
    return server


def tree(folder: Path) -> dict[str, bytes]:
    return {str(p.relative_to(folder)): p.read_bytes() for p in folder.rglob("*") if p.is_file()}


@pytest.mark.usefixtures("hub")
def test_a_hub_s_cache(tasks: Tasks) -> None:
    ready = tasks.ready(HUB, "real")
    repo = "models--o--net"
    snapshot = {f"{repo}/snapshots/{REVISION}/{name}": body for name, body in FILES.items()}
    notes = {f"{repo}/refs/main": REVISION.encode(), "version.txt": b"1"}
    assert tree(ready.path) == {**notes, **snapshot}
    assert check_ready(ready) is None


def test_a_stand_in_for_what_nobody_has_looked_up(tasks: Tasks) -> None:
    tasks.script(MAKE)
    ready = tasks.ready(NOT_PINNED)
    (revision,) = (path.name for path in ready.path.glob("*/snapshots/*"))
    assert len(revision) == 40
    assert (ready.path / "models--o--net/refs/main").read_text() == revision


def test_the_placing_changes_no_digest(tasks: Tasks) -> None:
    tasks.script(MAKE)
    digests = {
        tasks.ready(text).digest for text in (HUB, NOT_PINNED, HUB.replace('"hub"\n[', '"path"\n['))
    }
    assert len(digests) == 1


@pytest.mark.usefixtures("hub")
@pytest.mark.parametrize("name", ["refs/main", f"snapshots/{REVISION}/config.json"])
def test_what_has_changed_in_it_is_seen(tasks: Tasks, name: str) -> None:
    ready = tasks.ready(HUB, "real")
    file = ready.path / "models--o--net" / name
    file.chmod(0o644)
    file.write_bytes(b"x" * file.stat().st_size)
    assert check_ready(ready) is not None
    assert tasks.ready(HUB, "real") == ready
    assert check_ready(ready) is None


@pytest.mark.usefixtures("hub")
def test_what_was_added_or_replaced_is_seen(tasks: Tasks) -> None:
    ready = tasks.ready(HUB, "real")
    snapshot = ready.path / "models--o--net/snapshots" / REVISION
    snapshot.chmod(0o755)
    (snapshot / "modeling.py").write_text("")
    assert "modeling.py has been added" in (check_ready(ready) or "")
    (snapshot / "modeling.py").unlink()
    (snapshot / "config.json").unlink()
    (snapshot / "config.json").write_bytes(FILES["config.json"])
    assert "config.json has been replaced" in (check_ready(ready) or "")


@pytest.mark.parametrize(
    ("script", "expected"),
    [
        ("out.write_text('w')", {"hub/checkpoints/net.pth": b"w"}),
        (
            "(out / 'hub').mkdir(parents=True); (out / 'hub' / 'conf.py').write_text('')",
            {"hub/conf.py": b""},
        ),
    ],
)
def test_a_torch_home(tasks: Tasks, script: str, expected: dict[str, bytes]) -> None:
    tasks.script(script)
    ready = tasks.ready(
        '[assets.net]\nkind = "made"\nname = "net.pth"\nplaced = "torch"\n'
        '[assets.net.recipe]\nscript = "make.py"\n'
    )
    assert tree(ready.path) == expected


@pytest.mark.network
@pytest.mark.slow
@pytest.mark.parametrize("text", [HUB, NOT_PINNED], ids=["pinned", "not pinned"])
def test_the_hub_s_own_library_finds_it(tasks: Tasks, text: str) -> None:
    tasks.script(MAKE)
    ready = tasks.ready(text, "stand-in")
    (snapshot,) = ready.path.glob("*/snapshots/*")
    asked = textwrap.dedent(_ASK.format(revision=snapshot.name))
    before = tree(ready.path)
    with_library = ["run", "--no-project", "--isolated", "--with", "huggingface_hub", "python"]
    done = subprocess.run(
        [uv.find_uv_bin(), *with_library, "-c", asked],
        env={
            **{key: os.environ[key] for key in ("PATH", "HOME")},
            **host_environment().installs,
            "HF_HUB_CACHE": str(ready.path),
            "HF_HUB_OFFLINE": "1",
        },
        cwd=tasks.folder,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines() == [f"{snapshot} {snapshot / 'config.json'}"] * 3
    assert tree(ready.path) == before
    assert check_ready(ready) is None


def test_only_a_hub_lies_in_a_hub_s_cache(tasks: Tasks) -> None:
    from researchenvbench.errors import TaskError

    tasks.script(MAKE)
    text = '[assets.net]\nkind = "made"\nplaced = "hub"\n[assets.net.recipe]\nscript = "make.py"\n'
    with pytest.raises(TaskError, match="hub's cache"):
        tasks.task(text)


def test_no_place_of_its_own_is_the_content_itself(tasks: Tasks) -> None:
    tasks.script(MAKE)
    ready = tasks.ready(HUB.replace('placed = "hub"', ""))
    assert isinstance(ready, Ready)
    assert tree(ready.path) == {"config.json": b"{}"}
