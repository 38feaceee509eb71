"""What a scripted model says, in the words of the three protocols.

The shapes are those of the providers' public references (Anthropic Messages, OpenAI Responses,
OpenAI Chat Completions), as far as the programs of agents read them. `model_server` sends them.
"""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from researchenvbench.model_use import Tokens

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from researchenvbench.model_use import Wire

Json = dict[str, Any]


@dataclass(frozen=True)
class Tool:
    """A call of a tool. Text for input is a custom tool of Responses, which takes no JSON."""

    name: str
    input: Json | str


@dataclass(frozen=True)
class Turn:
    """What the model says once, and how it is sent."""

    text: str = ""
    tools: tuple[Tool, ...] = ()
    usage: Tokens = field(default_factory=lambda: Tokens(input=100, output=10))
    stop: str = ""  #: the protocol's word; by default what fits
    tells_usage: bool = True
    piece: int = 20  #: characters of text or input in an event
    pause_s: float = 0.0  #: before each event
    delay_s: float = 0.0  #: before the head of the answer
    cut_after: int | None = None  #: bytes of the body, then the connection is closed
    error: str = ""  #: instead of the end, an error of this type within the stream
    encoding: str = ""  #: `gzip` or `deflate`: compressed, whatever was accepted
    headers: Mapping[str, str] = field(default_factory=dict)


def answer(wire: Wire, turn: Turn, asked: Json, number: int) -> Json:
    """The whole answer, for who did not ask for a stream."""
    return {
        "anthropic-messages": _message,
        "openai-responses": _response,
        "openai-chat": _completion,
    }[wire](turn, asked, number)


def stream(wire: Wire, turn: Turn, asked: Json, number: int) -> Iterator[bytes]:
    """The events of the answer, each whole."""
    return {
        "anthropic-messages": _message_events,
        "openai-responses": _response_events,
        "openai-chat": _completion_events,
    }[wire](turn, asked, number)


def error(wire: Wire, kind: str, message: str) -> Json:
    """The body of an answer that is an error."""
    if wire == "anthropic-messages":
        return {"type": "error", "error": {"type": kind, "message": message}}
    return {"error": {"message": message, "type": kind, "param": None, "code": kind}}


def _event(data: Json) -> bytes:
    return f"event: {data['type']}\ndata: {json.dumps(data)}\n\n".encode()


def _pieces(text: str, size: int) -> Iterator[str]:
    for start in range(0, len(text), size):
        yield text[start : start + size]


# --- Anthropic Messages ----------------------------------------------------------------------


def _message_usage(tokens: Tokens) -> Json:
    return {
        "input_tokens": tokens.input,
        "cache_creation_input_tokens": tokens.cache_write,
        "cache_read_input_tokens": tokens.cached,
        "output_tokens": tokens.output,
    }


def _message(turn: Turn, asked: Json, number: int) -> Json:
    content: list[Json] = [{"type": "text", "text": turn.text}] if turn.text else []
    for index, tool in enumerate(turn.tools):
        content.append(
            {
                "type": "tool_use",
                "id": f"toolu_{number:04d}_{index}",
                "name": tool.name,
                "input": tool.input,
            }
        )
    said = {
        "id": f"msg_{number:04d}",
        "type": "message",
        "role": "assistant",
        "model": asked.get("model", ""),
        "content": content,
        "stop_reason": turn.stop or ("tool_use" if turn.tools else "end_turn"),
        "stop_sequence": None,
    }
    return {**said, "usage": _message_usage(turn.usage)} if turn.tells_usage else said


