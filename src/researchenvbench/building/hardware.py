"""The machine: as records hold it, and whether it is the one that a build was shown."""

from __future__ import annotations

import os
import platform
from collections import Counter
from typing import TYPE_CHECKING

from ..attempt import HostFacts
from ..audit import Hardware
from ..gpu.inventory import gpu_words, inventory
from ..sandbox.host_environment import redacted_variables

if TYPE_CHECKING:
    from collections.abc import Sequence

    from ..attempt import BuildResult
    from ..sandbox import HostEnvironment


def host_facts(host: HostEnvironment) -> HostFacts:
    """This machine, as records hold it."""
    found = inventory()
    return HostFacts(
        system=f"{platform.system()} {platform.release()} {platform.machine()}",
        cpus=os.cpu_count() or 1,
        memory_bytes=os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES"),
        gpus=tuple(f"{gpu.name} ({gpu.architecture}) {gpu.uuid}" for gpu in found.gpus),
        driver=found.driver,
        variables=redacted_variables(host.variables),
    )


def hardware_shown(done: BuildResult) -> Hardware:
    """What the build was shown, compared with what verification sees now."""
    return compare_hardware(done.shown_gpus, [gpu_words(gpu) for gpu in inventory().gpus])


def compare_hardware(build_shown: Sequence[str], seen_now: Sequence[str]) -> Hardware:
    """Whether the GPUs are of the same kinds, and at least as many as the build was shown.

    More of the same kind are the same hardware: what a framework can do with one does not
    depend on how many others there are.
    """
    shown, seen = Counter(build_shown), Counter(seen_now)
    same = shown.keys() == seen.keys() and shown <= seen
    return Hardware(same=same, shown=len(build_shown))
