"""Checkpoints of torch, opened without torch and without running what they hold.

Two containers are read. Since torch 1.6 a checkpoint is a zip archive: a pickle `data.pkl`
that refers to entries `data/0`, `data/1`, … of raw numbers; TorchScript archives have the
same shape. Before, it was a sequence of pickles followed by the numbers. Both are described
by `torch/serialization.py`, read in torch 2.13. That every block of numbers is there in the
size that its tensors need is what shows a whole checkpoint.
"""

from __future__ import annotations

import io
import struct
from typing import IO, TYPE_CHECKING, Any

from .arrays import from_bfloat16, open_zip, pieces
from .inert_pickle import InertUnpickler, StoredNumbers, StoredTensor, load, named
from .numbers import Numbers
from .wanted import Found, Unreadable, Wanted, need
from .wording import begins_with, counted, listed

if TYPE_CHECKING:
    import zipfile
    from collections.abc import Callable, Iterator
    from pathlib import Path

_LEGACY_MAGIC = 0x1950A86A20F9469CFC6C
_LEGACY_PROTOCOL = 1001
_PICKLE_LIMIT_BYTES = 256_000_000
_NUMPY_TYPES = {
    "DoubleStorage": "<f8", "FloatStorage": "<f4", "HalfStorage": "<f2", "LongStorage": "<i8",
    "IntStorage": "<i4", "ShortStorage": "<i2", "CharStorage": "i1", "ByteStorage": "u1",
    "BoolStorage": "?", "float64": "<f8", "float32": "<f4", "float16": "<f2", "int64": "<i8",
    "int32": "<i4", "int16": "<i2", "int8": "i1", "uint8": "u1", "bool": "?",
    "uint16": "<u2", "uint32": "<u4", "uint64": "<u8",
}  # fmt: skip
_BFLOAT16 = ("BFloat16Storage", "bfloat16")


def read_torch(path: Path, wanted: Wanted) -> Found:
    """A checkpoint with at least one tensor. Names are dotted, as in a state_dict."""
    with path.open("rb") as stream:
        head = stream.read(64)
        if not head.startswith(b"PK\x03\x04"):
            if not head.startswith(b"\x80"):
                raise Unreadable(f"not a torch checkpoint; {begins_with(head)}")
            stream.seek(0)
            return _read_legacy(stream, path.stat().st_size, wanted)
    with open_zip(path) as archive:
        return _read_zip(archive, wanted)


def _read_zip(archive: zipfile.ZipFile, wanted: Wanted) -> Found:
    entries = {entry.filename: entry for entry in archive.infolist()}
    pickles = [name for name in entries if name.split("/")[1:] == ["data.pkl"]]
    if len(pickles) != 1:
        raise Unreadable(f"a zip archive that is no torch checkpoint: {listed(entries)}")
    folder = pickles[0].split("/")[0]
    if entries[pickles[0]].file_size > _PICKLE_LIMIT_BYTES:
        raise Unreadable(f"a pickle of {entries[pickles[0]].file_size} bytes")
    order = f"{folder}/byteorder"
    if order in entries and b"".join(pieces(archive, order)).strip() != b"little":
        raise Unreadable("a checkpoint of a big-endian machine, which is not read here")
    document, unpickler = load(io.BytesIO(b"".join(pieces(archive, pickles[0]))))
    for storage in unpickler.storages.values():
        entry = entries.get(f"{folder}/data/{storage.key}")
        if entry is None:
            raise Unreadable(f"truncated: the numbers data/{storage.key} are not in the archive")
        if storage.size_bytes >= 0 and entry.file_size != storage.size_bytes:
            raise Unreadable(
                f"damaged: data/{storage.key} should have {storage.size_bytes} bytes "
                f"({storage.count} of {storage.kind}) and has {entry.file_size}"
            )
        for _ in pieces(archive, entry.filename):
            pass  # the checksum is compared at the entry's end

    def content(storage: StoredNumbers) -> Iterator[bytes]:
        return pieces(archive, f"{folder}/data/{storage.key}")

    return _judge(document, unpickler, content, wanted)


