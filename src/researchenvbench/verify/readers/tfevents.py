"""Event files of TensorBoard: the scalars that a training run logged.

The file is a sequence of TFRecords: length, checksum of the length, content, checksum of
the content (tensorflow/core/lib/io/record_writer.h). The content is an `Event` message
(tensorflow/core/util/event.proto) whose `Summary` (summary.proto) holds tagged values; a
scalar is a `simple_value`, or since TensorFlow 2 a `TensorProto` of no dimension
(tensor.proto). The few fields that matter are taken out of the protocol-buffer wire format
(https://protobuf.dev/programming-guides/encoding/) here, as the writers' own readers would
bring TensorFlow or TensorBoard with them.
"""

from __future__ import annotations

import struct
from typing import IO, TYPE_CHECKING

from .numbers import Numbers
from .wanted import Found, Unreadable, Wanted
from .wording import begins_with, counted, listed, shorten

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

_VERSION = b"brain.Event:2"
_RECORD_LIMIT_BYTES = 256_000_000
#: Scalars are small. The content of larger records (pictures, graphs) is not checksummed,
#: since that takes long in Python; their length is.
_CHECKSUM_LIMIT_BYTES = 65_536
_TAGS_LIMIT = 100_000

# Fields of the messages, by number.
_EVENT_FILE_VERSION, _EVENT_SUMMARY, _SUMMARY_VALUE = 3, 5, 1
_VALUE_TAG, _VALUE_SIMPLE, _VALUE_TENSOR = 1, 2, 8
_TENSOR_TYPE, _TENSOR_SHAPE, _TENSOR_CONTENT = 1, 2, 4
#: DataType: (struct format of tensor_content, field of the typed list, format of its items).
_SCALAR_TYPES = {
    1: ("<f", 5, "<f"),  # DT_FLOAT, float_val
    2: ("<d", 6, "<d"),  # DT_DOUBLE, double_val
    3: ("<i", 7, "varint"),  # DT_INT32, int_val
    9: ("<q", 10, "varint"),  # DT_INT64, int64_val
    10: ("<?", 11, "varint"),  # DT_BOOL, bool_val
    19: ("<e", 13, "half"),  # DT_HALF, half_val: its bits as an integer
}
_Field = tuple[int, int | bytes]


def read_tfevents(path: Path, wanted: Wanted) -> Found:
    """An event file with at least one tagged value. A name is a tag."""
    tags: dict[str, Numbers] = {}
    events = 0
    with path.open("rb") as stream:
        for number, record in enumerate(_records(stream)):
            try:
                fields = list(_fields(record))
                if number == 0 and dict(fields).get(_EVENT_FILE_VERSION) != _VERSION:
                    raise Unreadable("TFRecords that are no TensorBoard events")
                for name, value in fields:
                    if name == _EVENT_SUMMARY and isinstance(value, bytes):
                        events += 1
                        _take_summary(value, tags)
            except (struct.error, ValueError, IndexError) as error:
                raise Unreadable(f"record {number} is damaged: {shorten(str(error))}") from error
    if not tags:
        raise Unreadable("a TensorBoard event file in which nothing was logged")
    found = Found(f"TensorBoard events, {counted(events, 'event')}, tags {listed(tags)}")
    found.need_names(wanted.keys, tags, "tag")
    found.need_all_numbers(wanted, tags, "tag", tags.__getitem__)
    return found


def _records(stream: IO[bytes]) -> Iterator[bytes]:
    number = 0
    while header := stream.read(12):
        at = f"record {number}"
        if len(header) < 12:
            raise Unreadable(f"truncated in {at}")
        length, checksum = struct.unpack("<QI", header)
        if _masked_crc(header[:8]) != checksum:
            if number == 0:
                raise Unreadable(f"no TensorBoard event file; {begins_with(header)}")
            raise Unreadable(f"{at} is damaged: its length's checksum is wrong")
        if length > _RECORD_LIMIT_BYTES:
            raise Unreadable(f"{at} is said to have {length} bytes")
        content = stream.read(length)
        footer = stream.read(4)
        if len(content) < length or len(footer) < 4:
            raise Unreadable(f"truncated in {at}")
        if length <= _CHECKSUM_LIMIT_BYTES and _masked_crc(content) != int.from_bytes(
            footer, "little"
        ):
            raise Unreadable(f"{at} is damaged: its checksum is wrong")
        yield content
        number += 1
    if not number:
        raise Unreadable("it is empty")


