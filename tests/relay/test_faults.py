"""Faults of the provider that pass are waited out; what remains is passed on as it came."""

from __future__ import annotations

import dataclasses
import email.utils
import gzip
import json
import socket
import time
from concurrent.futures import ThreadPoolExecutor

import pytest

from researchenvbench.relay import Patience
from researchenvbench.relay.patience import told_wait_s

from .conftest import CANARY, QUICK, wait_until
from .model_server import Fault, Turn

DONE = Turn("Done.")


@pytest.mark.parametrize("status", [429, 500, 502, 503, 504, 529])
def test_a_fault_that_passes_is_waited_out(make, status) -> None:
    asker = make([Fault(status), Fault(status), DONE])
    assert asker.ask().status_code == 200
    call = asker.call()
    assert (call.end, call.tries, call.status) == ("complete", 3, 200)
    assert 0 < call.waited_s <= call.seconds
    assert asker.relay.waited_s == pytest.approx(call.waited_s, abs=0.01)
    assert len(asker.server.requests) == 3
    assert {request.body for request in asker.server.requests} == {asker.server.requests[0].body}


def test_what_does_not_pass_comes_as_it_came(make) -> None:
    body = b'{"type":"error","error":{"type":"overloaded_error","message":"Overloaded"} }'
    asker = make(lambda _: Fault(529, body=body, headers={"x-its": "own"}))
    answer = asker.ask()
    assert (answer.status_code, answer.content, answer.headers["x-its"]) == (529, body, "own")
    call = asker.call()
    assert (call.end, call.tries) == ("error", 3)
    assert (call.error_type, call.why) == ("overloaded_error", "Overloaded")
    assert call.waited_s > 0


@pytest.mark.parametrize("status", [400, 401, 403, 404, 413, 422])
def test_other_errors_pass_at_once(make, status) -> None:
    asker = make([Fault(status, kind="its_type", message="its words"), DONE])
    assert asker.ask().status_code == status
    call = asker.call()
    assert (call.end, call.tries, call.waited_s) == ("error", 1, 0)
    assert (call.status, call.error_type, call.why) == (status, "its_type", "its words")


@pytest.mark.parametrize(
    "fault",
    [
        Fault(429, headers={"x-should-retry": "false"}),
        Fault(429, headers={"retry-after": "3600"}),
        Fault(429, kind="insufficient_quota"),
    ],
)
def test_a_fault_that_will_not_pass_is_not_waited_for(make, fault) -> None:
    asker = make([fault, DONE])
    assert asker.ask().status_code == 429
    assert asker.call().tries == 1


def test_a_provider_that_says_when_is_believed(make) -> None:
    asker = make([Fault(429, headers={"retry-after": "0.3"}), DONE])
    began = time.monotonic()
    assert asker.ask().status_code == 200
    assert time.monotonic() - began >= 0.3
    assert asker.call().waited_s >= 0.3


def test_a_connection_that_is_dropped_is_made_again(make) -> None:
    asker = make([Fault(drop=True), DONE], wire="openai-chat")
    assert asker.ask().status_code == 200
    assert asker.call().tries == 2


def test_no_provider_at_all_is_an_error_of_the_protocol(make) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))  # and nobody listens
        asker = make(upstream=f"http://127.0.0.1:{taken.getsockname()[1]}")
        answer = asker.ask()
    assert answer.status_code == 504
    assert answer.json()["error"]["type"] == "timeout_error"
    call = asker.call()
    assert (call.end, call.status, call.tries) == ("unreachable", None, 3)
    assert call.why.startswith("no connection to 127.0.0.1")


def test_a_provider_that_never_answers_is_given_up(make) -> None:
    patience = dataclasses.replace(QUICK, silent_s=0.2, waiting_s=0.3)
    asker = make([Fault(never=True)] * 3, patience=patience)
    assert asker.ask().status_code == 504
    assert asker.call().why == "127.0.0.1 did not answer in time"


