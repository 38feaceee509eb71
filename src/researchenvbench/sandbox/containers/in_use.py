"""Images that are being judged, so that nobody removes them between two stages."""

from __future__ import annotations

import fcntl
import os
from contextlib import contextmanager
from typing import TYPE_CHECKING

from ...places import default_cache

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path


@contextmanager
def using_image(identifier: str) -> Iterator[None]:
    """While it is open, `image_is_free` says of the image that it is not; several may."""
    with _locked(identifier, fcntl.LOCK_SH):
        yield


@contextmanager
def image_is_free(identifier: str) -> Iterator[bool]:
    """Whether nobody uses the image; while it is open nobody begins to."""
    try:
        with _locked(identifier, fcntl.LOCK_EX | fcntl.LOCK_NB):
            yield True
    except BlockingIOError:
        yield False


@contextmanager
def _locked(identifier: str, how: int) -> Iterator[None]:
    handle = os.open(_place(identifier), os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    try:
        fcntl.flock(handle, how)
        yield
    finally:
        os.close(handle)


def _place(identifier: str) -> Path:
    folder = default_cache() / "in-use"
    folder.mkdir(parents=True, exist_ok=True)
    return folder / identifier.removeprefix("sha256:")
