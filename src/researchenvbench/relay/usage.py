"""What a provider's answer tells of itself: tokens, why the model stopped, what went wrong.

Providers count differently, and `Tokens` one way. Anthropic's `input_tokens` leave out what
was cached, and the usage of a stream is cumulative: `message_delta` corrects `message_start`.
OpenAI's include it. In a stream of Chat Completions usage is told only to who asks for it, by
`stream_options`; the relay changes no request, so such an answer is not counted.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from ..model_use import Tokens
from .events import EventReader

if TYPE_CHECKING:
    from ..model_use import Wire
    from .events import Event

#: Of an answer that is no stream, of which usage is read.
_BODY_LIMIT = 32 << 20
_WHY_LENGTH = 500
#: Most of a stream is these; they tell nothing that counts.
_PASSED_OVER = tuple(
    f"event: {name}\n".encode()
    for name in (
        "content_block_delta",
        "response.output_text.delta",
        "response.function_call_arguments.delta",
        "response.reasoning_text.delta",
        "response.reasoning_summary_text.delta",
    )
)


class Answer:
    """Reads one answer as it passes by. Whatever cannot be understood is passed over."""

    def __init__(self, wire: Wire, *, streamed: bool) -> None:
        self._reader = {
            "anthropic-messages": _read_message,
            "openai-responses": _read_response,
            "openai-chat": _read_completion,
        }[wire]
        self._events = EventReader(_PASSED_OVER) if streamed else None
        self._body = bytearray()
        self._usage: dict[str, Any] = {}
        self._wire = wire
        self.ended = False  #: the model's answer came to its own end
        self.failed = False  #: an error within the answer
        self.answered_by = ""
        self.answer_id = ""  #: the provider's id of the answer
        self.stop_reason = ""
        self.error_type = ""
        self.why = ""

    def feed(self, piece: bytes) -> None:
        """Take what passed by."""
        if self._events is None:
            if len(self._body) + len(piece) <= _BODY_LIMIT:
                self._body += piece
            return
        for event in self._events.feed(piece):
            self._take_event(event)

    def finish(self) -> None:
        """There is no more to come: read a body that was no stream."""
        if self._events is None and (data := _object(bytes(self._body))) is not None:
            self._take(data)
            known = self.answer_id or self.answered_by or self._usage or data.get("choices")
            self.ended = bool(known) and not self.failed
        self._body.clear()

    @property
    def tokens(self) -> Tokens | None:
        """As far as told; null where nothing was."""
        if not any(_is_count(value) for value in self._usage.values()):
            return None  # nothing, or nothing that can be counted
        return _message_tokens(self._usage) if self._anthropic else _openai_tokens(self._usage)

    @property
    def _anthropic(self) -> bool:
        return self._wire == "anthropic-messages"

    def _take_event(self, event: Event) -> None:
        if event.data.strip() == b"[DONE]":
            self.ended = True
        elif (data := _object(event.data)) is not None:
            self._take(data)

    def _take(self, data: dict[str, Any]) -> None:
        if data.get("type") == "error" or isinstance(data.get("error"), dict | str):
            self.fail(data)
        self._reader(self, data)

    def fail(self, data: dict[str, Any]) -> None:
        """Note the error that `data` tells."""
        self.failed = True
        self.error_type, self.why = error_of(data)

    def told(self, usage: Any) -> None:
        """Note usage; what is told later replaces what was told before."""
        for key, value in _dict(usage).items():
            if value is not None:
                self._usage[key] = value


def error_of(data: Any) -> tuple[str, str]:
    """The type and the words of an error, as either maker's protocol has them."""
    told = _dict(data).get("error")
    if isinstance(told, str):
        return "", told[:_WHY_LENGTH]
    inner = _dict(told) or _dict(data)
    kind = inner.get("code") or inner.get("type") or ""
    message = inner.get("message") or inner.get("detail") or ""
    return str(kind), str(message)[:_WHY_LENGTH]


def error_of_body(body: bytes) -> tuple[str, str]:
    """The same of a body, which may be anything."""
    data = _object(body)
    if data is not None:
        return error_of(data)
    text = body[: 4 * _WHY_LENGTH].decode(errors="replace")
    return "", " ".join(text.split())[:_WHY_LENGTH]


