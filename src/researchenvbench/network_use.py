"""What a build reaches of networks, and what it fetched there: facts of a record."""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from .stored import Stored

#: What a build reaches: `full`, whatever the sandbox's network does; `registries`, package
#: indexes and hubs through a proxy of the harness; `none`, nothing.
Network = Literal["full", "registries", "none"]


class Reach(Stored):
    """What a build may reach."""

    policy: Network = "full"
    allow_hosts: tuple[str, ...] = Field(
        (), description="With registries, hosts beside those that are allowed anyway."
    )


FULL = Reach()


class NetworkUse(Reach):
    """What a build could reach, and with `registries` what came of it."""

    fetches: int = Field(0, description="Requests and tunnels that were passed on.")
    failed: int = Field(0, description="Those to allowed hosts that could not be reached.")
    refused: int = Field(0, description="Those that the policy refused.")
    refused_hosts: tuple[str, ...] = Field((), description="The first of them, with their ports.")
    bytes_in: int = Field(0, description="Received from hosts.")
    bytes_out: int = Field(0, description="Sent to hosts.")

    @property
    def reach(self) -> Reach:
        """What the build could reach, whatever came of it."""
        return Reach(policy=self.policy, allow_hosts=self.allow_hosts)


class Fetch(Stored):
    """One request or tunnel: a line of `fetched.jsonl`."""

    began: str = Field(description="UTC.")
    seconds: float
    end: Literal["passed", "refused", "failed"]
    host: str
    port: int
    method: str
    path: str = Field("", description="With http alone: within https it cannot be seen.")
    why: str = Field("", description="Where it was not passed.")
    bytes_in: int = 0
    bytes_out: int = 0
