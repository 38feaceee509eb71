"""Recipes make the same thing each time, far from everything else, or say why not."""

from __future__ import annotations

import shutil
import time
from typing import TYPE_CHECKING

import pytest

from researchenvbench.assets import Ready, check_again
from researchenvbench.sandbox.host_environment import host_environment

from .conftest import fetching

if TYPE_CHECKING:
    from pathlib import Path

    from .conftest import Tasks

MADE = '[assets.data]\nkind = "made"\nname = "data.csv"\n[assets.data.recipe]\nscript = "make.py"\n'
STAND_IN = """\
[assets.net]
kind = "hub"
repo = "o/net"
[assets.net.stand_in]
script = "make.py"
seed = 7
"""


def check(tasks: Tasks, assets: str) -> str | None:
    """What `reb assets fetch --check` says of the one asset."""
    task = tasks.task(assets)
    (name,) = task.assets
    return check_again(task, name, host=host_environment(), say=tasks.said.append)


def test_a_file_is_made_once(tasks: Tasks) -> None:
    tasks.script("out.write_text('x\\n1\\n')")
    ready = tasks.ready(MADE)
    assert (ready.origin, ready.path.name) == ("made", "data.csv")
    assert ready.path.read_text() == "x\n1\n"
    count = len(tasks.said)
    assert count
    assert tasks.ready(MADE) == ready
    assert len(tasks.said) == count
    assert check(tasks, MADE) is None


def test_a_stand_in_gets_its_seed(tasks: Tasks) -> None:
    tasks.script("out.mkdir(); (out / 'config.json').write_text(str(seed))")
    ready = tasks.ready(STAND_IN)
    assert ready.origin == "stand-in"
    assert (ready.path / "config.json").read_text() == "7"


def test_a_stand_in_is_no_original(tasks: Tasks) -> None:
    tasks.script("out.mkdir(); (out / 'config.json').write_text('x')")
    assert "not pinned" in tasks.missing(STAND_IN, "real").why
    assert tasks.ready(STAND_IN, "stand-in").origin == "stand-in"


def test_a_stand_in_is_a_folder_where_the_original_is_one(tasks: Tasks) -> None:
    tasks.script("out.write_text('x')")
    assert "a file, and its original is a folder" in tasks.missing(STAND_IN).why


def test_a_folder_that_its_script_made_read_only(tasks: Tasks) -> None:
    tasks.script("out.mkdir(); (out / 'a').write_text('x'); out.chmod(0o555)")
    assert (tasks.ready(MADE).path / "a").read_text() == "x"


def test_what_was_changed_is_made_anew(tasks: Tasks) -> None:
    tasks.script("out.write_text('one')")
    first = tasks.ready(MADE)
    tasks.script("out.write_text('two')")
    assert tasks.ready(MADE).digest != first.digest
    tasks.script("out.write_text('one')")
    assert tasks.ready(MADE) == first


def test_the_digest_of_the_task_decides(tasks: Tasks) -> None:
    tasks.script("out.write_text('x')")
    made = tasks.ready(MADE).digest
    assert tasks.ready(f'{MADE}digest = "{made}"').digest == made
    missing = tasks.missing(f'{MADE}digest = "{"0" * 64}"')
    assert made in missing.why
    assert "0" * 64 in missing.why
    assert "--check" in missing.advice


def test_one_that_fails_says_how(tasks: Tasks) -> None:
    tasks.script("raise SystemExit('the moon is not full')")
    missing = tasks.missing(MADE)
    assert "exit status 1" in missing.why
    assert "the moon is not full" in missing.why
    log = missing.advice.removeprefix("its output is in ")
    with open(log) as stream:  # noqa: PTH123
        assert "the moon is not full" in stream.read()


def test_one_that_writes_nothing(tasks: Tasks) -> None:
    tasks.script("pathlib.Path('elsewhere').write_text('x')")
    missing = tasks.missing(MADE)
    assert "wrote nothing to OUT" in missing.why
    assert "make.py OUT --seed N" in missing.advice


@pytest.mark.parametrize(
    ("script", "why"),
    [
        ("out.mkdir()", "without a file"),
        ("out.symlink_to('/etc/passwd')", "wrote nothing"),
        ("out.mkdir(); (out / 'a').symlink_to('/etc/passwd')", "a: is a link"),
        ("import os; out.mkdir(); os.mkfifo(out / 'pipe')", "pipe: is neither a file"),
    ],
)
def test_one_that_makes_something_else_than_files(tasks: Tasks, script: str, why: str) -> None:
    tasks.script(script)
    assert why in tasks.missing(MADE).why


def test_one_that_takes_too_long_is_ended(tasks: Tasks) -> None:
    tasks.script("import time\nwhile True: time.sleep(1)")
    missing = tasks.missing(f"{MADE}time_limit_s = 0.5")
    assert "did not end within 0.5 s" in missing.why


