"""Readers of agents' own transcripts: a function for each kind, to steps in the common form.

What lies in a transcript was written by a program that runs in the box, so anything may stand
there: a line that is not understood is passed over, and never an error.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from pathlib import Path

    from ..definition import TranscriptKind
    from ..transcript import Step

#: Of one line: tools print whole files.
_LINE_LIMIT = 8_000_000


def read_transcript(kind: TranscriptKind, log: Path, kept: Sequence[Path]) -> list[Step]:
    """The steps of a transcript.

    Args:
        kind: Which program's it is.
        log: What the program printed.
        kept: Files that it left in its own folder and that were kept, in their order.
    """
    if kind == "claude-code":
        from .claude_code import steps

        return steps(json_lines(log))
    if kind == "codex":
        from .codex import from_output, from_session

        found = [step for path in kept for step in from_session(json_lines(path))]
        return found or from_output(json_lines(log))
    return []


def json_lines(path: Path) -> Iterator[dict[str, Any]]:
    """The lines of a file that are JSON objects."""
    try:
        stream = path.open("rb")
    except OSError:
        return
    with stream:
        while line := stream.readline(_LINE_LIMIT):
            if not line.lstrip().startswith(b"{"):
                continue
            try:
                found = json.loads(line)
            except (ValueError, RecursionError):
                continue
            if isinstance(found, dict):
                yield found


def text_of(value: Any) -> str:
    """The text of a value that is a text, or a list of parts that hold some; else nothing."""
    if isinstance(value, str):
        return value
    if isinstance(value, list):
        parts = (part.get("text") for part in value if isinstance(part, dict))
        return "\n".join(part for part in parts if isinstance(part, str))
    return ""


def whole(value: Any) -> int:
    """A count, or 0 where there is none."""
    return value if isinstance(value, int) and not isinstance(value, bool) and value > 0 else 0


def table(value: Any) -> dict[str, Any]:
    """A JSON object, or an empty one where there is something else."""
    return value if isinstance(value, dict) else {}
