"""Flags by which a container sees a file or folder of this host."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pathlib import Path


def shown(source: Path, target: Path) -> list[str]:
    """The flags that show `source` of this host at `target`, read-only.

    `-v` divides its argument at colons, so paths with one are given by `--mount`, whose argument
    is a line of CSV to podman and docker alike.
    """
    if ":" not in f"{source}{target}":
        return ["-v", f"{source}:{target}:ro"]
    fields = ["type=bind", f"source={source}", f"target={target}", "readonly"]
    return ["--mount", ",".join(_quoted(field) for field in fields)]


def _quoted(field: str) -> str:
    """A field of a line of CSV; in quotes where it holds what divides fields or lines."""
    if not any(one in field for one in ',"\r\n'):
        return field
    doubled = field.replace('"', '""')
    return f'"{doubled}"'
