"""What an agent needs on this host, one line each; nothing is started, fetched or asked."""

from __future__ import annotations

from importlib.util import find_spec
from typing import TYPE_CHECKING

from ..agents import agent_definition, agent_wire, check_agent
from ..agents.packages import download_of, from_registry, installed
from ..errors import RebError
from .doctor_line import Line

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from ..agents.definition import AgentDefinition
    from ..agents.model import ModelChoice


def examine_agent(
    name: str, options: Mapping[str, str], model: ModelChoice | None, environ: Mapping[str, str]
) -> Iterator[Line]:
    """Its program, its model's key, address and price.

    Raises:
        RebError: there is no such agent.
    """
    check_agent(name, options)
    definition, wire = agent_definition(name, options), agent_wire(name, options)
    if definition is not None:
        yield Line(definition.title, definition.version or "whatever version the box has")
        yield _program(definition, environ)
    elif wire is None:
        yield Line(name, "comes with reb; works in every sandbox")
        return
    else:
        yield _mini_swe()
    if wire is None:
        yield Line("model", "none: it works without one")
        return
    yield Line("protocol", wire)
    if model is None:
        yield Line("model", "none named", "note", "name one: --model NAME or --preset NAME")
        return
    yield Line("model", f"{model.name} at {model.upstream}")
    try:
        model.check()
    except RebError as error:
        advice = getattr(error, "advice", "") or ""
        yield Line("model's use", str(error.args[0]), "missing", advice)
        return
    yield Line("key", f"there, in {model.key}")
    yield _price(model)


def _program(definition: AgentDefinition, environ: Mapping[str, str]) -> Line:
    try:
        download = download_of(definition)
    except RebError as error:
        return Line("program", str(error.args[0]), "missing", getattr(error, "advice", "") or "")
    if download is None:
        return Line(
            "program",
            f"{definition.program}, which the image must have on its PATH",
            "note",
            "put it there before a run: docs/agents.md",
        )
    folder = installed(definition, download)
    if folder.is_dir():
        return Line("program", f"{folder / definition.program}")
    size = f"{download.size_bytes / 1e6:.0f} MB"
    return Line(
        "program",
        f"will be fetched by the first run: {size} from {from_registry(download.url, environ)}",
        "note",
    )


def _mini_swe() -> Line:
    from ..agents.mini_swe import installing

    title, place = f"mini-swe-agent {installing.version()}", installing.environment()
    if installing.is_installed(place):
        return Line("program", f"{title}, beside the harness: {place}")
    return Line("program", f"{title} will be installed by the first run, some 400 MB", "note")


def _price(model: ModelChoice) -> Line:
    from pathlib import Path

    from ..relay import Prices

    prices = Prices.load(Path(model.prices)) if model.prices else Prices()
    source = prices.source(model.name, upstream=model.upstream)
    if source:
        return Line("price", f"known: {source}")
    absent = find_spec("genai_prices") is None
    return Line(
        "price",
        "not known"
        + (", since the library genai-prices is not installed" if absent else "")
        + ": tokens will be counted, and no cost",
        "note",
        "a table of your own: --prices FILE (docs/relay.md); --budget-usd needs one",
    )
