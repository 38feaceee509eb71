"""Dollars come from a table of one's own, or from the package's, without any network."""

from __future__ import annotations

import socket
import sys
from typing import TYPE_CHECKING

import pytest

from researchenvbench.errors import RebError
from researchenvbench.model_use import Tokens
from researchenvbench.relay import Prices

if TYPE_CHECKING:
    from pathlib import Path

MILLION = Tokens(input=1_000_000)
TABLE = """
as_of = "2026-11-01"
[models."a-model"]
input = 2.0
output = 10.0
cached = 0.5
[models.gpt-4o]
input = 7
output = 8
"""


@pytest.fixture
def no_network(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: object) -> None:
        raise AssertionError("a price was looked up in the network")

    monkeypatch.setattr(socket.socket, "connect", refuse)
    monkeypatch.setattr(socket, "getaddrinfo", refuse)


@pytest.mark.usefixtures("no_network")
def test_the_packages_table() -> None:
    """Prices of models that their makers have priced so since they exist."""
    prices, at = Prices(), "https://api.openai.com/v1"
    assert prices.price("gpt-4o", MILLION, upstream=at) == 2.5
    cached = Tokens(cached=1_000_000)
    assert prices.price("gpt-4o-2024-08-06", cached, upstream=at) == 1.25
    mixed = Tokens(input=1000, cached=2000, cache_write=4000, output=8000)
    told = prices.price("claude-sonnet-4-20250514", mixed, upstream="https://api.anthropic.com")
    assert told == pytest.approx((1000 * 3 + 2000 * 0.3 + 4000 * 3.75 + 8000 * 15) / 1e6)
    # Behind a gateway, who makes a model is told by its name.
    assert prices.price("gpt-4o", MILLION, upstream="http://127.0.0.1:8000/v1") == 2.5
    assert prices.source("gpt-4o").startswith("genai-prices 0.")


def test_a_model_that_nobody_knows_has_no_price() -> None:
    assert Prices().price("some-model", MILLION, upstream="http://127.0.0.1:1") is None
    assert Prices().price("gpt-no-such", MILLION, upstream="https://api.openai.com/v1") is None
    assert Prices().source("some-model") == ""


def test_a_table_of_ones_own_goes_before(tmp_path: Path) -> None:
    path = tmp_path / "prices.toml"
    path.write_text(TABLE)
    prices = Prices.load(path)
    assert prices.price("gpt-4o", MILLION, upstream="https://api.openai.com/v1") == 7
    tokens = Tokens(input=1000, cached=1000, cache_write=1000, output=1000)
    assert prices.price("a-model", tokens) == pytest.approx(0.0145)
    assert prices.source("a-model").startswith("prices.toml of 2026-11-01, sha256 ")
    assert prices.price("gpt-4o-mini", MILLION) == pytest.approx(0.15)
    assert prices.source("gpt-4o-mini").startswith("genai-prices")


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("[models.a]\ninput = -1\noutput = 1", "greater than or equal to 0"),
        ("[models.a]\ninput = 1", "output"),
        ("[models.a]\ninput = 1\noutput = 1\ncache = 1", "cache"),
        ("[models", "not a TOML file"),
        ("", "models"),
    ],
)
def test_a_table_that_is_none_is_refused(tmp_path: Path, text: str, words: str) -> None:
    path = tmp_path / "prices.toml"
    path.write_text(text)
    with pytest.raises(RebError, match=words):
        Prices.load(path)
    with pytest.raises(RebError, match="cannot be read"):
        Prices.load(tmp_path / "none.toml")


def test_without_the_package_there_is_no_price(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "genai_prices", None)
    assert Prices().price("gpt-4o", MILLION) is None
    assert Prices().source("gpt-4o") == ""
