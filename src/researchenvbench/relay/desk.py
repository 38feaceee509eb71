"""What the requests of one relay share: its provider, key, budget, sums and record."""

from __future__ import annotations

import threading
import time
from datetime import datetime
from typing import TYPE_CHECKING

from ..model_use import ModelUse, Tokens
from .record import lost_calls, sum_of

if TYPE_CHECKING:
    from pathlib import Path as Folder

    import httpx

    from ..model_use import Call
    from .exchange import Exchange
    from .keys import Key
    from .patience import Patience
    from .prices import Prices
    from .provider import Budget, Provider
    from .record import Record
    from .redaction import Redactor

#: At once; a program of an agent has a handful. What is above waits and asks again.
_MOST_REQUESTS = 64
_MOST_BYTES = 256 << 20


class Desk:
    """Written by the relay's thread, read by any."""

    client: httpx.AsyncClient  #: from when the relay serves

    def __init__(
        self,
        *,
        provider: Provider,
        key: Key,
        token: str,
        budget: Budget,
        prices: Prices,
        patience: Patience,
        record: Record,
        redactor: Redactor,
        folder: Folder,
        request_limit: int,
    ) -> None:
        self.provider = provider
        self.key = key
        self.token = token
        self.patience = patience
        self.record = record
        self.redactor = redactor
        self.request_limit = request_limit
        self._budget = budget
        self._prices = prices
        self._folder = folder
        self._lock = threading.Lock()
        self._open: set[Exchange] = set()
        self._held_bytes = 0
        self._last = time.monotonic()
        self.price_source = prices.source(provider.model, upstream=provider.upstream)
        self._tokens, self._usd = sum_of(record.calls)
        self.exhausted = self._reached()

    # --- the thread of the relay ---------------------------------------------------------

    @property
    def is_full(self) -> bool:
        """Whether there are more requests, or more of them in memory, than a relay takes."""
        return len(self._open) > _MOST_REQUESTS or self._held_bytes > _MOST_BYTES

    def enter(self, exchange: Exchange) -> None:
        """A request has come."""
        with self._lock:
            self._open.add(exchange)
        self.passed()

    def hold(self, size_bytes: int) -> None:
        """So much of a request is in memory; what is negative is not any more."""
        self._held_bytes += size_bytes

    def leave(self, exchange: Exchange) -> None:
        """A request is answered, or nobody waits for it."""
        with self._lock:
            self._open.discard(exchange)

    def passed(self) -> None:
        """Something passed."""
        self._last = time.monotonic()

    def cost(self, model: str, tokens: Tokens | None) -> float | None:
        """What tokens of a model cost."""
        if tokens is None:
            return None
        return self._prices.price(model, tokens, upstream=self.provider.upstream)

    def ended(self, call: Call) -> None:
        """A call has ended."""
        self.record.add(call)
        if call.writes and call.tokens is not None:
            with self._lock:
                self._tokens += call.tokens
                known = self._usd is not None and call.cost_usd is not None
                self._usd = (self._usd or 0.0) + (call.cost_usd or 0.0) if known else None
            self.exhausted = self.exhausted or self._reached()
        self.passed()

    def _reached(self) -> str:
        return self._budget.used_up(self._tokens.total, self._usd)

    # --- any thread ----------------------------------------------------------------------

    @property
    def quiet_s(self) -> float:
        """Since anything passed."""
        return time.monotonic() - self._last

    @property
    def problem(self) -> str:
        """Why a budget cannot be kept, in words; empty where it can, or there is none."""
        uncounted = len(self._uncounted())
        limited = self._budget.tokens is not None or self._budget.usd is not None
        if uncounted and limited:
            how = ""
            if self.provider.wire == "openai-chat":
                how = "; a stream tells it where stream_options asks for include_usage"
            return (
                f"the provider told no usage for {uncounted} complete answers, so the budget "
                f"cannot be kept{how}"
            )
        return ""

    def _written(self) -> list[Call]:
        """Calls in which the model was to write, and that were passed on."""
        return [call for call in self.record.calls if call.writes and call.end != "refused"]

    def _uncounted(self) -> list[Call]:
        return [call for call in self._written() if call.end == "complete" and call.tokens is None]

    @property
    def waited_s(self) -> float:
        """Time in which at least one request waited for the provider to be well."""
        spans = []
        for call in self.record.calls:
            if call.waited_s > 0 and call.writes:
                began = datetime.fromisoformat(call.began).timestamp()
                spans.append((began, began + call.waited_s))
        with self._lock:
            waiting = [exchange.waited for exchange in self._open]
        to_date = time.time() - time.monotonic()
        spans += [(began + to_date, until + to_date) for began, until in waiting]
        return _union_s(spans)

    def use(self) -> ModelUse:
        """All of it, for the record."""
        written = self._written()
        tokens, usd = sum_of(written)
        lost = lost_calls(self._folder)
        lost_tokens, lost_usd = sum_of(lost)
        return ModelUse(
            wire=self.provider.wire,
            upstream=self.provider.upstream,
            model=self.provider.model,
            calls=len(written),
            failed_calls=sum(call.end != "complete" for call in written),
            uncounted_calls=len(self._uncounted()),
            tokens=tokens,
            cost_usd=usd if self.price_source else None,
            price_source=self.price_source,
            waited_s=round(self.waited_s, 3),
            lost_tokens=lost_tokens,
            lost_cost_usd=lost_usd if lost else None,
            exhausted=self.exhausted,
        )


def _union_s(spans: list[tuple[float, float]]) -> float:
    """The length of spans of time, where they overlap counted once."""
    total, end = 0.0, float("-inf")
    for begin, until in sorted(spans):
        total += max(0.0, until - max(begin, end))
        end = max(end, until)
    return total
