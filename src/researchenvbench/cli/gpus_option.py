"""`--gpus`: which GPUs of this host stages may lease."""

from __future__ import annotations

import os

import click


def _choose(_ctx: click.Context, _option: click.Parameter, value: str | None) -> None:
    """Hide the others from this process and from all that it starts, attempts among them."""
    if value is None:
        return
    from ..gpu.inventory import inventory

    if value.strip() != "none":
        found = inventory({k: v for k, v in os.environ.items() if k != "REB_GPUS"})
        known = {name for gpu in found.gpus for name in (str(gpu.index), gpu.number, gpu.uuid)}
        asked = [name.strip() for name in value.split(",")]
        strange = [name for name in asked if name not in known]
        if strange:
            there = ", ".join(f"{gpu.number}: {gpu.name}" for gpu in found.gpus)
            there = there or f"none ({found.why_none})"
            raise click.BadParameter(
                f"there is no GPU {strange[0]!r}; this host has {there}. "
                "Give numbers or UUIDs with commas between, or `none`"
            )
    os.environ["REB_GPUS"] = value


#: For commands that run stages.
gpus_option = click.option(
    "--gpus",
    metavar="0,1|none",
    expose_value=False,
    callback=_choose,
    help="The GPUs that stages may lease.  [default: those that CUDA_VISIBLE_DEVICES leaves]",
)
