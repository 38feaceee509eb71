"""What goes to the provider and what comes back is what was sent, but for the key."""

from __future__ import annotations

import gzip
import json
import shutil
import socket
import ssl
import subprocess
import sys
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack

import httpx
import pytest

from researchenvbench.errors import HostError, RebError
from researchenvbench.model_use import Tokens
from researchenvbench.relay import Provider

from .conftest import CANARY, MODEL, PATHS, wait_until
from .model_answers import stream
from .model_server import Fault, ModelServer, Raw, Tool, Turn

WIRES = tuple(PATHS)
TURN = Turn(
    "I look around, ünd at length.",
    (Tool("Bash", {"command": "ls -la"}),),
    usage=Tokens(input=70, cached=30, output=25),
)


@pytest.mark.parametrize("wire", WIRES)
def test_a_stream_passes_byte_for_byte_and_is_counted(make, wire) -> None:
    asker = make([TURN], wire)
    options = {"include_usage": True}
    asked = {"model": MODEL, "stream": True, "stream_options": options}
    assert asker.stream() == b"".join(stream(wire, TURN, asked, 1))
    call = asker.call()
    assert (call.end, call.status, call.streamed, call.why) == ("complete", 200, True, "")
    assert call.tokens == TURN.usage == asker.server.requests[0].usage
    assert call.answered_by == MODEL
    assert call.stop_reason in ("tool_use", "completed", "tool_calls")
    assert call.answer_bytes == asker.server.requests[0].sent_bytes
    assert 0 < call.first_byte_s <= call.seconds


@pytest.mark.parametrize("wire", WIRES)
def test_an_answer_that_is_no_stream_is_counted_too(make, wire) -> None:
    asker = make([TURN], wire)
    answer = asker.ask()
    assert answer.headers["content-type"] == "application/json"
    assert answer.headers["request-id"] == "req_0001"
    call = asker.call()
    assert (call.end, call.streamed, call.tokens) == ("complete", False, TURN.usage)
    assert call.request_bytes == len(asker.server.requests[0].body)


def test_the_provider_gets_the_request_with_the_key_and_without_the_token(make) -> None:
    asker = make()
    body = b'{ "model" : "some-model",  "x": "\xc3\xbc" }'
    headers = {
        "authorization": f"Bearer {asker.relay.token}",
        "x-api-key": "sk-of-the-agent",
        "anthropic-beta": "a,b",
        "connection": "keep-alive, x-private",
        "x-private": "1",
        "cookie": "a=b",
        "accept-encoding": "gzip, br",
        "content-type": "application/json",
    }
    asker.http.post("/v1/messages?beta=true&x=%2F", content=body, headers=headers)
    got = asker.server.requests[0]
    assert got.body == body
    assert got.query == "beta=true&x=%2F"
    assert got.headers["x-api-key"] == CANARY
    assert got.headers["host"] == f"127.0.0.1:{asker.server.port}"
    assert got.headers["accept-encoding"] == "identity"
    assert got.headers["anthropic-beta"] == "a,b"
    for gone in ("authorization", "x-private", "cookie", "connection"):
        assert gone not in got.headers
    assert asker.relay.token not in str(got)


def test_an_openai_provider_gets_the_key_as_bearer_and_no_second_version(make) -> None:
    asker = make(wire="openai-responses")
    asker.ask(headers={})
    assert asker.server.requests[0].headers["authorization"] == f"Bearer {CANARY}"
    assert asker.server.requests[0].path == "/v1/responses"
    assert asker.http.get("/v1/models").json()["data"][0]["id"]


def test_a_base_address_may_have_a_path() -> None:
    provider = Provider("openai-chat", "https://example.org/api/v3/", "m")
    path = provider.path("POST", "/v1/chat/completions")
    assert provider.target(path, "a=1") == "https://example.org/api/v3/chat/completions?a=1"
    provider = Provider("anthropic-messages", "https://example.org/anthropic", "m")
    path = provider.path("POST", "/v1/messages")
    assert provider.target(path, "") == "https://example.org/anthropic/v1/messages"


def test_an_event_is_passed_on_before_the_next_one_is_there(make) -> None:
    first, second = b"event: ping\ndata: {}\n\n", b": rest\n\n"
    asker = make([Raw((first, second), pause_s=0.4)])
    with asker.http.stream("POST", "/v1/messages", json={"model": MODEL}) as answer:
        pieces = answer.iter_raw()
        assert next(pieces) == first
        # Counted when it is written, which may be after it is read here.
        assert asker.server.requests[0].sent_bytes <= len(first)


# --- what is not passed on -------------------------------------------------------------------


