"""What a stage is shown of its assets: in their places, and read-only."""

import os
from pathlib import Path

import pytest

from researchenvbench.errors import SandboxError
from researchenvbench.sandbox.assets import make_frame
from researchenvbench.sandbox.local.adopted import adopted_box


@pytest.fixture
def assets(tmp_path):
    """A file and a folder, by the places at which a stage is to see them."""
    cache = tmp_path / "cache, of assets"
    (cache / "weights" / "deep").mkdir(parents=True)
    (cache / "weights" / "deep" / "w.bin").write_bytes(b"weights\n")
    (cache / "x").write_bytes(b"1,2\n")
    return {"data/train.csv": cache / "x", "hub/models--a--b": cache / "weights"}


#: Every way that a program has to change what it was given; none may be left out.
WRITES = (
    "echo changed > {file}",
    "echo more >> {folder}/deep/w.bin",
    "rm {folder}/deep/w.bin",
    "echo new > {folder}/new",
    "rm {file}",
    "mv {folder} {folder}.old",
    "mv {assets}/data {assets}/other",
    "echo new > {assets}/data/new.csv",
    "mkdir {assets}/new",
    "chmod 777 {file}",
    "mv {assets} {assets}.old",
)


def writes(box, shell):
    """Try them all; (those that went well, what is read afterwards)."""
    at = box.layout.assets
    places = {
        "assets": _quoted(at),
        "file": _quoted(at / "data" / "train.csv"),
        "folder": _quoted(at / "hub" / "models--a--b"),
    }
    done = [line for line in WRITES if shell(box, line.format(**places))[0].ok]
    _, output = shell(box, "cat {file} {folder}/deep/w.bin".format(**places))
    return done, output


def _quoted(path):
    return "'" + str(path).replace("'", "'\\''") + "'"


def read_back(assets):
    return [
        assets["data/train.csv"].read_bytes(),
        (assets["hub/models--a--b"] / "deep" / "w.bin").read_bytes(),
    ]


@pytest.mark.parametrize("fresh", ["overlay"], indirect=True)
def test_in_a_layer_nothing_of_an_asset_can_be_changed(sandbox, frozen, shell, assets):
    with sandbox.stage_box(frozen, network=False, gpus=(), assets=assets) as box:
        assert writes(box, shell) == ([], "1,2\nweights\n")
    assert read_back(assets) == [b"1,2\n", b"weights\n"]


def test_each_stage_sees_its_own_assets_only(sandbox, frozen, shell, assets):
    with sandbox.stage_box(frozen, network=False, gpus=(), assets=assets) as box:
        _, output = shell(box, "cat data/train.csv hub/*/deep/w.bin", cwd=box.layout.assets)
        assert output == "1,2\nweights\n"
    with sandbox.stage_box(frozen, network=False, gpus=()) as box:
        finished, output = shell(box, "ls -A", cwd=box.layout.assets)
        assert (finished.ok, output) == (True, "")
    assert read_back(assets) == [b"1,2\n", b"weights\n"]


@pytest.mark.parametrize("fresh", ["in-place"], indirect=True)
def test_in_place_an_asset_is_as_safe_as_its_permissions(sandbox, frozen, shell, assets):
    for path in (*assets["hub/models--a--b"].rglob("*"), *assets.values()):
        path.chmod(0o555 if path.is_dir() else 0o444)
    with sandbox.stage_box(frozen, network=False, gpus=(), assets=assets) as box:
        finished, _ = shell(box, "echo changed > data/train.csv", cwd=box.layout.assets)
        # Of root, permissions keep nothing out: whoever shows the assets looks again then.
        assert finished.ok is (os.geteuid() == 0)
        _, output = shell(box, "cat hub/*/deep/w.bin", cwd=box.layout.assets)
        assert output == "weights\n"
    assert (assets["hub/models--a--b"] / "deep" / "w.bin").exists(), "links are not followed"
    assert assets["data/train.csv"].exists()


def test_a_folder_of_a_users_own_is_judged_with_them(needs_overlay, tmp_path, shell, assets):
    repo = tmp_path / "repo"
    repo.mkdir()
    scratch = tmp_path / "scratch"
    with adopted_box(repo, None, scratch, network=False, assets=assets) as box:
        assert box.freshness.kind == "overlay"
        assert writes(box, shell) == ([], "1,2\nweights\n")
    assert read_back(assets) == [b"1,2\n", b"weights\n"]


def test_what_the_build_left_at_their_place_is_not_seen(sandbox, attempt, source, shell, assets):
    with sandbox.build_box(attempt, source) as box:
        planted = box.layout.work.parent / "assets" / "data"
        planted.mkdir(parents=True)
        (planted / "train.csv").write_text("planted\n")
    sandbox.freeze(attempt)
    with sandbox.stage_box(attempt, network=False, gpus=(), assets=assets) as box:
        _, output = shell(box, "cat data/train.csv", cwd=box.layout.assets)
        assert output == "1,2\n"


@pytest.mark.parametrize(
    ("places", "why"),
    [
        (("/etc/x",), "is no place"),
        (("../x",), "is no place"),
        (("",), "is no place"),
        (("a/b", "a"), "lies in another asset"),
    ],
)
def test_places_that_are_none_are_refused(tmp_path, places, why):
    source = tmp_path / "file"
    source.touch()
    with pytest.raises(SandboxError, match=why):
        make_frame(tmp_path / "frame", dict.fromkeys(places, source))


def test_what_is_gone_is_named(sandbox, frozen, tmp_path, fresh):
    gone = {"data": Path(tmp_path / "gone")}
    box = sandbox.stage_box(frozen, network=False, gpus=(), assets=gone)
    with pytest.raises(SandboxError, match="gone: is gone"), box:
        pass
