"""Arrays: numpy's npy and npz, and safetensors.

Both are read in pieces, so that a file of many gigabytes, or one that only says so, takes
little memory. A numpy array of Python objects is a pickle: it is named and never opened.
"""

from __future__ import annotations

import json
import math
import zipfile
import zlib
from typing import IO, TYPE_CHECKING, Any

from .numbers import Numbers
from .wanted import Found, Unreadable, Wanted, need
from .wording import begins_with, counted, listed, shorten

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from pathlib import Path

#: Read at a time; a multiple of every element's size.
PIECE_BYTES = 1 << 22
#: What an archive may unpack to before it is taken for a bomb.
UNPACKED_LIMIT_BYTES = 8 << 30
_ENTRIES_LIMIT = 100_000
#: safetensors refuses a longer header itself; the file's format is at
#: https://github.com/huggingface/safetensors#format
_HEADER_LIMIT_BYTES = 100_000_000
_SAFETENSORS_NUMBERS = {
    "F64": "<f8", "F32": "<f4", "F16": "<f2", "I64": "<i8", "I32": "<i4", "I16": "<i2",
    "I8": "i1", "U64": "<u8", "U32": "<u4", "U16": "<u2", "U8": "u1", "BOOL": "?",
}  # fmt: skip


def open_zip(path: Path) -> zipfile.ZipFile:
    """A zip archive with a sound directory, and no more in it than can be read.

    Raises:
        Unreadable: it is none, is truncated, or unpacks to too much.
    """
    with path.open("rb") as stream:
        head = stream.read(64)
    try:
        archive = zipfile.ZipFile(path)
    except (zipfile.BadZipFile, OSError, ValueError, RuntimeError) as error:
        if head.startswith(b"PK\x03\x04"):
            raise Unreadable("a zip archive that is truncated: it has no directory") from error
        raise Unreadable(f"not a zip archive; {begins_with(head)}") from error
    entries = archive.infolist()
    unpacked = sum(entry.file_size for entry in entries)
    if unpacked > UNPACKED_LIMIT_BYTES or len(entries) > _ENTRIES_LIMIT:
        archive.close()
        raise Unreadable(
            f"a zip archive of {len(entries)} entries and {unpacked} bytes unpacked, more than "
            f"the {_ENTRIES_LIMIT} and {UNPACKED_LIMIT_BYTES} that are read"
        )
    return archive


def pieces(archive: zipfile.ZipFile, name: str) -> Iterator[bytes]:
    """The content of an entry, piece by piece; its checksum is compared at the end.

    Raises:
        Unreadable: it is damaged.
    """
    try:
        with archive.open(name) as stream:
            while piece := stream.read(PIECE_BYTES):
                yield piece
    except (zipfile.BadZipFile, zlib.error, ValueError, OSError, EOFError, RuntimeError) as error:
        raise Unreadable(f"entry {name!r} is damaged: {shorten(str(error))}") from error


#: By which `numeric` and `keys` speak of the one array that an npy file holds.
THE_ARRAY = "array"


def read_npy(path: Path, wanted: Wanted) -> Found:
    """One numpy array in a file of its own."""
    numpy = need("numpy")
    numbers = Numbers() if THE_ARRAY in wanted.numeric else None
    with path.open("rb") as stream:
        try:
            shape, dtype = _npy_header(numpy, stream)
        except (ValueError, EOFError) as error:
            stream.seek(0)
            head = begins_with(stream.read(64))
            raise Unreadable(f"no numpy array: {shorten(str(error))}; {head}") from error
        _need_whole(path.name, shape, dtype, path.stat().st_size - stream.tell())
        if dtype.kind in "biuf":
            _add(numpy, iter(lambda: stream.read(PIECE_BYTES), b""), dtype, numbers)
    found = Found(f"npy, {dtype}{list(shape)}")
    found.need_names([*wanted.keys, *wanted.numeric], [THE_ARRAY], "array")
    _judge(found, {THE_ARRAY: numbers if dtype.kind in "biuf" else None}, wanted)
    return found


def read_npz(path: Path, wanted: Wanted) -> Found:
    """An archive of numpy arrays."""
    numpy = need("numpy")
    with open_zip(path) as archive:
        names = [name for name in archive.namelist() if name.endswith(".npy")]
        if not names:
            entries = listed(archive.namelist())
            raise Unreadable(f"a zip archive without arrays; its entries: {entries}")
        arrays: dict[str, Numbers | None] = {}
        shown = []
        for entry in names:
            name = entry.removesuffix(".npy")
            numbers = Numbers() if name in wanted.numeric else None
            shape, dtype = _read_npy(numpy, archive, entry, numbers)
            is_number = dtype.kind in "biuf"
            arrays[name] = numbers if is_number else None
            shown.append(f"{name} {dtype}{list(shape)}")
    found = Found(f"npz, {counted(len(arrays), 'array')}: {listed(shown)}")
    found.need_names([*wanted.keys, *wanted.numeric], arrays, "array")
    _judge(found, arrays, wanted)
    return found