@pytest.mark.parametrize("wire", WIRES)
def test_another_path_is_refused_in_the_form_of_the_protocol(make, wire) -> None:
    asker = make(wire=wire)
    others = [path for key, path in PATHS.items() if key != wire]
    for path in (*others, "/v1/files", "/v1/messages/batches", "/v1/models/../files"):
        answer = asker.ask(path)
        assert answer.status_code == 404
        told = answer.json()
        assert told["error"]["type"] == "not_found_error"
        assert (told.get("type") == "error") == (wire == "anthropic-messages")
    assert asker.server.requests == []
    assert {call.end for call in asker.relay.calls} == {"refused"}
    assert asker.relay.use().calls == 0


def test_who_has_no_token_is_refused(make) -> None:
    asker = make()
    for headers in ({}, {"x-api-key": CANARY}, {"authorization": f"Basic {asker.relay.token}"}):
        sent = {"model": MODEL}
        answer = httpx.post(f"{asker.address}/v1/messages", json=sent, headers=headers)
        assert answer.status_code == 401
        assert answer.json()["error"]["type"] == "authentication_error"
    assert asker.server.requests == []


def test_another_model_is_refused(make) -> None:
    asker = make()
    answer = asker.ask(model="large")
    assert answer.status_code == 403
    assert answer.headers["x-should-retry"] == "false"
    assert "large" in answer.json()["error"]["message"]
    assert asker.ask().status_code == 200
    assert asker.ask("/v1/messages/count_tokens", model="large").status_code == 403
    assert asker.ask("/v1/messages/count_tokens").json()["input_tokens"] > 0
    assert [request.json["model"] for request in asker.server.requests] == [MODEL, MODEL]


@pytest.mark.parametrize(
    "body",
    [
        b"{}",
        b"[]",
        b"no JSON",
        b'{"model": "some-model", "model": "large"}',
        b'{"model": "large", "mod\\u0065l": "some-model"}',
        b'{"model": "some-model", "a": ' + b"[" * 100_000,
    ],
)
def test_a_body_that_can_be_read_in_two_ways_or_in_none_is_refused(make, body) -> None:
    asker = make()
    assert asker.http.post("/v1/messages", content=body).status_code in (400, 403)
    assert asker.server.requests == []


def test_a_request_that_is_too_large_or_compressed_is_refused(make) -> None:
    asker = make(request_limit=200_000)
    answer = asker.ask(x="y" * 300_000)
    assert answer.status_code == 413
    assert answer.json()["error"]["type"] == "request_too_large"
    body = gzip.compress(json.dumps({"model": MODEL}).encode())
    packed = asker.http.post("/v1/messages", content=body, headers={"content-encoding": "gzip"})
    assert packed.status_code == 400
    assert asker.ask(x="y" * 100_000).status_code == 200


def test_a_look_whether_somebody_is_there_is_no_call(make) -> None:
    asker = make()
    assert asker.http.head("/").status_code == 200
    assert asker.relay.calls == []


# --- ends that are none ----------------------------------------------------------------------


@pytest.mark.parametrize("wire", WIRES)
@pytest.mark.parametrize("streamed", [True, False])
def test_an_answer_that_the_provider_cuts_is_cut_for_the_agent(make, wire, streamed) -> None:
    asker = make([Turn("x" * 2000, cut_after=700, usage=TURN.usage)], wire)
    with pytest.raises(httpx.RemoteProtocolError):
        asker.ask(stream=streamed)
    call = asker.call()
    assert (call.end, call.answer_bytes) == ("cut", 700)
    assert "broke off" in call.why
    if wire == "anthropic-messages" and streamed:
        assert call.tokens == Tokens(input=70, cached=30, output=1)  # as far as it was told
    use = asker.relay.use()
    assert (use.calls, use.failed_calls, use.uncounted_calls) == (1, 1, 0)


def test_a_stream_without_its_last_event_is_cut_though_it_ended_well(make) -> None:
    whole = b"".join(stream("anthropic-messages", TURN, {"model": MODEL}, 1))
    short = whole[: whole.index(b"event: message_delta")]
    asker = make([Raw((short,))])
    with pytest.raises(httpx.RemoteProtocolError):
        asker.ask(stream=True)
    assert asker.call().why == "the provider's stream ended before its last event"


@pytest.mark.parametrize("wire", WIRES)
def test_an_error_within_a_stream_is_one_and_passes(make, wire) -> None:
    asker = make([Turn("Let me", error="overloaded_error")], wire)
    assert b"overloaded_error" in asker.stream()
    call = asker.call()
    assert (call.end, call.status) == ("error", 200)
    assert (call.error_type, call.why) == ("overloaded_error", "from within the stream")


def test_when_the_agent_goes_away_the_provider_is_told(make) -> None:
    asker = make([Turn("x" * 4000, pause_s=0.02)])
    with asker.http.stream("POST", "/v1/messages", json={"model": MODEL, "stream": True}) as got:
        next(got.iter_raw())
    assert asker.call().end == "left"
    wait_until(lambda: asker.server.requests[0].gone)


