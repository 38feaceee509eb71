"""What an attempt used of a language model: facts of a record, made by the relay.

Tokens are counted the same way for every protocol, from the provider's own usage fields:
`input` is what was read anew, `cached` what the provider had read before, `cache_write` what
it was asked to keep; `output` is all that the model wrote, and `reasoning` the part of it that
is not shown. Providers differ in what their own fields include; `relay.usage` translates.
"""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from .stored import Stored

#: How the programs of agents speak to a model.
Wire = Literal["anthropic-messages", "openai-responses", "openai-chat"]

#: How a call ended: `complete`; `error`, answered with a status that is none of success; `cut`,
#: the provider's stream broke off; `left`, the agent's program went away before the end;
#: `unreachable`, the provider gave no answer; `refused`, by the relay itself.
CallEnd = Literal["complete", "error", "cut", "left", "unreachable", "refused"]


class Tokens(Stored):
    """Tokens of one call, or of many."""

    input: int = 0
    cached: int = 0
    cache_write: int = 0
    output: int = 0
    reasoning: int = Field(0, description="Part of output.")

    @property
    def total(self) -> int:
        """All that a budget counts."""
        return self.input + self.cached + self.cache_write + self.output

    def __add__(self, other: Tokens) -> Tokens:
        return Tokens(
            input=self.input + other.input,
            cached=self.cached + other.cached,
            cache_write=self.cache_write + other.cache_write,
            output=self.output + other.output,
            reasoning=self.reasoning + other.reasoning,
        )


class Call(Stored):
    """One call of a model through the relay: a line of `model/calls.jsonl`."""

    number: int = Field(description="From 1; names the files that keep request and answer.")
    began: str = Field(description="UTC.")
    seconds: float = Field(0.0, description="Until the last byte was passed on.")
    first_byte_s: float | None = Field(None, description="Until the first byte of the answer.")
    waited_s: float = Field(0.0, description="Lost to faults of the provider before the answer.")
    tries: int = Field(1, description="How often the provider was asked.")
    method: str = "POST"
    path: str
    writes: bool = Field(True, description="The model was to answer: not tokens to be counted.")
    model: str = Field("", description="As asked for.")
    answered_by: str = Field("", description="As the provider names it.")
    status: int | None = Field(None, description="Of HTTP; null where there was no answer.")
    streamed: bool = False
    end: CallEnd
    why: str = Field("", description="What was wrong, in the provider's words or ours.")
    error_type: str = Field("", description="The provider's word for an error, such as its code.")
    answer: str = Field("", description="The provider's id of the answer.")
    stop_reason: str = Field("", description="Why the model stopped, in the provider's word.")
    tokens: Tokens | None = Field(None, description="Null where the provider told none.")
    cost_usd: float | None = Field(None, description="Null for a model without a price.")
    request_bytes: int = 0
    answer_bytes: int = 0


class ModelUse(Stored):
    """What a build used of a model, in all."""

    wire: Wire
    upstream: str = Field(description="The provider's address, without credentials.")
    model: str
    calls: int = 0
    failed_calls: int = Field(0, description="Those that ended otherwise than complete.")
    uncounted_calls: int = Field(
        0, description="Complete answers for which the provider told no usage."
    )
    tokens: Tokens = Tokens()
    cost_usd: float | None = None
    price_source: str = Field("", description="Which table the cost is from, with its date.")
    waited_s: float = Field(0.0, description="Time lost to the provider's faults, given back.")
    lost_tokens: Tokens = Field(
        Tokens(), description="Spent by builds of this attempt that were lost to a crash."
    )
    lost_cost_usd: float | None = None
    exhausted: str = Field("", description="Which budget was used up.")
