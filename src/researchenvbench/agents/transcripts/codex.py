"""Codex: the session file that it keeps, and what `codex exec --json` prints.

The session has all: times, working folders, the answer that asked for each step. What is
printed has commands and their ends, and is read where the session is not there.
"""

from __future__ import annotations

import shlex
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any
from urllib.parse import unquote, urlsplit

from ..transcript import Step, shortened
from . import table, text_of, whole

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

#: To split takes time by the square of the length.
_SPLIT_CHARACTERS = 20_000
_SHELL_WORDS = 3  #: a shell, its flag, and the command


def from_session(lines: Iterable[dict[str, Any]]) -> list[Step]:
    """The steps of a session file."""
    found: list[Step] = []
    said = ""
    answers: list[tuple[float, str]] = []  # when each was whole, and its id
    for line in lines:
        given = table(line.get("payload"))
        if line.get("type") == "token_usage_record":
            answers.append((_noted_s(line), text_of(given.get("response_id"))))
            continue
        item = table(given.get("item"))
        if line.get("type") != "event_msg" or given.get("type") != "item_completed":
            continue
        if item.get("type") == "AgentMessage":
            said = text_of(item.get("content")) or said
            continue
        began_ms, ended_ms = given.get("started_at_ms"), given.get("completed_at_ms")
        for facts in _facts(item):
            if "seconds" in facts and isinstance(began_ms, int) and isinstance(ended_ms, int):
                # What it calls a duration leaves out what came before the process.
                facts["seconds"] = max(facts["seconds"] or 0.0, _between_s(began_ms, ended_ms))
            found.append(
                Step(
                    number=len(found) + 1,
                    began=_time(began_ms),
                    said=shortened(said),
                    turn=_turn(answers, began_ms),
                    **facts,
                )
            )
            said = ""
    return found


def _between_s(began_ms: int, ended_ms: int) -> float:
    try:
        return (ended_ms - began_ms) / 1000
    except OverflowError:
        return 0.0


def _turn(answers: list[tuple[float, str]], began_ms: Any) -> str:
    """The answer that asked for what began then: the model may have gone on since."""
    newest = answers[-1][1] if answers else ""
    if not isinstance(began_ms, int):
        return newest
    before = (turn for noted_s, turn in reversed(answers) if noted_s * 1000 <= began_ms)
    return next(before, newest)


def _noted_s(line: dict[str, Any]) -> float:
    try:
        return datetime.fromisoformat(str(line.get("timestamp"))).timestamp()
    except ValueError:
        return 0.0


def from_output(lines: Iterable[dict[str, Any]]) -> list[Step]:
    """The steps of what the program printed."""
    found: list[Step] = []
    said = ""
    for line in lines:
        item = table(line.get("item"))
        if line.get("type") != "item.completed":
            continue
        if item.get("type") == "agent_message":
            said = text_of(item.get("text")) or said
        for facts in _facts(item):
            found.append(Step(number=len(found) + 1, said=shortened(said), **facts))
            said = ""
    return found


def _facts(item: dict[str, Any]) -> Iterator[dict[str, Any]]:
    """What an item is in our words; nothing where it is none of the agent's doing."""
    kind = item.get("type")
    if kind in ("CommandExecution", "command_execution"):
        status = item.get("exit_code")
        status = status if isinstance(status, int) else None
        yield {
            "kind": "command",
            "command": _command(item.get("command")),
            "cwd": _folder(item.get("cwd")),
            "exit_status": status,
            "failed": item.get("status") == "failed" or bool(status),
            "output": shortened(text_of(item.get("aggregated_output"))),
            "seconds": _seconds(item.get("duration")),
        }
    elif kind in ("FileChange", "file_change"):
        yield from _changes(item)
    elif kind in ("McpToolCall", "mcp_tool_call", "WebSearch", "web_search"):
        yield {"kind": "other", "command": str(item.get("tool") or kind)}


def _changes(item: dict[str, Any]) -> Iterator[dict[str, Any]]:
    """Files that a patch makes are written; of others the patch is shown."""
    changes = item.get("changes")
    pairs = changes.items() if isinstance(changes, dict) else ()
    failed = item.get("status") == "failed"
    for path, change in pairs:
        change = table(change)
        if isinstance(change.get("content"), str) and change.get("type") == "add":
            yield {
                "kind": "write",
                "path": str(path),
                "content": change["content"],
                "failed": failed,
            }
        else:
            yield {
                "kind": "other",
                "command": "apply_patch",
                "path": str(path),
                "content": text_of(change.get("unified_diff")),
                "failed": failed,
            }
    if isinstance(changes, list):  # printed: names only
        for change in map(table, changes):
            yield {
                "kind": "other",
                "command": "apply_patch",
                "path": text_of(change.get("path")),
                "failed": failed,
            }


def _command(value: Any) -> str:
    """The command itself, without the shell that runs it."""
    words = [str(word) for word in value] if isinstance(value, list) else []
    if isinstance(value, str):
        if len(value) > _SPLIT_CHARACTERS:
            return value
        try:
            words = shlex.split(value)
        except ValueError:
            return value
    if len(words) == _SHELL_WORDS and words[1] in ("-lc", "-c"):
        return words[2]
    return value if isinstance(value, str) else shlex.join(words)


def _folder(value: Any) -> str | None:
    if not isinstance(value, str):
        return None
    try:
        return unquote(urlsplit(value).path) if value.startswith("file:") else value
    except ValueError:
        return None


def _seconds(duration: Any) -> float | None:
    given = table(duration)
    if not given:
        return None
    try:
        return whole(given.get("secs")) + whole(given.get("nanos")) / 1e9
    except OverflowError:
        return None


def _time(at_ms: Any) -> str | None:
    """A time of a session, in words."""
    if not isinstance(at_ms, int | float):
        return None
    try:
        began = datetime.fromtimestamp(at_ms / 1000, UTC)
    except (ValueError, OverflowError, OSError):
        return None
    return began.isoformat(timespec="milliseconds")
