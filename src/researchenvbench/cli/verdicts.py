"""How the verdicts of one environment are printed, and what exit code they give."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from . import EXIT_FAILED, EXIT_INCONCLUSIVE

if TYPE_CHECKING:
    from pathlib import Path

    from ..attempt import LevelResult, Record


def show_record(record: Record, folder: Path, *, as_json: bool) -> None:
    """Print a record, whose logs lie below `folder`: as JSON, or as lines for a person."""
    if as_json:
        click.echo(record.model_dump_json(indent=1, by_alias=True))
        return
    from ..results.verdicts import verdict_lines
    from .report import print_view

    print_view(verdict_lines(record, folder))


def exit_code(record: Record) -> int:
    """0 all that this host can test passed, 1 failed or disqualified, 3 inconclusive."""
    from ..attempt import AttemptStatus, Verdict

    verdicts = [result.verdict for result in record.results.values()]
    if record.status is AttemptStatus.DISQUALIFIED or Verdict.FAILED in verdicts:
        return EXIT_FAILED
    unsure = [r for r in record.results.values() if r.verdict is Verdict.INCONCLUSIVE]
    if any(not _for_want_of_hardware(result) for result in unsure):
        return EXIT_INCONCLUSIVE
    return 0


def _for_want_of_hardware(result: LevelResult) -> bool:
    from ..attempt import Level

    if result.level is Level.C5:
        return True  # it only repeats what the other levels could not decide
    return result.want is not None and result.want.is_hardware