def test_a_stream_that_falls_silent_is_cut(make) -> None:
    asker = make([Turn("Hm.", pause_s=3)], patience=dataclasses.replace(QUICK, silent_s=0.2))
    assert asker.ask("/v1/messages/count_tokens").status_code == 200
    with pytest.raises(Exception, match="incomplete"):
        asker.ask(stream=True)
    assert asker.call(2).end == "cut"


def test_time_that_is_being_lost_is_told_while_it_is(make) -> None:
    """The harness gives it back before the call has ended; two waits at once are one."""
    patience = dataclasses.replace(QUICK, first_s=30, longest_s=30, waiting_s=60)
    asker = make(lambda _: Fault(529), patience=patience)
    with ThreadPoolExecutor(2) as pool:
        began = time.monotonic()
        asked = [pool.submit(asker.ask) for _ in range(2)]
        try:
            wait_until(lambda: len(asker.server.requests) == 2)
            wait_until(lambda: asker.relay.waited_s > 0.3)
            assert asker.relay.waited_s <= time.monotonic() - began
        finally:
            asker.relay.close()
        assert [one.result().status_code for one in asked] == [500, 500]
    assert {call.end for call in asker.relay.calls} == {"left"}


def test_an_error_in_which_the_key_occurs_is_cleaned(make) -> None:
    text = json.dumps({"error": {"message": f"Incorrect API key provided: {CANARY}"}}).encode()
    packed = {"content-encoding": "gzip"}
    script = [
        Fault(401, body=text),
        Fault(401, body=gzip.compress(text), headers=packed),
        Fault(401, body=text, headers={"content-encoding": "br"}),
        Fault(302, body=b"", headers={"location": "https://example.org/login"}),
    ]
    asker = make(script, wire="openai-chat")
    for _ in range(2):
        answer = asker.ask()
        assert answer.json()["error"]["message"] == "Incorrect API key provided: [redacted]"
        assert "content-encoding" not in answer.headers
    assert "cannot be shown" in asker.ask().json()["error"]["message"]
    assert asker.ask().status_code == 302
    calls = asker.relay.calls
    assert calls[0].why == "Incorrect API key provided: [redacted]"
    assert calls[3].why == "the provider sends to another address: https://example.org/login"


# --- the rule by itself ----------------------------------------------------------------------


def test_waits_double_up_to_the_longest_and_differ_by_chance() -> None:
    most = Patience(tries=9, jitter=lambda: 1.0)
    least = Patience(tries=9, jitter=lambda: 0.0)
    assert [most.wait_s(tried, 0) for tried in range(1, 10)] == [1, 2, 4, 8, 16, 32, 60, 60, None]
    assert [least.wait_s(tried, 0) for tried in (1, 2)] == [0.5, 1]
    assert most.wait_s(1, 239.5) is None
    assert most.wait_s(1, 0, {"retry-after": "20"}) == 20
    assert most.wait_s(6, 0, {"retry-after": "20"}) == 32


def test_all_forms_of_retry_after() -> None:
    assert told_wait_s({}) is None
    assert told_wait_s({"retry-after": "2.5"}) == 2.5
    assert told_wait_s({"retry-after-ms": "2500", "retry-after": "9"}) == 2.5
    soon = email.utils.formatdate(time.time() + 90, usegmt=True)
    assert told_wait_s({"retry-after": soon}) == pytest.approx(90, abs=2)
    assert told_wait_s({"retry-after": "Sun, 06 Nov 1994 08:49:37 GMT"}) == 0
    for nonsense in ("soon", "nan", "inf", "-", ""):
        assert told_wait_s({"retry-after": nonsense}) is None
    assert told_wait_s({"retry-after": "-5"}) == 0


def test_time_is_given_back_for_answers_alone(make) -> None:
    """An agent goes on while its program lists models, however long the provider takes."""
    asker = make(upstream="http://127.0.0.1:1")
    asker.http.get("/v1/models")
    wait_until(lambda: len(asker.relay.calls) == 1)
    assert asker.relay.calls[0].waited_s > 0
    assert asker.relay.waited_s == 0.0
