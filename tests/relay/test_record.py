"""What is kept of the calls is whole, counts on, and holds neither key nor token."""

from __future__ import annotations

import gzip
import json
import logging
import stat
from typing import TYPE_CHECKING
from urllib.parse import quote

import pytest
from hypothesis import given
from hypothesis import strategies as st

from researchenvbench.errors import RebError, RecordError
from researchenvbench.model_use import Call, Tokens
from researchenvbench.relay import Budget, Key, Prices, Provider, Relay, move_lost, read_calls
from researchenvbench.relay.desk import _union_s
from researchenvbench.relay.prices import Rate
from researchenvbench.relay.redaction import Redactor

from .conftest import CANARY, MODEL, Asker
from .model_server import Fault, ModelServer, Turn

if TYPE_CHECKING:
    from pathlib import Path

ONE = Turn("Hm.", usage=Tokens(input=70, cached=30, output=25))
PRICES = Prices({MODEL: Rate(input=10, cached=1, output=100)}, source="a table")
USD = (70 * 10 + 30 * 1 + 25 * 100) / 1e6


def kept(folder: Path, name: str) -> bytes:
    return gzip.decompress((folder / f"{name}.gz").read_bytes())


def test_request_and_answer_are_kept(make) -> None:
    asker = make([ONE])
    answer = asker.stream(say="ü")
    asker.relay.close()
    assert kept(make.folder, "0001.request.json") == asker.server.requests[0].body
    assert kept(make.folder, "0001.answer") == answer
    assert read_calls(make.folder / "calls.jsonl") == asker.relay.calls


def test_the_use_is_the_sum_of_the_calls(make) -> None:
    script = [ONE, Fault(400), ONE, Turn("", tells_usage=False)]
    asker = make(script, prices=PRICES)
    for _ in script:
        asker.ask()
    asker.ask("/v1/messages/count_tokens")
    asker.ask(model="another")
    use = asker.relay.use()
    assert (use.calls, use.failed_calls, use.uncounted_calls) == (4, 1, 1)
    assert use.tokens == ONE.usage + ONE.usage
    assert use.cost_usd == pytest.approx(2 * USD)
    assert (use.price_source, use.upstream) == ("a table", asker.server.address)
    assert (use.wire, use.model, use.exhausted) == ("anthropic-messages", MODEL, "")
    assert asker.relay.calls[0].cost_usd == pytest.approx(USD)
    assert asker.relay.problem == ""  # nobody set a limit


# --- budgets ---------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("budget", "words"),
    [
        (Budget(tokens=250), "the budget of 250 tokens is used up: 250 were used"),
        (Budget(usd=2 * USD), "the budget of 0.00646 dollars is used up: 0.0065 were spent"),
    ],
)
def test_a_budget_that_is_used_up_ends_it(make, budget, words) -> None:
    asker = make([ONE] * 9, budget=budget, prices=PRICES)
    asker.ask()
    assert asker.relay.exhausted == ""
    asker.stream()
    assert asker.relay.exhausted == words == asker.relay.use().exhausted
    refused = asker.ask()
    assert refused.status_code == 403
    assert refused.json()["error"] == {"type": "budget_exhausted", "message": words}
    assert asker.relay.calls[-1].error_type == "budget_exhausted"
    assert asker.ask("/v1/messages/count_tokens").status_code == 200
    assert len(asker.server.turns) == 2


def test_a_budget_needs_a_price(make) -> None:
    words = "needs a price, and no table has one for some-model"
    with ModelServer() as server, pytest.raises(RebError, match=words):
        make.relay(server, budget=Budget(usd=1))
    assert not make.folder.exists()
    with pytest.raises(RebError, match="allows nothing"):
        Budget(tokens=0)


def test_an_answer_without_usage_makes_a_budget_void(make) -> None:
    asker = make([Turn("Hm.")], "openai-chat", budget=Budget(tokens=9))
    assert asker.ask(stream=True).status_code == 200
    assert asker.relay.use().uncounted_calls == 1
    assert "told no usage for 1 complete answers" in asker.relay.problem
    assert "include_usage" in asker.relay.problem


# --- a harness that comes back ---------------------------------------------------------------


def test_who_comes_back_counts_on_and_serves_the_same_token(make) -> None:
    first = make([ONE], budget=Budget(tokens=300))
    first.ask()
    first.relay.close()
    with ModelServer([ONE] * 3) as server:
        with make.relay(server, budget=Budget(tokens=300)) as relay:
            assert relay.token == first.relay.token
            assert relay.calls == first.relay.calls
            second = Asker(relay, server, "anthropic-messages")
            second.ask()
            assert relay.exhausted == ""
            second.ask()
            assert relay.exhausted
            assert [call.number for call in relay.calls] == [1, 2, 3]
            second.http.close()
        with make.relay(server, budget=Budget(tokens=300)) as third:
            assert third.exhausted
            assert third.use().tokens.total == 375
    token = make.folder / "token"
    assert stat.S_IMODE(token.stat().st_mode) == 0o600
    assert token.read_text() == first.relay.token


def test_a_line_that_was_not_written_whole_is_left_out(make) -> None:
    call = Call(number=3, began="2026-01-01T00:00:00+00:00", path="/v1/messages", end="left")
    make.folder.mkdir(parents=True)
    path = make.folder / "calls.jsonl"
    path.write_text(call.model_dump_json() + '\n{"number": 4, "be')
    (make.folder / "0005.request.json.gz").touch()
    with ModelServer() as server, make.relay(server) as relay:
        assert relay.calls == [call]
        asker = Asker(relay, server, "anthropic-messages")
        asker.ask()
        asker.http.close()
    assert [call.number for call in read_calls(path)] == [3, 6]


