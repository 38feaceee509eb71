"""Whose fault it is that a file of a box cannot be had: told by the error, never by its name."""

from __future__ import annotations

import errno
import os
from pathlib import Path

import pytest

from researchenvbench.errors import HostError, RefusedError
from researchenvbench.sandbox.collecting import refused
from researchenvbench.sandbox.local import inside
from researchenvbench.standalone import files


@pytest.mark.parametrize("number", [errno.ENOSPC, errno.EDQUOT])
def test_a_full_disk_is_the_hosts(number: int) -> None:
    error = refused(f"/box/file: cannot be written: {os.strerror(number)}", number)
    assert isinstance(error, HostError)
    assert "free room" in error.advice


@pytest.mark.parametrize("name", ["No space left on device", "Disk quota exceeded"])
def test_a_name_with_the_words_of_a_full_disk_is_not(tmp_path: Path, name: str) -> None:
    (tmp_path / name).mkdir()
    with pytest.raises(files.Refused) as told:
        files.read(str(tmp_path), f"/{name}/absent", 100)
    assert told.value.errno == errno.ENOENT
    with pytest.raises(RefusedError, match=name):
        inside.read(tmp_path, Path(f"/{name}/absent"), 100)
    (tmp_path / name / "file").write_text("")
    with pytest.raises(RefusedError, match=name):
        inside.write(tmp_path, Path(f"/{name}/file/below"), b"", 0o600)
