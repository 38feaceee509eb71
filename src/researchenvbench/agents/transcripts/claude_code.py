"""Claude Code's `--output-format stream-json`: messages of the model, and results of its tools.

A message comes in pieces, one for each part of its content, all with its id. A shell command
that fails has `Exit code N` as the first line of its result.
"""

from __future__ import annotations

import re
from datetime import datetime
from typing import TYPE_CHECKING, Any

from ..transcript import Step, shortened
from . import table, text_of

if TYPE_CHECKING:
    from collections.abc import Iterable

_EXIT = re.compile(r"\A(?:Error: )?Exit code (\d{1,3})\b")


def steps(lines: Iterable[dict[str, Any]]) -> list[Step]:
    """The tools that were used, in the order in which the model asked for them."""
    found: dict[str, Step] = {}
    said, cwd = "", None
    for line in lines:
        message = table(line.get("message"))
        if line.get("type") == "system" and isinstance(line.get("cwd"), str):
            cwd = line["cwd"]
        for part in _parts(message):
            kind = part.get("type")
            if line.get("type") == "assistant" and kind == "text":
                said = text_of(part.get("text")) or said
            elif line.get("type") == "assistant" and kind == "tool_use":
                step = _asked(part, len(found) + 1, line.get("timestamp"), cwd, said)
                step = step.model_copy(update={"turn": text_of(message.get("id"))})
                # Its shell stays in the folder in which a command ends: only the first is told.
                cwd = None if step.kind == "command" else cwd
                found[str(part.get("id"))] = step
                said = ""
            elif line.get("type") == "user" and kind == "tool_result":
                use = str(part.get("tool_use_id"))
                if use in found:
                    found[use] = _answered(found[use], part, line.get("timestamp"))
    return list(found.values())


def _parts(message: dict[str, Any]) -> list[dict[str, Any]]:
    content = message.get("content")
    return [part for part in content if isinstance(part, dict)] if isinstance(content, list) else []


def _asked(part: dict[str, Any], number: int, began: Any, cwd: str | None, said: str) -> Step:
    tool, given = str(part.get("name")), table(part.get("input"))
    facts: dict[str, Any] = {"kind": "other", "command": tool}
    path = text_of(given.get("file_path"))
    if tool == "Bash":
        facts = {"kind": "command", "command": text_of(given.get("command")), "cwd": cwd}
    elif tool == "Write":
        facts = {"kind": "write", "path": path, "content": text_of(given.get("content"))}
    elif tool == "Edit":
        facts = {
            "kind": "edit",
            "path": path,
            "replaced": text_of(given.get("old_string")),
            "content": text_of(given.get("new_string")),
            "everywhere": given.get("replace_all") is True,
        }
    return Step(
        number=number,
        began=began if isinstance(began, str) else None,
        said=shortened(said),
        **facts,
    )


def _answered(step: Step, part: dict[str, Any], ended: Any) -> Step:
    output, failed = text_of(part.get("content")), part.get("is_error") is True
    status = None
    if step.kind == "command":
        told = _EXIT.match(output)
        status = int(told[1]) if told and failed else None if failed else 0
    return step.model_copy(
        update={
            "output": shortened(output),
            "failed": failed,
            "exit_status": status,
            "seconds": _between(step.began, ended),
        }
    )


def _between(began: Any, ended: Any) -> float | None:
    try:
        span = datetime.fromisoformat(ended) - datetime.fromisoformat(began)
    except (TypeError, ValueError):
        return None
    return max(0.0, span.total_seconds())