def _message_events(turn: Turn, asked: Json, number: int) -> Iterator[bytes]:
    whole = _message(turn, asked, number)
    begun = {**whole, "content": [], "stop_reason": None}
    if turn.tells_usage:
        begun["usage"] = {**_message_usage(turn.usage), "output_tokens": 1}
    yield _event({"type": "message_start", "message": begun})
    yield _event({"type": "ping"})
    for index, block in enumerate(whole["content"]):
        empty = {"text": ""} if block["type"] == "text" else {"input": {}}
        yield _event(
            {"type": "content_block_start", "index": index, "content_block": {**block, **empty}}
        )
        if block["type"] == "text":
            deltas = (
                {"type": "text_delta", "text": part} for part in _pieces(block["text"], turn.piece)
            )
        else:
            deltas = (
                {"type": "input_json_delta", "partial_json": part}
                for part in _pieces(json.dumps(block["input"]), turn.piece)
            )
        for delta in deltas:
            yield _event({"type": "content_block_delta", "index": index, "delta": delta})
        yield _event({"type": "content_block_stop", "index": index})
    if turn.error:
        yield _event(error("anthropic-messages", turn.error, "from within the stream"))
        return
    delta = {"stop_reason": whole["stop_reason"], "stop_sequence": None}
    ended: Json = {"type": "message_delta", "delta": delta}
    if turn.tells_usage:
        ended["usage"] = {"output_tokens": turn.usage.output}
    yield _event(ended)
    yield _event({"type": "message_stop"})


# --- OpenAI Responses ------------------------------------------------------------------------


def _response(turn: Turn, asked: Json, number: int) -> Json:
    output: list[Json] = []
    if turn.text:
        part = {"type": "output_text", "text": turn.text, "annotations": []}
        output.append(
            {
                "id": f"msg_{number:04d}",
                "type": "message",
                "status": "completed",
                "role": "assistant",
                "content": [part],
            }
        )
    for index, tool in enumerate(turn.tools):
        call = {"call_id": f"call_{number:04d}_{index}", "name": tool.name, "status": "completed"}
        if isinstance(tool.input, str):
            call |= {"type": "custom_tool_call", "input": tool.input, "id": f"ctc_{number}_{index}"}
        else:
            text = json.dumps(tool.input)
            call |= {"type": "function_call", "arguments": text, "id": f"fc_{number}_{index}"}
        output.append(call)
    tokens = turn.usage
    read = tokens.input + tokens.cached
    usage = {
        "input_tokens": read,
        "input_tokens_details": {"cached_tokens": tokens.cached},
        "output_tokens": tokens.output,
        "output_tokens_details": {"reasoning_tokens": tokens.reasoning},
        "total_tokens": read + tokens.output,
    }
    return {
        "id": f"resp_{number:04d}",
        "object": "response",
        "created_at": 1_700_000_000,
        "status": "incomplete" if turn.stop else "completed",
        "error": None,
        "incomplete_details": {"reason": turn.stop} if turn.stop else None,
        "instructions": None,
        "max_output_tokens": None,
        "model": asked.get("model", ""),
        "output": output,
        "parallel_tool_calls": True,
        "previous_response_id": None,
        "reasoning": {"effort": None, "summary": None},
        "store": False,
        "temperature": 1.0,
        "text": {"format": {"type": "text"}},
        "tool_choice": "auto",
        "tools": [],
        "top_p": 1.0,
        "truncation": "disabled",
        "usage": usage if turn.tells_usage else None,
        "user": None,
        "metadata": {},
    }


def _response_events(turn: Turn, asked: Json, number: int) -> Iterator[bytes]:
    for order, data in enumerate(_response_data(turn, asked, number)):
        yield _event({**data, "sequence_number": order})


