"""How a build by a model ended, and whose doing that was: the table of `agents.faults`."""

from __future__ import annotations

from typing import get_args

import pytest

from researchenvbench.agents.ending import outcome
from researchenvbench.agents.faults import Ended, fault_of, owner_of
from researchenvbench.attempt import Fault, Owner
from researchenvbench.model_use import Call

GOOD = {"end": "complete", "status": 200}


def call(**facts):
    return Call(**{"number": 1, "began": "", "path": "/v1/messages", **facts})


def error(status, why="", error_type=""):
    return call(end="error", status=status, why=why, error_type=error_type)


DIED = Ended(exit_code=1)
WELL = Ended(exit_code=0, well=True, report=True)

#: Name of the case, how the program ended, the calls, the fault.
CASES = [
    ("all is well", WELL, [call(**GOOD)], None),
    ("a fault that it got over", WELL, [error(529), call(**GOOD)], None),
    ("a side task failed at the end of good work", WELL, [call(**GOOD), error(529)], None),
    (
        "overloaded for good",
        DIED,
        [call(**GOOD), error(529, error_type="overloaded_error")],
        "overloaded",
    ),
    ("rate limit", DIED, [call(**GOOD), error(429, "slow down", "rate_limit_error")], "overloaded"),
    ("out of credit", DIED, [error(400, "Your credit balance is too low")], "no_credit"),
    (
        "out of quota",
        DIED,
        [error(429, "You exceeded your current quota", "insufficient_quota")],
        "no_credit",
    ),
    (
        "a request of its own that speaks of credit",
        DIED,
        [call(**GOOD), error(400, "content.0: Input tag 'credit' found, expected one of …")],
        "crashed",
    ),
    (
        "left while the provider was waited for",
        DIED,
        [call(**GOOD), call(end="left", waited_s=61.0)],
        "provider_error",
    ),
    ("payment required", DIED, [error(402)], "no_credit"),
    ("server error", DIED, [call(**GOOD), error(500)], "provider_error"),
    ("wrong key", DIED, [error(401, "invalid x-api-key")], "wrong_key"),
    ("forbidden", DIED, [error(403)], "wrong_key"),
    ("unknown model", DIED, [error(404, "model: nothing")], "unknown_model"),
    (
        "unknown model, another protocol",
        DIED,
        [error(400, "nothing", "model_not_found")],
        "unknown_model",
    ),
    ("rejected", DIED, [error(400, "max_tokens: field required")], "rejected"),
    (
        "rejected after good work",
        DIED,
        [call(**GOOD), error(400, "messages: field required")],
        "crashed",
    ),
    ("no such model after good work", DIED, [call(**GOOD), error(404)], "crashed"),
    ("cut", DIED, [call(**GOOD), call(end="cut", status=200)], "stream_cut"),
    ("unreachable", DIED, [call(end="unreachable")], "unreachable"),
    (
        "context, as an error",
        DIED,
        [call(**GOOD), error(400, "prompt is too long: 210000 tokens")],
        "context_exhausted",
    ),
    (
        "context, another protocol",
        DIED,
        [call(**GOOD), error(400, "…", "context_length_exceeded")],
        "context_exhausted",
    ),
    (
        "context, as a reason to stop",
        Ended(0, well=True),
        [call(**GOOD, stop_reason="model_context_window_exceeded")],
        "context_exhausted",
    ),
    (
        "context, and what was there is reported",
        WELL,
        [call(**GOOD, stop_reason="model_context_window_exceeded")],
        None,
    ),
    ("refused", Ended(0, well=True), [call(**GOOD, stop_reason="refusal")], "refused"),
    ("refused a part, and reported", WELL, [call(**GOOD, stop_reason="refusal")], None),
    ("ended without a report", Ended(0, well=True), [call(**GOOD)], None),
    ("crashed", Ended(None, "SIGSEGV"), [call(**GOOD)], "crashed"),
    (
        "crashed for want of memory",
        Ended(None, "SIGKILL", out_of_memory=True),
        [call(**GOOD)],
        "crashed",
    ),
    ("gave up", DIED, [call(**GOOD)], "crashed"),
    ("left before the model had answered", DIED, [call(end="left")], "crashed"),
    (
        "the model answers never",
        Ended(None, stopped_for="time_limit"),
        [call(end="left")],
        "provider_error",
    ),
    ("no call at all", DIED, [], "no_calls"),
    ("no call, and a good end", Ended(0, well=True), [], "no_calls"),
    (
        "only counted tokens",
        DIED,
        [call(**GOOD, path="/v1/messages/count_tokens", writes=False)],
        "no_calls",
    ),
    ("not there", Ended(127, start_error="nothing cannot be run"), [], "not_started"),
    ("hung", Ended(None, stopped_for="hung"), [call(**GOOD)], "hung"),
    (
        "waits for a provider that is gone",
        Ended(None, stopped_for="hung"),
        [call(**GOOD), call(end="unreachable")],
        "unreachable",
    ),
    ("time limit", Ended(None, stopped_for="time_limit"), [call(**GOOD)], "time_limit"),
    (
        "time limit, and the model never answered",
        Ended(None, stopped_for="time_limit"),
        [error(529)],
        "overloaded",
    ),
    ("budget", Ended(None, stopped_for="budget"), [call(**GOOD)], "budget"),
    ("no usage told", Ended(None, stopped_for="uncounted"), [call(**GOOD)], "uncounted"),
    (
        "the disk of the record is full",
        Ended(None, stopped_for="not_recorded"),
        [call(**GOOD)],
        "not_recorded",
    ),
    (
        "the relay refused the last",
        Ended(0, well=True, report=True),
        [call(**GOOD), call(end="refused", status=403)],
        None,
    ),
]


@pytest.mark.parametrize(
    ("ended", "calls", "fault"), [x[1:] for x in CASES], ids=[x[0] for x in CASES]
)
def test_the_table(ended, calls, fault):
    found, why = fault_of(ended, calls, needs_model=True)
    assert found == fault
    assert bool(why) == (fault not in (None, "budget"))


def test_every_fault_is_in_the_table():
    assert {fault for *_, fault in CASES} - {None} == set(get_args(Fault))


@pytest.mark.parametrize("fault", get_args(Fault))
def test_what_it_makes_of_the_attempt(fault):
    ended = outcome(fault, "why", 1)
    if owner_of(fault) is Owner.HOST:
        assert ended.outcome == "void"
    elif owner_of(fault) is Owner.AGENT:
        assert (ended.outcome, ended.exit_code) == ("finished", 1)
    else:
        assert ended.outcome == fault
    assert ended.fault == fault


def test_an_agent_of_the_agents_own_that_exits_well_did_not_build_well():
    assert outcome("refused", "why", 0).exit_code == 1
    assert outcome(None, "", 0).exit_code == 0


def test_an_agent_that_needs_no_model_may_call_none():
    assert fault_of(Ended(0, well=True), [], needs_model=False) == (None, "")
    assert fault_of(DIED, [], needs_model=False)[0] == "crashed"


def test_the_providers_own_words_are_kept():
    _, why = fault_of(DIED, [error(401, "invalid x-api-key")], needs_model=True)
    assert why == (
        "the provider does not take the key (status 401): invalid x-api-key; "
        "the model never answered"
    )