# --- Anthropic Messages ----------------------------------------------------------------------


def _read_message(answer: Answer, data: dict[str, Any]) -> None:
    kind = data.get("type")
    if kind in ("message", "message_start"):
        message = data if kind == "message" else _dict(data.get("message"))
        answer.answered_by = _text(message.get("model"))
        answer.answer_id = _text(message.get("id"))
        answer.stop_reason = _text(message.get("stop_reason"))
        answer.told(message.get("usage"))
    elif kind == "message_delta":
        reason = _text(_dict(data.get("delta")).get("stop_reason"))
        answer.stop_reason = reason or answer.stop_reason
        answer.told(data.get("usage"))
    elif kind == "message_stop":
        answer.ended = True


def _message_tokens(usage: dict[str, Any]) -> Tokens:
    return Tokens(
        input=_count(usage, "input_tokens"),
        cached=_count(usage, "cache_read_input_tokens"),
        cache_write=_count(usage, "cache_creation_input_tokens"),
        output=_count(usage, "output_tokens"),
        reasoning=_count(_dict(usage.get("output_tokens_details")), "thinking_tokens"),
    )


# --- OpenAI ----------------------------------------------------------------------------------


def _read_response(answer: Answer, data: dict[str, Any]) -> None:
    response = data if "output" in data else _dict(data.get("response"))
    answer.answered_by = _text(response.get("model")) or answer.answered_by
    answer.answer_id = _text(response.get("id")) or answer.answer_id
    answer.told(response.get("usage"))
    status = response.get("status")
    if status == "failed":
        answer.fail(response)
    elif status in ("completed", "incomplete"):
        answer.ended = True
        reason = _text(_dict(response.get("incomplete_details")).get("reason"))
        answer.stop_reason = "refusal" if _refuses(response) else reason or _text(status)


def _refuses(response: dict[str, Any]) -> bool:
    parts = (part for item in _list(response, "output") for part in _list(item, "content"))
    return any(_dict(part).get("type") == "refusal" for part in parts)


def _read_completion(answer: Answer, data: dict[str, Any]) -> None:
    answer.answered_by = _text(data.get("model")) or answer.answered_by
    answer.answer_id = _text(data.get("id")) or answer.answer_id
    answer.told(data.get("usage"))
    for choice in _list(data, "choices"):
        said = _dict(_dict(choice).get("message")) or _dict(_dict(choice).get("delta"))
        if said.get("refusal"):
            answer.stop_reason = "refusal"
        if reason := _text(_dict(choice).get("finish_reason")):
            # `[DONE]` follows, and usage before it; some servers leave it out.
            answer.ended = True
            answer.stop_reason = answer.stop_reason or reason


def _openai_tokens(usage: dict[str, Any]) -> Tokens:
    """Of Responses and of Chat Completions, which name the same things differently."""
    chat = "prompt_tokens" in usage
    read, written = ("prompt", "completion") if chat else ("input", "output")
    details = _dict(usage.get(f"{read}_tokens_details"))
    cached = _count(details, "cached_tokens")
    kept = _count(details, "cache_write_tokens")
    return Tokens(
        input=max(0, _count(usage, f"{read}_tokens") - cached - kept),
        cached=cached,
        cache_write=kept,
        output=_count(usage, f"{written}_tokens"),
        reasoning=_count(_dict(usage.get(f"{written}_tokens_details")), "reasoning_tokens"),
    )


# --- values of others ------------------------------------------------------------------------


def _object(body: bytes) -> dict[str, Any] | None:
    try:
        data = json.loads(body)
    except (ValueError, RecursionError):
        return None
    return data if isinstance(data, dict) else None


def _dict(value: Any) -> dict[str, Any]:
    return value if isinstance(value, dict) else {}


def _list(value: Any, key: str) -> list[Any]:
    found = _dict(value).get(key)
    return found if isinstance(found, list) else []


def _text(value: Any) -> str:
    return value[:200] if isinstance(value, str) else ""


def _count(usage: dict[str, Any], key: str) -> int:
    value = usage.get(key)
    return value if isinstance(value, int) and _is_count(value) else 0


def _is_count(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and value >= 0