def test_a_record_that_is_none_is_refused(make) -> None:
    make.folder.mkdir(parents=True)
    (make.folder / "calls.jsonl").write_text('{"a": 1}\n{}\n')
    with ModelServer() as server, pytest.raises(RecordError, match="line 1 is no call"):
        make.relay(server)


def test_calls_of_a_build_that_was_lost_are_told_apart(make) -> None:
    assert move_lost(make.folder) is None
    tokens = []
    for number in (1, 2):
        asker = make([ONE] * number, prices=PRICES)
        for _ in range(number):
            asker.ask()
        asker.relay.close()
        tokens.append(asker.relay.token)
        aside = move_lost(make.folder)
        assert aside == make.folder.with_name(f"model-lost-{number}")
        assert not (aside / "token").exists()
    with ModelServer() as server, make.relay(server, prices=PRICES) as relay:
        use = relay.use()
        assert relay.token not in tokens
    assert (use.calls, use.tokens) == (0, Tokens())
    assert use.lost_tokens.total == 3 * ONE.usage.total
    assert use.lost_cost_usd == pytest.approx(3 * USD)


def test_a_disk_that_takes_nothing_is_told(make) -> None:
    asker = make([ONE] * 2)
    (make.folder / "calls.jsonl").mkdir()
    assert asker.ask().status_code == 200
    assert "the record of calls is not whole" in asker.relay.trouble
    assert asker.relay.use().tokens == ONE.usage


def test_refusals_without_end_fill_no_disk(make) -> None:
    asker = make()
    for _ in range(210):
        asker.http.get("/v1/none")
    assert len(asker.relay.calls) == 200


@pytest.mark.parametrize(
    ("spans", "seconds"),
    [([], 0), ([(1, 3), (2, 4)], 3), ([(5, 6), (1, 2)], 2), ([(1, 9), (2, 3)], 8), ([(1, 1)], 0)],
)
def test_time_is_counted_once(spans, seconds) -> None:
    assert _union_s(spans) == seconds


# --- neither key nor token -------------------------------------------------------------------


def test_nothing_that_is_written_or_logged_holds_the_key(make, caplog, capfd) -> None:
    caplog.set_level(logging.DEBUG)
    echo = json.dumps({"error": {"message": f"no: {CANARY} {quote(CANARY, safe='')}"}}).encode()
    script = [
        Fault(401, body=echo),
        Fault(529, headers={"x-echo": CANARY}),
        Turn(f"Your key is {CANARY}, your token "),
        Turn("cut", cut_after=20),
        Fault(drop=True),
    ]
    asker = make(script, "openai-responses")
    token = asker.relay.token
    asker.http.headers["authorization"] = f"Bearer {token}"
    for _ in range(2):
        asker.ask(say=f"{token} {CANARY}")
    with pytest.raises(Exception, match="incomplete"):
        asker.ask(stream=True, say=CANARY)
    asker.ask(f"/v1/{CANARY}/{token}")
    asker.ask(model=CANARY)
    asker.relay.close()
    assert CANARY not in str(asker.relay.calls)
    assert token not in str(asker.relay.calls)
    spellings = [CANARY, quote(CANARY, safe=""), json.dumps(CANARY)[1:-1], token]
    looked = 0
    for path in make.folder.rglob("*"):
        if path.name == "token":
            continue
        looked += 1
        text = gzip.decompress(path.read_bytes()) if path.suffix == ".gz" else path.read_bytes()
        for spelling in spellings:
            assert spelling.encode() not in text, path
    assert looked > 6
    assert b"[redacted]" in kept(make.folder, "0001.request.json")
    printed = capfd.readouterr()
    for text in (caplog.text, printed.out, printed.err, str(asker.relay.use())):
        assert CANARY not in text
        assert token not in text
    assert asker.server.requests[0].headers["authorization"] == f"Bearer {CANARY}"


@given(
    before=st.binary(max_size=30),
    after=st.binary(max_size=30),
    places=st.lists(st.integers(0, 100), max_size=8),
)
def test_a_key_is_found_wherever_it_is_cut(before: bytes, after: bytes, places: list[int]) -> None:
    text = before + CANARY.encode() + after + CANARY.encode()
    stream = Redactor([CANARY]).stream()
    ends = [*sorted({place % (len(text) + 1) for place in places}), len(text)]
    pieces = [text[a:b] for a, b in zip([0, *ends], ends, strict=False)]
    clean = b"".join(map(stream.feed, pieces)) + stream.end()
    assert clean == before + b"[redacted]" + after + b"[redacted]"


@pytest.mark.usefixtures("nobodys_configuration")
def test_a_word_that_is_no_secret_is_left_where_it_is(tmp_path: Path) -> None:
    with ModelServer([Turn("EMPTY of")]) as server:
        relay = Relay(Provider("openai-chat", server.openai_address, MODEL), Key("EMPTY"), tmp_path)
        with relay:
            asker = Asker(relay, server, "openai-chat")
            asker.ask()
            asker.http.close()
    assert b"EMPTY of" in kept(tmp_path, "0001.answer")
