"""Options of commands whose agent works with a language model, and what becomes of them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from ..agents.model import ModelChoice
    from ..agents.presets import Preset

_OPTIONS = (
    click.option("--model", metavar="NAME", help="The language model of an agent that needs one."),
    click.option(
        "--preset",
        "preset_name",
        metavar="NAME",
        help="Agent, model and limits as somebody used them, such as paper/codex; "
        "`reb agents list` shows all. Other options take the place of its parts.",
    ),
    click.option(
        "--upstream",
        metavar="URL",
        help="Base address of the model's provider: with /v1 for OpenAI's protocols, without for "
        "Anthropic's. Default: the maker's of the protocol.",
    ),
    click.option(
        "--key",
        metavar="SOURCE",
        help="Where the provider's key is: env:NAME, file:PATH or keyring:SERVICE/USER; "
        "default: the variable that belongs to the protocol. It never enters a sandbox.",
    ),
    click.option(
        "--budget-tokens",
        type=click.IntRange(min=1),
        metavar="N",
        help="End each build that has used so many tokens; what it has built is judged.",
    ),
    click.option(
        "--budget-usd",
        type=click.FloatRange(min=0, min_open=True),
        metavar="USD",
        help="The same for money, for each build, where the model has a price.",
    ),
    click.option(
        "--prices",
        type=click.Path(exists=True, dir_okay=False),
        help="A TOML file with prices of models; default: the table of the genai-prices library.",
    ),
)


def model_options(command: Callable[..., Any]) -> Callable[..., Any]:
    """Add the options to a command."""
    for option in reversed(_OPTIONS):
        command = option(command)
    return command


def chosen_preset(name: str | None) -> Preset | None:
    """The preset that was asked for, if any."""
    if name is None:
        return None
    from ..agents.presets import preset

    return preset(name)


def chosen_model(
    agent: str,
    agent_options: Mapping[str, str],
    chosen: Preset | None,
    *,
    model: str | None,
    upstream: str | None,
    key: str | None,
    budget_tokens: int | None,
    budget_usd: float | None,
    prices: str | None,
) -> ModelChoice | None:
    """The model of a run; None for an agent that works without one.

    Raises:
        click.UsageError: a model is named for an agent that takes none, or none for one that
            needs one, a preset of another agent, or an address is missing.
        RebError: an address without its key.
    """
    from ..agents import agent_wire

    if chosen and chosen.agent != agent:
        raise click.UsageError(
            f"the preset is of the agent {chosen.agent}, and --agent says {agent}: leave one out"
        )
    wire = agent_wire(agent, agent_options)
    given = {
        "--model": model,
        "--upstream": upstream,
        "--key": key,
        "--budget-tokens": budget_tokens,
        "--budget-usd": budget_usd,
        "--prices": prices,
    }
    named = [flag for flag, value in given.items() if value is not None]
    for flag in named:
        if given[flag] == "":
            raise click.UsageError(f"{flag} is empty: perhaps a variable that is not set")
    if wire is None:
        if named:
            raise click.UsageError(
                f"{named[0]} is for agents that work with a language model, and {agent} does not "
                "(reb agents list)"
            )
        return None
    from ..agents.model import ModelChoice

    name = model or (chosen.model if chosen else None)
    if name is None:
        raise click.UsageError(
            f"the agent {agent} works with a language model: name it with --model, or choose a "
            "--preset (reb agents list)"
        )
    if chosen and not upstream and not chosen.upstream:
        raise click.UsageError(
            f"the preset has no address of a provider of {chosen.model}: give --upstream URL"
        )
    if chosen and (upstream is None or chosen.upstream in (upstream, "")):
        upstream = chosen.upstream if upstream is None else upstream
        key = chosen.key if key is None else key
    return ModelChoice.of(
        name,
        wire,
        upstream=upstream,
        key=key,
        tokens=budget_tokens,
        usd=budget_usd,
        prices=prices,
        preset=chosen.name if chosen else None,
    )
