"""What a task may say of its assets, and what of that is in its digest."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from researchenvbench.asset import FileAsset
from researchenvbench.errors import TaskError
from researchenvbench.taskfile import load_suite

if TYPE_CHECKING:
    from .conftest import Tasks

RECIPE = '[assets.x.{key}]\nscript = "make.py"\n'
HUB = '[assets.x]\nkind = "hub"\nrepo = "o/net"\n{more}' + RECIPE.format(key="stand_in")
URL = '[assets.x]\nkind = "url"\nurl = "https://example.org/a.tar.gz"\n{more}'
MADE = '[assets.x]\nkind = "made"\n{more}' + RECIPE.format(key="recipe")


@pytest.fixture(autouse=True)
def _script(tasks: Tasks) -> None:
    tasks.script("out.write_text('x')")


def test_the_digest_of_a_task_with_a_file_is_as_before_there_were_other_kinds() -> None:
    """Proofs that were made then hold still."""
    fit = load_suite("starter").task("mace-torch").assets["fit"]
    assert isinstance(fit, FileAsset)
    judged = fit.model_dump_json(exclude=fit.not_judged)
    assert judged == f'{{"kind":"file","path":"fit.xyz","sha256":"{fit.sha256}"}}'


def test_the_digest_of_a_whole_task_is_that_of_then(tasks: Tasks) -> None:
    (tasks.folder / "data.csv").write_text("x")
    task = tasks.task(f'[assets.x]\nkind = "file"\npath = "data.csv"\nsha256 = "{"0" * 64}"\n')
    # Computed by the version that knew no other kind of asset.
    assert task.digest == "7dd801575887dde71b94c58f4608e1947d434fd95b70e36816e66129075b82c1"


@pytest.mark.parametrize(
    ("text", "words"),
    [
        (HUB.format(more='revision = "main"\n'), "a branch or a tag can move"),
        (HUB.format(more='revision = "abc123"\n'), "not a full commit id"),
        (HUB.format(more="").replace("o/net", "../net"), "not the id of a repository"),
        (HUB.format(more="").replace("o/net", "https://hub/o/net"), "not the id of a repository"),
        (HUB.format(more='type = "modle"\n'), "did you mean 'model'"),
        (HUB.format(more='name = "a/b"\n'), "not the name of a file"),
        (HUB.format(more='name = ".."\n'), "not the name of a file"),
        (HUB.format(more='placed = "touch"\n'), "did you mean 'torch'"),
        (HUB.format(more="").replace("make.py", "gone.py"), "is not a file there"),
        (HUB.format(more="").replace("make.py", "../make.py"), "not a Python file of the task"),
        (HUB.format(more="").replace("make.py", "/bin/x.py"), "not a Python file of the task"),
        (HUB.format(more="").replace("make.py", "../stand_ins/../x.py"), "not a Python file"),
        (HUB.format(more="").replace("make.py", "make.sh"), "not a Python file"),
        (HUB.format(more="") + 'requirements = ["numpy"]', "not pinned by =="),
        (HUB.format(more="") + 'requirements = ["numpy>=2"]', "not pinned by =="),
        (HUB.format(more="") + 'requirements = ["numpy==2.*"]', "not pinned by =="),
        (HUB.format(more="") + 'requirements = ["x @ https://e.org/x.whl"]', "not pinned by =="),
        (HUB.format(more="") + 'requirements = ["numpy=2"]', "not a requirement"),
        (HUB.format(more="") + 'python = "3"', "not a version specifier"),
        (HUB.format(more="") + 'digest = "abc"', "digest"),
        (HUB.format(more="") + "seed = -1", "seed"),
        (URL.format(more="").replace("https", "ftp"), "not an http or https address"),
        (URL.format(more="").replace("//", "//user:word@"), "belong into no task file"),
        (URL.format(more='unpack = "rar"\n'), "not one of zip, tar"),
        (URL.format(more='placed = "hub"\n'), "only what has the kind"),
        ('[assets.x]\nkind = "source"\npath = "../x"\n', "not a path within the repository"),
        ('[assets.x]\nkind = "source"\npath = "/x"\n', "not a path within the repository"),
        ('[assets.x]\nkind = "made"\n', "recipe: is required"),
        ('[assets.x]\nkind = "git"\n', "is not one of file, source, url, hub, made"),
        (MADE.format(more="bytes = -1\n"), "bytes"),
    ],
)
def test_what_is_refused(tasks: Tasks, text: str, words: str) -> None:
    with pytest.raises(TaskError) as caught:
        tasks.task(text)
    assert words in str(caught.value)
    assert "assets.x" in str(caught.value)


@pytest.mark.parametrize("name", ["../x", "x y", "a.b", ""])
def test_names_that_no_placeholder_can_hold(tasks: Tasks, name: str) -> None:
    with pytest.raises(TaskError, match="is no name for an asset"):
        tasks.task(HUB.format(more="").replace("assets.x", f'assets."{name}"'))


def test_a_script_that_leads_out_by_a_link(tasks: Tasks) -> None:
    (tasks.folder / "linked.py").symlink_to("/etc/hostname")
    with pytest.raises(TaskError, match="is not a file there"):
        tasks.task(MADE.format(more="").replace("make.py", "linked.py"))


@pytest.mark.parametrize(
    ("text", "name"),
    [
        (URL.format(more=""), "a.tar.gz"),
        (URL.format(more='unpack = "tar"\n'), "a"),
        (URL.format(more='name = "b"\n'), "b"),
        (HUB.format(more=""), "net"),
        (MADE.format(more=""), "x"),
        ('[assets.x]\nkind = "source"\npath = "data/set"\n', "set"),
        (URL.format(more="").replace("/a.tar.gz", ""), "x"),
    ],
)
def test_the_name_at_the_stage(tasks: Tasks, text: str, name: str) -> None:
    assert tasks.task(text).assets["x"].file_name("x") == name


@pytest.mark.parametrize(
    "more",
    [
        'licence = "MIT"\n',
        "gated = true\n",
        "bytes = 12\n",
        f'revision = "{"a" * 40}"\n',
    ],
)
def test_what_is_looked_up_later_voids_no_proof(tasks: Tasks, more: str) -> None:
    before = tasks.task(HUB.format(more="")).digest
    assert tasks.task(HUB.format(more=more)).digest == before
    assert tasks.task(HUB.format(more="") + f'digest = "{"0" * 64}"').digest == before


@pytest.mark.parametrize("more", ['name = "b"\n', 'placed = "hub"\n', 'files = ["*.json"]\n'])
def test_what_a_stage_sees_is_in_the_digest(tasks: Tasks, more: str) -> None:
    before = tasks.task(HUB.format(more="")).digest
    assert tasks.task(HUB.format(more=more)).digest != before


def test_the_script_is_in_the_digest(tasks: Tasks) -> None:
    before = tasks.task(HUB.format(more="")).digest
    tasks.script("out.write_text('y')")
    assert tasks.task(HUB.format(more="")).digest != before


def test_a_file_of_the_task_that_is_not_there(tasks: Tasks) -> None:
    text = f'[assets.x]\nkind = "file"\npath = "gone.csv"\nsha256 = "{"0" * 64}"\n'
    with pytest.raises(TaskError, match=r"assets\.x\.path: 'gone\.csv' is not a file"):
        tasks.task(text)
