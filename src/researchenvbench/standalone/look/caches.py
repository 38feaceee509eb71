"""Byte code that the interpreter would run in place of a source that it was not made from.

A file of `__pycache__` says itself which source it belongs to (PEP 552): by time and size, by a
hash, or by a hash that is not looked at. One that does not say so rightly is made anew, and runs
nothing. So what counts is one that is believed: with a hash that is not looked at and is wrong,
and, for files that every start executes, with names and texts that the source does not have.
"""

# pathlib would double the start-up time.

from __future__ import annotations

import _imp
import os
import re

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

    from .paths import Root

_LIMIT_BYTES = 4 << 20
_TAG = re.compile(r"(cpython|pypy)-?3(\d+)t?")
#: What compilers and class bodies name without a word of the source.
_MADE = frozenset(
    ("return", "annotations", "__module__", "__qualname__", "__class__", "__classcell__", "__doc__",
     "__annotations__", "__firstlineno__", "__static_attributes__", "__conditional_annotations__",
     "__classdict__", "__classdictcell__", "__annotate__", "__annotate_func__", "__name__",
     "AssertionError")
)  # fmt: skip
#: What 3.7 to 3.14 execute before a program's first line.
START = (
    "abc", "codecs", "io", "os", "site", "stat", "posixpath", "genericpath", "_collections_abc",
    "_sitebuiltins", "_bootlocale", "runpy", "warnings", "encodings/__init__", "encodings/aliases",
    "encodings/utf_8", "encodings/latin_1", "encodings/ascii", "importlib/__init__",
    "importlib/util", "importlib/machinery", "importlib/_bootstrap",
    "importlib/_bootstrap_external",
)  # fmt: skip
_PASSED = frozenset(("site-packages", "dist-packages", "test", "tests", "idlelib", "lib2to3"))
#: Since then, a hash of a source is one that this interpreter makes as well.
_SIPHASH13 = 11


def foreign(root: Root, path: str, content: bytes) -> list[str]:
    """The caches of the source `path` that would be run and do not belong to it."""
    folder, _, name = path.rpartition("/")
    stem = name.removesuffix(".py")
    found = []
    words: set[str] | None = None
    for cache in root.names(f"{folder}/__pycache__"):
        tag = _TAG.fullmatch(cache.split(".")[1]) if cache.count(".") > 1 else None
        if not tag or not cache.endswith(".pyc") or not cache.startswith(f"{stem}.{tag[0]}."):
            continue
        place = f"{folder}/__pycache__/{cache}"
        code = root.read(place, _LIMIT_BYTES)
        if code is None:
            continue
        version = int(tag[2])
        believed = _believed(root, path, content, code, version)
        if believed in ("time", "hash") and tag[1] == "cpython":
            words = _words(content) if words is None else words
            believed = "" if _is_of(code, version, words) else "wrong"
        if believed == "wrong":
            found.append(place)
    return found


def _believed(root: Root, path: str, content: bytes, code: bytes, version: int) -> str:
    """`wrong` where the hash is; empty where the interpreter would not run it."""
    try:
        status = os.stat(root.at(path))
    except OSError:
        return ""
    stamp = b"".join(int(n & 0xFFFFFFFF).to_bytes(4, "little")
                     for n in (int(status.st_mtime), status.st_size))  # fmt: skip
    if version < 7:
        return "time" if code[4:12] == stamp else ""
    flags = int.from_bytes(code[4:8], "little")
    if flags == 0:
        return "time" if code[8:16] == stamp else ""
    same = code[8:16] == _hash(code[:4], content, version)
    if flags == 1:
        return "hash" if same else "wrong"
    return "hash" if flags == 3 and same else ""


def foreign_of_library(root: Root, library: str) -> list[str]:
    """The same for a standard library: all of it by the hash, what a start executes as well."""
    found = []
    for name in START:
        content = root.read(f"{library}/{name}.py", _LIMIT_BYTES)
        if content is not None:
            found += foreign(root, f"{library}/{name}.py", content)
    unchecked, others = [], 0
    for folder, cache in _caches(root, library):
        place = f"{folder}/__pycache__/{cache}"
        head = root.read(place, 16) or b""
        tag = _TAG.fullmatch(cache.split(".")[1]) if cache.count(".") > 1 else None
        if tag and int(tag[2]) >= 7 and head[4:8] == b"\1\0\0\0":
            unchecked.append((place, f"{folder}/{cache.split('.')[0]}.py", head, int(tag[2])))
        else:
            others += 1
    # Some who distribute a Python give all of its byte code such a hash. That of versions before
    # 3.11 would take too long here, so there it is told by what the others are.
    usual = len(unchecked) > others
    for place, source, head, version in unchecked:
        content = root.read(source, _LIMIT_BYTES)
        if content is None or place in found:
            continue  # byte code without a source is not run from there
        if version >= _SIPHASH13:
            wrong = head[8:16] != _hash(head[:4], content, version)
        else:
            wrong = not usual
        if wrong:
            found.append(place)
    return found


def _caches(root: Root, library: str) -> Iterator[tuple[str, str]]:
    """The folders of a library, each with the byte code in it."""
    waiting = [library]
    while waiting:
        folder = waiting.pop()
        for name in root.names(folder):
            if name == "__pycache__":
                for cache in root.names(f"{folder}/{name}"):
                    yield folder, cache
            elif "." not in name and name not in _PASSED and not name.startswith("config-"):
                place = f"{folder}/{name}"
                if os.path.isdir(root.beside(place)) and not os.path.islink(root.beside(place)):
                    waiting.append(place)


