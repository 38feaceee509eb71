"""Which libraries a format needs, and which of them are not installed beside the harness.

Nothing is imported for an answer, so that it costs nothing to ask.
"""

from __future__ import annotations

import importlib.util
from typing import TYPE_CHECKING

from .wanted import distribution

if TYPE_CHECKING:
    from collections.abc import Iterable

#: How all of them are installed, as README says it: in reb's checkout.
INSTALL = ".venv/bin/pip install -e '.[readers]'"

#: Top-level modules; a format that is not named needs none.
LIBRARIES = {
    "npy": ("numpy",),
    "npz": ("numpy",),
    "safetensors": ("safetensors", "numpy"),
    "hdf5": ("h5py",),
    "torch": ("numpy",),
    "png": ("PIL",),
    "jpeg": ("PIL",),
    "video": ("av",),
}


def lacking(formats: Iterable[str] = tuple(LIBRARIES)) -> dict[str, list[str]]:
    """By format, the distributions that it needs and that are not installed here."""
    found = {
        name: [distribution(module) for module in LIBRARIES.get(name, ()) if not _there(module)]
        for name in formats
    }
    return {name: missing for name, missing in found.items() if missing}


def _there(module: str) -> bool:
    try:
        return importlib.util.find_spec(module) is not None
    except (ImportError, ValueError):
        return False
