"""What an ELF file says of itself: elf(5), as far as it tells which program it is."""

from __future__ import annotations

import mmap
import struct

from .paths import opened

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import IO, Any

MAGIC = b"\x7fELF"
_LOAD, _DYNAMIC = 1, 2
_NEEDED, _STRTAB, _SYMTAB, _STRSZ, _RPATH, _RUNPATH = 1, 5, 6, 10, 15, 29
_SYMBOLS_LIMIT = 200_000
_ENTRIES_LIMIT = 10_000  #: of the dynamic section, which has some dozens
_NAME_LIMIT_BYTES = 4096
_FILE_LIMIT_BYTES = 1 << 30  #: no Python is as large; what is has no facts
#: Texts that are in every CPython from 2.7 on, and in no program in front of one.
_MARKS = (b"path_importer_cache", b"PYTHONHASHSEED", b"KeyboardInterrupt")
#: What only the file that holds a whole interpreter defines.
_WHOLE = frozenset(("Py_Main", "Py_BytesMain", "PyRun_SimpleFileExFlags", "pypy_main_startup"))


def facts(path: str) -> dict[str, Any]:
    """The libraries that it needs, and which of Python's own names it defines and uses.

    Of the names that it `defines` only the telling ones are listed; `defined` is how many.
    `marked` says whether it holds the texts that all of CPython holds.

    A file that has no readable dynamic section needs, defines and uses nothing.
    """
    found: dict[str, Any] = {
        "machine": 0, "needed": [], "run_paths": [], "defines": [], "defined": 0, "uses": [],
        "size_bytes": 0, "marked": False,
    }  # fmt: skip
    try:
        with opened(path) as stream, _mapped(stream) as data:
            found["size_bytes"] = len(data)
            if len(data) > _FILE_LIMIT_BYTES:
                return found
            _read(data, found)
            if found["defines"]:
                found["marked"] = all(data.find(mark) >= 0 for mark in _MARKS)
    except (OSError, ValueError, IndexError, OverflowError, struct.error):
        pass
    return found


def _mapped(stream: IO[bytes]) -> mmap.mmap:
    return mmap.mmap(stream.fileno(), 0, access=mmap.ACCESS_READ)


def _read(data: mmap.mmap, found: dict[str, Any]) -> None:
    if data[:4] != MAGIC:
        return
    wide, order = data[4] == 2, "<" if data[5] == 1 else ">"
    found["machine"] = struct.unpack_from(order + "H", data, 18)[0]
    if wide:
        table = struct.unpack_from(order + "Q", data, 32)[0]
        size, count = struct.unpack_from(order + "HH", data, 54)
    else:
        table = struct.unpack_from(order + "I", data, 28)[0]
        size, count = struct.unpack_from(order + "HH", data, 42)
    loads, dynamic = [], None
    for number in range(count):
        place = table + number * size
        if wide:
            kind, _, offset, address, _, length = struct.unpack_from(order + "IIQQQQ", data, place)
        else:
            kind, offset, address, _, length = struct.unpack_from(order + "IIIII", data, place)
        if kind == _LOAD:
            loads.append((address, offset, length))
        elif kind == _DYNAMIC:
            dynamic = (offset, length)
    if dynamic is None:
        return
    entry = struct.Struct(order + ("qQ" if wide else "iI"))
    entries: list[tuple[int, int]] = []
    for place in range(dynamic[0], sum(dynamic), entry.size):
        tag, value = entry.unpack_from(data, place)
        if tag == 0:
            break
        if len(entries) >= _ENTRIES_LIMIT:
            raise ValueError("more entries than any program has")
        entries.append((tag, value))
    first = dict(reversed(entries))

    def offset_of(address: int) -> int:
        for start, offset, length in loads:
            if start <= address < start + length:
                return int(offset + address - start)
        raise ValueError("an address that no segment holds")

    texts_at, symbols_at = offset_of(first.get(_STRTAB, 0)), offset_of(first.get(_SYMTAB, 0))
    texts = data[texts_at : texts_at + first.get(_STRSZ, 0)]

    def text(index: int) -> str:
        end = texts.index(b"\0", index, index + _NAME_LIMIT_BYTES)
        return texts[index:end].decode("utf-8", "replace")

    found["needed"] = [text(value) for tag, value in entries if tag == _NEEDED]
    found["run_paths"] = [text(value) for tag, value in entries if tag in (_RPATH, _RUNPATH)]
    # The linkers put the names right behind the symbols; nothing else says how many there are.
    symbol = struct.Struct(order + ("IBBHQQ" if wide else "IIIBBH"))
    for number in range(min((texts_at - symbols_at) // symbol.size, _SYMBOLS_LIMIT)):
        fields = symbol.unpack_from(data, symbols_at + number * symbol.size)
        name, section = fields[0], fields[3] if wide else fields[5]
        if texts[name : name + 2] != b"Py" and texts[name : name + 3] not in (b"_Py", b"pyp"):
            continue
        named = text(name)
        if not section:
            found["uses"].append(named)
            continue
        found["defined"] += 1
        if named in _WHOLE:
            found["defines"].append(named)