@pytest.mark.parametrize(
    ("late", "differs"),
    [
        ("(out / 'b').write_text(now)", "b is another file"),
        ("(out / now).write_text('x')", "is made one time and not the other"),
    ],
)
def test_one_that_is_not_reproducible(tasks: Tasks, late: str, differs: str) -> None:
    start = "import time\nnow = str(time.time_ns())\nout.mkdir()\n(out / 'a').write_text('x')\n"
    tasks.script(start + late)
    tasks.ready(MADE)
    problem = check(tasks, MADE)
    assert problem is not None
    assert "not reproducible" in problem
    assert differs in problem


def test_sets_have_the_same_order_each_time(tasks: Tasks) -> None:
    tasks.script("out.write_text(' '.join({str(n) for n in range(50)}))")
    tasks.ready(MADE)
    assert check(tasks, MADE) is None


def test_the_script_sees_no_secret_and_nothing_beside_it(
    tasks: Tasks, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HF_TOKEN", "hf_secret")
    monkeypatch.setenv("SOMETHING_OF_MINE", "here")
    (tasks.folder / "beside.py").write_text("")
    tasks.script(
        "import os\nout.write_text('\\n'.join([*os.environ, *os.environ.values(),"
        "*os.listdir(pathlib.Path(__file__).parent)]))"
    )
    seen = tasks.ready(MADE).path.read_text()
    assert "PYTHONHASHSEED" in seen
    assert "make.py" in seen
    for hidden in ("hf_secret", "SOMETHING_OF_MINE", "beside.py", "PIP_", "UV_"):
        assert hidden not in seen


def test_the_script_has_no_network(tasks: Tasks) -> None:
    from researchenvbench.sandbox.local.namespace import namespace_support

    if namespace_support()[1] != "none":
        pytest.skip("this host gives no network namespace")
    tasks.script("out.write_text(pathlib.Path('/proc/net/dev').read_text())")
    lines = tasks.ready(MADE).path.read_text().splitlines()
    names = [line.partition(":")[0].strip() for line in lines if ":" in line]
    assert names == ["lo"]


def test_a_python_that_nobody_has(tasks: Tasks) -> None:
    tasks.script("out.write_text('x')")
    missing = tasks.missing(f'{MADE}python = "==3.99.*"')
    assert missing.why.startswith("the environment of its recipe failed")


def test_a_killed_harness_leaves_nothing_half(tasks: Tasks, cache: Path) -> None:
    """The script ends with it, and what it had made so far is removed by the next one."""
    begun = tasks.folder / "begun"
    tasks.script(
        "import os, time\nout.mkdir(); (out / 'a').write_text('half')\n"
        f"begun = pathlib.Path({str(begun)!r})\n"
        "if not begun.exists():\n    begun.write_text(str(os.getpid())); time.sleep(600)\n"
        "(out / 'a').write_text('whole')"
    )
    tasks.task(MADE)
    with fetching(tasks) as process:
        deadline = time.monotonic() + 60
        while not begun.exists() and time.monotonic() < deadline:
            time.sleep(0.05)
        process.kill()
    assert begun.exists()
    assert not list(cache.glob("objects/*"))
    time.sleep(1)
    assert (tasks.ready(MADE).path / "a").read_text() == "whole"
    assert not list(cache.glob("staging/*"))


@pytest.mark.network
@pytest.mark.slow
def test_requirements_are_installed(tasks: Tasks) -> None:
    tasks.script("import packaging; out.write_text(packaging.__version__)")
    assert tasks.ready(f'{MADE}requirements = ["packaging==24.1"]').path.read_text() == "24.1"
    missing = tasks.missing(f'{MADE}requirements = ["packaging==999.0"]')
    assert missing.why.startswith("the environment of its recipe failed")


def test_a_script_of_the_suite(tasks: Tasks) -> None:
    shared = tasks.folder.parent / "stand_ins"
    shared.mkdir()
    tasks.script("out.write_text('shared')")
    shutil.move(tasks.folder / "make.py", shared / "make.py")
    wanted = MADE.replace('"make.py"', '"../stand_ins/make.py"')
    assert tasks.ready(wanted).path.read_text() == "shared"


def test_one_that_fails_does_not_touch_the_others(tasks: Tasks, cache: Path) -> None:
    tasks.script("raise SystemExit(1)")
    tasks.script("out.write_text('x')", "good.py")
    both = MADE + MADE.replace("assets.data", "assets.other").replace("make.py", "good.py")
    found = tasks.prepare(both)
    assert not isinstance(found["data"], Ready)
    assert isinstance(found["other"], Ready)
    assert not list(cache.glob("staging/*"))
