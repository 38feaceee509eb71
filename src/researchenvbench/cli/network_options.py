"""The options by which it is chosen what builds reach of networks."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

    from ..network_use import Network, Reach


def network_options(command: Callable[..., Any]) -> Callable[..., Any]:
    """Give a command `--network` and `--allow-host`, as `network` and `allow_hosts`."""
    command = click.option(
        "--allow-host",
        "allow_hosts",
        multiple=True,
        metavar="HOST[:PORT]",
        help="With --network registries, another host, or *.DOMAIN for all below a name.",
    )(command)
    return click.option(
        "--network",
        type=click.Choice(["full", "registries", "none"]),
        default="full",
        show_default=True,
        help="What builds in containers reach: all that the container's network does; package "
        "indexes and hubs alone, with a list of what was fetched; or nothing.",
    )(command)


def chosen_reach(network: Network, allow_hosts: tuple[str, ...]) -> Reach:
    """What the options say.

    Raises:
        UsageError: hosts are allowed where all or none are.
        RebError: one of them is no host.
    """
    from ..network_use import Reach
    from ..relay.registries.hosts import read_rule

    if allow_hosts and network != "registries":
        raise click.UsageError("--allow-host is for --network registries")
    for host in allow_hosts:
        read_rule(host)
    return Reach(policy=network, allow_hosts=tuple(sorted(set(allow_hosts))))
