"""One environment's verdicts, a line a level: what `reb verify` shows."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from rich.console import Group
from rich.text import Text

from ..attempt import AttemptStatus, Level, Verdict
from .entries import Entry
from .import_counts import ImportCounts
from .layout import Hanging, path_line, whole
from .notes import all_findings, shortened
from .wording import (
    LONGEST_LABEL,
    asset_words,
    clean,
    duration,
    gpu_words,
    install_line,
    marks,
    plural,
    style,
    verdict_words,
)

if TYPE_CHECKING:
    from rich.console import RenderableType

    from ..attempt import Finding, LevelResult, Record

_WORDS_WIDTH = len("inconclusive (host)")
#: Where the lines below a verdict begin: under the level's name.
_HANG = 3
_NAMES = 8


def verdict_lines(record: Record, folder: Path | None = None) -> Group:
    """The verdicts with reasons, advice, logs and findings; logs lie below `folder`.

    Print it with `crop=False`, so that paths and commands stay whole.
    """
    lines: list[RenderableType] = []
    for level in Level:
        result = record.results.get(level)
        if result is not None:
            lines += _level(level, result, folder)
    for finding, more in shortened(all_findings(record)):
        lines.append(_finding(finding))
        if more:
            lines.append(Text(f"and {plural(more, 'more file')}; --json shows all"))
    if record.status is AttemptStatus.DISQUALIFIED:
        lines.append(Text("disqualified: what is above is recorded and does not count", "red"))
    packages = {name for r in record.results.values() for name in r.system_packages}
    if command := install_line(packages):
        lines.append(whole(f"this host misses system libraries: {command}", "yellow"))
    if record.research_ready and set(record.results) == set(Level):  # not of a part of them
        unproven = [str(level) for level, result in record.results.items() if "*" in marks(result)]
        words = "research-ready: every level that applies passed"
        if unproven:  # such as of a command that a user names, of which no product is asked for
            words = (
                f"every level that applies passed; not proven: the stage of {', '.join(unproven)}"
            )
        lines.append(Text(words, "bold green"))
    return Group(*lines)


def _level(level: Level, result: LevelResult, folder: Path | None) -> list[RenderableType]:
    line = Text(f"{level} {level.label:<{LONGEST_LABEL}}  ")
    line.append(f"{verdict_words(result):<{_WORDS_WIDTH}}", style(result))
    line.append(f"  {clean(_says(level, result), 600)}")
    notes = []
    if result.flaky:
        each = ", ".join(verdict.replace("_", " ") for verdict in result.verdicts)
        notes.append(f"flaky: {each}")
    if "*" in marks(result):
        notes.append("the stage is not proven")
    if words := gpu_words(result):
        notes.append(words)
    if words := asset_words(result):
        notes.append(f"reads {clean(words, 600)}")
    if result.fresh and result.fresh.changed:
        notes.append("not fresh: an earlier stage had changed files of the environment")
    if result.advice:
        notes.append(f"what to do: {clean(result.advice, 600)}")
    lines: list[RenderableType] = [Hanging(line, hang=_HANG)]
    lines += [Hanging(Text(note), _HANG) for note in notes]
    log = Entry("", folder=folder or Path()).log(result)
    if log and result.verdict in (Verdict.FAILED, Verdict.INCONCLUSIVE):
        lines.append(path_line("log: ", log, _HANG))
    return lines


def _says(level: Level, result: LevelResult) -> str:
    """What there is to say beside the verdict."""
    if level is Level.C0 and (counts := ImportCounts.of(result)):
        found = counts.third_party - len(counts.missing)
        parts = [f"{found} of {counts.third_party} third-party imports resolve"]
        for kind, names in (("without", counts.required), ("with", counts.optional)):
            if names:
                parts.append(f"missing, imported {kind} a fall-back: {_listed(names)}")
        # Where nothing could be asked, everything is missing, and why matters more.
        return result.reason if counts.missing_paper is None else "; ".join(parts)
    if result.verdict is Verdict.PASSED and not result.reason:
        held = sum(entry.verdict is Verdict.PASSED for entry in result.evidence)
        evidence = f", evidence {held}/{len(result.evidence)}" if result.evidence else ""
        return f"in {duration(result.seconds)}{evidence}"
    return result.reason


def _listed(names: list[str]) -> str:
    more = f" and {len(names) - _NAMES} more" if len(names) > _NAMES else ""
    return ", ".join(names[:_NAMES]) + more


def _finding(finding: Finding) -> Hanging:
    where = f" in {finding.where}" if finding.where else ""
    why = f": {finding.why}" if finding.why else ""
    head = "disqualifies" if finding.disqualifies else "note"
    colour = "red" if finding.disqualifies else ""
    return Hanging(Text(clean(f"{head}: {finding.what}{where}{why}", 600), colour))
