"""Phase 1: a task and an agent become a frozen environment and a report.

work.py       opens a box, lets an agent work in it, freezes it, reads what was left
given.py      what the agent is given, and the digests by which a build is known
reports.py    the agent's report
hardware.py   the machine on which it was built
"""

from __future__ import annotations

from .given import assignment, build_key, given_digest
from .hardware import compare_hardware, hardware_shown, host_facts
from .reports import REPORT_LIMIT_BYTES, parse_report, read_frozen_report, read_report
from .work import Building, build

__all__ = [
    "REPORT_LIMIT_BYTES",
    "Building",
    "assignment",
    "build",
    "build_key",
    "compare_hardware",
    "given_digest",
    "hardware_shown",
    "host_facts",
    "parse_report",
    "read_frozen_report",
    "read_report",
]
