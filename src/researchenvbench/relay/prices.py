"""What tokens cost: a table of one's own, and otherwise the one of the package genai-prices.

No network is used: that package brings its table along. A file of one's own is

    as_of = "2026-11-01"
    [models."some-model"]          # dollars for a million tokens
    input = 3.0
    cached = 0.3                   # where left out, as input
    cache_write = 3.75             # where left out, as input
    output = 15.0

Not known here: discounts of batches, dearer service tiers, and that some providers ask more
for what they keep for an hour than for five minutes.
"""

from __future__ import annotations

import datetime
import hashlib
import tomllib
from importlib.util import find_spec
from typing import TYPE_CHECKING

from pydantic import Field, ValidationError

from ..errors import INSTALL_AGENTS, RebError
from ..model_use import Tokens
from ..schema import Model, explain
from ..stored import require_file

if TYPE_CHECKING:
    from pathlib import Path


class Rate(Model):
    """What a million tokens of a model cost, in dollars."""

    input: float = Field(ge=0)
    cached: float | None = Field(None, ge=0)
    cache_write: float | None = Field(None, ge=0)
    output: float = Field(ge=0)

    def price(self, tokens: Tokens) -> float:
        """Of these tokens, in dollars."""
        cached = self.input if self.cached is None else self.cached
        write = self.input if self.cache_write is None else self.cache_write
        millionths = (
            tokens.input * self.input
            + tokens.cached * cached
            + tokens.cache_write * write
            + tokens.output * self.output
        )
        return millionths / 1e6


class _Table(Model):
    as_of: datetime.date | None = None
    models: dict[str, Rate]


class Prices:
    """Prices of models, with the table that they are from."""

    def __init__(self, own: dict[str, Rate] | None = None, *, source: str = "") -> None:
        self._own = own or {}
        self._source = source

    @classmethod
    def load(cls, path: Path) -> Prices:
        """A file of one's own; for models that it does not name, the package's table.

        Raises:
            RebError: it cannot be read, or is no table of prices.
        """
        require_file(path)
        try:
            text = path.read_bytes()
            table = _Table.model_validate(tomllib.loads(text.decode()))
        except OSError as error:
            raise RebError(f"{path}: cannot be read: {error.strerror}") from error
        except ValidationError as error:
            raise RebError(
                "\n".join(explain(path, error, _Table)),
                advice="docs/relay.md shows a table of prices",
            ) from error
        except (ValueError, RecursionError) as error:  # TOML or UTF-8
            raise RebError(f"{path}: not a TOML file: {error}") from error
        dated = f" of {table.as_of}" if table.as_of else ""
        digest = hashlib.sha256(text).hexdigest()[:12]
        return cls(table.models, source=f"{path.name}{dated}, sha256 {digest}")

    def price(self, model: str, tokens: Tokens, *, upstream: str = "") -> float | None:
        """In dollars; null for a model that no table names.

        `upstream` is the provider's address: one model may cost differently elsewhere.
        """
        if model in self._own:
            return self._own[model].price(tokens)
        return _from_package(model, tokens, upstream)

    def must_know(self, model: str, *, upstream: str = "") -> None:
        """See that a budget in dollars can be kept.

        Raises:
            RebError: no table has a price for the model, or the library with the table of all
                makers is absent.
        """
        if self.price(model, Tokens(), upstream=upstream) is not None:
            return
        own = "give prices of your own (docs/relay.md), or a budget in tokens"
        if find_spec("genai_prices") is None:
            raise RebError(
                f"a budget in dollars needs a price for {model}, and the library genai-prices, "
                "which has the makers', is not installed",
                advice=f"{INSTALL_AGENTS}; or {own}",
            )
        raise RebError(
            f"a budget in dollars needs a price, and no table has one for {model}", advice=own
        )

    def source(self, model: str, *, upstream: str = "") -> str:
        """From which table the price is, with its version or date; empty without a price."""
        if model in self._own:
            return self._source
        if self.price(model, Tokens(), upstream=upstream) is None:
            return ""
        import genai_prices

        today = datetime.datetime.now(datetime.UTC).date()
        return f"genai-prices {genai_prices.__version__}, prices that hold on {today}"


def _from_package(model: str, tokens: Tokens, upstream: str) -> float | None:
    try:
        import genai_prices
    except ImportError:
        return None
    usage = genai_prices.Usage(
        input_tokens=tokens.input + tokens.cached + tokens.cache_write,
        cache_read_tokens=tokens.cached,
        cache_write_tokens=tokens.cache_write,
        output_tokens=tokens.output,
    )
    try:
        found = genai_prices.calc_price(usage, model, provider_api_url=upstream)
    except LookupError:
        # A gateway or a proxy of one's own: who makes the model is told by its name.
        try:
            found = genai_prices.calc_price(usage, model)
        except LookupError:
            return None
    return float(found.total_price)