def _read_legacy(stream: IO[bytes], size: int, wanted: Wanted) -> Found:
    magic, _ = load(stream)
    if magic != _LEGACY_MAGIC:
        raise Unreadable("a pickle that is no torch checkpoint")
    protocol, _ = load(stream)
    system, _ = load(stream)
    if protocol != _LEGACY_PROTOCOL or not isinstance(system, dict):
        raise Unreadable("a torch checkpoint of an unknown version")
    document, unpickler = load(stream)
    keys, _ = load(stream)
    if not isinstance(keys, list) or {str(key) for key in keys} != set(unpickler.storages):
        raise Unreadable("a torch checkpoint whose list of numbers does not fit its tensors")
    places: dict[str, tuple[int, int]] = {}
    for key in map(str, keys):
        header = stream.read(8)
        storage = unpickler.storages[key]
        if len(header) < 8:
            raise Unreadable(f"truncated: the numbers {key} are not there")
        count, begin = struct.unpack("<q", header)[0], stream.tell()
        if count != storage.count or storage.size_bytes < 0:
            raise Unreadable(f"damaged: {count} numbers where {storage.count} should be")
        if begin + storage.size_bytes > size:
            raise Unreadable(f"truncated: {size} bytes, {begin + storage.size_bytes} promised")
        places[key] = (begin, storage.size_bytes)
        stream.seek(storage.size_bytes, io.SEEK_CUR)

    def content(storage: StoredNumbers) -> Iterator[bytes]:
        begin, left = places[storage.key]
        stream.seek(begin)
        while left and (data := stream.read(min(left, 1 << 22))):
            left -= len(data)
            yield data

    return _judge(document, unpickler, content, wanted)


def _judge(
    document: Any,
    unpickler: InertUnpickler,
    content: Callable[[StoredNumbers], Iterator[bytes]],
    wanted: Wanted,
) -> Found:
    values = dict(named(document))
    tensors = {name: value for name, value in values.items() if isinstance(value, StoredTensor)}
    if isinstance(document, StoredTensor):
        tensors = {"": document}
    if not tensors:
        raise Unreadable(f"a torch checkpoint without tensors; it holds {listed(values)}")
    for name, tensor in tensors.items():
        if tensor.end > tensor.storage.count:
            raise Unreadable(f"damaged: tensor {name!r} is larger than its stored numbers")
    shown = [f"{name}{list(tensor.shape)}" for name, tensor in tensors.items()]
    what = f"torch checkpoint, {counted(len(tensors), 'tensor')}: {listed(shown)}"
    if unpickler.classes:
        what += f"; of the classes {listed(sorted(unpickler.classes))}"
    found = Found(what)
    names = list(values)
    # A name also counts where it holds others, such as `model` for `model.weight`.
    found.need_names(wanted.keys, names, "name")
    found.need_names(wanted.numeric, tensors, "tensor")
    for name, limits in wanted.numeric.items():
        if name not in tensors:
            continue
        tensor = tensors[name]
        if not tensor.contiguous or not (tensor.kind in _NUMPY_TYPES or tensor.kind in _BFLOAT16):
            found.faults.append(f"tensor {name!r} is stored in a way that is not read here")
            continue
        found.need_numbers(name, "tensor", _numbers(tensor, content(tensor.storage)), limits)
    return found


def _numbers(tensor: StoredTensor, content: Iterator[bytes]) -> Numbers:
    numpy = need("numpy")
    numbers = Numbers(tensor.kind)
    at = 0  # elements of the storage that were passed
    for data in content:
        if tensor.kind in _BFLOAT16:
            block = from_bfloat16(numpy, data)
        else:
            block = numpy.frombuffer(data, _NUMPY_TYPES[tensor.kind])
        begin, end = max(0, tensor.offset - at), max(0, tensor.end - at)
        numbers.add_array(block[begin:end])
        at += len(block)
    return numbers
