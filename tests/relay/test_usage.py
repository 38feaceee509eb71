"""Tokens are read out of answers of all three protocols, however they come in pieces."""

from __future__ import annotations

import json

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from researchenvbench.model_use import Tokens
from researchenvbench.relay.events import Event, EventReader
from researchenvbench.relay.usage import Answer, error_of_body

from .conftest import PATHS
from .model_answers import Tool, Turn, answer, stream

TURN = Turn(
    "Zwölf Boxkämpfer.",
    (Tool("Bash", {"command": "a\r\nb"}),),
    usage=Tokens(input=70, cached=30, output=25, reasoning=5),
    piece=4,
)
ASKED = {"model": "m", "stream_options": {"include_usage": True}}
STREAMS = {wire: b"".join(stream(wire, TURN, ASKED, 1)) for wire in PATHS}


def cut(text: bytes, places: list[int]) -> list[bytes]:
    """`text` in the pieces that its cuts at `places` make."""
    ends = [*sorted({place % (len(text) + 1) for place in places}), len(text)]
    return [text[start:end] for start, end in zip([0, *ends], ends, strict=False)]


def read(wire: str, pieces: list[bytes], *, streamed: bool = True) -> Answer:
    told = Answer(wire, streamed=streamed)
    for piece in pieces:
        told.feed(piece)
    told.finish()
    return told


def expected(wire: str) -> Tokens:
    """Anthropic tells no reasoning here."""
    anthropic = wire == "anthropic-messages"
    return TURN.usage.model_copy(update={"reasoning": 0}) if anthropic else TURN.usage


@pytest.mark.parametrize("wire", list(PATHS))
@pytest.mark.parametrize("breaks", [b"\n", b"\r\n", b"\r"])
@given(places=st.lists(st.integers(0, 10_000), max_size=30))
def test_a_stream_is_read_wherever_it_is_cut(wire: str, breaks: bytes, places: list[int]) -> None:
    text = STREAMS[wire].replace(b"\n", breaks)
    told = read(wire, cut(text, places))
    assert told.tokens == expected(wire)
    assert told.answered_by == "m"
    assert (told.ended, told.failed) == (True, False)


@pytest.mark.parametrize("wire", list(PATHS))
def test_a_stream_is_read_byte_by_byte(wire: str) -> None:
    text = STREAMS[wire].replace(b"\n", b"\r\n")
    assert read(wire, [text[at : at + 1] for at in range(len(text))]).tokens == expected(wire)


@pytest.mark.parametrize("wire", list(PATHS))
def test_a_body_is_read(wire: str) -> None:
    body = json.dumps(answer(wire, TURN, {"model": "m"}, 1), indent=1).encode()
    told = read(wire, [body[:50], body[50:]], streamed=False)
    assert (told.tokens, told.ended) == (expected(wire), True)


@pytest.mark.parametrize("wire", list(PATHS))
@given(end=st.integers(0, 10_000), noise=st.binary(max_size=40))
def test_no_part_and_no_noise_is_too_much(wire: str, end: int, noise: bytes) -> None:
    text = STREAMS[wire]
    told = read(wire, [text[: end % len(text)], noise])
    assert told.tokens is None or told.tokens.total <= TURN.usage.total


@given(st.lists(st.binary(max_size=60)))
def test_events_can_be_any_bytes(pieces: list[bytes]) -> None:
    reader = EventReader()
    one = [event for piece in pieces for event in reader.feed(piece)]
    assert one == list(EventReader().feed(b"".join(pieces)))


def test_comments_names_and_data_of_several_lines() -> None:
    text = (
        b"\xef\xbb\xbf: hello\n\nevent: a\ndata: 1\ndata:2\nid: 7\n\n"
        b"event: empty\n\ndata\n\nretry: 5\ndata: {}\r\n\r\ndata: not whole\n"
    )
    found = list(EventReader().feed(text))
    assert found == [Event("a", b"1\n2"), Event("", b""), Event("", b"{}")]


