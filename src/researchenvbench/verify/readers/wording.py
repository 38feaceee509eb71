"""How readers word what they saw: short, printable, one line."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable

_LISTED = 8
#: Of what is told about one evidence entry.
SEEN_LIMIT = 2000

#: How known formats begin, to tell what a file is when it is not what it should be.
_SIGNATURES = (
    (b"\x89PNG\r\n\x1a\n", "a PNG image"),
    (b"\xff\xd8\xff", "a JPEG image"),
    (b"PK\x03\x04", "a zip archive"),
    (b"\x1f\x8b", "gzip data"),
    (b"\x89HDF\r\n\x1a\n", "an HDF5 file"),
    (b"\x93NUMPY", "a single numpy array (.npy)"),
    (b"RIFF", "a RIFF file (wav, avi)"),
    (b"GIF8", "a GIF image"),
    (b"%PDF", "a PDF document"),
    (b"\x7fELF", "a compiled program"),
    (b"<!DOCTYPE", "an HTML page"),
    (b"<html", "an HTML page"),
    (b"version https://git-lfs", "a Git LFS pointer, not the file that it stands for"),
)


def shorten(text: str, limit: int = 80) -> str:
    """At most `limit` characters, none of them a control character."""
    head = text[: limit + 1]
    clean = "".join(char if char.isprintable() else "�" for char in head)
    return clean if len(text) <= limit else f"{clean[: limit - 1]}…"


def begins_with(head: bytes) -> str:
    """What a file that starts with `head` looks like."""
    if not head:
        return "it is empty"
    for signature, name in _SIGNATURES:
        if head.startswith(signature):
            return f"it looks like {name}"
    if head.count(0) == len(head):
        return "it starts with zeros"
    return f"it starts with {shorten(repr(head[:24]))}"


def listed(names: Iterable[str]) -> str:
    """Some names for a message, and how many more there are."""
    all_names = [shorten(name, 60) for name in names]
    if not all_names:
        return "none"
    shown = ", ".join(all_names[:_LISTED])
    more = len(all_names) - _LISTED
    return f"{shown} and {more} more" if more > 0 else shown


def counted(number: int, noun: str) -> str:
    """`1 row`, `2 rows`."""
    return f"{number} {noun}" if number == 1 else f"{number} {noun}s"
