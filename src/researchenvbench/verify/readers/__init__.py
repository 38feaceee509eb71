"""Opens what a stage left behind, and says what is wrong with it.

Each module reads a family of formats and is imported only when one of its formats is asked
for. Nothing here runs code that a file holds. The files were made by a program that is
judged, so they are read in a child process with limits on memory and time: `contained`
starts it, `__main__` is it. The child knows nothing of tasks and verdicts; those belong to
`verify.evidence`.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING

from .wanted import Found, ReaderMissing, Unreadable, Wanted

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

__all__ = ["Found", "ReaderMissing", "Unreadable", "Wanted", "open_file"]

#: Which function of which module reads a format.
_READERS = {
    "json": ("text", "read_json"),
    "csv": ("text", "read_csv"),
    "npy": ("arrays", "read_npy"),
    "npz": ("arrays", "read_npz"),
    "safetensors": ("arrays", "read_safetensors"),
    "hdf5": ("hdf5", "read_hdf5"),
    "torch": ("torch_checkpoint", "read_torch"),
    "png": ("images", "read_png"),
    "jpeg": ("images", "read_jpeg"),
    "wav": ("wav", "read_wav"),
    "video": ("video", "read_video"),
    "tfevents": ("tfevents", "read_tfevents"),
}


def open_file(path: Path, wanted: Wanted) -> Found:
    """Open the file with the reader of its format and compare it with what is wanted.

    Raises:
        Unreadable: it is not a whole file of that format; says what it is instead.
        ReaderMissing: a library that the format needs is not installed here.
    """
    if wanted.format == "any":
        return Found("a file")
    module, function = _READERS[wanted.format]
    read: Callable[[Path, Wanted], Found]
    read = getattr(importlib.import_module(f"{__name__}.{module}"), function)
    return read(path, wanted)