def _judge(found: Found, arrays: Mapping[str, Numbers | None], wanted: Wanted) -> None:
    for name, limits in wanted.numeric.items():
        if name in arrays:
            numbers = arrays[name]
            if numbers is None:
                found.faults.append(f"array {name!r} does not hold real numbers")
            else:
                found.need_numbers(name, "array", numbers, limits)


def _need_whole(name: str, shape: tuple[int, ...], dtype: Any, has_bytes: int) -> None:
    holds = math.prod(shape) * dtype.itemsize
    if not dtype.hasobject and has_bytes != holds:
        raise Unreadable(
            f"array {name!r} is declared as {list(shape)} of {dtype}, {holds} bytes, "
            f"and has {has_bytes}"
        )


def _add(numpy: Any, content: Iterator[bytes], dtype: Any, numbers: Numbers | None) -> None:
    """Add an array's numbers; without some to add to, only read it to its end."""
    rest = b""
    for piece in content:
        if numbers is not None:
            data = rest + piece
            whole = len(data) - len(data) % dtype.itemsize
            numbers.add_array(numpy.frombuffer(data[:whole], dtype))
            rest = data[whole:]


def _from(start: int, content: Iterator[bytes]) -> Iterator[bytes]:
    """The content without its first bytes."""
    for piece in content:
        yield piece[start:]
        start = max(0, start - len(piece))


def _read_npy(
    numpy: Any, archive: zipfile.ZipFile, entry: str, numbers: Numbers | None
) -> tuple[tuple[int, ...], Any]:
    """Shape and type of one array, its whole content read once."""
    size = archive.getinfo(entry).file_size
    try:
        with archive.open(entry) as stream:
            shape, dtype = _npy_header(numpy, stream)
            start = stream.tell()
    except Unreadable:
        raise
    except (zipfile.BadZipFile, zlib.error, ValueError, OSError, EOFError, RuntimeError) as error:
        raise Unreadable(f"entry {entry!r} is no numpy array: {shorten(str(error))}") from error
    _need_whole(entry, shape, dtype, size - start)
    readable = numbers if dtype.kind in "biuf" else None
    _add(numpy, _from(start, pieces(archive, entry)), dtype, readable)
    return shape, dtype


def _npy_header(numpy: Any, stream: IO[bytes]) -> tuple[tuple[int, ...], Any]:
    """Shape and type. The format is numpy's, described in `numpy.lib.format`."""
    version = numpy.lib.format.read_magic(stream)
    if version == (1, 0):
        shape, _, dtype = numpy.lib.format.read_array_header_1_0(stream)
    elif version == (2, 0):
        shape, _, dtype = numpy.lib.format.read_array_header_2_0(stream)
    else:
        raise Unreadable(f"a numpy array of version {version}, which is not read here")
    return shape, dtype


def read_safetensors(path: Path, wanted: Wanted) -> Found:
    """A safetensors file; the library itself checks the header and every offset."""
    safetensors, numpy = need("safetensors"), need("numpy")
    with path.open("rb") as stream:
        head = stream.read(64)
    try:
        with safetensors.safe_open(str(path), framework="numpy") as opened:
            names = list(opened.keys())
    except (safetensors.SafetensorError, OSError, ValueError) as error:
        raise Unreadable(f"not safetensors: {shorten(str(error))}; {begins_with(head)}") from error
    if not names:
        raise Unreadable("a safetensors file without tensors")
    header_bytes = int.from_bytes(head[:8], "little")
    if header_bytes > _HEADER_LIMIT_BYTES:
        raise Unreadable(f"a safetensors header of {header_bytes} bytes")
    with path.open("rb") as stream:
        stream.seek(8)
        header = json.loads(stream.read(header_bytes))
    shown = [f"{name} {header[name]['dtype']}{header[name]['shape']}" for name in names]
    found = Found(f"safetensors, {counted(len(names), 'tensor')}: {listed(shown)}")
    found.need_names([*wanted.keys, *wanted.numeric], names, "tensor")
    for name, limits in wanted.numeric.items():
        if name not in header:
            continue
        kind = header[name]["dtype"]
        begin, end = (8 + header_bytes + offset for offset in header[name]["data_offsets"])
        numbers = Numbers(kind)
        with path.open("rb") as stream:
            stream.seek(begin)
            while begin < end:
                data = stream.read(min(PIECE_BYTES, end - begin))
                begin += len(data)
                if not data:
                    raise Unreadable(f"tensor {name!r} is cut off")
                if kind == "BF16":
                    numbers.add_array(from_bfloat16(numpy, data))
                elif kind in _SAFETENSORS_NUMBERS:
                    numbers.add_array(numpy.frombuffer(data, _SAFETENSORS_NUMBERS[kind]))
                else:
                    break
        if kind != "BF16" and kind not in _SAFETENSORS_NUMBERS:
            found.faults.append(f"tensor {name!r} is {kind}, whose numbers are not read here")
        else:
            found.need_numbers(name, "tensor", numbers, limits)
    return found


def from_bfloat16(numpy: Any, data: bytes) -> Any:
    """The numbers of bfloat16 data: the upper halves of 32-bit floats."""
    return (numpy.frombuffer(data, "<u2").astype("<u4") << 16).view("<f4")
