"""`reb agents`: who can build, what an agent is made of, and what it needs here."""

from __future__ import annotations

import json
import os
from typing import TYPE_CHECKING, get_args

import click

from ..model_use import Wire
from .key_values import key_values
from .model_options import chosen_model, chosen_preset, model_options

if TYPE_CHECKING:
    from ..agents.definition import AgentDefinition

_WORDS = {
    "builtin": "reads the repository, installs, mends by rules; no model",
    "gold": "follows each task's own recipe, which proves the task; no model",
    "script": "follows the recipe in a file (recipe=FILE); no model",
    "replay": "does the steps of an earlier attempt again (attempt=FOLDER); no model",
    "command": "any command line, described in a file of yours (file=FILE)",
    "mini_swe": "mini-swe-agent, run beside the harness",
}


#: Those whose protocol is chosen by an option, or by the user's own file.
_ANY_WIRE = ("mini_swe", "command")


@click.group("agents")
def command() -> None:
    """Who builds environments: list, show, and see what one needs.

    \b
    Examples:
      reb agents list
      reb agents show codex
      reb agents doctor claude_code --model claude-sonnet-4-5
    """


@command.command("list")
@click.option("--json", "as_json", is_flag=True, help="Print as JSON.")
def list_agents(as_json: bool) -> None:
    """All agents and presets of this version."""
    from ..agents.definition import bundled_agents, load_bundled
    from ..agents.presets import presets

    definitions = [load_bundled(name) for name in bundled_agents()]
    if as_json:
        found = {
            "agents": {
                **{
                    name: {"title": words, "wires": get_args(Wire) if name in _ANY_WIRE else ()}
                    for name, words in _WORDS.items()
                },
                **{
                    one.name: {
                        "title": one.title,
                        "version": one.version,
                        "wires": [one.wire] if one.wire else [],
                    }
                    for one in definitions
                },
            },
            "presets": {name: one.model_dump() for name, one in presets().items()},
        }
        click.echo(json.dumps(found, indent=1))
        return
    click.echo("agents")
    for name, words in _WORDS.items():
        click.echo(f"  {name:14} {words}")
    for one in definitions:
        version = one.version or "as the image has it"
        click.echo(f"  {one.name:14} {one.title} {version}; {one.wire or 'no model'}")
    click.echo("\npresets")
    for name, kept in presets().items():
        click.echo(f"  {name:26} {kept.agent} with {kept.model}")


@command.command("show")
@click.argument("name")
@click.option("--agent-option", "pairs", multiple=True, metavar="KEY=VALUE", help="As of reb run.")
@click.option("--json", "as_json", is_flag=True, help="Print the whole definition as JSON.")
def show(name: str, pairs: tuple[str, ...], as_json: bool) -> None:
    """What the agent or preset NAME is made of."""
    from ..agents import agent_definition, check_agent

    if "/" in name:
        _show_preset(name, as_json)
        return
    options = key_values(pairs, "--agent-option")
    check_agent(name, options)
    definition = agent_definition(name, options)
    if definition is None:
        _show_built_in(name, as_json)
        return
    if as_json:
        click.echo(definition.model_dump_json(indent=1))
    else:
        _show(definition)


@command.command("doctor")
@click.argument("name")
@click.option("--agent-option", "pairs", multiple=True, metavar="KEY=VALUE", help="As of reb run.")
@model_options
@click.option("--json", "as_json", is_flag=True, help="Print as JSON.")
def doctor(
    name: str,
    pairs: tuple[str, ...],
    model: str | None,
    preset_name: str | None,
    upstream: str | None,
    key: str | None,
    budget_tokens: int | None,
    budget_usd: float | None,
    prices: str | None,
    as_json: bool,
) -> int:
    """Whether the agent NAME could start here, and with which model.

    No provider is asked. Exits with 1 when something is missing.
    """
    from ..agents import agent_wire, check_agent
    from ..run.doctor_agents import examine_agent
    from . import EXIT_FAILED

    options, preset = key_values(pairs, "--agent-option"), chosen_preset(preset_name)
    check_agent(name, options)
    named = model or preset
    chosen = None
    if named and agent_wire(name, options) is not None:
        chosen = chosen_model(
            name,
            options,
            preset,
            model=model,
            upstream=upstream,
            key=key,
            budget_tokens=budget_tokens,
            budget_usd=budget_usd,
            prices=prices,
        )
    lines = list(examine_agent(name, options, chosen, os.environ))
    if as_json:
        click.echo(json.dumps([line.__dict__ for line in lines], indent=1))
    else:
        for line in lines:
            mark = {"good": "  good ", "note": "  note ", "missing": "MISSING"}[line.state]
            click.echo(f"{mark}  {line.what}: {line.found}")
            if line.advice:
                click.echo(f"           {line.advice}")
    return EXIT_FAILED if any(line.state == "missing" for line in lines) else 0


def _show_built_in(name: str, as_json: bool) -> None:
    from ..agents import AGENTS

    wires = get_args(Wire) if name in _ANY_WIRE else ()
    found = {"name": name, "what": _WORDS[name], "wires": wires, "options": AGENTS[name]}
    if as_json:
        click.echo(json.dumps(found, indent=1))
        return
    click.echo(f"{name}: {_WORDS[name]}")
    click.echo(f"  protocol  {', '.join(wires) or 'none: it works without a model'}")
    options = ", ".join(f"{option}=…" for option in AGENTS[name])
    click.echo(f"  options   {f'--agent-option {options}' if options else 'none'}")


def _show_preset(name: str, as_json: bool) -> None:
    from ..agents.presets import preset

    found = preset(name)
    if as_json:
        click.echo(found.model_dump_json(indent=1))
        return
    click.echo(f"{name}: {found.agent} with {found.model}")
    rows = [
        ("version", found.version or "as the image has it"),
        ("protocol", found.wire),
        ("address", found.upstream or "none: give --upstream URL"),
        ("key", found.key),
        ("limits", f"{found.build_minutes:g} minutes to build, {found.verify_minutes:g} to verify"),
    ]
    for what, words in rows:
        click.echo(f"  {what:8} {words}")
    for line in found.differs:
        click.echo(f"  differs  {line}")


def _show(definition: AgentDefinition) -> None:
    import shlex

    rows = [
        ("version", definition.version or "as the image has it"),
        ("home", definition.homepage),
        ("protocol", definition.wire or "none: it works without a model"),
        ("program", definition.program),
        *((f"from ({kind})", one.url) for kind, one in definition.downloads.items()),
        ("command", shlex.join(definition.run.argv)),
        *(("variable", f"{name}={value}") for name, value in definition.run.env.items()),
        *(("file", f"{{config}}/{name}") for name in definition.run.files),
        ("hangs after", f"{definition.run.quiet_minutes:g} minutes without output or a call"),
        *(("kept", f"{{config}}/{pattern}") for pattern in definition.keep),
        ("notes", definition.notes),
    ]
    click.echo(f"{definition.name}: {definition.title}")
    for what, found in rows:
        if found:
            click.echo(f"  {what:12} {found}")
