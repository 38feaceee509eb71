"""What a container shows of a stage's assets: in their places, and read-only."""

import pytest
from container_boxes import run

pytestmark = [pytest.mark.container, pytest.mark.slow]

#: Every way that a program, root in its container, has to change what it was given.
WRITES = (
    "echo changed > data/train.csv",
    "echo more >> hub/models--a--b/deep/w.bin",
    "rm data/train.csv",
    "echo new > hub/models--a--b/new",
    "mv data other",
    "mkdir new",
    "chmod 777 data/train.csv",
    "mv $PWD $PWD.old",
    "umount data/train.csv",
    "mount -o remount,rw,bind data/train.csv",
)


@pytest.fixture
def assets(tmp_path):
    (tmp_path / "weights" / "deep").mkdir(parents=True)
    (tmp_path / "weights" / "deep" / "w.bin").write_bytes(b"weights\n")
    (tmp_path / "x").write_bytes(b"1,2\n")
    return {"data/train.csv": tmp_path / "x", "hub/models--a--b": tmp_path / "weights"}


def test_nothing_of_an_asset_can_be_changed(sandbox, frozen, assets, tmp_path):
    with sandbox.stage_box(frozen, network=False, gpus=(), assets=assets) as box:
        at = box.layout.assets
        done = [line for line in WRITES if run(box, f"cd {at} && {line}", tmp_path / "log")[0].ok]
        _, output = run(box, f"cd {at}; cat data/train.csv hub/*/deep/w.bin", tmp_path / "log")
    assert (done, output) == ([], "1,2\nweights\n")
    assert (tmp_path / "x").read_bytes() == b"1,2\n"
    assert sorted(path.name for path in (tmp_path / "weights").rglob("*")) == ["deep", "w.bin"]


@pytest.mark.parametrize("odd", ["a:b", "a:b,c", 'a:"b",c', "a:b=c d,readonly=false"])
def test_names_that_engines_would_divide(sandbox, frozen, tmp_path, odd):
    (tmp_path / odd).mkdir()
    (tmp_path / odd / odd).write_bytes(b"1,2\n")
    shown = {f"data/{odd}": tmp_path / odd / odd, "whole": tmp_path / odd}
    with sandbox.stage_box(frozen, network=False, gpus=(), assets=shown) as box:
        at = box.layout.assets
        assert box.read(at / "data" / odd, 100) == b"1,2\n"
        assert box.read(at / "whole" / odd, 100) == b"1,2\n"
        assert not run(box, f"echo more >> {at}/whole/new", tmp_path / "log")[0].ok


def test_they_are_at_a_place_that_no_build_could_know(sandbox, frozen, assets):
    places = []
    for _ in range(2):
        with sandbox.stage_box(frozen, network=False, gpus=(), assets=assets) as box:
            places.append(box.layout.assets)
            assert box.read(box.layout.assets / "data" / "train.csv", 100) == b"1,2\n"
    assert places[0] != places[1]
    assert all(len(place.parts) == 2 for place in places), "below the root: none above to rename"


def test_a_container_without_assets_has_no_such_place(sandbox, frozen, tmp_path):
    with sandbox.stage_box(frozen, network=False, gpus=()) as box:
        finished, _ = run(box, f"test -e {box.layout.assets}", tmp_path / "log")
    assert finished.exit_code == 1
