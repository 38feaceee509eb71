"""The scripted model that other tests point programs at says what its script says."""

from __future__ import annotations

import json

import httpx
import pytest

from researchenvbench.model_use import Tokens

from .model_server import Fault, ModelServer, Tool, Turn, without_tools

SCRIPT = (
    Turn(
        "I look around, carefully and at length.",
        (Tool("Bash", {"command": "ls -la /work"}),),
        usage=Tokens(input=70, cached=30, output=25, reasoning=5),
    ),
    Turn("Done."),
)


def events(text: str) -> list[dict]:
    """The data of each event that is JSON."""
    lines = [line[6:] for line in text.splitlines() if line.startswith("data: ")]
    return [json.loads(line) for line in lines if line != "[DONE]"]


def ask(server: ModelServer, path: str, **body):
    return httpx.post(f"{server.address}{path}", json={"model": "m", **body}, trust_env=False)


def test_messages_are_streamed_block_by_block() -> None:
    with ModelServer(SCRIPT) as server:
        told = events(ask(server, "/v1/messages?beta=true", stream=True).text)
        kinds = [event["type"] for event in told]
        assert kinds[:3] == ["message_start", "ping", "content_block_start"]
        assert kinds[-2:] == ["message_delta", "message_stop"]
        deltas = [event["delta"] for event in told if event["type"] == "content_block_delta"]
        assert "".join(delta.get("text", "") for delta in deltas) == SCRIPT[0].text
        written = "".join(delta.get("partial_json", "") for delta in deltas)
        assert json.loads(written) == {"command": "ls -la /work"}
        assert told[-2]["delta"]["stop_reason"] == "tool_use"
        assert told[0]["message"]["usage"]["cache_read_input_tokens"] == 30
        assert server.requests[0].query == "beta=true"
        assert server.requests[0].usage == SCRIPT[0].usage
        assert ask(server, "/v1/messages").json()["content"] == [{"type": "text", "text": "Done."}]


def test_responses_end_with_the_whole_response() -> None:
    with ModelServer(SCRIPT) as server:
        told = events(ask(server, "/v1/responses", stream=True).text)
        assert [event["sequence_number"] for event in told] == list(range(len(told)))
        end = told[-1]
        assert end["type"] == "response.completed"
        assert [item["type"] for item in end["response"]["output"]] == ["message", "function_call"]
        assert end["response"]["usage"]["input_tokens"] == 100
        done = [event for event in told if event["type"] == "response.output_item.done"]
        assert [event["item"] for event in done] == end["response"]["output"]


def test_a_completion_tells_usage_where_it_is_asked_for() -> None:
    with ModelServer(SCRIPT * 2) as server:
        options = {"include_usage": True}
        asked = ask(server, "/v1/chat/completions", stream=True, stream_options=options)
        told = events(asked.text)
        assert asked.text.endswith("data: [DONE]\n\n")
        assert told[-1]["usage"]["completion_tokens"] == 25
        assert told[-2]["choices"][0]["finish_reason"] == "tool_calls"
        assert "usage" not in ask(server, "/v1/chat/completions", stream=True).text


def test_faults_come_in_their_turn_and_what_is_aside_takes_none() -> None:
    script = [Fault(429, headers={"retry-after": "7"}), Turn("abcdef", cut_after=30)]
    with ModelServer(script, model="m", aside=without_tools) as server:
        tools = [{"name": "Bash"}]
        assert ask(server, "/v1/messages").json()["content"][0]["text"] == "Aside."
        assert ask(server, "/v1/messages", model="x", tools=tools).status_code == 200
        refused = ask(server, "/v1/messages", tools=tools)
        assert (refused.status_code, refused.headers["retry-after"]) == (429, "7")
        with pytest.raises(httpx.RemoteProtocolError):
            ask(server, "/v1/messages", tools=tools, stream=True)
        assert ask(server, "/v1/messages", tools=tools).json()["content"][0]["text"] == "Done."
        assert [request.number for request in server.turns] == [3, 4, 5]
