"""Reads what an agent left: its report, and what is kept of its own files."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

from pydantic import ValidationError

from ..attempt import Report
from ..errors import EnvironmentUnusableError, RefusedError

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from contextlib import AbstractContextManager
    from pathlib import Path

    from ..sandbox import Box, StageBox

REPORT_LIMIT_BYTES = 1_000_000
#: Beside what was kept: why the rest was not.
NOT_KEPT = "not-kept.txt"


def read_frozen_report(
    open_box: Callable[[], AbstractContextManager[StageBox]],
    keep: Sequence[str] = (),
    into: Path | None = None,
) -> tuple[Report | None, str | None]:
    """The report in a frozen environment; one that no box can be opened from has none.

    Files that match the globs `keep` are copied to the folder `into`.
    """
    try:
        with open_box() as box:
            if into is not None and keep:
                into.mkdir(parents=True, exist_ok=True)
                try:
                    for pattern in keep:
                        box.collect(pattern, into)
                except RefusedError as error:
                    # How large its files are is the agent's doing, and decides nothing here.
                    (into / NOT_KEPT).write_text(f"{error.args[0]}\n", encoding="utf-8")
            return read_report(box)
    except EnvironmentUnusableError as error:
        return None, str(error.args[0])


def read_report(box: Box) -> tuple[Report | None, str | None]:
    """The report that the agent left, or None and why there is no usable one."""
    try:
        text = box.read(box.layout.report, REPORT_LIMIT_BYTES)
    except RefusedError as error:
        return None, str(error.args[0])
    return parse_report(text)


def parse_report(text: bytes) -> tuple[Report | None, str | None]:
    """A report from its bytes, or None and what is wrong with them."""
    try:
        data = json.loads(text)
    except (ValueError, RecursionError) as error:
        return None, f"the report is not JSON: {error}"
    if not isinstance(data, dict):
        return None, f"the report is a {type(data).__name__}, not an object with the fields"
    try:
        return Report.model_validate(data), None
    except ValidationError as error:
        faults = [
            f"{'.'.join(str(part) for part in fault['loc'])}: {fault['msg']}"
            for fault in error.errors()
        ]
        return None, f"the report is not valid: {'; '.join(faults[:5])}"
