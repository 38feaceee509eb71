"""WAV sound, with integer or floating-point samples.

The standard library's `wave` does not read floating-point samples, which is what audio
models write, so the chunks are read here. The format: "Multimedia Programming Interface and
Data Specifications 1.0" (IBM and Microsoft, 1991) and Microsoft's WAVEFORMATEXTENSIBLE.
"""

from __future__ import annotations

import array
import math
import struct
import sys
from typing import IO, TYPE_CHECKING

from .wanted import Found, Unreadable, Wanted
from .wording import begins_with, counted

if TYPE_CHECKING:
    from pathlib import Path

_PCM, _FLOAT, _A_LAW, _MU_LAW, _EXTENSIBLE = 1, 3, 6, 7, 0xFFFE
_ENCODINGS = {_PCM: "integer", _FLOAT: "float", _A_LAW: "A-law", _MU_LAW: "mu-law"}
#: What a program writes that does not know the length beforehand.
_UNKNOWN_BYTES = 0xFFFFFFFF
_CHUNKS_LIMIT = 10_000
_PIECE_FRAMES = 1 << 18


def read_wav(path: Path, wanted: Wanted) -> Found:
    """A sound that is whole, has finite samples, and is not one constant value."""
    with path.open("rb") as stream:
        head = stream.read(12)
        if head[:4] != b"RIFF" or head[8:12] != b"WAVE":
            raise Unreadable(f"not WAV; {begins_with(head)}")
        return _read(stream, path.stat().st_size, wanted)


def _read(stream: IO[bytes], size: int, wanted: Wanted) -> Found:
    layout = None
    for _ in range(_CHUNKS_LIMIT):
        header = stream.read(8)
        if len(header) < 8:
            break
        name, length = struct.unpack("<4sI", header)
        if name == b"data":
            if layout is None:
                raise Unreadable("WAV whose samples come before their format")
            left = size - stream.tell()
            if length > left and length != _UNKNOWN_BYTES:
                raise Unreadable(f"truncated WAV: {length} bytes of samples promised, {left} there")
            return _judge(stream, min(length, left), layout, wanted)
        if name == b"fmt ":
            layout = _layout(stream.read(length) if length <= 1024 else b"")
            stream.seek(length % 2, 1)
        else:
            stream.seek(length + length % 2, 1)
    raise Unreadable("WAV without samples: it has no data chunk")


def _layout(raw: bytes) -> tuple[int, int, int, int]:
    """Encoding, channels, frames a second, bits a sample."""
    if len(raw) < 16:
        raise Unreadable("WAV with a damaged format chunk")
    encoding, channels, rate, _, frame_bytes, bits = struct.unpack("<HHIIHH", raw[:16])
    if encoding == _EXTENSIBLE and len(raw) >= 26:
        encoding = struct.unpack("<H", raw[24:26])[0]
    if encoding not in _ENCODINGS:
        raise Unreadable(f"WAV with encoding {encoding}, which is not read here")
    known_bits = {_PCM: (8, 16, 24, 32), _FLOAT: (32, 64)}.get(encoding, (8,))
    if bits not in known_bits or not channels or not rate or frame_bytes != channels * bits // 8:
        raise Unreadable(
            f"WAV with {channels} channels at {rate} Hz, {bits} bits, {frame_bytes} bytes a frame"
        )
    return encoding, channels, rate, bits


def _judge(
    stream: IO[bytes], length: int, layout: tuple[int, int, int, int], wanted: Wanted
) -> Found:
    encoding, channels, rate, bits = layout
    frame_bytes = channels * bits // 8
    frames = length // frame_bytes
    if not frames:
        raise Unreadable("WAV without samples")
    constant, not_finite = True, 0
    first = b""
    left = frames * frame_bytes
    while left:
        data = stream.read(min(left, _PIECE_FRAMES * frame_bytes))
        if not data:
            raise Unreadable("truncated WAV")
        left -= len(data)
        first = first or data[:frame_bytes]
        constant = constant and data == first * (len(data) // frame_bytes)
        if encoding == _FLOAT:
            not_finite += _not_finite(data, bits)
    seconds = frames / rate
    found = Found(
        f"WAV, {seconds:.3f} s, {counted(channels, 'channel')} at {rate} Hz, "
        f"{bits}-bit {_ENCODINGS[encoding]}"
    )
    if not_finite:
        found.faults.append(f"{not_finite} samples are NaN or infinite")
    if wanted.varied and constant:
        silent = not any(first) or (encoding == _PCM and bits == 8 and set(first) == {128})
        found.faults.append("silence throughout" if silent else "every sample has the same value")
    if wanted.min_seconds is not None and seconds < wanted.min_seconds:
        found.faults.append(f"{seconds:.3f} s long, at least {wanted.min_seconds:g} wanted")
    return found


def _not_finite(data: bytes, bits: int) -> int:
    samples = array.array("f" if bits == 32 else "d", data)
    if sys.byteorder == "big":
        samples.byteswap()
    return sum(1 for sample in samples if not math.isfinite(sample))
