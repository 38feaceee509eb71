"""HDF5.

Only datasets whose content is in the file itself are opened: links to other files, external
storage and virtual datasets could point anywhere. The child process in which this runs is
started with plug-in filters switched off (`contained`).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from .numbers import Numbers
from .wanted import Found, Unreadable, Wanted, need
from .wording import begins_with, counted, listed, shorten

if TYPE_CHECKING:
    from pathlib import Path

_OBJECTS_LIMIT = 100_000
#: A dataset may be declared far larger than its file: absent chunks are filled in.
_ELEMENTS_LIMIT = 500_000_000
_PIECE_ELEMENTS = 1 << 20


def read_hdf5(path: Path, wanted: Wanted) -> Found:
    """A file with at least one dataset. A name is a path such as `model/weights`."""
    h5py = need("h5py")
    with path.open("rb") as stream:
        head = stream.read(64)
    try:
        with h5py.File(path, "r") as file:
            return _read(h5py, file, wanted)
    except (OSError, RuntimeError, KeyError, ValueError, TypeError) as error:
        # h5py turns what the C library says of a damaged file into any of these.
        raise Unreadable(f"not sound HDF5: {shorten(str(error))}; {begins_with(head)}") from error


def _read(h5py: Any, file: Any, wanted: Wanted) -> Found:
    groups: set[str] = set()
    datasets: dict[str, Any] = {}

    def note(name: str, item: Any) -> str | None:
        if len(groups) + len(datasets) >= _OBJECTS_LIMIT:
            return name  # ends the visit
        if isinstance(item, h5py.Dataset):
            datasets[name] = item
        else:
            groups.add(name)
        return None

    if file.visititems(note) is not None:
        raise Unreadable(f"HDF5 with more than {_OBJECTS_LIMIT} objects")
    if not datasets:
        raise Unreadable(f"HDF5 without datasets; its groups: {listed(sorted(groups))}")
    shown = [f"{name} {item.dtype}{list(item.shape or ())}" for name, item in datasets.items()]
    found = Found(f"HDF5, {counted(len(datasets), 'dataset')}: {listed(shown)}")
    found.need_names([key.strip("/") for key in wanted.keys], [*datasets, *groups], "object")
    found.need_names([key.strip("/") for key in wanted.numeric], datasets, "dataset")
    for name, limits in wanted.numeric.items():
        item = datasets.get(name.strip("/"))
        if item is None:
            continue
        if refusal := _refusal(item):
            found.faults.append(f"dataset {name!r} {refusal}")
        else:
            found.need_numbers(name, "dataset", _numbers(item), limits)
    return found


def _refusal(item: Any) -> str:
    if item.external or item.is_virtual:
        return "has its content in other files, which are not opened"
    if item.shape is None or item.dtype.kind not in "biuf":
        return "does not hold real numbers"
    if item.size > _ELEMENTS_LIMIT:
        return f"is declared with {item.size} elements, more than the {_ELEMENTS_LIMIT} read here"
    return ""


def _numbers(item: Any) -> Numbers:
    numbers = Numbers()
    if not item.shape:
        numbers.add(float(item[()]))
        return numbers
    in_row = max(1, item.size // max(1, item.shape[0]))
    step = max(1, _PIECE_ELEMENTS // in_row)
    for start in range(0, item.shape[0], step):
        numbers.add_array(item[start : start + step])
    return numbers
