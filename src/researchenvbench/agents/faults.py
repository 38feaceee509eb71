"""How a build by a model ended, and whose doing that was.

    fault               owner   the attempt
    overloaded          host    void   429, 503, 529 and the like, however long the relay waited
    provider_error      host    void   another error of the provider
    unreachable         host    void   no connection to it
    stream_cut          host    void   its answer broke off
    wrong_key           host    void   it does not take the key
    no_credit           host    void   the account has no means
    unknown_model       host    void   it has no such model, and has answered nothing
    rejected            host    void   it calls what the program sends wrong, likewise
    uncounted           host    void   it tells no usage, and a budget is to be kept
    not_recorded        host    void   the relay could not keep what passed, such as on a full disk
    no_calls            host    void   the program never asked the model
    not_started         host    void   the program is not there, or does not run
    refused             agent   judged the model declined the work
    context_exhausted   agent   judged the conversation no longer fits into the model
    crashed             agent   judged the program ended otherwise than well
    hung                agent   judged neither output nor a call for long
    time_limit          -       judged still at work at the limit
    budget              -       judged a budget of tokens or money was used up

`no_report` is no fault of this list: verification sees it, whatever the end was. A provider's
fault counts only where the program ended badly after it; one that it got over is in the calls.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING

from ..attempt import Owner

if TYPE_CHECKING:
    from collections.abc import Sequence

    from ..attempt import Fault
    from ..model_use import Call

_HOST: frozenset[Fault] = frozenset(
    {
        "overloaded",
        "provider_error",
        "unreachable",
        "stream_cut",
        "wrong_key",
        "no_credit",
        "unknown_model",
        "rejected",
        "uncounted",
        "not_recorded",
        "no_calls",
        "not_started",
    }
)
_AGENT: frozenset[Fault] = frozenset({"refused", "context_exhausted", "crashed", "hung"})
#: A fault of the choice of model only where no call has been answered.
_NEVER_WORKED: frozenset[Fault] = frozenset({"unknown_model", "rejected"})
_OVERLOADED = frozenset({408, 425, 429, 503, 529})
_CONTEXT = re.compile(
    r"context.{0,20}(length|window|limit)|prompt is too long|too many (input )?tokens"
    r"|maximum context|model_context_window_exceeded|input.{0,20}exceeds",
    re.IGNORECASE,
)
_CREDIT = re.compile(r"credit|billing|quota|insufficient|payment|balance", re.IGNORECASE)
#: In a request that is refused words can be the agent's own: these are the provider's.
_NO_CREDIT = re.compile(r"\AYour credit balance is too low", re.IGNORECASE)
_MODEL = re.compile(r"model", re.IGNORECASE)
_REFUSALS = frozenset({"refusal", "content_filter", "safety"})
_LIMIT_STOPS = frozenset({"model_context_window_exceeded"})


@dataclass(frozen=True)
class Ended:
    """How the agent's program ended."""

    exit_code: int | None
    signal: str | None = None
    well: bool = False  #: by itself, with a status of success
    start_error: str = ""  #: why it could not be started
    out_of_memory: bool = False
    report: bool = False  #: it left something where the report is to be
    stopped_for: str = ""  #: why we ended it: time_limit, budget, uncounted, not_recorded, hung


def owner_of(fault: Fault) -> Owner | None:
    """Whose doing a fault is; None for limits, which are nobody's."""
    if fault in _HOST:
        return Owner.HOST
    return Owner.AGENT if fault in _AGENT else None


