"""What an agent with a language model is told: one text, the same for all of them.

`task_text.md` is the text, with places for what differs between repositories and machines.
Whoever changes a word of it raises `VERSION`: results of two versions are not of one task.
"""

from __future__ import annotations

import os
import platform
import time
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from ..network_use import Network
    from . import Assignment

#: In an attempt's folder: the text that its agent was given.
TASK_TEXT = "task.md"
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


def task_text(assignment: Assignment, *, budget: tuple[str, ...] = ()) -> str:
    """The task in words: whose box, hardware, network and time are those of the assignment.

    `budget` is a line each for limits other than time.
    """
    import jinja2

    template = jinja2.Environment(
        undefined=jinja2.StrictUndefined,
        keep_trailing_newline=True,
        autoescape=False,  # noqa: S701 - a text for a model, no page
    ).from_string(_TEXT.read_text(encoding="utf-8"))
    layout = assignment.box.layout
    source = assignment.task.source if assignment.task else None
    minutes = max(0.0, assignment.deadline - time.monotonic()) / 60
    return template.render(
        repo=layout.repo,
        env=layout.env,
        report=layout.report,
        commit=getattr(source, "commit", ""),
        gpus_named=bool(assignment.gpus or assignment.target_gpus),
        machine=list(_machine(assignment)),
        network=_NETWORKS[assignment.network],
        python=assignment.python,
        date=assignment.date.date().isoformat() if assignment.date else "",
        limits=[f"Time: {minutes:.0f} minutes from now, for all of it.", *budget],
    )


def _machine(assignment: Assignment) -> list[str]:
    memory_gb = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 1e9
    lines = [f"{os.cpu_count()} processors ({platform.machine()}), {memory_gb:.0f} GB of memory"]
    shown, there = assignment.gpus, assignment.target_gpus
    if shown:
        lines.append(f"GPUs that you see: {', '.join(shown)}")
    if there:
        see = "You see these alone" if shown else "You see no GPU here"
        lines.append(
            f"{see}. The environment will be used with all of this machine's, so install for "
            f"them: {', '.join(there)}"
        )
    if not (shown or there):
        lines.append("No GPU: what needs one cannot be tried, and will not be checked here.")
    elif assignment.driver:
        lines.append(f"NVIDIA driver: {assignment.driver}")
    return lines