def test_an_agent_that_leaves_after_the_last_event_has_its_answer(make) -> None:
    whole = b"".join(stream("anthropic-messages", TURN, {"model": MODEL}, 1))
    asker = make([Raw((whole, b": late\n\n"), pause_s=0.5)])
    with asker.http.stream("POST", "/v1/messages", json={"model": MODEL}) as answer:
        assert b"message_stop" in next(answer.iter_raw())
    call = asker.call()
    assert (call.end, call.tokens) == ("complete", TURN.usage)


def test_closing_breaks_off_what_is_under_way(make) -> None:
    before = threading.enumerate()
    asker = make([Fault(never=True)])
    with ThreadPoolExecutor(1) as pool:
        asked = pool.submit(asker.ask)
        wait_until(lambda: bool(asker.server.requests))
        began = time.monotonic()
        asker.relay.close()
        assert time.monotonic() - began < 5
        assert asked.result().status_code == 500
    assert asker.call().end == "left"
    names = [thread.name for thread in threading.enumerate() if thread not in before]
    assert not [name for name in names if name.startswith("relay")]


# --- many, and the host's settings -----------------------------------------------------------


def test_sixteen_agents_at_once_get_their_own_answers(make) -> None:
    def reply(request):
        return Turn(request.json["say"] * 50, pause_s=0.002, usage=Tokens(input=3, output=4))

    asker = make(reply)

    def ask(number: int) -> bool:
        words = f"<{number}>"
        with httpx.Client(base_url=asker.address, trust_env=False, timeout=30) as client:
            headers = {"authorization": f"Bearer {asker.relay.token}"}
            for _ in range(3):
                sent = {"model": MODEL, "say": words}
                answer = client.post("/v1/messages", json=sent, headers=headers).json()
                assert answer["content"][0]["text"] == words * 50
        return True

    with ThreadPoolExecutor(16) as pool:
        assert all(pool.map(ask, range(16)))
    use = asker.relay.use()
    assert (use.calls, use.failed_calls) == (48, 0)
    assert use.tokens == Tokens(input=144, output=192)
    assert sorted(call.number for call in asker.relay.calls) == list(range(1, 49))


@pytest.mark.parametrize("encoding", ["gzip", "deflate"])
@pytest.mark.parametrize("streamed", [True, False])
def test_an_answer_that_is_compressed_all_the_same_is_counted(make, encoding, streamed) -> None:
    asker = make([Turn("Hm.", encoding=encoding, usage=TURN.usage)])
    answer = asker.ask(stream=streamed)
    assert answer.headers["content-encoding"] == encoding
    assert "Hm." in answer.text
    assert asker.call().tokens == TURN.usage


@pytest.mark.parametrize("body", [b"<html>Sign in</html>", b"{}", b"[]"])
def test_what_is_no_answer_of_the_protocol_is_the_providers_error(make, body) -> None:
    """Such as the page of a captive portal, or of a gateway, with a status of success."""
    asker = make([Raw((body,), headers={"content-type": "text/html"})])
    assert asker.ask().content == body
    call = asker.call()
    assert (call.end, call.status) == ("error", 200)
    assert "none of its protocol" in call.why


def test_an_error_that_is_small_only_when_packed_is_cut(make) -> None:
    body = gzip.compress(b"x" * 200_000_000)
    asker = make([Fault(400, body=body, headers={"content-encoding": "gzip"})])
    assert len(asker.ask().content) <= 4 << 20


def test_a_query_that_no_address_holds_is_refused(make) -> None:
    asker = make()
    answer = asker.ask("/v1/messages?q=" + "x" * 3000)
    assert answer.status_code == 414
    assert asker.server.requests == []
    assert asker.relay.trouble == ""


def test_a_model_is_named_once_in_whatever_case(make) -> None:
    asker = make()
    answer = asker.ask(Model="dear")
    assert (answer.status_code, asker.server.requests) == (400, [])


def test_headers_that_choose_another_account_or_host_stay_behind(make) -> None:
    asker = make([TURN])
    names = ("openai-organization", "openai-project", "x-forwarded-host", "x-original-url")
    asker.http.post("/v1/messages", json={"model": MODEL}, headers=dict.fromkeys(names, "mine"))
    assert not set(asker.server.requests[0].headers) & set(names)


@pytest.mark.parametrize("address", ["https://[bad", "http://host:x", "http://host:99999"])
def test_what_is_no_address_is_said(address) -> None:
    with pytest.raises(RebError, match="not an address of a provider"):
        Provider("openai-chat", address, "m")


def test_anthropics_version_is_not_written_twice() -> None:
    with pytest.raises(RebError, match="ends without /v1"):
        Provider("anthropic-messages", "https://gateway.example/v1/", "m")