def _response_data(turn: Turn, asked: Json, number: int) -> Iterator[Json]:
    whole = _response(turn, asked, number)
    begun = {**whole, "status": "in_progress", "output": [], "usage": None}
    begun["incomplete_details"] = None
    yield {"type": "response.created", "response": begun}
    yield {"type": "response.in_progress", "response": begun}
    for index, item in enumerate(whole["output"]):
        place = {"output_index": index}
        at = {**place, "item_id": item["id"]}
        if item["type"] == "message":
            open_item = {**item, "status": "in_progress", "content": []}
            yield {"type": "response.output_item.added", **place, "item": open_item}
            part = item["content"][0]
            at["content_index"] = 0
            empty = {**part, "text": ""}
            yield {"type": "response.content_part.added", **at, "part": empty}
            for piece in _pieces(part["text"], turn.piece):
                yield {"type": "response.output_text.delta", **at, "delta": piece, "logprobs": []}
            text = {"text": part["text"], "logprobs": []}
            yield {"type": "response.output_text.done", **at, **text}
            yield {"type": "response.content_part.done", **at, "part": part}
        else:
            if item["type"] == "function_call":
                key, name = "arguments", "function_call_arguments"
            else:
                key, name = "input", "custom_tool_call_input"
            open_item = {**item, "status": "in_progress", key: ""}
            yield {"type": "response.output_item.added", **place, "item": open_item}
            for piece in _pieces(item[key], turn.piece):
                yield {"type": f"response.{name}.delta", **at, "delta": piece}
            yield {"type": f"response.{name}.done", **at, key: item[key], "name": item["name"]}
        yield {"type": "response.output_item.done", **place, "item": item}
    if turn.error:
        told = {"code": turn.error, "message": "from within the stream"}
        failed = {**whole, "status": "failed", "error": told, "usage": None}
        yield {"type": "response.failed", "response": failed}
        return
    end = "response.incomplete" if turn.stop else "response.completed"
    yield {"type": end, "response": whole}


# --- OpenAI Chat Completions -----------------------------------------------------------------


def _completion_usage(tokens: Tokens) -> Json:
    read = tokens.input + tokens.cached
    return {
        "prompt_tokens": read,
        "completion_tokens": tokens.output,
        "total_tokens": read + tokens.output,
        "prompt_tokens_details": {"cached_tokens": tokens.cached},
        "completion_tokens_details": {"reasoning_tokens": tokens.reasoning},
    }


def _completion(turn: Turn, asked: Json, number: int) -> Json:
    calls = [
        {
            "id": f"call_{number:04d}_{index}",
            "type": "function",
            "function": {"name": tool.name, "arguments": json.dumps(tool.input)},
        }
        for index, tool in enumerate(turn.tools)
    ]
    said: Json = {"role": "assistant", "content": turn.text or None}
    if calls:
        said["tool_calls"] = calls
    reason = turn.stop or ("tool_calls" if calls else "stop")
    whole = {
        "id": f"chatcmpl-{number:04d}",
        "object": "chat.completion",
        "created": 1_700_000_000,
        "model": asked.get("model", ""),
        "choices": [{"index": 0, "message": said, "logprobs": None, "finish_reason": reason}],
    }
    return {**whole, "usage": _completion_usage(turn.usage)} if turn.tells_usage else whole


def _completion_events(turn: Turn, asked: Json, number: int) -> Iterator[bytes]:
    whole = _completion(turn, asked, number)
    asks_usage = (asked.get("stream_options") or {}).get("include_usage", False)
    told: Json = {"usage": None} if asks_usage else {}
    base = {key: whole[key] for key in ("id", "created", "model")}
    base |= {"object": "chat.completion.chunk", **told}

    def chunk(delta: Json, reason: str | None = None) -> bytes:
        choice = {"index": 0, "delta": delta, "logprobs": None, "finish_reason": reason}
        return f"data: {json.dumps({**base, 'choices': [choice]})}\n\n".encode()

    yield chunk({"role": "assistant", "content": ""})
    for piece in _pieces(turn.text, turn.piece):
        yield chunk({"content": piece})
    message = whole["choices"][0]["message"]
    for index, call in enumerate(message.get("tool_calls", [])):
        named = {**call, "index": index, "function": {**call["function"], "arguments": ""}}
        yield chunk({"tool_calls": [named]})
        for piece in _pieces(call["function"]["arguments"], turn.piece):
            yield chunk({"tool_calls": [{"index": index, "function": {"arguments": piece}}]})
    if turn.error:
        body = error("openai-chat", turn.error, "from within the stream")
        yield f"data: {json.dumps(body)}\n\n".encode()
        return
    yield chunk({}, whole["choices"][0]["finish_reason"])
    if asks_usage and turn.tells_usage:
        last = {**base, "choices": [], "usage": whole["usage"]}
        yield f"data: {json.dumps(last)}\n\n".encode()
    yield b"data: [DONE]\n\n"