def _take_summary(summary: bytes, tags: dict[str, Numbers]) -> None:
    for name, value in _fields(summary):
        if name != _SUMMARY_VALUE or not isinstance(value, bytes):
            continue
        tag, scalar = "", None
        for part, content in _fields(value):
            if part == _VALUE_TAG and isinstance(content, bytes):
                tag = content.decode("utf-8", "replace")
            elif part == _VALUE_SIMPLE and isinstance(content, bytes):
                scalar = struct.unpack("<f", content)[0]
            elif part == _VALUE_TENSOR and isinstance(content, bytes):
                scalar = _tensor_scalar(content)
        if len(tags) >= _TAGS_LIMIT and tag not in tags:
            raise Unreadable(f"more than {_TAGS_LIMIT} tags")
        numbers = tags.setdefault(tag, Numbers())
        if scalar is not None:
            numbers.add(float(scalar))


def _tensor_scalar(tensor: bytes) -> float | None:
    """The number in a tensor without dimensions; None for any other tensor."""
    fields = list(_fields(tensor))
    first = dict(reversed(fields))
    kind = first.get(_TENSOR_TYPE)
    if first.get(_TENSOR_SHAPE, b"") != b"" or not isinstance(kind, int):
        return None
    if kind not in _SCALAR_TYPES:
        return None
    content_format, list_field, item_format = _SCALAR_TYPES[kind]
    content, item = first.get(_TENSOR_CONTENT, b""), first.get(list_field)
    if isinstance(content, bytes) and len(content) == struct.calcsize(content_format):
        return float(struct.unpack(content_format, content)[0])
    if item is None:
        return 0.0  # proto3 leaves out a list of one zero
    if isinstance(item, bytes):  # fixed-size item, or a packed list of them
        if item_format.startswith("<"):
            return float(struct.unpack_from(item_format, item)[0])
        item, _ = _varint(item, 0)
    if item_format == "half":
        return float(struct.unpack("<e", struct.pack("<H", item & 0xFFFF))[0])
    return float(item - (1 << 64) if item >= 1 << 63 else item)


def _fields(message: bytes) -> Iterator[_Field]:
    """The fields of a message: numbers as integers, everything else as bytes."""
    at = 0
    while at < len(message):
        key, at = _varint(message, at)
        wire = key & 7
        if wire == 0:
            value, at = _varint(message, at)
            yield key >> 3, value
            continue
        if wire == 2:
            length, at = _varint(message, at)
        elif wire in (1, 5):
            length = 8 if wire == 1 else 4
        else:
            raise ValueError(f"wire type {wire}")
        if at + length > len(message):
            raise ValueError("a field is cut off")
        yield key >> 3, message[at : at + length]
        at += length


def _varint(message: bytes, at: int) -> tuple[int, int]:
    value = shift = 0
    while shift < 70:
        byte = message[at]
        value |= (byte & 0x7F) << shift
        at += 1
        if byte < 0x80:
            return value & 0xFFFF_FFFF_FFFF_FFFF, at
        shift += 7
    raise ValueError("a number of more than ten bytes")


def _crc_table() -> tuple[int, ...]:
    """Of CRC-32C (Castagnoli), reflected polynomial 0x82F63B78 (RFC 3720, appendix B.4)."""
    table = []
    for value in range(256):
        for _ in range(8):
            value = (value >> 1) ^ (0x82F63B78 if value & 1 else 0)
        table.append(value)
    return tuple(table)


_TABLE = _crc_table()


def _masked_crc(data: bytes) -> int:
    """CRC-32C, rotated and shifted as record files store it."""
    crc = 0xFFFFFFFF
    for byte in data:
        crc = _TABLE[(crc ^ byte) & 0xFF] ^ (crc >> 8)
    crc ^= 0xFFFFFFFF
    return (((crc >> 15) | (crc << 17)) + 0xA282EAD8) & 0xFFFFFFFF