def test_usage_of_anthropic_is_cumulative_and_the_last_one_counts() -> None:
    start = {"usage": {"input_tokens": 5, "output_tokens": 1}, "model": "m"}
    events = [
        {"type": "message_start", "message": start},
        {"type": "message_delta", "delta": {}, "usage": {"output_tokens": 7}},
        {
            "type": "message_delta",
            "delta": {"stop_reason": "refusal"},
            "usage": {
                "output_tokens": 9,
                "input_tokens": None,
                "cache_creation_input_tokens": 3,
                "output_tokens_details": {"thinking_tokens": 4},
            },
        },
    ]
    text = b"".join(b"data: %b\n\n" % json.dumps(event).encode() for event in events)
    told = read("anthropic-messages", [text])
    assert told.tokens == Tokens(input=5, cache_write=3, output=9, reasoning=4)
    assert (told.stop_reason, told.ended) == ("refusal", False)


@pytest.mark.parametrize("usage", [{}, {"input_tokens": "7"}, {"output_tokens": -3}, {"x": 1.5}])
def test_usage_that_is_no_count_is_none(usage: dict) -> None:
    """And not nothing: a budget would never be reached."""
    data = {"type": "message", "id": "a", "model": "m", "usage": usage}
    told = read("anthropic-messages", [json.dumps(data).encode()], streamed=False)
    assert told.ended
    assert told.tokens is None


def test_what_openai_cached_is_taken_out_of_its_input() -> None:
    usage = {
        "prompt_tokens": 100,
        "prompt_tokens_details": {"cached_tokens": 60, "cache_write_tokens": 10},
        "completion_tokens": 7,
    }
    body = json.dumps({"choices": [], "usage": usage}).encode()
    told = read("openai-chat", [body], streamed=False)
    assert told.tokens == Tokens(input=30, cached=60, cache_write=10, output=7)


@pytest.mark.parametrize(
    ("data", "reason"),
    [
        ({"status": "incomplete", "incomplete_details": {"reason": "content_filter"}}, None),
        ({"status": "incomplete", "incomplete_details": {"reason": "max_output_tokens"}}, None),
        ({"status": "completed", "output": [{"content": [{"type": "refusal"}]}]}, "refusal"),
        ({"status": "completed", "output": []}, "completed"),
    ],
)
def test_why_a_response_ended(data: dict, reason: str | None) -> None:
    body = json.dumps({"object": "response", "output": [], **data}).encode()
    told = read("openai-responses", [body], streamed=False)
    assert told.stop_reason == (reason or data["incomplete_details"]["reason"])


def test_the_refusal_of_a_completion_is_one() -> None:
    choice = {"delta": {"refusal": "I"}, "finish_reason": None}
    chunks = [{"choices": [choice]}, {"choices": [{"delta": {}, "finish_reason": "stop"}]}]
    text = b"".join(b"data: %b\n\n" % json.dumps(chunk).encode() for chunk in chunks)
    assert read("openai-chat", [text]).stop_reason == "refusal"


@pytest.mark.parametrize(
    ("body", "kind", "why"),
    [
        (b'{"type":"error","error":{"type":"a","message":"b"}}', "a", "b"),
        (b'{"error":{"type":"t","code":"c","message":"b"}}', "c", "b"),
        (b'{"error":{"type":"t","code":null,"message":"b"}}', "t", "b"),
        (b'{"error":"b"}', "", "b"),
        (b'{"detail":"b"}', "", "b"),
        (b'{"type":"error","code":"c","message":"b"}', "c", "b"),
        (b"<html>\n  b</html>", "", "<html> b</html>"),
        (b"[1]", "", "[1]"),
        (b"\xff", "", "\ufffd"),
        (b"", "", ""),
    ],
)
def test_errors_of_all_kinds_of_servers(body: bytes, kind: str, why: str) -> None:
    assert error_of_body(body) == (kind, why)


#: Words that the readers look for, so that they meet values that they do not expect.
KEYS = """type message usage error response output choices delta status input_tokens content
    prompt_tokens incomplete_details prompt_tokens_details"""
VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=3),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(st.sampled_from(KEYS.split()), inner, max_size=5)
    ),
    max_leaves=20,
)


@pytest.mark.parametrize("wire", list(PATHS))
@settings(max_examples=50)
@given(
    data=VALUES, kind=st.sampled_from(["message_start", "message_delta", "message", "error", "x"])
)
def test_no_json_brings_the_counting_down(wire: str, data: object, kind: str) -> None:
    body = {"type": kind, **data} if isinstance(data, dict) else data
    told = read(wire, [b"data: %b\n\n" % json.dumps(body).encode()])
    assert told.tokens is None or told.tokens.total >= 0
    told = read(wire, [json.dumps(body).encode()], streamed=False)
    assert isinstance(told.why, str)