def _hash(magic: bytes, content: bytes, version: int) -> bytes:
    key = int.from_bytes(magic, "little")
    return _imp.source_hash(key, content) if version >= _SIPHASH13 else _siphash24(key, content)


def _siphash24(key: int, data: bytes) -> bytes:
    """What `_imp.source_hash` was up to 3.10 (Aumasson and Bernstein, "SipHash")."""
    mask = (1 << 64) - 1
    a, b = key ^ 0x736F6D6570736575, 0x646F72616E646F6D
    c, d = key ^ 0x6C7967656E657261, 0x7465646279746573

    def rounds(count: int, a: int, b: int, c: int, d: int) -> tuple[int, int, int, int]:
        for _ in range(count):
            a = (a + b) & mask
            b = ((b << 13 | b >> 51) & mask) ^ a
            a = (a << 32 | a >> 32) & mask
            c = (c + d) & mask
            d = ((d << 16 | d >> 48) & mask) ^ c
            a = (a + d) & mask
            d = ((d << 21 | d >> 43) & mask) ^ a
            c = (c + b) & mask
            b = ((b << 17 | b >> 47) & mask) ^ c
            c = (c << 32 | c >> 32) & mask
        return a, b, c, d

    rest = len(data) % 8
    last = data[len(data) - rest :] + bytes(7 - rest) + bytes((len(data) & 255,))
    for start in range(0, len(data) - rest + 8, 8):
        word = data[start : start + 8] if start < len(data) - rest else last
        number = int.from_bytes(word, "little")
        a, b, c, d = rounds(2, a, b, c, d ^ number)
        a ^= number
    a, b, c, d = rounds(4, a, b, c ^ 255, d)
    return (a ^ b ^ c ^ d).to_bytes(8, "little")


# --- what the code names -------------------------------------------------------------------


def _words(source: bytes) -> set[str]:
    """Every word of a source, also of texts that are written in several parts."""
    text = source.decode("utf-8", "replace")
    joined = re.sub(r"['\"][\s\\]*[rbufRBUF]{0,2}['\"]", "", text)
    return {*re.findall(r"\w+", text), *re.findall(r"\w+", joined)}


def _is_of(code: bytes, version: int, words: set[str]) -> bool:
    """Whether all names, and all texts that could be some, are words of the source."""
    try:
        texts = _Texts(code, 16 if version >= 7 else 12, version).found
    except (ValueError, RecursionError):
        return version > 14  # nobody knows what they will look like
    for text in texts:
        parts = text.split(".")
        if all(part.isidentifier() for part in parts) and not all(
            part in words or part in _MADE or _is_mangled(part, words) for part in parts
        ):
            return False
    return True


def _is_mangled(name: str, words: set[str]) -> bool:
    """Whether it is what a class makes of a name of its own that begins with two lines."""
    owner, _, inner = name[1:].partition("__")
    owners = (owner, f"_{owner}", f"__{owner}")
    return name[0] == "_" and f"__{inner}" in words and any(one in words for one in owners)


class _Texts:
    """The texts in marshalled code, read without making anything of it.

    `marshal` itself can be made to crash by what it reads.
    """

    def __init__(self, data: bytes, start: int, version: int) -> None:
        self.found: set[str] = set()
        self._data, self._at, self._version = data, start, version
        self._value()

    def _bytes(self, count: int) -> bytes:
        part = self._data[self._at : self._at + count]
        if count < 0 or len(part) != count:
            raise ValueError("the byte code ends early")
        self._at += count
        return part

    def _long(self) -> int:
        return int.from_bytes(self._bytes(4), "little", signed=True)

    def _value(self) -> None:
        kind = chr(self._bytes(1)[0] & 0x7F)
        if kind in "NFTS.0":
            return
        if kind in "zZ":
            self._text(self._bytes(1)[0])
        elif kind in "aAut":
            self._text(self._long())
        elif kind == "s":
            self._bytes(self._long())
        elif kind in "irIgxyfl":
            self._number(kind)
        elif kind in ")([<>":
            for _ in range(self._bytes(1)[0] if kind == ")" else self._long()):
                self._value()
        elif kind == ":":
            for _ in range(3):
                self._value()
        elif kind == "c":
            self._code()
        else:
            raise ValueError(f"no kind of value: {kind!r}")

    def _number(self, kind: str) -> None:
        if kind == "l":
            self._bytes(2 * abs(self._long()))
        elif kind in "fx":
            for _ in range(1 if kind == "f" else 2):
                self._bytes(self._bytes(1)[0])
        else:
            self._bytes({"i": 4, "r": 4, "I": 8, "g": 8, "y": 16}[kind])

    def _code(self) -> None:
        numbers, values = (5, 8) if self._version >= 11 or self._version < 8 else (6, 8)
        for _ in range(numbers):
            self._long()
        for _ in range(values):
            self._value()
        self._long()  # the first line
        for _ in range(2 if self._version >= 11 else 1):
            self._value()

    def _text(self, count: int) -> None:
        self.found.add(self._bytes(count).decode("utf-8", "replace"))
