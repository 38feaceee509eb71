"""The clock of builds: one that nobody sets, and that containers see as `/proc/uptime`."""

from __future__ import annotations

import time


def now() -> float:
    """Seconds since the machine started, those in which it slept among them."""
    return time.clock_gettime(time.CLOCK_BOOTTIME)
