"""What a host lacks is asked of the host, and at the place that was used."""

from __future__ import annotations

import subprocess
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import pytest

from researchenvbench.attempt import Owner, Want
from researchenvbench.diagnose import Diagnosis
from researchenvbench.verify.confirm import confirmed

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

FULL = Diagnosis("disk-full", Owner.HOST, "the disk is full", want=Want.DISK)


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    """A file system with less room than any program needs."""
    place = tmp_path / "small"
    place.mkdir()
    mount = ["mount", "-t", "tmpfs", "-o", "size=1m", "reb-test", str(place)]
    if subprocess.run(mount, check=False, capture_output=True).returncode != 0:
        pytest.skip("no file system can be mounted here")
    yield place
    subprocess.run(["umount", str(place)], check=True)


def test_a_disk_is_full_where_the_box_writes(tmp_path: Path, small_disk: Path) -> None:
    def full(*, box_writes_to: Path | None, results: Path) -> bool:
        box: Any = SimpleNamespace(disk=box_writes_to)
        subject: Any = SimpleNamespace(folder=results)
        return confirmed(FULL, subject, box)

    assert full(box_writes_to=small_disk, results=tmp_path)
    assert not full(box_writes_to=tmp_path, results=small_disk)
    assert full(box_writes_to=None, results=small_disk)