def fault_of(ended: Ended, calls: Sequence[Call], *, needs_model: bool) -> tuple[Fault | None, str]:
    """The fault, or None for an end that is none; and a sentence about it.

    Args:
        ended: How the program ended.
        calls: Those of the model, in their order.
        needs_model: Whether the agent works with one at all.
    """
    if ended.start_error:
        return "not_started", ended.start_error
    asked = [call for call in calls if call.writes]
    answered = [call for call in asked if call.end == "complete"]
    last = _last(asked)
    if ended.stopped_for == "uncounted":
        return "uncounted", "the provider tells no usage, so the budget cannot be kept"
    if ended.stopped_for == "not_recorded":
        return "not_recorded", "what passed between agent and model could not be kept"
    waited = last is not None and last.end == "left" and last.waited_s > 0 and not ended.well
    if needs_model and waited and not ended.stopped_for:
        return "provider_error", "the provider failed, and the program left before it was well"
    if needs_model and not answered and (ended.stopped_for != "budget"):
        if last is not None and last.end == "left" and not ended.stopped_for:
            return "crashed", f"{_how(ended)} before the model had answered"
        if last is not None:
            fault, why = _of_call(last)
            return fault, f"{why}; the model never answered"
        return "no_calls", f"the agent's program never asked the model; {_how(ended)}"
    if ended.stopped_for == "time_limit":
        return "time_limit", "still at work at the time limit"
    if ended.stopped_for == "budget":
        return "budget", ""
    if ended.stopped_for == "hung":
        if last is not None and last.end in ("unreachable", "cut"):
            return _of_call(last)
        return "hung", "the agent's program neither printed nor asked the model for long"
    if last is not None and last.end in ("complete", "left"):
        if last.stop_reason in _LIMIT_STOPS and not ended.report:
            return "context_exhausted", "the conversation has filled the model's context"
        if last.stop_reason in _REFUSALS and not ended.report:
            return "refused", "the model refused, and the agent ended without a report"
    if ended.well:
        return None, ""
    if last is not None and last.end not in ("complete", "left"):
        fault, why = _of_call(last)
        # What the provider has answered before it knows, and takes: this was of the agent's
        # making, who could end a build that went badly so, to be given another.
        return ("crashed" if fault in _NEVER_WORKED else fault), why
    return "crashed", _how(ended)


def _last(asked: Sequence[Call]) -> Call | None:
    """The call that an end can be due to; those that the relay refused are the agent's own."""
    kept = [call for call in asked if call.end != "refused"]
    return kept[-1] if kept else None


def _of_call(call: Call) -> tuple[Fault, str]:
    """What a call that did not end well says of the provider."""
    words = f"{call.error_type} {call.why}"
    told = f": {call.why}" if call.why else ""
    fault: Fault = "provider_error"
    if call.end == "unreachable":
        fault = "unreachable"
    elif call.end == "cut":
        fault = "stream_cut"
    elif (
        call.status == 402
        or (call.status in (403, 429) and _CREDIT.search(words))
        or (call.status == 400 and _NO_CREDIT.search(call.why))
    ):
        fault = "no_credit"
    elif call.status in (400, 413, 422) and _CONTEXT.search(words):
        fault = "context_exhausted"
    elif call.status in _OVERLOADED or "overloaded" in call.error_type:
        fault = "overloaded"
    elif call.status in (401, 403):
        fault = "wrong_key"
    elif call.status == 404 or (call.status == 400 and _MODEL.search(call.error_type)):
        fault = "unknown_model"
    elif call.status is not None and 400 <= call.status < 500:
        fault = "rejected"
    sentence = {
        "overloaded": "the provider stayed overloaded",
        "provider_error": "the provider failed",
        "unreachable": "the provider cannot be reached",
        "stream_cut": "the provider's answer broke off",
        "wrong_key": "the provider does not take the key",
        "no_credit": "the provider's account has no means left",
        "unknown_model": "the provider has no such model",
        "rejected": "the provider rejects what the agent's program sends",
        "context_exhausted": "the conversation has filled the model's context",
    }[fault]
    status = f" (status {call.status})" if call.status else ""
    return fault, f"{sentence}{status}{told}"


def _how(ended: Ended) -> str:
    if ended.out_of_memory:
        return "it was ended for want of memory"
    if ended.signal:
        return f"it was ended by {ended.signal}"
    return f"it ended with exit status {ended.exit_code}"
