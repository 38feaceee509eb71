"""What an agent with a language model is told: one text, the same for all of them.

`task_text.md` is the text, with places for what differs between repositories and machines.
Whoever changes a word of it raises `VERSION`: results of two versions are not of one task.
"""

from __future__ import annotations

import os
import platform
import time
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from ..network_use import Network
    from . import Assignment

#: Raised with every change of the text.
VERSION = 1
_TEXT = Path(__file__).with_name("task_text.md")
_NETWORKS: dict[Network, str] = {
    "full": "as this machine has it.",
    "registries": (
        "package indexes and model hubs only, through the proxy that is set in the "
        "environment (http_proxy, https_proxy); everything else is refused."
    ),
    "none": "none; install from what is on this machine.",
}


@dataclass(frozen=True)
class Target:
    """The machine that an environment is built for, where the build is not shown its GPUs."""

    gpus: tuple[str, ...] = ()  #: names with architectures
    driver: str | None = None


def task_text(
    assignment: Assignment,
    *,
    network: Network = "full",
    budget: tuple[str, ...] = (),
    target: Target | None = None,
) -> str:
    """The task in words.

    Args:
        assignment: Whose box, hardware and time are named.
        network: The build's: full, registries or none.
        budget: A line each for limits other than time.
        target: Of the host, where the build is shown none or fewer of its GPUs.
    """
    import jinja2

    template = jinja2.Environment(
        undefined=jinja2.StrictUndefined,
        keep_trailing_newline=True,
        autoescape=False,  # noqa: S701 - a text for a model, no page
    ).from_string(_TEXT.read_text(encoding="utf-8"))
    layout, target = assignment.box.layout, target or Target()
    source = assignment.task.source if assignment.task else None
    minutes = max(0.0, assignment.deadline - time.monotonic()) / 60
    return template.render(
        repo=layout.repo,
        env=layout.env,
        report=layout.report,
        commit=getattr(source, "commit", ""),
        gpus_named=bool(assignment.gpus or target.gpus),
        machine=list(_machine(assignment, target)),
        network=_NETWORKS[network],
        python=assignment.python,
        date=assignment.date.date().isoformat() if assignment.date else "",
        limits=[f"Time: {minutes:.0f} minutes from now, for all of it.", *budget],
    )


def _machine(assignment: Assignment, target: Target) -> list[str]:
    memory_gb = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 1e9
    lines = [f"{os.cpu_count()} processors ({platform.machine()}), {memory_gb:.0f} GB of memory"]
    if assignment.gpus:
        lines.append(f"GPUs that you see: {', '.join(assignment.gpus)}")
    elif target.gpus:
        lines.append(
            "You see no GPU here. The environment will be used with these, so install for "
            f"them: {', '.join(target.gpus)}"
        )
    else:
        lines.append("No GPU: what needs one cannot be tried, and will not be checked here.")
    if target.driver and (assignment.gpus or target.gpus):
        lines.append(f"NVIDIA driver: {target.driver}")
    return lines