def test_cookies_and_the_account_are_not_shown(make) -> None:
    headers = {
        "set-cookie": "a=b",
        "anthropic-organization-id": "org",
        "x-echo": f"Bearer {CANARY}",
        "anthropic-ratelimit-requests-remaining": "7",
    }
    answer = make([Turn("Hm.", headers=headers)]).ask()
    assert answer.headers["anthropic-ratelimit-requests-remaining"] == "7"
    for name in ("set-cookie", "anthropic-organization-id", "x-echo"):
        assert name not in answer.headers


def test_the_proxy_of_the_host_is_used(make, monkeypatch) -> None:
    """A proxy for plain HTTP gets the whole address; the model's server stands in for one."""
    asker = make([], upstream="http://model.invalid")
    asker.relay.close()
    with ModelServer(key=CANARY) as proxy:
        monkeypatch.setenv("http_proxy", proxy.address)
        with make.relay(asker.server, upstream="http://model.invalid") as relay:
            listening = socket.create_server(("127.0.0.1", 0))
            address = f"http://127.0.0.1:{listening.getsockname()[1]}"
            relay.serve([listening])
            sent, headers = {"model": MODEL}, {"x-api-key": relay.token}
            httpx.post(f"{address}/v1/messages", json=sent, headers=headers, trust_env=False)
        assert proxy.requests[0].headers["host"] == "model.invalid"


@pytest.mark.parametrize("variable", ["SSL_CERT_FILE", "REQUESTS_CA_BUNDLE"])
def test_the_certificates_of_the_host_hold(make, monkeypatch, tmp_path, variable) -> None:
    if shutil.which("openssl") is None:
        pytest.skip("openssl is not installed: apt-get install openssl")
    key, certificate = tmp_path / "key.pem", tmp_path / "certificate.pem"
    options = "req -x509 -newkey rsa:2048 -nodes -days 2 -subj /CN=127.0.0.1 -addext"
    command = ["openssl", *options.split(), "subjectAltName=IP:127.0.0.1"]
    command += ["-keyout", str(key), "-out", str(certificate)]
    subprocess.run(command, check=True, capture_output=True)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(certificate, key)
    for name in ("SSL_CERT_FILE", "SSL_CERT_DIR", "REQUESTS_CA_BUNDLE", "CURL_CA_BUNDLE"):
        monkeypatch.delenv(name, raising=False)
    with ModelServer([TURN] * 9, key=CANARY, tls=context) as server:
        stranger = make(upstream=server.address)
        assert "CERTIFICATE_VERIFY_FAILED" in stranger.ask().text
        assert (stranger.call().end, stranger.call().tries) == ("unreachable", 1)
        stranger.relay.close()
        monkeypatch.setenv(variable, str(certificate))
        known = make(upstream=server.address)
        assert known.ask().status_code == 200
        known.relay.close()


def test_more_requests_at_once_than_any_program_has_are_refused(make) -> None:
    asker = make([Fault(never=True)] * 64)
    body = json.dumps({"model": MODEL})
    head = f"POST /v1/messages HTTP/1.1\r\nHost: x\r\nX-Api-Key: {asker.relay.token}\r\n"
    request = f"{head}Content-Length: {len(body)}\r\n\r\n{body}".encode()
    with ExitStack() as stack:
        for _ in range(64):
            open_one = socket.create_connection(("127.0.0.1", asker.port))
            stack.enter_context(open_one)
            open_one.sendall(request)
        wait_until(lambda: len(asker.server.requests) == 64)
        refused = asker.ask()
        assert refused.status_code == 429
        assert refused.headers["x-should-retry"] == "true"
    wait_until(lambda: asker.ask("/v1/messages/count_tokens").status_code == 200)


def test_requests_of_which_too_much_is_in_memory_are_refused(make, monkeypatch) -> None:
    monkeypatch.setattr("researchenvbench.relay.desk._MOST_BYTES", 100_000)
    asker = make()
    for _ in range(5):  # what has been answered is not in memory
        assert asker.ask(x="y" * 60_000).status_code == 200
        assert asker.ask(x="y" * 400_000).status_code == 429


def test_it_knows_how_long_nothing_has_passed(make) -> None:
    asker = make()
    asker.ask()
    time.sleep(0.2)
    assert 0.2 <= asker.relay.quiet_s() < 5
    quiet = asker.relay.quiet_s()
    asker.ask()
    assert asker.relay.quiet_s() < quiet


def test_it_serves_once_and_with_its_packages(make, monkeypatch) -> None:
    asker = make()
    with pytest.raises(RebError, match="serves already"):
        asker.relay.serve([])
    with make.relay(asker.server) as another, socket.create_server(("127.0.0.1", 0)) as listening:
        monkeypatch.setitem(sys.modules, "uvicorn", None)
        with pytest.raises(HostError, match="needs the package uvicorn"):
            another.serve([listening])
